"""The page on the papers and its charts are those that the results give."""

from bench.paper.__main__ import DOCS, RESULTS, read
from bench.paper.page import stale


def test_the_committed_page_and_charts_are_those_that_the_committed_results_give():
    assert stale(read(RESULTS), DOCS) == []
