"""A phrase of a rule pack cannot make a search run for long."""

import time

import pytest

from backend.compliance.phrases import MAX_OPTIONALS, Phrase, PhraseMatch


def test_a_phrase_of_many_optional_elements_is_refused_and_one_of_the_most_ends_soon():
    with pytest.raises(ValueError, match="found 28 optional elements"):
        Phrase.of("[a] " * 28 + "income", {})
    phrase = Phrase.of("[a] " * MAX_OPTIONALS + "income", {})
    began = time.process_time()
    assert not phrase.find(PhraseMatch.of("a " * 250 + "b"))
    assert time.process_time() - began < 2
