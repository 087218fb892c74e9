"""The examples in docstrings run as they are written."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def modules_with_examples():
    names = []
    for package in ("backend", "app"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if ">>> " in file.read_text(encoding="utf-8"):
                names.append(".".join(file.relative_to(ROOT).with_suffix("").parts))
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_give_what_they_say(name):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted > 0
    assert done.failed == 0
