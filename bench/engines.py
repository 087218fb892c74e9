"""Our ciphers as they are measured: both ends of each, cold (tables in memory, nothing precomputed) and warm (pools full)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from backend.crypto.interface import FoldPlan, KeySide
from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.obfuscators import FEW_KEPT, Obfuscation, OwnerMaker, PublicMaker
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.pool import Pool
from backend.crypto.rlwe.parameters import parameters_for
from backend.crypto.rlwe.public import FloodMaker, RlwePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from bench.cases import Case
from bench.chain import Run, run_chain
from bench.timing import seconds_of

HOST_POOL = 64  # obfuscators or flooded zeros that a warm Host has
PAILLIER: dict[str, Obfuscation] = {"paillier": "full", "paillier-short": "short"}
ENGINES = {
    "paillier": "Paillier",
    "paillier-short": "Paillier, short exponents",
    "rlwe": "RLWE, lattice",
    "none": "plaintext",
}


@dataclass
class Sides:
    """Both ends of a cipher: the Guest's, and one for each Host."""

    key: KeySide
    hosts: list[Any]


def paillier_sides(
    secret: PaillierSecretKey, folder: Path, hosts: int, obfuscation: Obfuscation = "full", warm: int = 0
) -> Sides:
    """Paillier on one core; `warm` obfuscators are ready at the Guest, and some at each Host."""
    ready = HOST_POOL if warm else 0
    key = PaillierKeySide(secret, warm, obfuscation, folder / f"owner-{secret.public.bits}-{obfuscation}.tables")
    publics = [PaillierPublicSide(key.public, ready, _public_tables(folder, secret)) for _ in range(hosts)]
    for pool in (key.obfuscators, *(side.obfuscators for side in publics)):
        fill(pool)
        pool.take(FEW_KEPT + 1 if not warm else 0)  # reads the table
    return Sides(key, list(publics))


def rlwe_sides(case: Case, warm: bool = False) -> Sides:
    """RLWE with the smallest parameters that hold the case."""
    key = RlweKeySide(RlweSecretKey.generate(rlwe_parameters(case)))
    publics = [RlwePublicSide(key.offer(), HOST_POOL if warm else 0) for _ in case.hosts]
    for side in publics:
        fill(side.floods)
    return Sides(key, list(publics))


def rlwe_parameters(case: Case) -> Any:
    """The smallest parameter set that holds the case; raises ParameterError if none does."""
    return parameters_for(max(1, len(case.hosts)), max(1, case.guest.folding.n_entries), case.guest.largest)


def plain_sides(case: Case) -> Sides:
    """No cipher."""
    return Sides(PlainKeySide(), [PlainPublicSide() for _ in case.hosts])


def fill(pool: Pool[Any]) -> None:
    """Fill a pool and close it: what it holds is handed out, the rest is computed by this process alone."""
    pool.fill()
    while pool.ready < pool.target:
        time.sleep(0.05)
    pool.close()


def _public_tables(folder: Path, secret: PaillierSecretKey) -> Path:
    return folder / f"host-{secret.public.bits}.tables"


class Engine:
    """One of our ciphers, measured.

    Parameters
    ----------
    name : str
        One of :data:`ENGINES`.
    key : str
        Its key's size or parameters.
    sides : dict of str to Sides
        ``cold`` and, where the cipher has something to precompute, ``warm``.
    """

    peer = False

    def __init__(self, name: str, key: str, case: Case, sides: dict[str, Sides]) -> None:
        self.name = name
        self.label = ENGINES[name]
        self.key = key
        self.sides = sides
        self.states = tuple(sides)
        self._case = case
        self.guest = case.model.guest
        self._vector = b""

    def encrypt(self, state: str, values: np.ndarray) -> float:
        """Seconds a number."""
        key = self.sides[state].key
        # as `phe` returns them: numbers, not yet bytes
        if isinstance(key, PaillierKeySide):
            return seconds_of(key.encrypt_numbers, values.tolist()) / len(values)
        return seconds_of(key.encrypt, values[None, :]) / len(values)

    def sample(self, state: str, n: int = 1) -> Run:
        """Score `n` samples."""
        return run_chain(self._case, self.sides[state].key, self.sides[state].hosts, n)

    def masked_sum(self, values: np.ndarray, kept: np.ndarray) -> tuple[float, float]:
        """Seconds to read, check, mask and add up one sample's numbers, and to decrypt the sum (Fed-EINI eq. 10)."""
        sides = self.sides[self.states[-1]]
        m = len(values)
        plan = FoldPlan((0,) * m, (True,) * m, 1, tuple(range(m)), 0, 1)
        self._vector = self._vector or sides.key.encrypt(values[None, :])
        began = time.perf_counter()
        fold = sides.hosts[0].start_fold(kept[None, :], plan)
        fold.add(self._vector)
        reply = next(fold.finish())
        summed = time.perf_counter()
        decrypted = sides.key.decrypt(reply, 1)
        done = time.perf_counter()
        if decrypted != [int(values[kept].sum())]:
            raise ArithmeticError(f"{self.name} decrypts {decrypted}; the sum is {values[kept].sum()}.")
        return summed - began, done - summed

    def refresh(self, repeats: int) -> dict[str, float]:
        """Seconds of one obfuscator (or flooded zero) at a Host: computed on demand, from the pool, by a textbook power."""
        if self.name == "none":
            return {}
        side = self.sides["warm"].hosts[0]
        if isinstance(side, PaillierPublicSide):
            cold = self.sides["cold"].hosts[0].obfuscators
            warm = side.obfuscators
            textbook = PublicMaker(side.key.n).make_unlocked
            sources = {"made": lambda: cold.take(1), "pool": lambda: warm.take(1), "textbook": lambda: textbook(1)}
        else:
            maker = FloodMaker(side.zeros)
            sources = {"made": lambda: maker.make(1), "pool": lambda: side.floods.take(1)}
        return {
            f"{source}_seconds": median(seconds_of(take) for _ in range(repeats)) for source, take in sources.items()
        }


def make_engine(name: str, case: Case, secret: PaillierSecretKey, folder: Path, warm: int) -> Engine:
    """A cipher by its name; a warm Paillier Guest has `warm` obfuscators."""
    hosts = len(case.hosts)
    if name == "rlwe":
        sides = {"cold": rlwe_sides(case), "warm": rlwe_sides(case, warm=True)}
        return Engine(name, rlwe_parameters(case).name, case, sides)
    if name == "none":
        return Engine(name, "", case, {"cold": plain_sides(case)})
    obfuscation = PAILLIER[name]
    sides = {
        "cold": paillier_sides(secret, folder, hosts, obfuscation),
        "warm": paillier_sides(secret, folder, hosts, obfuscation, warm),
    }
    return Engine(name, f"{secret.public.bits:,} bits", case, sides)


def paillier_tables(secret: PaillierSecretKey, folder: Path, obfuscation: Obfuscation) -> dict[str, dict[str, float]]:
    """Seconds to build the tables of both parties and to read them again, each once, and their bytes."""
    owner = folder / f"owner-{secret.public.bits}-{obfuscation}.tables"
    host = _public_tables(folder, secret)
    host.unlink(missing_ok=True)
    makers: dict[str, tuple[Path, Callable[[], Any]]] = {
        "guest": (owner, lambda: OwnerMaker(secret.p, secret.q, obfuscation, owner)),
        "host": (host, lambda: PublicMaker(secret.public.n, host)),
    }
    costs = {}
    for party, (file, make) in makers.items():
        # the second maker finds the file that the first wrote
        build = seconds_of(make().prepare)
        load = seconds_of(make().prepare)
        costs[party] = {"build_seconds": build, "load_seconds": load, "bytes": file.stat().st_size}
    return costs
