"""The Guest's keys: each is made when it is first asked for, and kept in the Guest's folder. Nobody else's key is here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from backend.crypto.interface import KeySide, PairKeySide, TrainingKeySide
from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.crypto.registry import Cipher
from backend.crypto.rlwe.parameters import Load, RlweParameters, parameters_for
from backend.crypto.rlwe.product_parameters import keys_for
from backend.crypto.rlwe.residues import ResidueKeySide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_key import RlweSumKey
from backend.crypto.rlwe.sum_parameters import sum_parameters
from backend.crypto.workers import Workers, cores
from backend.errors import ParameterError, SecurityError
from backend.jobs import work
from backend.protocols.explanations.encryption import ReasonKey
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.training.parameters import SHARES
from backend.store.key_file import fingerprint, kept_key, read_key, retired, retired_keys

GUEST_POOL = 4096  # obfuscators kept ready: some tens of live samples


class GuestKeys:
    """The Guest's side of every cipher; `bits` are Paillier's, RLWE takes the smallest set that holds what is asked for.

    Parameters
    ----------
    floor : int
        Shortest Paillier key, bits; lower only in tests.
    pools : bool
        Whether obfuscators are made in the background.
    on_key : callable
        Called with (cipher, bits or degree) of every key that is made.
    workers : Workers, optional
        Who encrypts in training; default one process a core of this machine.

    Attributes
    ----------
    retired : tuple of str
        Files of keys that were rotated before.
    """

    def __init__(
        self,
        folder: Path,
        floor: int,
        pools: bool,
        on_key: Callable[[str, int], None],
        workers: Workers | None = None,
    ) -> None:
        self._folder = folder
        self.floor = floor
        self._pools = pools
        self._on_key = on_key
        self._workers = workers
        self.retired = retired_keys(folder)
        self._plain = PlainKeySide()
        self._paillier: dict[tuple[bool, int], PaillierKeySide] = {}
        self._rotated: dict[str, PaillierKeySide] = {}
        self._lattice: dict[str, RlweKeySide] = {}
        self._lock = threading.Lock()

    def pair(self, cipher: Cipher, bits: int) -> PairKeySide:
        """For a cipher that encrypts record by record; raises ParameterError for one that does not."""
        if cipher == "none":
            return self._plain
        if cipher == "rlwe":
            raise ParameterError("rlwe_sums_no_groups")
        short = cipher == "paillier-short"
        with self._lock:
            if (short, bits) not in self._paillier:
                file = f"paillier-{bits}.key"
                numbers = self._kept(file, partial(PaillierSecretKey.generate, bits, self.floor), "paillier", bits)
                secret = PaillierSecretKey.from_numbers(numbers, self.floor)
                tables = (self._folder / file).with_suffix(".short.tables" if short else ".tables")
                side = PaillierKeySide(secret, self._wanted(), "short" if short else "full", tables)
                side.obfuscators.fill()
                self._paillier[short, bits] = side
            return self._paillier[short, bits]

    def training(self, cipher: Cipher, bits: int, records: int) -> TrainingKeySide:
        """For a training on some of so many records."""
        if cipher != "rlwe":
            return self.pair(cipher, bits)
        return RlweSumKey(self._of_set(sum_parameters(round(SHARES[0] * records))), self._workers or Workers(cores()))

    def scoring(self, cipher: Cipher, bits: int, model: CompiledGuest) -> KeySide:
        """For scoring with `model`."""
        if cipher != "rlwe":
            return self.pair(cipher, bits)
        folding = model.folding
        sums = model.packing.slots
        try:
            parameters = parameters_for(max(1, len(folding.steps)), max(1, folding.n_entries), model.largest)
        except ParameterError:
            if sums == 1:
                raise
            raise ParameterError("scores_too_large_for_rlwe", n=sums) from None
        return self._of_set(parameters)

    def bulk(self, bits: int, model: CompiledGuest) -> KeySide:
        """The fastest for many records: RLWE, or Paillier where RLWE cannot hold the model's scores."""
        try:
            return self.scoring("rlwe", bits, model)
        except ParameterError:
            return self.scoring("paillier", bits, model)

    def reasons(self, cipher: Cipher, bits: int, load: Load) -> ReasonKey:
        """For reasons; under RLWE `load` says which keys they take."""
        if cipher != "rlwe":
            return self.pair(cipher, bits)
        return ResidueKeySide([self._of_set(parameters) for parameters in keys_for(load)])

    def of(self, public: bytes) -> PaillierKeySide:
        """The key of this modulus, also of before a rotation; raises SecurityError if the Guest never had it."""
        modulus = int.from_bytes(public, "big")
        key = self._of_before(public) or self.pair("paillier", modulus.bit_length())
        if not isinstance(key, PaillierKeySide) or key.public.n != modulus:
            raise SecurityError("key_never_ours")
        return key

    def level(self) -> tuple[int, int]:
        """Obfuscators ready and wanted, of the key used last."""
        last = next(reversed(self._paillier.values()), None)
        return last.obfuscators.ready if last else 0, self._wanted()

    def close(self) -> None:
        """End the background threads."""
        for key in self._paillier.values():
            key.obfuscators.close()

    def _wanted(self) -> int:
        return GUEST_POOL if self._pools else 0

    def _of_before(self, public: bytes) -> PaillierKeySide | None:
        """The key of this modulus, if the Guest had it before a rotation."""
        mark = fingerprint(public)
        with self._lock:
            if mark not in self._rotated:
                bits = int.from_bytes(public, "big").bit_length()
                numbers = read_key(retired(self._folder / f"paillier-{bits}.key", mark))
                if numbers is None:
                    return None
                self._rotated[mark] = PaillierKeySide(PaillierSecretKey.from_numbers(numbers, self.floor))
            return self._rotated[mark]

    def _of_set(self, parameters: RlweParameters) -> RlweKeySide:
        work.check()
        with self._lock:
            if parameters.name not in self._lattice:
                make = partial(RlweSecretKey.generate, parameters)
                numbers = self._kept(f"rlwe-{parameters.name}.key", make, "rlwe", parameters.degree)
                self._lattice[parameters.name] = RlweKeySide(RlweSecretKey.from_numbers(numbers))
            return self._lattice[parameters.name]

    def _kept(
        self, file: str, make: Callable[[], PaillierSecretKey | RlweSecretKey], cipher: str, size: int
    ) -> dict[str, str]:
        """A key's numbers; raises SecurityError if keys were rotated since this was set up: its runs go with those."""
        numbers, new = kept_key(self._folder / file, lambda: work.beside(make).to_numbers())
        if retired_keys(self._folder) != self.retired:
            raise SecurityError("key_rotated_meanwhile")
        if new:
            self._on_key(cipher, size)
        return numbers
