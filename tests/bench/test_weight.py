"""The weight of an installation is that of every package that it brings, and of no other."""

from bench import tables, weight


def test_packages_that_a_package_needs_are_counted_and_those_of_an_extra_only_if_it_is_asked_for():
    found = weight.needed(["pandas"])
    assert {"numpy", "pandas", "python-dateutil", "tzdata"} >= set(found) >= {"numpy", "pandas", "python-dateutil"}
    assert "pytest" not in found
    assert "pytest" in weight.needed(["pandas[test]"])


def test_what_is_for_another_system_is_left_out():
    assert weight.needed(["numpy; sys_platform == 'nowhere'"]) == []


def test_the_heaviest_packages_come_first():
    packages = {"small": 1_000_000, "large": 70_000_000}
    installations = [{"command": "pip install .", "bytes": 71_000_000, "packages": packages}]
    written = tables.weight({"installations": installations})
    assert "`pip install .`: 71 MB in 2 packages" in written
    assert written.index("large") < written.index("small")
