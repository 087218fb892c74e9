"""`docs/architecture.py --check` on a small tree: it passes as it stands, and each mistake alone makes it fail."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "architecture.py"
LAYERS = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["app", "backend"]

[[tool.importlinter.contracts]]
type = "layers"
containers = ["backend"]
layers = ["services", "results : jobs", "crypto | trees", "errors"]
"""
MESSAGES = '''
class Ask(Message):
    """What is asked."""

    HOLDS = ""
    ids: list
'''
TREE = {
    "app/__init__.py": "from backend.services import Glassleaf\n",
    "backend/__init__.py": "",
    "backend/services/__init__.py": "from backend.crypto import keys\nfrom backend import results\n",
    "backend/results.py": "import backend.trees\nfrom backend import jobs\n",
    "backend/jobs.py": "import backend.errors\n",
    "backend/crypto/__init__.py": "",
    "backend/crypto/keys.py": "from backend import errors\n",
    "backend/trees/__init__.py": "",
    "backend/errors.py": "",
    "backend/protocols/scoring/messages.py": MESSAGES,
    "assets/texts/en.toml": '[message]\nAsk.holds = "ids"\nAsk.readable = "a Host"\nMore.holds = "all"\nMore.readable = "a Host"\n',
    "docs/architecture.md": "# A\n\n<!-- messages -->\n<!-- end -->\n",
    "pyproject.toml": LAYERS,
}


@pytest.fixture(scope="module")
def architecture():
    spec = importlib.util.spec_from_file_location("architecture", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def house(tmp_path, architecture):
    """The small tree, its page written."""
    for name, body in TREE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body, encoding="utf-8")
    assert architecture.main([], tmp_path) == 0
    return tmp_path


def add(house, name, body):
    file = house / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((file.read_text(encoding="utf-8") if file.exists() else "") + body, encoding="utf-8")


def test_a_house_in_order_passes(house, architecture):
    assert architecture.main(["--check"], house) == 0


def test_the_table_names_messages_and_their_fields(house):
    assert "| Ask | ids | a Host | `ids` |" in (house / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_table_names_fields_that_messages_share(house, architecture):
    shared = "\n\nclass People:\n    people: list\n\n\nclass More(People, Message):\n    more: int\n"
    add(house, "backend/protocols/scoring/messages.py", shared)
    architecture.main([], house)
    assert "| More | all | a Host | `people`, `more` |" in (house / "docs" / "architecture.md").read_text(
        encoding="utf-8"
    )


def test_a_message_that_is_not_in_the_table_fails(house, architecture):
    add(house, "backend/protocols/scoring/messages.py", "\n\nclass More(Ask):\n    pass\n")
    assert architecture.problems(house) == []
    assert architecture.main(["--check"], house) == 1


def test_more_packages_than_are_wanted_fail_and_loose_modules_count(house, architecture):
    room = architecture.MAX_PACKAGES - len(architecture.package_imports(house))
    for i in range(room):
        add(house, f"backend/module_{i}.py", "")
    assert architecture.main(["--check"], house) == 0
    add(house, "backend/one_more.py", "")
    assert architecture.main(["--check"], house) == 1


@pytest.mark.parametrize(
    ("file", "line", "pair"),
    [
        ("backend/crypto/keys.py", "import backend.services\n", ("backend.crypto", "backend.services")),
        ("backend/jobs.py", "def f():\n    from backend import services\n", ("backend.jobs", "backend.services")),
        ("backend/trees/shap.py", "from backend.crypto.keys import Key\n", ("backend.trees", "backend.crypto")),
        ("backend/errors.py", "from app import texts\n", ("backend.errors", "app")),
    ],
    ids=["up", "up, inside a function", "beside, divided by |", "the dashboard"],
)
def test_an_import_that_does_not_run_downwards_fails(house, architecture, file, line, pair):
    add(house, file, line)
    assert architecture.upward(architecture.package_imports(house), architecture.layers(house)) == [pair]
    assert architecture.main(["--check"], house) == 1


def test_what_only_annotates_may_name_an_upper_package(house, architecture):
    add(house, "backend/errors.py", "if TYPE_CHECKING:\n    from backend.services import Glassleaf\n")
    assert architecture.main(["--check"], house) == 0


def test_a_circle_fails_also_between_packages_of_one_layer(house, architecture):
    add(house, "backend/jobs.py", "from backend.results import Score\n")
    imports = architecture.package_imports(house)
    assert architecture.upward(imports, architecture.layers(house)) == []
    circle = architecture.first_circle(imports)
    assert (set(circle), len(circle)) == ({"backend.jobs", "backend.results"}, 3)
    assert architecture.main(["--check"], house) == 1
