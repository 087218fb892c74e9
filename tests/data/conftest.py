"""A federation of two parties with three people, small enough to read."""

from pathlib import Path

import pytest

TOML = """\
name = "tiny"
title = "Tiny"

[label]
column = "late"
positive = "yes"
meaning = "Paid late"

[guest]
name = "bank"
title = "The bank"
file = "bank.csv"
id = "id"

[[guest.features]]
name = "income"
meaning = "Income"

[[guest.features]]
name = "home"
meaning = "Home"
kind = "categorical"
missing = ["NA"]

[[hosts]]
name = "shop"
title = "The shop"
file = "shop.csv"
id = "customer"

[[hosts.features]]
name = "member"
meaning = "Is a member"
kind = "boolean"
"""

BANK = "id,income,home,late\na,10,own,yes\nb,,rent,no\nc,30.5,NA,no\n"
SHOP = "member,customer\nno,c\nTRUE,a\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    (tmp_path / "federation.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "bank.csv").write_text(BANK, encoding="utf-8")
    (tmp_path / "shop.csv").write_text(SHOP, encoding="utf-8")
    return tmp_path


@pytest.fixture
def edit(tiny: Path):
    """Replace a text, which must be there, in one of the tiny federation's files."""

    def replace(file: str, old: str, new: str) -> Path:
        text = (tiny / file).read_text(encoding="utf-8")
        assert old in text
        (tiny / file).write_text(text.replace(old, new, 1), encoding="utf-8")
        return tiny

    return replace
