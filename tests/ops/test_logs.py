"""A line of JSON an event; no text that somebody else wrote gets into one."""

import io
import json
import logging
import re
from pathlib import Path

import pytest

from backend.errors import SampleError, SecurityError
from backend.ops.logs import JsonLines
from backend.remark import Remark

BACKEND = Path(__file__).resolve().parents[2] / "backend"
PERSON = "A152504"


@pytest.fixture
def log():
    """A logger of ours whose lines can be read."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("glassleaf")
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False

    def lines():
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    yield logger, lines
    logger.removeHandler(handler)
    logger.setLevel(level)
    logger.propagate = propagates


def test_an_event_is_a_line_with_its_words_numbers_and_conversation(log):
    logger, lines = log
    logger.info("%d of %d were scored.", 3, 4, extra={"conversation": "a" * 32, "seconds": 0.25, "lane": "online"})
    (line,) = lines()
    assert line["event"] == "%d of %d were scored." and line["numbers"] == [3, 4]
    assert (line["conversation"], line["seconds"], line["lane"]) == ("a" * 32, 0.25, "online")
    assert line["level"] == "info" and line["time"].endswith("+00:00")


def test_a_cause_is_a_code_and_a_party_has_a_name(log):
    logger, lines = log
    why = Remark("link_silent", {"id": PERSON})
    logger.warning("A link has ended: %s", why, extra={"party": "shop"})
    logger.warning(
        "A call was refused: %s", SecurityError("bits_reached", id=PERSON, days=28, bits=9), extra={"party": PERSON}
    )
    ended, refused = lines()
    assert (ended["cause"], ended["party"]) == ("link_silent", "shop")
    assert refused["cause"] == "bits_reached" and "party" not in refused
    assert PERSON not in json.dumps([ended, refused])


def test_nobodys_id_gets_into_a_line_however_it_is_handed_in(log):
    logger, lines = log
    logger.warning("Refused: %s in the role %s.", PERSON, "regulator")
    logger.warning("Refused: %(who)s", {"who": PERSON})
    logger.error("A batch failed: %s", SampleError(f"{PERSON} has no income"))
    logger.error("A batch failed: %s\n%s", "SampleError", "not a trace of " + PERSON)
    logger.info("Scored.", extra={"conversation": PERSON, "lane": PERSON, "people": PERSON, "person": PERSON})
    logger.info("Two\nlines")
    try:
        raise SampleError(f"{PERSON} has no income")
    except SampleError:
        logger.exception("A request failed")
    found = lines()
    assert len(found) == 7 and PERSON not in json.dumps(found)
    assert [line.get("error") for line in found[2:4]] == ["SampleError"] * 2 and found[-1]["error"] == "SampleError"
    assert "test_logs.py" in found[-1]["trace"]


def test_what_a_library_logs_is_said_without_its_words(log):
    record = logging.LogRecord("werkzeug", logging.INFO, "", 0, f"GET /people/{PERSON}", (), None)
    assert PERSON not in JsonLines().format(record)


def test_our_own_events_have_fixed_words():
    """What is filled in stands behind the words, where it can be left out."""
    for file in BACKEND.rglob("*.py"):
        assert not re.search(r"_log\.\w+\(\s*(f[\"']|\w+[,)]|[\"'][^\"']*[\"']\s*[%+.])", file.read_text("utf-8")), file
