"""Training on ciphertexts on the credit-card data: a tree under each cipher, a whole model under RLWE, and the root over a million rows.

Seconds a tree are those of growth, both parties on the cores of this machine, alignment left out; bytes are gradients and sums on the wire.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from backend.crypto.rlwe.coefficients import groups
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_key import RlweSumKey
from backend.crypto.rlwe.sum_parameters import (
    features_a_reply,
    flood_range,
    noise_allowed,
    sum_noise,
    sum_parameters,
)
from backend.crypto.workers import Workers, cores
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.training import TrainingRequest
from bench.setting import ABSENT, add_credit_card, fresh_glassleaf, progress, run, train
from bench.tables import training_ciphers as describe
from bench.training import xgboost_beside

PARAMETERS = SecureBoostParameters(trees=3, depth=4, bins=32, learning_rate=0.1, key_bits=2048)
CIPHERS = ("none", "rlwe", "paillier")
WHOLE = 100  # trees
AIM = 120  # seconds of them on two cores
SUMS = ("Gradients", "AskBinSums", "AskNodeSums", "NodePairs", "BinSums")
ROWS, FEATURES = 1_000_000, 10
GRADIENT = 1 << 30


def measure(quick: bool = False) -> dict[str, Any]:
    """A short training a cipher, and one root; on the demo's people where the data is absent."""
    with fresh_glassleaf() as glassleaf:
        name = None if quick else add_credit_card(glassleaf)
        skipped = {} if name else {"skipped": ABSENT}
        wanted = replace(PARAMETERS, trees=2, depth=2) if quick else PARAMETERS
        federation = name or glassleaf.training.prepare_demo()
        trained = [_trained(glassleaf, federation, wanted, cipher) for cipher in CIPHERS]
        whole = _whole(glassleaf, federation, replace(wanted, trees=2 if quick else WHOLE))
    same = len({row.pop("content_hash") for row in trained}) == 1
    sizes = {"federation": name or "demo", "rows": trained[0]["rows"], "trees": wanted.trees, "depth": wanted.depth}
    large = _root(20_000 if quick else ROWS)
    return (
        skipped | sizes | {"bins": wanted.bins, "same_trees": same, "ciphers": trained, "whole": whole, "root": large}
    )


def _trained(glassleaf: Glassleaf, federation: str, parameters: SecureBoostParameters, cipher: Any) -> dict[str, Any]:
    """One training; the first tree, which makes keys and tables, stands by itself."""
    progress(f"training under {cipher}")
    chosen = replace(parameters, cipher=cipher)
    job = glassleaf.training.start(TrainingRequest(federation, chosen, most_named=1.0))
    record = job.get()
    sent: Counter[str] = Counter()
    for entry in job.transcript:
        sent[entry.kind] += entry.bytes
    seconds = [point.seconds for point in record.curve]
    return {
        "cipher": cipher,
        "key_bits": parameters.key_bits if cipher == "paillier" else 0,
        "rows": record.parts["training"],
        "seconds_a_tree": seconds[-1] / len(seconds),
        "seconds_a_later_tree": (seconds[-1] - seconds[0]) / (len(seconds) - 1),
        "bytes_a_tree": sum(sent[kind] for kind in SUMS) / len(seconds),
        "content_hash": record.content_hash,
    }


def _whole(glassleaf: Glassleaf, federation: str, parameters: SecureBoostParameters) -> dict[str, Any]:
    """A whole model, alignment and messages included, beside the same on plaintext and XGBoost's."""
    progress(f"{parameters.trees} trees under RLWE, and on plaintext")
    lattice, plain = (train(glassleaf, federation, replace(parameters, cipher=cipher)) for cipher in ("rlwe", "none"))
    _, xgboost_seconds = xgboost_beside(glassleaf, lattice)
    return {
        "trees": parameters.trees,
        "seconds": lattice.seconds,
        "plain_seconds": plain.seconds,
        "xgboost_seconds": xgboost_seconds,
        "same_trees_as_plain": lattice.content_hash == plain.content_hash,
        "aim": {"at_most": AIM, "reached": lattice.seconds <= AIM},
    }


def _root(rows: int) -> dict[str, Any]:
    """The sums of all rows by a Host's features, gradients and hessians apart: the largest node of a tree."""
    progress(f"a root of {rows:,} rows")
    draw = np.random.default_rng(0)
    values = np.stack([draw.integers(-GRADIENT, GRADIENT, rows), draw.integers(0, GRADIENT // 4, rows)])
    bins = [(draw.integers(0, 33, rows).astype(np.intp), 33) for _ in range(FEATURES)]
    workers = Workers(cores())
    key = RlweSumKey(RlweKeySide(RlweSecretKey.generate(sum_parameters(rows))), workers)
    host, counts = RlwePublicSide(key.offer(), workers=workers), [count for _, count in bins]
    block = key.block(rows, [counts], len(values))
    began, sent = time.perf_counter(), 0
    summing = host.start_sums(bins, block, len(values))
    for piece in key.encrypt(values, block):
        sent += len(piece)
        summing.add(piece)
    encrypted = time.perf_counter()
    reply = summing.finish()
    summed = time.perf_counter()
    found = key.decrypt(reply, rows, counts, block, len(values))
    done = time.perf_counter()
    expected = [[int(v[index == b].sum()) for index, count in bins for b in range(count)] for v in values]
    most = features_a_reply(key.parameters, rows)
    widest = max(_features(group, counts) for group in groups(counts, block, key.bits, most))
    return {
        "rows": rows,
        "features": FEATURES,
        "set": key.parameters.name,
        "block": block,
        "encrypt_seconds": encrypted - began,
        "sum_seconds": summed - encrypted,
        "decrypt_seconds": done - summed,
        "bytes": sent + len(reply),
        "peak_bytes": _peak(),
        "exact": bool((found == np.array(expected)).all()),
        "noise_bits": float(np.log2(float(sum_noise(key.parameters, rows * widest)))),
        "allowed_bits": float(np.log2(float(noise_allowed(key.parameters)))),
        "flood_bits": float(np.log2(float(flood_range(key.parameters)))) + 63,
    }


def _features(group: range, counts: list[int]) -> int:
    owner = np.repeat(np.arange(len(counts)), counts)
    return len(set(owner[list(group)].tolist()))


def _peak() -> int:
    """Most memory that this process and its workers have held, each at its own worst, bytes."""
    own = psutil.Process()
    return sum(_high_water(process.pid) for process in (own, *own.children(recursive=True)))


def _high_water(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    run(__doc__, measure, describe)
