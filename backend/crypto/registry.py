"""The ciphers by name, and how a worker or a Host builds its side. A cipher's library is imported when it is first used."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from backend.crypto.interface import IntArray, KeySide, PublicSide, WorkerPayload
from backend.crypto.paillier.bin_products import BinProducts
from backend.crypto.paillier.key_certificate import check, split
from backend.crypto.paillier.keys import PaillierPublicKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.pool import Pool
from backend.crypto.rlwe import seal
from backend.errors import ParameterError, SecurityError

Cipher = Literal["paillier", "paillier-short", "rlwe", "none"]
CIPHERS: tuple[Cipher, ...] = get_args(Cipher)


def cipher_named(name: str) -> Cipher:
    """A cipher by its name; raises ParameterError for another name."""
    for cipher in CIPHERS:
        if cipher == name:
            return cipher
    raise ParameterError("unknown_cipher", cipher=name, known=tuple(CIPHERS))


def available(cipher: Cipher) -> bool:
    """Whether this platform has what a cipher needs; only RLWE needs a library that some platforms lack."""
    return cipher != "rlwe" or seal.available()


def preferred(cipher: Cipher) -> Cipher:
    """`cipher`, or Paillier where this platform does not have it."""
    return cipher if available(cipher) else "paillier"


def unpack(payload: WorkerPayload) -> KeySide:
    """The key side that a payload of the same party describes."""
    match payload["scheme"]:
        case "paillier":
            return PaillierKeySide.from_worker_payload(payload)
        case "rlwe":
            from backend.crypto.rlwe.scheme import RlweKeySide  # noqa: PLC0415 - TenSEAL is slow to import

            return RlweKeySide.from_worker_payload(payload)
        case "none":
            return PlainKeySide()
    raise SecurityError("worker_key_unknown", cipher=str(payload["scheme"]))


_unpacked: dict[bytes, KeySide] = {}  # the last few key sides of this worker, by digest of their payload
CACHED_CIPHERS = 4
FLOODS = 8  # flooded zeros a Host keeps ready: one per message


def encrypt_task(payload: WorkerPayload, values: IntArray) -> bytes:
    """Encrypt one piece in a worker process of the Guest."""
    digest = sha256(repr(sorted(payload.items())).encode()).digest()
    if digest not in _unpacked:
        while len(_unpacked) >= CACHED_CIPHERS:
            _unpacked.pop(next(iter(_unpacked)))
        _unpacked[digest] = unpack(payload)
    return _unpacked[digest].encrypt(values)


def open_offer(
    scheme: str, key: bytes, floor: int, pool: int, tables: Path | None, products: BinProducts | None
) -> tuple[PublicSide, Pool[Any]]:
    """A Host's side for a public key that was offered, and the pool it draws from.

    Parameters
    ----------
    floor : int
        Shortest Paillier key accepted, bits.
    pool : int
        Obfuscators kept ready; 0 = none, and no zeros under RLWE either.

    Raises
    ------
    SecurityError
        The cipher is unknown or the key is not acceptable.
    """
    match scheme:
        case "paillier":
            modulus, certificate = split(key)
            public = PaillierPublicKey.from_bytes(modulus, floor)
            check(public.n, certificate)
            if tables is None:
                file = None
            else:
                file = tables / f"obfuscators-{sha256(modulus).hexdigest()[:16]}.tables"
            paillier = PaillierPublicSide(public, pool, file, products)
            return paillier, paillier.obfuscators
        case "rlwe":
            from backend.crypto.rlwe.public import RlwePublicSide  # noqa: PLC0415 - as above

            rlwe = RlwePublicSide(key, FLOODS if pool else 0, products.workers if products else None)
            if pool:
                rlwe.zeros.keep_ready()
            return rlwe, rlwe.floods
        case "rlwe-residues":
            from backend.crypto.rlwe.residues import ResiduePublicSide  # noqa: PLC0415 - as above

            return ResiduePublicSide(key), Pool(NoMaker(), None, 0)
        case "none":
            return PlainPublicSide(), Pool(NoMaker(), None, 0)
    raise SecurityError("unknown_cipher", cipher=scheme[:40], known=("paillier", "rlwe"))


class NoMaker:
    """For ciphers that make nothing in advance."""

    def make(self, count: int) -> list[None]:
        """Nothing."""
        return [None] * count

    make_unlocked = make

    def prepare(self) -> None:
        """Nothing to prepare."""

    def release(self) -> None:
        """Nothing to drop."""
