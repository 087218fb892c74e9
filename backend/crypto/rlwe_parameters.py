"""Checked parameter sets for the RLWE cipher (BGV in SEAL), each with its proven noise bound, and how SEAL's things become bytes.

In BGV c0 + c1·s = m + t·E mod q for a message m mod t: E is the noise, and what is said of noise here is said of E. A product with a
plaintext reveals that plaintext through E to the key owner, so the last Host floods E (docs/decisions/0006-rlwe.md works it out).
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import tenseal.sealapi as seal

from backend.errors import ParameterError, SecurityError

BGV = 3  # SEAL's number for the scheme; TenSEAL has no name for it
FRESH_ERROR = 21  # largest error coefficient that SEAL draws: the difference of two sums of 21 bits
MARGIN_BITS = 40  # a flooded reply is within 2^-40 of one whose noise says nothing, all coefficients together
HEADER = struct.Struct("<HBBBBHQ")  # SEAL's: magic number, own length, version (2), compression, reserved, total length
MAGIC, UNCOMPRESSED = 0xA15E, 0
METADATA = 256  # bytes; SEAL puts less than that in front of and behind the coefficients


@dataclass(frozen=True)
class RlweParameters:
    """One parameter set.

    Attributes
    ----------
    name : str
    degree : int
        N: ring degree and number of slots.
    data_bits : tuple of int
        Bits of the primes whose product is q.
    special_bits : int
        Bits of the prime that only the public key has: SEAL sets one aside for key switching, which is not used here.
    plain_modulus : int
        t: prime, 1 mod 2N.
    """

    name: str
    degree: int
    data_bits: tuple[int, ...]
    special_bits: int
    plain_modulus: int

    @property
    def limit(self) -> int:
        """Largest absolute sum."""
        return (self.plain_modulus - 1) // 2

    @cached_property
    def moduli(self) -> tuple[int, ...]:
        """The primes of q, then the special one."""
        primes = seal.CoeffModulus.Create(self.degree, [*self.data_bits, self.special_bits])
        return tuple(int(prime.value()) for prime in primes)

    @cached_property
    def room(self) -> int:
        """Largest noise that is decrypted correctly after the switch to the first prime alone."""
        first, *others = self.moduli[:-1]
        rounding = 2 * self.plain_modulus * (self.degree + 1)
        return int(prod(others) * (first - 2 * rounding) // (2 * self.plain_modulus)) - 1

    @cached_property
    def noise_allowed(self) -> int:
        """Most noise V that a reply may have before it is flooded: N·V/(2F + 1) ≤ 2^-40."""
        return 2 * self.room // ((self.degree << MARGIN_BITS) + 2)

    @cached_property
    def flood(self) -> int:
        """F: a reply's noise gets uniform integers from [-F, F] added, as wide as correct decryption allows."""
        return self.room - self.noise_allowed

    def noise(self, hosts: int, ciphertexts: int) -> int:
        """Upper bound on the noise of a reply before it is flooded, in the worst case.

        Parameters
        ----------
        hosts : int
            Each multiplies every ciphertext by a plaintext with coefficients of at most t/2.
        ciphertexts : int
            How many the Guest sent; the reply adds all of them up.
        """
        n, t, special = self.degree, self.plain_modulus, self.moduli[-1]
        fresh = t // 2 + FRESH_ERROR * t
        zero = t * (n + 1) + -(
            -t * FRESH_ERROR * (2 * n + 1) // special
        )  # under the public key, special prime divided out
        total = ciphertexts * fresh
        for place in range(hosts):
            total = total * n * (t // 2) + zero * (1 if place + 1 == hosts else ciphertexts)
        return total // t + 2  # rounded up; one more for the mask


PARAMETERS = {
    p.name: p
    for p in (  # cheapest first; figures for hosts and entries are in docs/decisions/0006-rlwe.md
        RlweParameters("n8192-q120-t557057", 8192, (60, 60), 22, 557057),
        RlweParameters("n8192-q180-t33538049", 8192, (60, 60, 60), 22, 33538049),
        RlweParameters("n8192-q180-t163841", 8192, (60, 60, 60), 22, 163841),
        RlweParameters("n16384-q240-t8257537", 16384, (60, 60, 60, 60), 22, 8257537),
        RlweParameters("n16384-q300-t33292289", 16384, (60, 60, 60, 60, 60), 22, 33292289),
    )
}


def parameters_for(hosts: int, entries: int, largest: int = 0) -> RlweParameters:
    """The cheapest set whose noise bound holds.

    Parameters
    ----------
    hosts : int
        In the chain.
    entries : int
        That the Guest encrypts per sample.
    largest : int, optional
        Largest absolute sum that must fit.

    Raises
    ------
    ParameterError
        No set holds that much.
    """
    for parameters in PARAMETERS.values():
        if parameters.noise(hosts, entries) <= parameters.noise_allowed and largest <= parameters.limit:
            return parameters
    raise ParameterError(
        f"No RLWE parameter set holds {entries:,} entries masked by {hosts} Hosts with sums up to {largest:,} units; there are sets for "
        f"up to 5 Hosts and sums up to {max(p.limit for p in PARAMETERS.values()):,}. Train with fewer score bits, or score with paillier."
    )


class Ring:
    """SEAL's objects for one parameter set; holds no key."""

    def __init__(self, parameters: RlweParameters) -> None:
        self.parameters = parameters
        chosen = seal.EncryptionParameters(BGV)
        chosen.set_poly_modulus_degree(parameters.degree)
        chosen.set_coeff_modulus([seal.Modulus(m) for m in parameters.moduli])
        chosen.set_plain_modulus(parameters.plain_modulus)
        self.context = seal.SEALContext(chosen, True, seal.SEC_LEVEL_TYPE.TC128)
        if not self.context.parameters_set():
            raise ParameterError(f"SEAL refuses {parameters.name}: {self.context.parameters_error_message()}.")
        self.evaluator = seal.Evaluator(self.context)
        self.encoder = seal.BatchEncoder(self.context)
        self.first, self.last = self.context.first_parms_id(), self.context.last_parms_id()
        self.seeded_width = _width(parameters.degree * len(parameters.data_bits))
        self.full_width = _width(2 * parameters.degree * len(parameters.data_bits))
        self.reply_width = _width(2 * parameters.degree)
        self.key_width = _width(parameters.degree * len(parameters.moduli))

    def encode(self, slots: list[int]) -> Any:
        """Plaintext of up to N integers mod t; the other slots are 0."""
        plain = seal.Plaintext()
        self.encoder.encode(slots, plain)
        return plain

    def pad(self, saved: bytes, width: int) -> bytes:
        """What SEAL saved, filled up to `width` bytes."""
        if len(saved) > width:
            raise SecurityError(
                f"SEAL wrote {len(saved):,} bytes where at most {width:,} were expected; nothing was sent."
            )
        return saved.ljust(width, b"\0")

    def ciphertext(self, blob: bytes, level: list[int]) -> Any:
        """Check and read one padded ciphertext.

        Raises
        ------
        SecurityError
            The bytes are none, of another key size or level, or of a form that no fresh ciphertext has.
        """
        loaded = seal.Ciphertext()
        read(loaded, self.context, blob)
        if loaded.size() != 2 or loaded.parms_id() != level or not loaded.is_ntt_form() or loaded.is_transparent():
            raise SecurityError("A ciphertext has another form than agreed; the message was refused.")
        return loaded

    def ciphertext_of(self, residues: bytes) -> Any:
        """Ciphertext of given c0 ‖ c1, each as its coefficients mod every prime of q."""
        values = HEADER.pack(MAGIC, HEADER.size, *VERSION, UNCOMPRESSED, 0, HEADER.size + 8 + len(residues))
        values += struct.pack("<Q", len(residues) // 8) + residues
        count = len(self.parameters.data_bits)
        body = struct.pack("<4QB3QdQ", *self.first, False, 2, self.parameters.degree, count, 1.0, 1) + values
        made = seal.Ciphertext()
        read(
            made,
            self.context,
            HEADER.pack(MAGIC, HEADER.size, *VERSION, UNCOMPRESSED, 0, HEADER.size + len(body)) + body,
        )
        return made


@lru_cache(maxsize=len(PARAMETERS))
def ring(name: str) -> Ring:
    """The ring of a named set.

    Raises
    ------
    SecurityError
        There is no such set.
    """
    if name not in PARAMETERS:
        raise SecurityError(
            f"The RLWE parameter set {name[:40]!r} is unknown; expected one of {', '.join(PARAMETERS)}."
        )
    return Ring(PARAMETERS[name])


@contextmanager
def _memory_file() -> Iterator[tuple[int, str]]:
    """A file that nobody else can open, in memory where the system can: SEAL's bindings read and write by path only."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            yield file.fileno(), file.name
        return
    number = os.memfd_create("seal", os.MFD_CLOEXEC)
    try:
        yield number, f"/proc/self/fd/{number}"
    finally:
        os.close(number)


def written(thing: Any) -> bytes:
    """Bytes of something that SEAL can save."""
    with _memory_file() as (number, path):
        thing.save(path)
        return os.pread(number, os.fstat(number).st_size, 0)


def read(thing: Any, context: Any, blob: bytes) -> None:
    """Load `thing` from bytes that may be padded with zeros; SEAL checks that it fits `context`.

    Raises
    ------
    SecurityError
        It does not, or the bytes are damaged.
    """
    if len(blob) >= HEADER.size:
        magic, own, *_, size = HEADER.unpack_from(blob)
        if magic == MAGIC and own == HEADER.size <= size <= len(blob) and not any(blob[size:]):
            with _memory_file() as (number, path):
                os.write(number, blob)
                try:
                    thing.load(context, path)
                except (RuntimeError, ValueError, IndexError, MemoryError) as error:
                    raise SecurityError(
                        f"SEAL refused a key or ciphertext ({error}); it is damaged or of another key."
                    ) from error
            return
    raise SecurityError("A key or ciphertext is damaged; it was refused.")


def _width(coefficients: int) -> int:
    estimate = seal.Serialization.ComprSizeEstimate(8 * coefficients + METADATA, seal.COMPR_MODE_TYPE.ZSTD)
    return HEADER.size + int(estimate)


def _version() -> tuple[int, int]:
    header = seal.Serialization.SEALHeader()
    return header.version_major, header.version_minor


VERSION = _version()
