"""A Host's side of RLWE: multiplies the Guest's ciphertexts by numbers of its own, adds them up, refreshes and floods. Reads none.

The layout is :mod:`backend.crypto.rlwe.layout`'s; why a reply hides what was multiplied: docs/decisions/encryption.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import BinIndex, FoldPlan, check_length
from backend.crypto.pool import Pool
from backend.crypto.rlwe.bin_sums import BinSumming
from backend.crypto.rlwe.flooding import flood
from backend.crypto.rlwe.folding import Piece, folded, folded_apart
from backend.crypto.rlwe.layout import block_mask, blocks_of, cuts
from backend.crypto.rlwe.ring import written
from backend.crypto.rlwe.sum_parameters import sum_sets
from backend.crypto.rlwe.zeros import Zeros, zeros_under
from backend.crypto.workers import Workers
from backend.errors import SecurityError

PARALLEL_MIN = 128  # ciphertexts of a batch from which on other processes save more than they cost
PIECES_A_WORKER = 2  # that are folded at the same time


class FloodMaker:
    """Makes what a last Host adds to its reply: Enc(0) under the public key, with uniform noise from -F to F - 1 added to c0."""

    def __init__(self, zeros: Zeros) -> None:
        self._zeros = zeros

    def prepare(self) -> None:
        """Nothing: the ring is there."""

    def release(self) -> None:
        """Nothing: there are no tables."""

    def make(self, count: int) -> list[Any]:
        """`count` flooded zeros."""
        return [self._zeros.make(flood(self._zeros.ring.parameters)) for _ in range(count)]

    make_unlocked = make  # SEAL's calls are short


class RlwePublicSide:
    """A Host's side.

    Parameters
    ----------
    pool : int, optional
        Flooded zeros kept ready in the background.
    workers : Workers, optional
        Who multiplies long batches and in training; default this process alone.

    Raises
    ------
    SecurityError
        The parameter set is unknown, or the key is none of it.
    """

    scheme = "rlwe"

    def __init__(self, offered: bytes, pool: int = 0, workers: Workers | None = None) -> None:
        self._offered = offered
        self.workers = workers or Workers()
        self.zeros = zeros_under(offered)
        self.ring = self.zeros.ring
        self.bits = self.ring.parameters.degree
        self.room = self.ring.parameters.plain_modulus
        # replies of sums by bin are flooded in another way
        ready = 0 if self.ring.parameters.name in sum_sets() else pool
        self.floods: Pool[Any] = Pool(FloodMaker(self.zeros), None, ready)

    def __repr__(self) -> str:
        return f"RlwePublicSide({self.ring.parameters.name})"

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan, addends: Sequence[int] = ()) -> RlweFold:
        """Begin a batch; raises SecurityError if the Guest's key is too small to hide this Host's 0/1 in such a batch."""
        return RlweFold(self, keep, plan, addends)

    def start_sums(self, bins: BinIndex, block: int, numbers: int) -> BinSumming:
        """Begin the sums of a node; raises SecurityError if they could not be hidden or are asked for in a wrong form."""
        return BinSumming(self._offered, self.ring, bins, block, numbers, self.workers)

    @property
    def number_bits(self) -> int:
        """Bits that a sum of numbers holds at most."""
        return self.ring.parameters.plain_modulus.bit_length()

    def refreshed(self, summed: Any | None) -> Any:
        """What may go to another Host: plus a fresh Enc(0) under the public key."""
        return self.ring.plus(self.zeros.make(), summed)

    def reply(self, summed: Any | None, n: int, addends: Sequence[int] = ()) -> bytes:
        """Return a reply as it may go to the Guest: flooded, its slots masked except the sum of each sample's blocks, at one prime.

        Parameters
        ----------
        n : int
            The number of samples, which sets the blocks.
        addends : sequence of int, optional
            ``(n,)`` integers mod t that are added to the sums.
        """
        evaluator = self.ring.evaluator
        reply = self.ring.plus(self.floods.take(1)[0], summed)
        evaluator.add_plain_inplace(reply, self.ring.plaintext(self.ring.encode(block_mask(self.ring, n, addends))))
        evaluator.mod_switch_to_inplace(reply, self.ring.last)
        return self.ring.pad(written(reply), self.ring.reply_width)


class RlweFold:
    """Multiplies ciphertexts by this Host's 0/1 and adds them up; the last Host masks and floods the sum, others refresh theirs.

    An intermediate Host folds entries only if G = 1: blocks of one ciphertext do not line up with those of another, so with G > 1 the
    Guest's entries go on as they are, and the next Host looks its 0/1 up by ``plan.origin``.
    """

    def __init__(self, side: RlwePublicSide, keep: NDArray[np.bool_], plan: FoldPlan, addends: Sequence[int]) -> None:
        self._side = side
        self._ring = side.ring
        self._plan = plan
        self._added = addends
        self._n = len(keep)
        self._blocks = blocks_of(self._ring, self._n)
        folds = self._blocks == 1
        entries = list(range(len(plan.is_own)) if folds else plan.origin)
        is_own = np.array(plan.is_own, dtype=bool)[entries]
        self._kept = np.ascontiguousarray(keep.T[entries] | ~is_own[:, None])
        starts = range(0, len(entries), self._blocks)
        self._own = [bool(is_own[i : i + self._blocks].any()) for i in starts]
        if plan.last:
            self._target = [0] * len(starts)
        elif folds:
            self._target = list(plan.target)
        else:
            self._target = list(range(len(starts)))
        self._came: list[Piece] | None = [] if side.workers.parallel and len(starts) >= PARALLEL_MIN else None
        if plan.last:
            n_sums = 1
        elif folds:
            n_sums = plan.n_out
        else:
            n_sums = len(starts)
        self._sums: list[Any] = [None] * n_sums
        if folds:
            self._untouched = plan.untouched
        else:
            self._untouched = tuple(not owned for owned in self._own)
        if plan.index:
            self._width = self._ring.full_width
        else:
            self._width = self._ring.seeded_width
        self._awaited = cuts(len(starts), self._width)
        parameters = self._ring.parameters
        sent = -(-len(plan.origin) // self._blocks)
        if parameters.noise(plan.hosts, sent) > parameters.noise_allowed:
            raise SecurityError(
                "vectors_exceed_noise", ciphertexts=sent, hosts_count=plan.hosts, parameters=parameters.name
            )

    def add(self, blob: bytes) -> None:
        """Take the next piece; raises SecurityError if it is none, or there was no next one."""
        if not self._awaited:
            raise SecurityError("piece_too_many")
        cut = self._awaited.pop(0)
        check_length(blob, len(cut), self._width)
        piece = Piece(
            self._ring.parameters.name,
            blob,
            not self._plan.index,
            tuple(self._slots(at) for at in cut),
            tuple(self._target[at] for at in cut),
        )
        if self._came is None:
            self._take(folded(self._ring, piece))
            return
        self._came.append(piece)
        if len(self._came) == PIECES_A_WORKER * self._side.workers.jobs:
            self._fold_those_that_came()

    def _fold_those_that_came(self) -> None:
        """On the workers, while the next pieces are on their way: no more of a batch is held than keeps them busy."""
        came = self._came or []
        self._came = []
        for apart in self._side.workers.map(folded_apart, ((piece,) for piece in came)):
            self._take({target: self._ring.ciphertext(blob, self._ring.first) for target, blob in apart.items()})

    def _slots(self, at: int) -> NDArray[np.bool_] | None:
        if self._own[at]:
            return self._kept[at * self._blocks : (at + 1) * self._blocks].ravel()
        return None

    def _take(self, sums: dict[int, Any]) -> None:
        for target, summed in sums.items():
            self._sums[target] = self._ring.plus(self._sums[target], summed)

    def finish(self) -> Iterator[bytes]:
        """One flooded reply from the last Host, else pieces of refreshed ciphertexts."""
        if self._awaited:
            raise SecurityError("pieces_missing", missing=len(self._awaited))
        if self._came:
            self._fold_those_that_came()
        if self._plan.last:
            yield self._side.reply(self._sums[0], self._n, self._added)
            return
        for cut in cuts(len(self._sums), self._ring.full_width):
            yield b"".join(self._ring.pad(written(self._refreshed(o)), self._ring.full_width) for o in cut)

    def _refreshed(self, outgoing: int) -> Any:
        folded = self._sums[outgoing]
        if self._untouched[outgoing]:
            return folded
        return self._side.refreshed(folded)
