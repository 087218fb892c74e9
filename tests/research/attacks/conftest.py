"""Every attack once at a small size, so that tests can share what was measured."""

import tomllib
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import pytest
from light_group import light_group
from light_obfuscators import light_obfuscators

from backend.research.attacks import (
    bad_key,
    cohort_digits,
    crafted_terms,
    crafted_weights,
    differencing,
    finer_ranks,
    forged_evidence,
    garbled_filter,
    host_reaction,
    label_theft,
    more_than_a_stump,
    moved_score,
    one_round,
    phe_leaks,
    raw_curve,
    riac_labels,
    score_identifies_path,
    second_question,
    shared_nodes,
    short_key,
    unrefreshed_reply,
)
from backend.research.attacks.lab import ATTACKS
from backend.research.attacks.setup import attack_setup

ROOT = Path(__file__).resolve().parents[3]
BITS = 512  # of keys: for arithmetic, not for secrets
PEOPLE = 1500

SMALL = {
    "A1": lambda: unrefreshed_reply.run(1, BITS, entries=400),
    "A2": lambda: bad_key.run_ciphertexts(1, BITS),
    "A2-key": lambda: bad_key.run_key(1, BITS),
    "A3": lambda: phe_leaks.run_chain(1, BITS),
    "A4": lambda: phe_leaks.run_exponents(1, BITS),
    "A5": lambda: score_identifies_path.run(1, PEOPLE, targets=150),
    "A6": lambda: crafted_weights.run(1, BITS, PEOPLE),
    "A7": lambda: host_reaction.run(1, BITS, PEOPLE),
    "A8": lambda: differencing.run(1, PEOPLE, targets=40, queries=32),
    "A9": lambda: short_key.run(1, BITS),
    "P1": lambda: second_question.run_changed_row(1, PEOPLE, targets=1),
    "P2": lambda: second_question.run_other_id(1, PEOPLE, targets=1),
    "P3": lambda: forged_evidence.run_log(1, logs=4),
    "P4": lambda: forged_evidence.run_flood(1, rounds=4),
    "P5": lambda: second_question.run_dither(1, PEOPLE, targets=20),
    "P10": lambda: crafted_terms.run(1, PEOPLE, targets=10),
    "T1": lambda: riac_labels.run(1, BITS, blocks=3),
    "T2": lambda: garbled_filter.run(1, ids=1000),
    "T3": lambda: raw_curve.run(1),
    "T4": lambda: shared_nodes.run(1),
    "T5": lambda: one_round.run(1, BITS, PEOPLE, targets=15),
    "H1": lambda: more_than_a_stump.run(1, PEOPLE, targets=200),
    "H2": lambda: cohort_digits.run(1, BITS, PEOPLE),
    "H3": lambda: finer_ranks.run(1, PEOPLE, pairs=4000),
    "H4": lambda: label_theft.run(1, PEOPLE),
    "H5": lambda: moved_score.run(1, BITS, PEOPLE),
}
# What they attack is neither how ids are aligned nor how a ciphertext is made fresh.
LIGHT = {"A5", "A6", "A7", "A8", "H5", "P1", "P2", "P5", "P10", "T4", "T5"}


@contextmanager
def light_crypto():
    with light_group(), light_obfuscators():
        yield


@pytest.fixture(scope="session")
def measured():
    """Id of an attack → its outcome, measured once; a defence is called planned where none is shipped."""
    texts = tomllib.loads((ROOT / "assets" / "texts" / "en.toml").read_text(encoding="utf-8"))["attack"]

    @cache
    def measure(id_):
        with light_crypto() if id_ in LIGHT else nullcontext():
            outcome = SMALL[id_]()
        assert texts[f"{ATTACKS[id_].text}_defence"].startswith("Planned:") == (outcome.on is None)
        return outcome

    return measure


@pytest.fixture(scope="session")
def setup():
    """What the attacks on scoring start from."""
    with light_crypto():
        return attack_setup(PEOPLE)


@pytest.fixture(scope="session")
def key_bits():
    return BITS
