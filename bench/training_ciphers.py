"""Training on ciphertexts on the credit-card data: a tree under each cipher, a whole model under RLWE, and a tree over a million rows.

Seconds a tree are those of growth, both parties on the cores of this machine, alignment left out; bytes are gradients and sums on the wire.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import xgboost
from numpy.typing import NDArray

from backend.crypto.rlwe.coefficients import blocks, groups
from backend.crypto.rlwe.parameters import RlweParameters
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.ring import ring
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
from backend.protocols.transport.transcript import TranscriptEntry
from backend.services import Glassleaf
from backend.services.training import TrainingRequest
from bench.aims import TREE_SECONDS
from bench.floors import RlweFloor
from bench.setting import ABSENT, add_credit_card, fresh_glassleaf, progress, run, train
from bench.tables import training_ciphers as describe
from bench.timing import seconds_of
from bench.training import xgboost_beside

PARAMETERS = SecureBoostParameters(trees=3, depth=4, bins=32, learning_rate=0.1, key_bits=2048)
CIPHERS = ("none", "rlwe", "paillier")
SAMPLED = 0.1  # of the rows of a tree, by largest gradient and of the others, where sampling is measured
WHOLE = 100  # trees
NUMBERS = 2  # polynomials a block: gradients and hessians
SUMS = ("Gradients", "AskBinSums", "AskNodeSums", "NodePairs", "BinSums")
ROWS = 1_000_000
FEATURES = 10
GRADIENT = 1 << 30
LEVELS = 4  # of splits of the tree over many rows

Integers = NDArray[np.int64]
Bins = list[tuple[NDArray[np.intp], int]]


def measure(quick: bool = False) -> dict[str, Any]:
    """A short training a cipher, and one large tree; on the demo's people where the data is absent."""
    with fresh_glassleaf() as glassleaf:
        name = None if quick else add_credit_card(glassleaf)
        skipped = {} if name else {"skipped": ABSENT}
        wanted = replace(PARAMETERS, trees=2, depth=2) if quick else PARAMETERS
        federation = name or glassleaf.training.prepare_demo()
        trained = [_trained(glassleaf, federation, wanted, cipher) for cipher in CIPHERS]
        fewer = replace(wanted, goss_top=SAMPLED, goss_other=SAMPLED)
        sampled = _trained(glassleaf, federation, fewer, "paillier-short") | {"share": 2 * SAMPLED}
        whole = _whole(glassleaf, federation, replace(wanted, trees=2 if quick else WHOLE))
    same = len({row.pop("content_hash") for row in trained}) == 1
    sampled.pop("content_hash")  # fewer rows, other trees
    sizes = {"federation": name or "demo", "rows": trained[0]["rows"], "trees": wanted.trees, "depth": wanted.depth}
    found = {"bins": wanted.bins, "same_trees": same, "ciphers": trained, "sampled": sampled, "whole": whole}
    return skipped | sizes | found | _large(20_000 if quick else ROWS)


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
        "key_bits": parameters.key_bits if cipher.startswith("paillier") else 0,
        "rows": record.parts["training"],
        "seconds_a_tree": seconds[-1] / len(seconds),
        "seconds_a_later_tree": (seconds[-1] - seconds[0]) / (len(seconds) - 1),
        "bytes_a_tree": sum(sent[kind] for kind in SUMS) / len(seconds),
        "content_hash": record.content_hash,
        **(_floor(job.transcript, record.parts["training"], len(seconds)) if cipher == "rlwe" else {}),
    }


def _floor(transcript: Sequence[TranscriptEntry], rows: int, trees: int) -> dict[str, Any]:
    """What a tree takes at least over all cores: transforms of what was encrypted, multiplied by, sealed and decrypted.

    0/1 polynomials of the nodes with most rows, the roots, are kept between trees and not counted.
    """
    parameters = sum_parameters(rows)
    of = ring(parameters.name)
    nodes = list[list[int]]()
    under_way = dict[str, list[int]]()
    for entry in transcript:
        if entry.kind == "AskNodeSums":
            under_way[entry.receiver] = [0, 0]
            nodes.append(under_way[entry.receiver])
        elif entry.kind == "NodePairs":
            under_way[entry.receiver][0] += entry.bytes // of.seeded_width
        elif entry.kind == "BinSums":
            under_way[entry.sender][1] += entry.bytes // of.full_width
    largest = max(sent for sent, _ in nodes)
    masks = sum(sent * replies for sent, replies in nodes if sent < largest) // NUMBERS**2
    blocks_sent, replies = (sum(node[i] for node in nodes) for i in (0, 1))
    return _transforms(parameters, blocks_sent // trees, replies // trees, masks // trees)


def _transforms(parameters: RlweParameters, sent: int, replies: int, masks: int) -> dict[str, Any]:
    """Floor in seconds over all cores, and what it counts, of so many ciphertexts sent, replies, and 0/1 polynomials."""
    key = RlweKeySide(RlweSecretKey.generate(parameters))
    cost = RlweFloor(RlwePublicSide(key.offer()).zeros).costs["transform"]
    primes = len(parameters.data_bits)
    # a message with its noise; v, e₁ and the flood of a reply, and back
    count = primes * (sent + 4 * replies + masks)
    words = f"{count:,} transforms of {sent:,} blocks, {replies:,} replies and {masks:,} polynomials of bins"
    return {"floor_seconds_a_tree": count * cost / cores(), "floor": words}


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
        "aim": {"at_most": TREE_SECONDS, "reached": lattice.seconds <= TREE_SECONDS},
    }


def _large(rows: int) -> dict[str, Any]:
    """A tree over many rows, gradients and hessians apart: the root, and of every node below it the smaller child, half as large."""
    progress(f"a root of {rows:,} rows")
    draw = np.random.default_rng(0)
    values = np.stack([draw.integers(-GRADIENT, GRADIENT, rows), draw.integers(0, GRADIENT // 4, rows)])
    bins = [(draw.integers(0, 33, rows).astype(np.intp), 33) for _ in range(2 * FEATURES)]
    own = bins[:FEATURES]
    theirs = bins[FEATURES:]
    workers = Workers(cores())
    key = RlweSumKey(RlweKeySide(RlweSecretKey.generate(sum_parameters(rows))), workers)
    host = RlwePublicSide(key.offer(), workers=workers)
    root = _node(key, host, values, theirs)
    max_features = features_a_reply(key.parameters, rows)
    counts = [count for _, count in theirs]
    widest = max(_features(group, counts) for group in groups(counts, root["block"], key.bits, max_features))
    noise = {
        "features": FEATURES,
        "set": key.parameters.name,
        "peak_bytes": _peak(),
        "noise_bits": float(np.log2(float(sum_noise(key.parameters, rows * widest)))),
        "allowed_bits": float(np.log2(float(noise_allowed(key.parameters)))),
        "flood_bits": float(np.log2(float(flood_range(key.parameters)))) + 63,
    }
    nodes = [root]
    for level in range(1, LEVELS):
        progress(f"level {level} of the tree")
        size = rows >> level
        for part in (slice(i * size, (i + 1) * size) for i in range(1 << (level - 1))):
            nodes.append(_node(key, host, values[:, part], [(index[part], count) for index, count in theirs]))
    guest = LEVELS * seconds_of(_sums, values, own)
    spent = guest + sum(node[f"{step}_seconds"] for node in nodes for step in ("encrypt", "sum", "decrypt"))
    totals = [sum(node[what] for node in nodes) for what in ("sent", "replies", "masks")]
    floor = _transforms(key.parameters, *totals)
    tree = {
        "rows": rows,
        "features": 2 * FEATURES,
        "levels": LEVELS,
        "seconds": spent,
        "bytes": sum(node["bytes"] for node in nodes),
        "peak_bytes": _peak(),
        "exact": all(node["exact"] for node in nodes),
        "xgboost_seconds": _xgboost(values[0] > 0, bins),
        "floor_seconds": floor["floor_seconds_a_tree"],
        "floor": floor["floor"],
    }
    return {"root": root | noise, "tree": tree}


def _node(key: RlweSumKey, host: RlwePublicSide, values: Integers, bins: Bins) -> dict[str, Any]:
    """The sums of one node by a Host's features."""
    rows = values.shape[1]
    counts = [count for _, count in bins]
    block = key.block(rows, [counts], len(values))
    began = time.perf_counter()
    sent = 0
    summing = host.start_sums(bins, block, len(values))
    for piece in key.encrypt(values, block):
        sent += len(piece)
        summing.add(piece)
    encrypted = time.perf_counter()
    reply = summing.finish()
    summed = time.perf_counter()
    found = key.decrypt(reply, rows, counts, block, len(values))
    done = time.perf_counter()
    cut = len(blocks(rows, block))
    shared = len(groups(counts, block, key.bits, features_a_reply(key.parameters, rows)))
    return {
        "rows": rows,
        "block": block,
        "encrypt_seconds": encrypted - began,
        "sum_seconds": summed - encrypted,
        "decrypt_seconds": done - summed,
        "bytes": sent + len(reply),
        "exact": bool((found == _sums(values, bins)).all()),
        "sent": cut * len(values),
        "replies": shared * len(values),
        "masks": cut * shared,
    }


def _sums(values: Integers, bins: Bins) -> Integers:
    """``(numbers, bins)`` in plaintext; below 2**53, so that float64 adds them exactly."""
    columns = [[np.bincount(index, v, count) for index, count in bins] for v in values]
    return np.array([np.concatenate(column) for column in columns]).astype(np.int64)


def _xgboost(labels: NDArray[np.bool_], bins: Bins) -> float:
    """Seconds of one tree on the same bins, one thread."""
    settings = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": LEVELS, "max_bin": 64, "nthread": 1}
    columns = np.column_stack([index for index, _ in bins])
    return seconds_of(
        lambda: xgboost.train(settings, xgboost.DMatrix(columns, labels.astype(int), nthread=1), num_boost_round=1)
    )


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
