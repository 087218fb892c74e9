"""SEAL's objects for one parameter set, and how its keys and ciphertexts become bytes. Holds no key.

SEAL's bindings read and write by path only; what is read is checked before anything is computed with it.
"""

from __future__ import annotations

import errno
import os
import struct
import tempfile
import threading
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import zstandard
from numpy.typing import NDArray

from backend.crypto.interface import IntArray
from backend.crypto.rlwe import seal
from backend.crypto.rlwe.parameters import BGV, RlweParameters, parameters_named
from backend.crypto.rlwe.randomness import SEED_BYTES
from backend.crypto.rlwe.slots import LARGEST, slot_transform
from backend.crypto.rlwe.sum_parameters import sum_sets
from backend.errors import ParameterError, SecurityError

HEADER = struct.Struct("<HBBBBHQ")  # SEAL's: magic number, own length, version (2), compression, reserved, total length
MAGIC = 0xA15E
UNCOMPRESSED = 0
ZSTD = 2  # how SEAL's bindings compress what they save
METADATA = 256  # bytes; SEAL puts less than that in front of and behind the coefficients
R = TypeVar("R")
RINGS_KEPT = 32  # contexts of a few megabytes; a request for reasons takes up to eight


class Ring:
    """SEAL's objects for one parameter set; holds no key."""

    def __init__(self, parameters: RlweParameters) -> None:
        self.parameters = parameters
        seal_parameters = seal.EncryptionParameters(BGV)
        seal_parameters.set_poly_modulus_degree(parameters.degree)
        seal_parameters.set_coeff_modulus([seal.Modulus(m) for m in parameters.moduli])
        seal_parameters.set_plain_modulus(parameters.plain_modulus)
        self.context = seal.SEALContext(seal_parameters, True, seal.SEC_LEVEL_TYPE.TC128)
        if not self.context.parameters_set():
            raise ParameterError(
                "seal_refuses_parameters", parameters=parameters.name, reason=self.context.parameters_error_message()
            )
        self.evaluator = seal.Evaluator(self.context)
        self.encoder = seal.BatchEncoder(self.context)
        self.first = self.context.first_parms_id()
        self.last = self.context.last_parms_id()
        self.residue_bytes = 8 * parameters.degree * len(parameters.data_bits)
        self.seeded_width = SEED_BYTES + self.residue_bytes
        self.full_width = _width(2 * parameters.degree * len(parameters.data_bits))
        self.reply_width = _width(2 * parameters.degree)
        self.key_width = _width(parameters.degree * len(parameters.moduli))

    def encode(self, slots: IntArray) -> IntArray:
        """Return ``(N,)`` coefficients from -t/2 to t/2 for ``(k,)`` integers from -t/2 to t/2, k ≤ N; the other slots are 0."""
        degree = self.parameters.degree
        t = self.parameters.plain_modulus
        if t < LARGEST:
            return slot_transform(degree, t).coefficients(slots)
        plain = seal.Plaintext()
        self.encoder.encode((slots % t).tolist(), plain)
        count = plain.coeff_count()
        coefficients = np.zeros(degree, dtype=np.int64)
        coefficients[:count] = np.frombuffer(saved(plain)[-8 * count :], dtype="<u8")
        return np.where(coefficients > self.parameters.limit, coefficients - t, coefficients)

    def plaintext(self, coefficients: IntArray) -> Any:
        """Plaintext of up to N coefficients, each taken mod t; those that follow are 0."""
        return self._plaintext([0, 0, 0, 0], coefficients % self.parameters.plain_modulus)

    def transformed(self, residues: NDArray[np.uint64]) -> Any:
        """Plaintext of given residues modulo every prime of q, transformed."""
        return self._plaintext(self.first, residues)

    def _plaintext(self, level: list[int], numbers: NDArray[Any]) -> Any:
        values = _framed(struct.pack("<Q", len(numbers)) + numbers.astype("<u8").tobytes())
        plaintext = seal.Plaintext()
        read(plaintext, self.context, _framed(struct.pack("<4QQd", *level, len(numbers), 1.0) + values))
        return plaintext

    def times(self, ciphertext: Any, slots: IntArray) -> Any | None:
        """A ciphertext times integers mod t, slot by slot, in place; None if all are 0, which SEAL refuses to multiply by.

        Zeros take as long as other numbers: what is worked out then is dropped.
        """
        nothing = not slots.any()
        factors = self.plaintext(self.encode(np.ones_like(slots) if nothing else slots))
        self.evaluator.transform_to_ntt_inplace(factors, self.first)
        self.evaluator.multiply_plain_inplace(ciphertext, factors)
        if nothing:
            self.evaluator.add_inplace(ciphertext, ciphertext)  # instead of the addition that follows otherwise
            return None
        return ciphertext

    def plus(self, left: Any | None, right: Any | None) -> Any | None:
        """Return the sum of two ciphertexts, written into the left one; None is 0."""
        if left is None:
            return right
        if right is None:
            return left
        self.evaluator.add_inplace(left, right)
        return left

    def pad(self, saved: bytes, width: int) -> bytes:
        """What SEAL saved, filled up to `width` bytes."""
        if len(saved) > width:
            raise SecurityError("seal_wrote_too_much", got=len(saved), most=width)
        return saved.ljust(width, b"\0")

    def ciphertext(self, blob: bytes, level: list[int]) -> Any:
        """Check and read one padded ciphertext.

        Raises SecurityError if the bytes are none, of another key size or level, or of a form that no fresh ciphertext has.
        """
        loaded = seal.Ciphertext()
        read(loaded, self.context, blob)
        if loaded.size() != 2 or loaded.parms_id() != level or not loaded.is_ntt_form() or loaded.is_transparent():
            raise SecurityError("ciphertext_of_other_form")
        return loaded

    def ciphertext_of(self, *residues: bytes, transformed: bool = False) -> Any:
        """Return the ciphertext c0 ‖ c1, each half given by its coefficients mod every prime of q, `transformed` or not.

        Raises SecurityError if a coefficient is not below its prime.
        """
        count = len(self.parameters.data_bits)
        degree = self.parameters.degree
        head = struct.pack("<4QB3QdQ", *self.first, transformed, 2, degree, count, 1.0, 1)
        values = _framed(struct.pack("<Q", 2 * count * degree), 2 * self.residue_bytes)
        ciphertext = seal.Ciphertext()
        read(ciphertext, self.context, b"".join((_framed(head + values, 2 * self.residue_bytes), *residues)))
        return ciphertext


@lru_cache(maxsize=RINGS_KEPT)
def ring(name: str) -> Ring:
    """The ring of a named set; raises SecurityError if there is no such set."""
    return Ring(sum_sets().get(name) or parameters_named(name))


class _MemoryFile:
    """A file in memory that one thread writes again and again: to make one for every ciphertext takes longer than to read it."""

    def __init__(self) -> None:
        self._number = os.memfd_create("seal", os.MFD_CLOEXEC)
        self.path = f"/proc/self/fd/{self._number}"
        self.process = os.getpid()

    def __del__(self) -> None:
        os.close(self._number)

    def hold(self, blob: bytes) -> None:
        """Hold these bytes; what else it held may follow them, for SEAL's header says where they end."""
        if os.pwrite(self._number, blob, 0) != len(blob):
            raise OSError(errno.ENOMEM, "no room for a ciphertext in memory")

    def taken(self) -> bytes:
        """What was written by path."""
        return os.pread(self._number, os.fstat(self._number).st_size, 0)

    def done(self, thing: Any) -> None:
        """Keep nothing of a key, nor of a polynomial in the form that a key's has."""
        if not isinstance(thing, seal.Ciphertext) and not (
            isinstance(thing, seal.Plaintext) and not thing.is_ntt_form()
        ):
            os.ftruncate(self._number, 0)


_of_thread = threading.local()


def _memory_file() -> _MemoryFile | None:
    """The thread's own, which nobody else can open; None if the system has none."""
    if not hasattr(os, "memfd_create"):
        return None
    file: _MemoryFile | None = getattr(_of_thread, "file", None)
    if file is None or file.process != os.getpid():  # a process that was forked shares its parent's
        file = _of_thread.file = _MemoryFile()
    return file


def _by_name(work: Callable[[Path], R]) -> R:
    """Do something with a file that has a name. Not NamedTemporaryFile: Windows lets nobody open a second time what it holds open."""
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder) / "seal")


def written(thing: Any) -> bytes:
    """Bytes of something that SEAL can save."""
    file = _memory_file()
    if file is None:
        return _by_name(partial(_saved, thing))
    thing.save(file.path)
    saved = file.taken()
    file.done(thing)
    return saved


def saved(thing: Any) -> bytes:
    """What SEAL saves, without its header and not compressed."""
    blob = written(thing)
    compression = HEADER.unpack_from(blob)[4]
    if compression == ZSTD:
        return zstandard.ZstdDecompressor().decompressobj().decompress(blob[HEADER.size :])
    if compression != UNCOMPRESSED:
        raise SecurityError("seal_form_unknown")
    return blob[HEADER.size :]


def read(thing: Any, context: Any, blob: bytes) -> None:
    """Load `thing` from bytes that may be padded with zeros; SEAL checks that it fits `context`.

    Raises SecurityError if it does not, or the bytes are damaged.
    """
    if len(blob) >= HEADER.size:
        magic, header_size, *_, size = HEADER.unpack_from(blob)
        if magic == MAGIC and header_size == HEADER.size <= size <= len(blob) and not any(blob[size:]):
            file = _memory_file()
            try:
                if file is None:
                    _by_name(partial(_loaded, thing, context, blob))
                else:
                    file.hold(blob)
                    thing.load(context, file.path)
                    file.done(thing)
            except (RuntimeError, ValueError, IndexError, MemoryError) as error:
                raise SecurityError("seal_refuses_bytes", reason=str(error)) from error
            return
    raise SecurityError("key_or_ciphertext_damaged")


def _saved(thing: Any, path: Path) -> bytes:
    thing.save(str(path))
    return path.read_bytes()


def _loaded(thing: Any, context: Any, blob: bytes, path: Path) -> None:
    path.write_bytes(blob)
    thing.load(context, str(path))


def _framed(body: bytes, more: int = 0) -> bytes:
    """A body as SEAL saves it uncompressed; `more` bytes of it follow."""
    return HEADER.pack(MAGIC, HEADER.size, *_version(), UNCOMPRESSED, 0, HEADER.size + len(body) + more) + body


def _width(coefficients: int) -> int:
    estimate = seal.Serialization.ComprSizeEstimate(8 * coefficients + METADATA, seal.COMPR_MODE_TYPE.ZSTD)
    return HEADER.size + int(estimate)


@cache
def _version() -> tuple[int, int]:
    header = seal.Serialization.SEALHeader()
    return header.version_major, header.version_minor
