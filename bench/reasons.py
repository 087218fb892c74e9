"""What reasons cost beside the score alone and beside plain `phe`, and whether the names are those of plaintext SHAP values.

One thread and processor seconds; the parties take turns, so that each one's are its own. An operator's view: it holds all partial models
and records. The peer works with `phe`'s floats, leaf by leaf; its operations are counted and one of each is timed. Refreshing and finding
the largest are not charged, so its figure is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
import phe
from numpy.typing import NDArray

from backend.crypto.interface import KeySide
from backend.crypto.paillier.keys import KEY_BITS, PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.crypto.rlwe.product_parameters import keys_for
from backend.crypto.rlwe.public import RlwePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.trees.shap import paths
from bench.alignment import Meter, summary
from bench.cases import Case, credit_card_case, demo_case
from bench.chain import median_seconds, run_chain
from bench.engines import rlwe_sides
from bench.floors import RlweFloor
from bench.reason_pipeline import NAMES, Parties, ReasonPipeline
from bench.setting import ABSENT, progress, run
from bench.tables import reasons as describe

KEYS = (2048, 3072)
PEOPLE = 3  # of whom each is timed; the first pays for tables and is left out
COHORT = 200  # people of a group
FEW = 5  # of them that are measured under Paillier; the figures of all are extrapolated from theirs
FAITHFUL = 200  # samples whose names are compared
DITHER = (2.0**-6, 2.0**-4)  # widths on the margin


def measure(
    keys: Sequence[int] = KEYS, people: int = PEOPLE, faithful: int = FAITHFUL, cohort: int = COHORT
) -> dict[str, Any]:
    """Both models, the second where its data is there."""
    cases = [case for case in (demo_case(), credit_card_case()) if case is not None]
    rows = []
    groups = []
    faith = []
    for case in cases:
        parties = Parties.of(case)
        for bits in (0, *keys):
            progress(f"{case.title}, {f'Paillier, {bits} bits' if bits else 'RLWE'}")
            rows.append(cost_of(parties, bits, people))
            groups.append(cohort_of(parties, bits, cohort, min(cohort, FEW) if bits else cohort))
        faith.append(faithfulness(parties, faithful))
    out: dict[str, Any] = {"names": NAMES, "rows": rows, "cohorts": groups, "faithfulness": faith}
    return out | ({} if len(cases) > 1 else {"skipped": ABSENT})


def cost_of(parties: Parties, bits: int, people: int) -> dict[str, Any]:
    """One model under a Paillier key of that size, or 0 for RLWE: medians of processor seconds, bytes, ratios."""
    case = parties.case
    pipeline = ReasonPipeline.under(parties, bits)
    key, publics = _score_sides(case, bits)
    samples = case.tables[case.model.guest].ids[: people + 1]
    runs = [(pipeline.named(s), run_chain(case, key, publics, 1, process_time)) for s in samples][1:]
    row: dict[str, Any] = {
        **case.facts(),
        "cipher": pipeline.cipher,
        "key_bits": pipeline.bits,
        "key_bytes": pipeline.key_bytes,
    }
    row |= {"features": sum(parties.shape.features), "ciphertexts": pipeline.encryption.ciphertexts}
    for index, name in enumerate(("terms", "ranking")):
        costs = summary([meters[index] for meters, _ in runs])
        row |= {f"{name}_{field}": value for field, value in costs.items()}
        row[f"{name}_bytes"] = costs["guest_bytes"] + costs["host_bytes"]
    row |= {
        f"score_{field}": value for field, value in median_seconds([run for _, run in runs], case.model.guest).items()
    }
    row["score_bytes"] = sum(runs[0][1].bytes.values())
    row["bytes"] = pipeline.key_bytes + row["terms_bytes"] + row["ranking_bytes"]
    row["seconds"] = sum(row[f"{n}_{p}_seconds"] for n in ("terms", "ranking") for p in ("guest", "host"))
    row["to_score"] = row["seconds"] / row["score_seconds"]
    row |= _peer(parties, bits or KEY_BITS)
    row["ratio"] = row["peer_seconds"] / (row["terms_guest_seconds"] + row["terms_host_seconds"])
    return row


def _score_sides(case: Case, bits: int) -> tuple[KeySide, list[Any]]:
    """A key for scores, generated as the one for reasons is."""
    if not bits:
        sides = rlwe_sides(case)
        return sides.key, sides.hosts
    secret = PaillierSecretKey.generate(bits, floor=min(bits, 2048))
    key = PaillierKeySide(secret)
    public = PaillierPublicSide(secret.public)
    key.obfuscators.take(1)
    return key, [public] * len(case.hosts)


def cohort_of(parties: Parties, bits: int, people: int, measured: int) -> dict[str, Any]:
    """Sums over a group under a Paillier key of that size, or 0 for RLWE; extrapolated from the first `measured` people."""
    pipeline = ReasonPipeline.under(parties, bits, people)
    meter = Meter()
    samples = parties.case.tables[parties.case.model.guest].ids[:measured]
    sums = pipeline.summed(samples, meter)
    if np.abs(sums - parties.plain(samples).sum(axis=0)).max() > measured * parties.terms.error_bound:
        raise RuntimeError("The sums are wrong.")
    times = people / measured
    setting = {"model": parties.case.title, "cipher": pipeline.cipher, "key_bits": pipeline.bits}
    return setting | {
        "people": people,
        "measured": measured,
        "guest_seconds": meter.seconds["guest"] * times,
        "host_seconds": meter.seconds["host"] * times,
        "bytes": pipeline.key_bytes + round(sum(meter.bytes.values()) * times),
        **({} if bits else _floor(parties, people, round(meter.bytes["guest"] * times))),
    }


def _floor(parties: Parties, people: int, sent: int) -> dict[str, Any]:
    """What a group takes at least on one core under RLWE: transforms of the Guest's ciphertexts and of the factors they meet."""
    parameters = keys_for(parties.shape.load(parties.terms.rows, people))[0]
    side = RlwePublicSide(RlweKeySide(RlweSecretKey.generate(parameters)).offer())
    count = sent // side.ring.seeded_width
    primes = len(parameters.data_bits)
    seconds = count * 2 * primes * RlweFloor(side.zeros).costs["transform"]
    return {"floor_seconds": seconds, "floor": f"transforms of {count:,} ciphertexts and of the factors they meet"}


def _peer(parties: Parties, bits: int) -> dict[str, Any]:
    """Plain `phe`: leaf by leaf, an encryption for every size of subsets, a product for every Host feature and size."""
    model = parties.case.model
    encryptions = products = 0
    for path in paths(model.trees):
        names = {(model.trees[t].splits[i].owner == model.guest, model.trees[t].splits[i].feature) for t, i, _ in path}
        own = sum(of_guest for of_guest, _ in names)
        theirs = len(names) - own
        if theirs:
            encryptions += own + 1 + own * own
            products += theirs * (own + 1) + own * own
    public, _ = phe.generate_paillier_keypair(n_length=bits)
    began = process_time()
    numbers = [public.encrypt(0.1 * i) for i in range(1, 6)]
    encrypted = (process_time() - began) / len(numbers)
    began = process_time()
    sum((number * (0.3 + 0.01 * i) for i, number in enumerate(numbers[1:])), numbers[0])
    multiplied = (process_time() - began) / (len(numbers) - 1)
    return {
        "peer_encryptions": encryptions,
        "peer_products": products,
        "peer_seconds": encryptions * encrypted + products * multiplied,
    }


def faithfulness(parties: Parties, people: int) -> dict[str, Any]:
    """The four names by the protocol's own integers against plain SHAP values; and under dither, which nobody adds to them."""
    case = parties.case
    own = case.tables[case.model.guest]
    samples = [own.ids[i] for i in np.random.default_rng(7).choice(len(own.ids), people, replace=False)]
    exact = parties.plain(samples)
    pipeline = ReasonPipeline.plain(parties, 1)
    released = np.array([pipeline.summed([sample], Meter()) for sample in samples])
    names = [_top(row) for row in exact]
    draw = np.random.default_rng(8)
    same = {}
    for width in DITHER:
        dithered = exact + draw.uniform(-width / 2, width / 2, exact.shape)
        same[str(width)] = float(np.mean([_top(row) == n for row, n in zip(dithered, names, strict=True)]))
    return {
        "model": case.title,
        "people": people,
        "same_names": float(np.mean([_top(row) == n for row, n in zip(released, names, strict=True)])),
        "largest_error": float(np.abs(released - exact).max()),
        "error_bound": parties.terms.error_bound,
        "same_under_dither_of_contributions": same,
    }


def _top(values: NDArray[np.float64]) -> frozenset[int]:
    best = np.argsort(-values)[:NAMES]
    return frozenset(int(i) for i in best if values[i] > 0)


if __name__ == "__main__":
    run(__doc__, measure, describe)
