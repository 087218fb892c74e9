"""The page on validation has the suite's table, and its example of an operator's file loads."""

import re
from pathlib import Path

from backend.evaluation.validation.suite import read_config, standard, with_config
from docs import validation

PAGE = Path(validation.TARGET).read_text(encoding="utf-8")


def test_the_table_is_that_of_the_data_file():
    assert validation.START + validation.table() + validation.END in PAGE
    assert validation.table().count("\n| `") == 25


def test_the_example_of_an_operators_file_is_one(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(re.search(r"```toml\n(.*?)```", PAGE, re.S)[1], encoding="utf-8")
    suite = with_config(standard(), read_config(file))
    assert (suite.cutoff, list(suite.off), suite.tightened) == (0.3, ["proxies"], ("auc",))
