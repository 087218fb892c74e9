"""What is counted, and that nothing but words of the program can become a label."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from backend.ops.metrics import ProcessCounts


def figures(metrics):
    """(name, label) → value."""
    return {
        (sample.name, *(value for name, value in sorted(sample.labels.items()) if name != "le")): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


def test_people_answers_stages_and_queues_are_counted():
    metrics, waiting = ProcessCounts(), [1, 2, 3]
    metrics.count_people(5, 2)
    metrics.count_people(1, 0)
    for code in (200, 200, 429, 503):
        metrics.count_answer(code)
    metrics.took("decrypt", 0.5)
    metrics.took("decrypt", 1.5)
    metrics.watch_queue("online", lambda: len(waiting))
    found = figures(metrics)
    assert found["glassleaf_people_total", "scored"] == 6 and found["glassleaf_people_total", "failed"] == 2
    assert found["glassleaf_answers_total", "200"] == 2 and found["glassleaf_answers_total", "503"] == 1
    assert ("glassleaf_refused_total", "200") not in found and found["glassleaf_refused_total", "429"] == 1
    assert found["glassleaf_stage_seconds_sum", "decrypt"] == 2.0 and found["glassleaf_queue_length", "online"] == 3
    waiting.clear()
    assert figures(metrics)["glassleaf_queue_length", "online"] == 0


@pytest.mark.parametrize("word", ["A152504", "income", "m0123456789", "platform", 'x"} 1\nevil_total{a="', ""])
def test_a_word_that_is_none_of_the_programs_becomes_other(word):
    metrics = ProcessCounts()
    metrics.took(word, 1.0)
    metrics.watch_queue(word, lambda: 1)
    metrics.count_answer(299)
    text = metrics.text().decode()
    assert not word or word not in text
    assert text.count('="other"}') >= 3 and "evil" not in text


def test_a_stage_that_fails_is_counted_too():
    metrics = ProcessCounts()
    with pytest.raises(KeyError), metrics.timed("question"):
        raise KeyError
    assert figures(metrics)["glassleaf_stage_seconds_count", "question"] == 1


def test_two_processes_counts_are_their_own():
    one, other = ProcessCounts(), ProcessCounts()
    one.count_people(1, 0)
    assert ("glassleaf_people_total", "scored") not in figures(other)
