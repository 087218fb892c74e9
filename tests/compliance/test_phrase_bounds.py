"""A phrase of a rule pack cannot make a search run for long."""

import time

import pytest

from backend.compliance.phrases import MAX_ELEMENTS, Phrase, PhraseMatch

LISTS = {"thing": ["a", "a a", "a a a"]}
# each reads "a a a …" in more ways than can be tried
DOUBLING = {
    "optional": "[a] " * 28 + "income",
    "the_same_word_twice": "a|a " * 28 + "income",
    "a_word_and_its_prefix": "a|a*|*a|a " * 28 + "income",
    "entries_of_a_list": "{thing} " * 28 + "income",
    "in_chinese": "[入] " * 28 + "收",
    "in_chinese_of_two_lengths": "入|入入 " * 28 + "收",
}
LONG = PhraseMatch.of("a " * 200 + "b"), PhraseMatch.of("入" * 400 + "b")


@pytest.mark.parametrize("source", DOUBLING.values(), ids=DOUBLING)
def test_no_phrase_runs_for_long(source):
    phrase = Phrase.of(source, LISTS)
    began = time.process_time()
    assert not any(phrase.find(text) for text in LONG)
    assert time.process_time() - began < 1


def test_a_phrase_of_too_many_elements_is_refused():
    with pytest.raises(ValueError, match=f"found 50 elements .* at most {MAX_ELEMENTS}"):
        Phrase.of("a " * 50, {})


def test_the_first_choice_that_leads_to_the_end_is_taken():
    found = Phrase.of("[a] {thing} b", LISTS)
    assert found.find(PhraseMatch.of("a a a a b a b")) == [(0, 9), (10, 13)]
    assert Phrase.of("^ a|b !c d* $", {}).find(PhraseMatch.of("b debt")) == [(0, 6)]
    assert Phrase.of("^ a|b !c $", {}).find(PhraseMatch.of("b c")) == []
    assert Phrase.of("^ 工|工会 费", {}).find(PhraseMatch.of("工会费")) == [(0, 3)]
    assert Phrase.of("男", {}).find(PhraseMatch.of("男/女, 男装")) == [(0, 1)]
