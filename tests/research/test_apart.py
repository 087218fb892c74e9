"""A real Host's process has no code that reads or answers in the clear; a report names what comparisons sent in any process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.protocols.transport.codec import encode
from backend.research.baselines.messages import AskCandidates, AskWalk, CandidateLeaves, PassOn, StartWalk, Walked

ROOT = Path(__file__).resolve().parents[2]
IN_THE_CLEAR = (
    StartWalk("c", "m", ("a",)),
    AskWalk("c", True, b"\0", b"\0"),
    Walked("c", b"\0"),
    PassOn("c", 1, b"\0", b"\0"),
    AskCandidates("c", "m", ("a",)),
    CandidateLeaves("c", b"\1", b"\1"),
)
SCRIPT = """
import json, sys
from types import SimpleNamespace
from backend.cli import host
from backend.errors import SecurityError
from backend.protocols.transport.codec import decode
from backend.services import host_check, host_operation, host_service

def refused(blob):
    try:
        return type(decode(bytes.fromhex(blob))).__name__
    except SecurityError as error:
        return error.code

answer = {"loaded": [name for name in sys.modules if name.startswith("backend.research")]}
answer["refused"] = [refused(blob) for blob in json.load(sys.stdin)]

from backend.services import reports
from backend.reports.build.issued import traffic_of

entry = SimpleNamespace(body={"traffic": [["AskWalk", "bank", "telecom", 3, 90]]})
answer["reported"] = [line.holds for line in traffic_of([entry])]
print(json.dumps(answer))
"""


@pytest.fixture(scope="module")
def answer():
    """What a fresh process finds: with all that a real Host runs, then with reports."""
    blobs = [encode(message).hex() for message in IN_THE_CLEAR]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(blobs),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    return json.loads(done.stdout)


def test_a_real_hosts_process_loads_no_research_and_reads_no_message_in_the_clear(answer):
    assert answer["loaded"] == []
    assert answer["refused"] == ["message_malformed"] * len(IN_THE_CLEAR)


def test_a_report_says_what_a_comparison_sent_though_its_process_compared_nothing(answer):
    assert answer["reported"] == [AskWalk.HOLDS]
