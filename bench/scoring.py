"""How long one sample takes under encryption, with obfuscators made in advance and without, beside textbook use of `phe`.

*Cold*: the key is there, no obfuscator and no table is. *Warm*: every party's pool is full. *Textbook*: one `phe` ciphertext per
leaf, 0/1 times each, one decryption; measured on LEAVES_TRIED leaves and scaled to all leaves of the model, without a wire.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import phe

from backend.service import Glassleaf, ScoreBatch, ScoringRequest, TrainingParameters, TrainingRequest
from bench.setting import ABSENT, REPEATS, add_credit_card, add_demo, fresh_home, run, say

KEY_SIZES = (2048, 3072)
LEAVES_TRIED = 24
LARGE = TrainingParameters(trees=100, depth=4, learning_rate=0.1, cipher="none")


def measure() -> dict[str, Any]:
    """Every federation at every key size."""
    with fresh_home() as home:
        door = Glassleaf(home, pools=False)
        federations = [add_demo(door)]
        card = add_credit_card(door)
        if card:
            door.start_training(TrainingRequest(card, LARGE)).get()
            federations.append(card)
        models = {name: door.models(name)[0].id for name in federations}
        door.close()
        found = [_one(home, name, models[name], bits) for name in federations for bits in KEY_SIZES]
    return {"repeats": REPEATS, "leaves_tried": LEAVES_TRIED, "runs": found} | ({} if card else {"skipped": ABSENT})


def _one(home: Path, federation: str, model: str, bits: int) -> dict[str, Any]:
    say(f"{federation}, {bits} bits: cold")
    cold = [_cold(home, model, bits, place) for place in range(REPEATS + 1)][1:]  # the first makes the key
    say(f"{federation}, {bits} bits: warm")
    door = Glassleaf(home)
    warm = [_warm(door, federation, model, bits, place) for place in range(REPEATS)]
    record = door.model(model)
    door.close()
    say(f"{federation}, {bits} bits: textbook")
    textbook = median(_textbook(record.n_leaves, bits) for _ in range(REPEATS))
    return {
        "federation": federation,
        "trees": record.n_trees,
        "depth": record.depth,
        "leaves": record.n_leaves,
        "ciphertexts": warm[0].ciphertexts_per_sample,
        "key_bits": bits,
        "bytes": sum(m.bytes for m in warm[0].transcript),
        "cold_seconds": median(b.seconds for b in cold),
        "warm_seconds": median(b.seconds for b in warm),
        "textbook_seconds": textbook,
        "times_faster_warm": textbook / median(b.seconds for b in warm),
        "times_faster_cold": textbook / median(b.seconds for b in cold),
        "warm_stages": {f"{s.name} at {s.party}": s.seconds for s in warm[-1].stages},
    }


def _cold(home: Path, model: str, bits: int, place: int) -> ScoreBatch:
    door = Glassleaf(home, pools=False)
    batch = _score(door, model, bits, place)
    door.close()
    return batch


def _warm(door: Glassleaf, federation: str, model: str, bits: int, place: int) -> ScoreBatch:
    if place == 0:
        door.start_key(federation, bits)
    while not all(0 < level.ready >= level.target for level in door.pools(federation)):
        time.sleep(0.2)
    return _score(door, model, bits, place)


def _score(door: Glassleaf, model: str, bits: int, place: int) -> ScoreBatch:
    """One test record; tables are read before the clock starts."""
    frame = door.samples(model)
    sample = str(frame.index[frame["part"] == "test"][place])
    return door.start_scoring(ScoringRequest(model, door.sample_of(model, sample), key_bits=bits)).get()


def _textbook(leaves: int, bits: int) -> float:
    """Seconds for all leaves, scaled from a few."""
    public, secret = _phe_keys(bits)
    began = time.perf_counter()
    ciphertexts = [public.encrypt(3 * j - 30) for j in range(LEAVES_TRIED)]
    total = sum((c * (j % 2) for j, c in enumerate(ciphertexts)), public.encrypt(0))
    per_leaf = (time.perf_counter() - began) / (LEAVES_TRIED + 1)
    began = time.perf_counter()
    secret.decrypt(total)
    return per_leaf * leaves + time.perf_counter() - began


_KEYS: dict[int, tuple[phe.PaillierPublicKey, phe.PaillierPrivateKey]] = {}


def _phe_keys(bits: int) -> tuple[phe.PaillierPublicKey, phe.PaillierPrivateKey]:
    if bits not in _KEYS:
        _KEYS[bits] = phe.generate_paillier_keypair(n_length=bits)
    return _KEYS[bits]


def describe(found: dict[str, Any]) -> str:
    """One line a run."""
    lines = [
        f"{r['federation']}: {r['trees']} trees, {r['leaves']:,} leaves, {r['ciphertexts']:,} ciphertexts, {r['key_bits']} bits: "
        f"cold {r['cold_seconds']:.2f} s, warm {r['warm_seconds']:.2f} s, textbook phe {r['textbook_seconds']:.1f} s "
        f"({r['times_faster_warm']:.0f} times the warm time)"
        for r in found["runs"]
    ]
    return "\n".join(lines + ([f"Left out: {found['skipped']}"] if "skipped" in found else []))


if __name__ == "__main__":
    run(__doc__, measure, describe)
