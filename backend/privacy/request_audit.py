"""The auditor: has the Guest open requests that a Host logged in secret, and checks that an honest Guest would have sent just these.

Requests are decision vectors (:func:`replay`) and terms of reasons (:func:`replay_terms`).

A third role. It sees the Guest's partial model and, of the people in the sample, which leaves the Guest's own values leave open; it sees
nothing of a Host's values, and neither party sees what the other handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from typing import TypeVar

import gmpy2

from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey
from backend.errors import GlassleafError, SecurityError
from backend.jobs import work
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.opening import TermsOpening, honest_numbers
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.opening import Opening
from backend.protocols.scoring.packing import Packing
from backend.protocols.terms.floors import SCORE_BITS
from backend.store.schema import LoggedRow
from backend.trees.backgrounds import backgrounds, left_shares, shares_of
from backend.trees.ensemble import GuestModel, Registered, Split
from backend.trees.serialization import content_hash, load_guest

Opener = Callable[[LoggedRow], Opening]
Row = TypeVar("Row", LoggedRow, "LoggedTerms")


@dataclass(frozen=True)
class Replayed:
    """What an audit found.

    Attributes
    ----------
    rows : int
        Requests checked, one per person.
    problems : tuple of (int, str)
        Number of the row in the Host's log, and what is wrong with it; every other row is what an honest Guest sends.
    """

    rows: int
    problems: tuple[tuple[int, str], ...]


def replay(
    rows: Sequence[LoggedRow], opener: Opener, partial_model: str, registered: Registered, floor: int = KEY_BITS_FLOOR
) -> Replayed:
    """Check the requests of one model.

    Parameters
    ----------
    rows : sequence of LoggedRow
        A Host's.
    opener : callable
        The Guest: row → its opening; may raise.
    partial_model : str
        The Guest's partial model, as the Guest hands it over.
    registered : Registered
        What the Host received when the model was registered: hash of the Guest's partial model, and layout of its scores.
    floor : int
        Shortest key, bits; lower only in tests.
    """

    def checker(model: GuestModel) -> Callable[[LoggedRow], None]:
        weights = HonestWeights(model)
        return lambda row: _check(row, opener(row), weights, floor)

    return _replayed(rows, partial_model, registered, checker)


def _replayed(
    rows: Sequence[Row],
    partial_model: str,
    registered: Registered,
    checker: Callable[[GuestModel], Callable[[Row], None]],
) -> Replayed:
    wrong = ""
    model = None
    if not registered.guest_hash:
        wrong = "no partial model was registered"
    elif content_hash(partial_model) != registered.guest_hash:
        wrong = "the Guest's partial model is not the one that was registered"
    else:
        model = load_guest(partial_model)
        wrong = _layout_problem(model, registered)
    if model is None or wrong:
        return Replayed(len(rows), tuple((row.number, wrong) for row in rows))
    check = checker(model)
    problems = []
    for row in rows:
        work.check()
        try:
            check(row)
        except GlassleafError as error:
            problems.append((row.number, str(error)))
    return Replayed(len(rows), tuple(problems))


def _layout_problem(model: GuestModel, registered: Registered) -> str:
    """Return the problem of the layout by which a Host books answers and adds dither; empty if it is that of the partial model."""
    layout = Packing(model).layout
    if registered.layout != layout:
        if registered.layout is None:
            registered_layout = None
        else:
            registered_layout = astuple(registered.layout)
        return str(SecurityError("layout_of_other_model", told=registered_layout or (), registered=astuple(layout)))
    if layout.score_bits < SCORE_BITS:
        return str(SecurityError("few_score_bits", got=layout.score_bits, least=SCORE_BITS))
    return ""


def _check(row: LoggedRow, opening: Opening, weights: HonestWeights, floor: int) -> None:
    """Raise SecurityError if the opening is not that of the row, or not of weights that an honest Guest sends."""
    check_opened(PaillierPublicKey.from_bytes(row.public_key, floor), row.vector, opening)
    weights.check(opening.numbers)


def check_opened(key: PaillierPublicKey, blob: bytes, opening: Opening) -> None:
    """Raise SecurityError if logged ciphertexts do not open like this."""
    sent = key.load(blob, len(blob) // key.width)
    if not len(sent) == len(opening.numbers) == len(opening.roots):
        raise SecurityError("opening_of_other_length")
    for c, m, r in zip(sent, opening.numbers, opening.roots, strict=True):
        work.check()
        if key.encrypt_with(m, gmpy2.powmod(r, key.n, key.n2)) != c:
            raise SecurityError("opening_of_other_ciphertexts")


@dataclass(frozen=True)
class LoggedTerms:
    """One person's terms of reasons as the Guest sent them to the first Host, and what it stated beside them.

    Attributes
    ----------
    number : int
        In the log.
    public_key : bytes
        The modulus, big-endian.
    terms : bytes
        As in :class:`backend.protocols.explanations.messages.ReasonTerms`.
    host : str
        Who logged them: the first of the chain.
    value_bits, groups : int, tuple of int
        As in :class:`backend.protocols.explanations.messages.AskReasons` or ``AskCohort``, which merges nothing.
    """

    number: int
    public_key: bytes = field(repr=False)
    terms: bytes = field(repr=False)
    host: str
    shares: tuple[float, ...]
    features: tuple[int, ...]
    value_bits: int
    groups: tuple[int, ...] = ()


def replay_terms(
    rows: Sequence[LoggedTerms],
    opener: Callable[[LoggedTerms], TermsOpening],
    partial_model: str,
    registered: Registered,
    floor: int = KEY_BITS_FLOOR,
) -> Replayed:
    """Check terms of reasons of one model: parameters as in :func:`replay`."""
    return _replayed(
        rows, partial_model, registered, lambda model: lambda row: check_terms(row, opener(row), model, floor)
    )


def check_terms(row: LoggedTerms, opening: TermsOpening, model: GuestModel, floor: int = KEY_BITS_FLOOR) -> None:
    """Raise SecurityError unless an honest Guest could send these terms of a person, for some values of that person."""
    compiled = CompiledTerms(model)
    shape = compiled.shape(1)
    first = compiled.chain[0]
    sizes = row.host, row.features, row.value_bits
    if sizes != (first, shape.features, shape.value_bits) or len(row.groups) not in (0, len(compiled.items)):
        raise SecurityError("terms_of_other_sizes")
    # Two groups may have the same shares at this Host's splits and different ones at the Guest's.
    possible = []
    for b in backgrounds(model):
        if row.shares == shares_of(model, left_shares(model, b), row.host):
            possible.append(b)
    if not possible:
        raise SecurityError("terms_of_unknown_shares")
    key = PaillierPublicKey.from_bytes(row.public_key, floor)
    check_opened(key, row.terms, opening.sent)
    try:
        honest = []
        for background in possible:
            honest.append(honest_numbers(model, opening.values, key.bits, background, row.groups))
    except (KeyError, TypeError, ValueError) as error:
        raise SecurityError("opening_without_value") from error
    sent = list(opening.sent.numbers)
    if not any(sent in (contributions, contributions + drops) for contributions, drops in honest):
        raise SecurityError("terms_of_other_model")


class HonestWeights:
    """Which numbers an honest Guest encrypts: per tree the weights of leaves that some path through its own splits leaves open, else 0."""

    def __init__(self, model: GuestModel) -> None:
        compiled = CompiledGuest(model)
        self._model = model
        self._n = compiled.folding.n_entries
        packed = iter(compiled.packing.of_leaves().tolist())
        self._weights = [dict(zip(tree.leaves, packed, strict=False)) for tree in model.trees]
        entries = compiled.folding.entry_of_leaf
        self._entries = [dict(zip(tree.leaves, e, strict=True)) for tree, e in zip(model.trees, entries, strict=True)]

    def check(self, numbers: Sequence[int]) -> None:
        """Raise SecurityError unless every tree's entries could be those of an honest Guest, for some values.

        One number, a canary or the number that binds the score to its request, may be added to all candidate leaves of a tree: it is the
        same for every leaf that a Host may keep.
        """
        if len(numbers) != self._n:
            raise SecurityError("entries_of_other_length", got=len(numbers), expected=self._n)
        for t, entries in enumerate(self._entries):
            numbers_of_tree = {e: numbers[e] for e in entries.values() if e is not None}
            weights = self._weights[t]
            offsets = {numbers_of_tree[e] - weights[leaf] for leaf, e in entries.items() if e is not None} | {0}
            if not any(self._possible(t, 0, numbers_of_tree, offset) for offset in offsets):
                raise SecurityError("weights_of_other_model", tree=t + 1)

    def _possible(self, t: int, node: int, numbers: dict[int, int], canary: int) -> bool:
        """Return whether a path through the Guest's splits explains the entries below a node; Hosts' splits lead both ways."""
        tree = self._model.trees[t]
        at = tree.nodes[node]
        if not isinstance(at, Split):
            entry = self._entries[t][node]
            return entry is None or numbers[entry] == self._weights[t][node] + canary
        left_entries = self._below(t, at.left)
        right_entries = self._below(t, at.right)
        if at.owner != self._model.guest:
            return self._possible(t, at.left, numbers, canary) and self._possible(t, at.right, numbers, canary)
        # The Guest's own split: on the side that it does not take, all entries are 0.
        if all(numbers[e] == 0 for e in right_entries - left_entries) and self._possible(t, at.left, numbers, canary):
            return True
        return all(numbers[e] == 0 for e in left_entries - right_entries) and self._possible(
            t, at.right, numbers, canary
        )

    def _below(self, t: int, node: int) -> set[int]:
        """Entries of the leaves below a node."""
        at = self._model.trees[t].nodes[node]
        if isinstance(at, Split):
            return self._below(t, at.left) | self._below(t, at.right)
        entry = self._entries[t][node]
        return set() if entry is None else {entry}
