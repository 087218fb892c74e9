"""RLWE: thousands of numbers in one ciphertext (BGV in SEAL through TenSEAL), for bulk and live scoring; secure against quantum attackers.

One layout with two extremes. A ciphertext has N slots, a message has n samples, so G = N // n entries ride in one ciphertext: entry e
goes to ciphertext e // G, block e % G, and sample s of it to slot (e % G)·n + s. G large: all leaves of a few samples in one
ciphertext; G = 1: one leaf across thousands of samples. The last Host adds all ciphertexts up; the Guest adds the blocks.

Ciphertexts cross as SEAL saves them, filled up with zeros to a length both sides work out. The Guest's are symmetric: c0 and the
seed of c1.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tenseal.sealapi as seal
from numpy.typing import NDArray

from backend.crypto.cipher import FoldPlan, IntArray, Parcel
from backend.crypto.pool import Pool
from backend.crypto.rlwe_parameters import Ring, RlweParameters, read, ring, written
from backend.errors import ParameterError, SecurityError

PIECE_BYTES = 8 << 20  # of a message, so that a batch can be watched and stopped
WORTH_SHARING = 512  # ciphertexts from which on worker processes encrypt: about a second's work
SPARE_BYTES = 8  # drawn beyond a flood's size before it is reduced: 2^-64 from uniform


@dataclass(frozen=True)
class SecretKey:
    """A key pair as SEAL saves it.

    Attributes
    ----------
    parameters : RlweParameters
    secret : bytes
        Ternary polynomial; never shown in `repr`.
    public : bytes
        (-(a·s + t·e), a), a as its seed.
    """

    parameters: RlweParameters
    secret: bytes = field(repr=False)
    public: bytes = field(repr=False)

    @classmethod
    def generate(cls, parameters: RlweParameters) -> SecretKey:
        """Draw a new key."""
        context = ring(parameters.name).context
        secret = seal.KeyGenerator(context).secret_key()
        public = seal.Encryptor(context, secret).encrypt_zero_symmetric(context.key_parms_id())
        return cls(parameters, written(secret), written(public))

    def to_numbers(self) -> dict[str, str]:
        """Text for the Guest's own key file."""
        halves = {"secret": self.secret, "public": self.public}
        return {"parameters": self.parameters.name} | {name: b64encode(blob).decode() for name, blob in halves.items()}

    @classmethod
    def from_numbers(cls, numbers: dict[str, str]) -> SecretKey:
        """Inverse of :meth:`to_numbers`.

        Raises
        ------
        SecurityError
            The text is no usable key pair.
        """
        try:
            parameters = ring(numbers["parameters"]).parameters
            key = cls(parameters, *(b64decode(numbers[name], validate=True) for name in ("secret", "public")))
            side, zero = RlweKeySide(key), seal.Ciphertext()
            RlwePublicSide(side.offer()).encryptor.encrypt_zero(zero)
        except (KeyError, Base64Error, SecurityError) as error:
            raise SecurityError("The key file is damaged; delete it, and a new key is made.") from error
        if not side.noise_budget(zero):
            raise SecurityError("The key file holds halves of two keys; delete it, and a new key is made.")
        return key


class RlweKeySide:
    """The Guest's side: symmetric encryption, so that half of each ciphertext is a seed."""

    scheme = "rlwe"

    def __init__(self, key: SecretKey) -> None:
        self._key = key
        self._ring = ring(key.parameters.name)
        self.bits = key.parameters.degree
        self.limit = key.parameters.limit
        secret = seal.SecretKey()
        read(secret, self._ring.context, key.secret)
        self._encryptor = seal.Encryptor(self._ring.context, secret)
        self._decryptor = seal.Decryptor(self._ring.context, secret)

    def __repr__(self) -> str:
        return f"RlweKeySide({self._key.parameters.name})"

    def offer(self) -> bytes:
        """Name of the parameter set, a line feed, public key."""
        return self._key.parameters.name.encode() + b"\n" + self._key.public

    def parcel(self) -> Parcel:
        """Both halves of the key, for the party's own workers."""
        key = self._key
        return {"scheme": self.scheme, "parameters": key.parameters.name, "secret": key.secret, "public": key.public}

    @classmethod
    def from_parcel(cls, parcel: Parcel) -> RlweKeySide:
        """The same side in another process."""
        secret, public = parcel["secret"], parcel["public"]
        if not isinstance(secret, bytes) or not isinstance(public, bytes):
            raise SecurityError("A worker was given a key of another cipher.")
        return cls(SecretKey(ring(str(parcel["parameters"])).parameters, secret, public))

    def rows_per_message(self, m: int) -> int:
        """N, so that an intermediate Host can fold; a quarter under a key for one Host: as fast, with fewer slots empty at the end."""
        parameters = self._key.parameters
        return self.bits if parameters.noise(2, 1) <= parameters.noise_allowed else self.bits // 4

    def pieces(self, n: int, m: int) -> list[range]:
        """Whole ciphertexts, at most :data:`PIECE_BYTES` at a time."""
        blocks = _blocks(self._ring, n)
        return [
            range(cut.start * blocks, min(cut.stop * blocks, m))
            for cut in _cuts(-(-m // blocks), self._ring.seeded_width)
        ]

    def worth_sharing(self, n: int, m: int) -> bool:
        """From :data:`WORTH_SHARING` ciphertexts on."""
        return -(-n * m // self.bits) >= WORTH_SHARING

    def encrypt(self, values: IntArray) -> bytes:
        """``(n, k)`` integers → ``⌈k/G⌉`` ciphertexts.

        Raises
        ------
        ParameterError
            A number is beyond the limit, or n beyond N.
        """
        n, k = values.shape
        blocks = _blocks(self._ring, n)
        largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        if largest > self.limit:
            raise ParameterError(
                f"A number of {largest:,} units was to be encrypted; this RLWE key holds {self.limit:,}. Train with fewer score "
                "bits, or score with a larger parameter set or paillier."
            )
        signed = values.T.astype(np.int64, order="C")
        residues = np.where(signed < 0, signed + self._key.parameters.plain_modulus, signed)
        out = []
        for start in range(0, k, blocks):
            plain = self._ring.encode(residues[start : start + blocks].ravel().tolist())
            out.append(self._ring.pad(written(self._encryptor.encrypt_symmetric(plain)), self._ring.seeded_width))
        return b"".join(out)

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """``n`` sums: the blocks of the one ciphertext that comes back, added up."""
        blocks, t = _blocks(self._ring, n), self._key.parameters.plain_modulus
        _check_length(blob, 1, self._ring.reply_width)
        plain = seal.Plaintext()
        self._decryptor.decrypt(self._ring.ciphertext(blob, self._ring.last), plain)
        slots = np.array(self._ring.encoder.decode_int64(plain), dtype=np.int64)
        sums = slots[: blocks * n].reshape(blocks, n).sum(axis=0)
        centred: IntArray = (sums + self.limit) % t - self.limit
        return [int(v) for v in centred]

    def noise_budget(self, ciphertext: Any) -> int:
        """Bits that the noise may still grow before decryption fails."""
        return int(self._decryptor.invariant_noise_budget(ciphertext))


class FloodMaker:
    """Makes what a last Host adds to its reply: Enc(0) under the public key, with uniform noise from [-F, F] added to c0."""

    def __init__(self, of: Ring, encryptor: Any) -> None:
        self._ring, self._encryptor = of, encryptor

    def prepare(self) -> None:
        """Nothing: the ring is there."""

    def make(self, count: int) -> list[Any]:
        """`count` flooded zeros."""
        return [self._flooded(self._noise()) for _ in range(count)]

    def make_quietly(self, count: int) -> list[Any]:
        """The same: SEAL's calls are short."""
        return self.make(count)

    def _noise(self) -> list[int]:
        parameters = self._ring.parameters
        span = 2 * parameters.flood + 1
        width = -(-span.bit_length() // 8) + SPARE_BYTES
        drawn = os.urandom(width * parameters.degree)
        numbers = (int.from_bytes(drawn[i : i + width], "little") for i in range(0, len(drawn), width))
        return [number % span - parameters.flood for number in numbers]

    def _flooded(self, noise: list[int]) -> Any:
        parameters = self._ring.parameters
        scaled = [parameters.plain_modulus * f for f in noise]
        residues = [np.array([f % modulus for f in scaled], dtype="<u8") for modulus in parameters.moduli[:-1]]
        c0 = np.concatenate(residues).tobytes()
        zero = seal.Ciphertext()
        self._encryptor.encrypt_zero(zero)
        self._ring.evaluator.add_inplace(zero, self._ring.ciphertext_of(c0 + bytes(len(c0))))
        return zero


class RlwePublicSide:
    """A Host's side.

    Parameters
    ----------
    offered : bytes
        As the Guest offered it.
    pool : int, optional
        Flooded zeros kept ready in the background.

    Raises
    ------
    SecurityError
        The parameter set is unknown, or the key is none of it.
    """

    scheme = "rlwe"

    def __init__(self, offered: bytes, pool: int = 0) -> None:
        name, _, key = offered.partition(b"\n")
        self.ring = ring(name.decode("ascii", "replace"))
        if len(key) > self.ring.key_width:
            raise SecurityError(
                f"The public key has {len(key):,} bytes; {self.ring.parameters.name} has at most {self.ring.key_width:,}."
            )
        public = seal.PublicKey()
        read(public, self.ring.context, key)
        if not seal.is_valid_for(public, self.ring.context) or public.data().is_transparent():
            raise SecurityError("The public key hides nothing; it was refused.")
        self.bits = self.ring.parameters.degree
        self.encryptor = seal.Encryptor(self.ring.context, public)
        self.floods: Pool[Any] = Pool(FloodMaker(self.ring, self.encryptor), None, pool)

    def __repr__(self) -> str:
        return f"RlwePublicSide({self.ring.parameters.name})"

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan, added: Sequence[int] = ()) -> RlweFold:
        """Begin a batch.

        Raises
        ------
        SecurityError
            The Guest's key is too small to hide this Host's 0/1 in such a batch.
        """
        return RlweFold(self, keep, plan, added)


class RlweFold:
    """Multiplies ciphertexts by this Host's 0/1 and adds them up; the last Host masks and floods the sum, others refresh theirs.

    An intermediate Host folds entries only where G = 1: blocks of one ciphertext do not line up with those of another, so with G > 1 the
    Guest's entries go on as they are, and the next Host looks its 0/1 up by ``plan.origin``.
    """

    def __init__(self, side: RlwePublicSide, keep: NDArray[np.bool_], plan: FoldPlan, added: Sequence[int]) -> None:
        self._side, self._ring, self._plan, self._added = side, side.ring, plan, added
        self._n = len(keep)
        self._blocks = _blocks(self._ring, self._n)
        folds = self._blocks == 1
        entries = list(range(len(plan.own)) if folds else plan.origin)
        own = np.array(plan.own, dtype=bool)[entries]
        self._kept = np.ascontiguousarray(keep.T[entries] | ~own[:, None])
        starts = range(0, len(entries), self._blocks)
        self._own = [bool(own[i : i + self._blocks].any()) for i in starts]
        if plan.last:
            self._target = [0] * len(starts)
        else:
            self._target = list(plan.target) if folds else list(range(len(starts)))
        self._sums: list[Any] = [None] * (1 if plan.last else plan.n_out if folds else len(starts))
        self._untouched = plan.untouched if folds else tuple(not owned for owned in self._own)
        self._width = self._ring.full_width if plan.place else self._ring.seeded_width
        self._awaited = _cuts(len(starts), self._width)
        parameters, sent = self._ring.parameters, -(-len(plan.origin) // self._blocks)
        if parameters.noise(plan.hosts, sent) > parameters.noise_allowed:
            raise SecurityError(
                f"{sent:,} ciphertexts and {plan.hosts} Hosts make more noise than {parameters.name} can hide; this Host's 0/1 would show "
                "in the reply. Offer a key of a larger parameter set."
            )

    def add(self, blob: bytes) -> None:
        """Take the next piece.

        Raises
        ------
        SecurityError
            It is none, or there was no next one.
        """
        if not self._awaited:
            raise SecurityError("A batch was followed by another piece; it was refused.")
        cut = self._awaited.pop(0)
        _check_length(blob, len(cut), self._width)
        for i, at in enumerate(cut):
            part = blob[i * self._width : (i + 1) * self._width]
            self._add(at, self._ring.ciphertext(part, self._ring.first))

    def _add(self, at: int, ciphertext: Any) -> None:
        evaluator = self._ring.evaluator
        if self._own[at]:
            kept = self._kept[at * self._blocks : (at + 1) * self._blocks]
            if not kept.any():  # SEAL refuses a product with 0, and nothing is to be added
                return
            mask = self._ring.encode(kept.astype(np.uint8).ravel().tolist())
            evaluator.transform_to_ntt_inplace(mask, self._ring.first)
            evaluator.multiply_plain_inplace(ciphertext, mask)
        target = self._target[at]
        if self._sums[target] is None:
            self._sums[target] = ciphertext
        else:
            evaluator.add_inplace(self._sums[target], ciphertext)

    def finish(self) -> Iterator[bytes]:
        """One flooded reply from the last Host, else pieces of refreshed ciphertexts."""
        if self._awaited:
            raise SecurityError(f"A batch ended {len(self._awaited)} pieces early; it was refused.")
        if self._plan.last:
            yield self._reply()
            return
        for cut in _cuts(len(self._sums), self._ring.full_width):
            yield b"".join(self._ring.pad(written(self._refreshed(o)), self._ring.full_width) for o in cut)

    def _reply(self) -> bytes:
        evaluator, reply = self._ring.evaluator, self._side.floods.take(1)[0]
        if self._sums[0] is not None:
            evaluator.add_inplace(reply, self._sums[0])
        evaluator.add_plain_inplace(reply, self._ring.encode(_mask(self._ring, self._n, self._added).tolist()))
        evaluator.mod_switch_to_inplace(reply, self._ring.last)
        return self._ring.pad(written(reply), self._ring.reply_width)

    def _refreshed(self, outgoing: int) -> Any:
        folded = self._sums[outgoing]
        if self._untouched[outgoing]:
            return folded
        fresh = seal.Ciphertext()
        self._side.encryptor.encrypt_zero(fresh)
        if folded is not None:
            self._ring.evaluator.add_inplace(fresh, folded)
        return fresh


def _blocks(of: Ring, n: int) -> int:
    """G: entries that ride in one ciphertext."""
    if not 0 < n <= of.parameters.degree:
        raise ParameterError(
            f"{n:,} samples in one message; this RLWE key takes 1 to {of.parameters.degree:,}. Send fewer at a time."
        )
    return of.parameters.degree // n


def _cuts(ciphertexts: int, width: int) -> list[range]:
    """Which ciphertexts travel together; one empty piece where there are none."""
    step = max(1, PIECE_BYTES // width)
    return [range(i, min(i + step, ciphertexts)) for i in range(0, max(1, ciphertexts), step)]


def _check_length(blob: bytes, count: int, width: int) -> None:
    if len(blob) != count * width:
        raise SecurityError(
            f"{count} ciphertexts of {width:,} bytes were expected, {len(blob):,} bytes came; the message was refused."
        )


def _mask(of: Ring, n: int, added: Sequence[int] = ()) -> IntArray:
    """``(N,)`` integers mod t: uniform, but each sample's G slots sum to 0, or to what is added; slots of no sample are all uniform."""
    t, blocks = of.parameters.plain_modulus, _blocks(of, n)
    mask = _uniform(t, of.parameters.degree)
    used = mask[: blocks * n].reshape(blocks, n)
    used[-1] = (np.array(added if len(added) else [0], dtype=np.int64) - used[:-1].sum(axis=0)) % t
    return mask


def _uniform(t: int, count: int) -> NDArray[np.int64]:
    whole = (1 << 64) // t * t
    while True:
        words = np.frombuffer(os.urandom(8 * count), dtype="<u8")
        if (words < whole).all():
            return (words % np.uint64(t)).astype(np.int64)
