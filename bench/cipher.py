"""Every cipher beside its peers, in one run and on one core: encrypt, masked sum, refresh, decrypt, one sample cold and warm, bulk, bytes.

*Cold*: tables are in memory, nothing is precomputed. *Warm*: every pool is full. Peers encrypt a number a leaf; ours fold first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierSecretKey
from backend.crypto.registry import cipher_named
from backend.crypto.workers import Workers
from bench.bulk import QUICK, TWO_CORES, bulk, two_cores
from bench.cases import Case, credit_card_case, random_case
from bench.chain import Run, median_seconds
from bench.engines import ENGINES, HOST_POOL, PAILLIER, Engine, make_engine, paillier_tables
from bench.floors import rlwe_batch
from bench.parties import ServedParties
from bench.peers import PEERS, TEXTBOOK_NUMBERS, Peer, installed_peers, phe_peer
from bench.setting import REPEATS, fresh_folder, machine, progress, run
from bench.tables import cipher as describe
from bench.timing import interleaved, median_ratio, on_cores

# of a random model
LEAVES = 1500
QUICK_LEAVES = 100
QUICK_REPEATS = 2


def measure(
    bits: Sequence[int] = (2048, 3072), engines: Sequence[str] | None = None, quick: bool = False
) -> dict[str, Any]:
    """Measure.

    Parameters
    ----------
    bits : sequence of int
        Sizes of Paillier keys, ours and peers'.
    engines : sequence of str, optional
        Names of :data:`~bench.engines.ENGINES` and :data:`~bench.peers.PEERS`; default all that are present. `phe` always is.
    quick : bool
        A small random model and fewer repetitions, to see that everything runs.

    Raises
    ------
    ParameterError
        There is no such cipher.
    """
    names = tuple(engines or (*ENGINES, *PEERS))
    for name in names:
        if name not in PEERS:
            cipher_named(name)
    case = random_case(QUICK_LEAVES) if quick else credit_card_case() or random_case(LEAVES)
    repeats = QUICK_REPEATS if quick else REPEATS
    results: dict[str, Any] = {"machine": machine(), "repeats": repeats, "phe_numbers_each_time": TEXTBOOK_NUMBERS}
    results |= {"sample": case.facts(), "keys": [], "bulk": []}
    for size in bits:
        with fresh_folder() as folder, on_cores(1):
            one = _KeySize(case, size, names, repeats, folder)
            results["keys"].append({"bits": size, "rows": one.rows()})
            known = {row["engine"] for row in results["bulk"]}  # what has no Paillier key is measured once
            fresh = [e for e in one.ours if e.name.startswith("paillier") or e.name not in known]
            results["bulk"] += [row for e in fresh for row in bulk(e, repeats, quick)]
            del one, fresh  # some hundred MiB of tables
    if "rlwe" in names:
        results["two_cores"] = two_cores(case, repeats, quick)
        with on_cores(1):
            results["floor"] = rlwe_batch(case, QUICK[0] if quick else max(TWO_CORES))
    return results


class _KeySize:
    """Everything that is compared at one key size."""

    def __init__(self, case: Case, bits: int, names: tuple[str, ...], repeats: int, folder: Path) -> None:
        progress(f"{bits} bits: tables and pools")
        self._case = case
        self._bits = bits
        self._repeats = repeats
        self._folder = folder
        secret = PaillierSecretKey.generate(bits, min(bits, KEY_BITS_FLOOR))
        leaves = case.model.n_leaves
        entries = case.guest.folding.n_entries
        draw = np.random.default_rng(1)
        self._values = draw.integers(-999, 1000, leaves)
        self._kept = draw.random(leaves) < 0.5
        self._tables = {name: paillier_tables(secret, folder, PAILLIER[name]) for name in names if name in PAILLIER}
        warm = (repeats + 1) * leaves + (2 * repeats + 1) * entries  # what is taken from a warm Guest's pool below
        self.ours = [make_engine(name, case, secret, folder, warm) for name in ENGINES if name in names]
        self._phe = phe_peer(secret)
        self._peers: list[Peer] = [self._phe, *(p for p in installed_peers(secret, names) if p.name != "phe")]

    def rows(self) -> list[dict[str, Any]]:
        """One row a cipher."""
        engines: list[Engine | Peer] = [*self.ours, *self._peers]
        progress(f"{self._bits} bits: encrypt")
        encrypted = interleaved(
            {(e.name, state): partial(e.encrypt, state, self._values) for e in engines for state in e.states},
            self._repeats,
        )
        progress(f"{self._bits} bits: masked sum, decrypt, refresh")
        sums = interleaved({e.name: partial(e.masked_sum, self._values, self._kept) for e in engines}, self._repeats)
        refreshed = {e.name: e.refresh(self._repeats) for e in engines}
        progress(f"{self._bits} bits: one sample")
        tasks: dict[Any, Callable[[], Any]] = {"textbook": partial(self._phe.encrypt, "cold", self._values)}
        samples = interleaved(
            tasks | {(e.name, state): partial(e.sample, state) for e in self.ours for state in e.states}, self._repeats
        )
        textbook = [s * self._case.model.n_leaves for s in samples.pop("textbook")]
        _check_equal([runs[0] for runs in samples.values()])
        rows = []
        for e in engines:
            summed, decrypted = (median(s) for s in zip(*sums[e.name], strict=True))
            row: dict[str, Any] = {"engine": e.name, "label": e.label, "peer": e.peer, "key": e.key}
            row["encrypt"] = {s: _rate(encrypted[e.name, s], encrypted["phe", "cold"]) for s in e.states}
            row |= {"masked_sum_seconds": summed, "decrypt_seconds": decrypted, "refresh": refreshed[e.name]}
            if isinstance(e, Peer):
                row["sample"] = self._composed(e, row["encrypt"]["cold"]["seconds"], summed + decrypted, textbook)
            else:
                row["tables"] = self._tables.get(e.name)
                row["sample"] = self._sample({state: samples[e.name, state] for state in e.states}, textbook)
                row["sample"]["through_messages_seconds"] = self._through_messages(e)
            rows.append(row)
        return rows

    def _sample(self, runs: dict[str, list[Run]], textbook: list[float]) -> dict[str, Any]:
        """One sample cold and warm, the share of each party, and the bytes of each direction."""
        guest = self._case.model.guest
        results: dict[str, Any] = {
            state: median_seconds(own, guest) | {"ratio": median_ratio(textbook, [run.total for run in own])}
            for state, own in runs.items()
        }
        sent = runs["cold"][0].bytes
        back = sum(b for (_, to), b in sent.items() if to == guest)
        entries = self._case.guest.folding.n_entries
        return results | {"numbers": entries, "bytes_up": sum(sent.values()) - back, "bytes_back": back}

    def _composed(self, peer: Peer, encrypt: float, rest: float, textbook: list[float]) -> dict[str, Any]:
        """A peer's sample from its medians: a number a leaf, one masked sum, one decryption; no message and no tree is read."""
        leaves = self._case.model.n_leaves
        size = peer.bytes_per_number()
        seconds = leaves * encrypt + rest
        cold = {"seconds": seconds, "ratio": median(textbook) / seconds}
        return {"cold": cold, "numbers": leaves, "bytes_up": round(size * leaves), "bytes_back": round(size)}

    def _through_messages(self, engine: Engine) -> float:
        """Seconds of one sample, pools full, through the protocol's own parties: a thread each and mailboxes, on two cores."""
        key = engine.sides[engine.states[-1]].key
        with on_cores(2):
            parties = ServedParties(self._case, HOST_POOL, self._folder)
            seconds = parties.seconds(key, 1, Workers(), self._repeats)
            parties.close()
        return median(seconds)


def _check_equal(runs: list[Run]) -> None:
    if any(r.units != runs[0].units for r in runs):
        raise ArithmeticError(f"The ciphers disagree about a score: {[r.units for r in runs]}.")


def _rate(seconds: list[float], textbook: list[float]) -> dict[str, float]:
    middle = median(seconds)
    return {"seconds": middle, "per_second": 1 / middle, "ratio": median_ratio(textbook, seconds)}


if __name__ == "__main__":
    run(__doc__, measure, describe)
