"""A toy world: every possible table of a few people, and what stands in for a Host's cipher, store and randomness."""

from __future__ import annotations

import itertools
import random
import secrets
import sys
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property, lru_cache
from typing import Any, TypeVar, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.crypto.garbling import PlainGates
from backend.crypto.interface import BinIndex, FoldPlan
from backend.crypto.plain import PlainFold, PlainPublicSide, _dump, _load
from backend.crypto.signing import SigningKey
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import ModelError
from backend.i18n import Text
from backend.protocols.explanations import host as explanations_host
from backend.protocols.explanations import weighting
from backend.protocols.explanations.host_factors import CompiledFactors
from backend.protocols.explanations.weighting import PaillierWeighting
from backend.protocols.group_sums import grouping
from backend.protocols.group_sums import host as group_sums_host
from backend.protocols.host_state import HostModels, ServedModel
from backend.protocols.ranking.circuit import outputs
from backend.protocols.ranking.host import Blinded, MarkedNumbers
from backend.protocols.ranking.shape import OTHER, RankingShape
from backend.protocols.scoring import age_classes
from backend.protocols.terms import approvals
from backend.protocols.terms.floors import Floors
from backend.protocols.terms.noise import HostNoise
from backend.protocols.training import binned, pair_pieces
from backend.protocols.training import host as training_host
from backend.store import accountant
from backend.store.accountant import Limits
from backend.store.approvals import Approval
from backend.store.party_store import PartyStore
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Layout, Leaf, Split, SplitRule
from backend.trees.serialization import dump_host

GUEST = "bank"
HOST = "platform"
CONVERSATION = "c" * 32
MODEL = "m"
KEY = SigningKey.generate()
# Fields that are salted commitments or signatures: they are taken as hiding.
HIDING = {"ModelKept": {"content_hash"}, "ApprovalGranted": {"signature", "decided", "public_key"}}
EXACT = 1e-9  # bits

Table = tuple[int, ...]
Item = TypeVar("Item")
Transcript = tuple[object, ...]


def approve_what_was_agreed(approval: Approval) -> tuple[date, int]:
    """Return what the toy's operator allows: one training of what it approved a day, and any number of scores."""
    return datetime.now(UTC).date() + timedelta(days=20), 1 if approval.purpose == "training" else 10**6


@dataclass(frozen=True)
class World:
    """A toy world.

    Attributes
    ----------
    values : tuple of float
        What a cell may hold.
    score_bits : int
        Of the registered model's layout.
    by_node : bool
        Whether the key encrypts the rows of one node at a time, as RLWE's does in training.
    unit : str
        Of all features.
    median : float, optional
        Of all features, as the registered model has them; None = it has none.
    """

    people: int = 3
    features: tuple[str, ...] = ("a", "b")
    values: tuple[float, ...] = (0.0, 1.0)
    score_bits: int = 10
    limits: Limits = field(default_factory=Limits)
    floors: Floors = field(default_factory=lambda: Floors(group_size=2))
    by_node: bool = False
    unit: str = ""
    median: float | None = None

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Return the people's ids."""
        return tuple(f"p{i}" for i in range(self.people))

    @cached_property
    def described(self) -> tuple[Feature, ...]:
        """Return the Host's dictionary."""
        unit = Text(self.unit)
        return tuple(
            Feature(name=name, meaning=Text(f"feature {name}", f"特征 {name}"), unit=unit) for name in self.features
        )

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Return every table: an index of a value for each cell, person by person."""
        return tuple(itertools.product(range(len(self.values)), repeat=self.people * len(self.features)))

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Return every table as a row, ``(tables, people * features)``."""
        return np.array(self.tables, dtype=np.int64)

    @cached_property
    def rests(self) -> NDArray[np.int64]:
        """Return for each person a number of each table without that person's row, ``(people, tables)``."""
        width = len(self.features)
        digits = len(self.values) ** np.arange(self.people * width)
        numbers = []
        for person in range(self.people):
            others = self.cells.copy()
            others[:, person * width : (person + 1) * width] = 0
            numbers.append(others @ digits)
        return np.array(numbers)

    @cached_property
    def model(self) -> HostModel:
        """Return a model that was registered: a stump for each place between two values of each feature."""
        trees = []
        rules = {}
        known = [value for value in self.values if not np.isnan(value)]
        for name, (low, high) in itertools.product(self.features, itertools.pairwise(known)):
            weight = 0.25 * 2 ** len(trees)
            rules[len(trees), 0] = SplitRule(name, False, (low + high) / 2)
            trees.append(GuestTree((Split(HOST, name, 1, 2, False, 1.0, 1.0), Leaf(weight, 1.0), Leaf(-weight, 1.0))))
        dictionary = tuple((HOST, feature) for feature in self.described)
        guest = GuestModel(GUEST, (HOST,), tuple(trees), (0.0,), 10, dictionary, {})
        medians = {} if self.median is None else dict.fromkeys(self.features, (self.median, self.median))
        layout = Layout(self.score_bits, 1, 0)
        return HostModel(HOST, GUEST, (HOST,), guest.skeletons, rules, "s" * 32, layout, medians=medians)

    @property
    def entries(self) -> int:
        """Return how many numbers of a person a question for a score has: two leaves a stump."""
        return 2 * len(self.model.skeletons)

    @cached_property
    def text(self) -> str:
        """Return the registered model as the store has it."""
        return dump_host(self.model)

    @cached_property
    def served(self) -> ServedModel:
        """Return the registered model ready for scoring: compiled once for all Hosts."""
        return HostModels(HOST, cast("PartyStore", ToyStore({MODEL: self.text}))).get(MODEL)

    def cipher(self) -> ToyCipher | ToyNodeCipher:
        """Return the cipher under which everything is read."""
        return ToyNodeCipher() if self.by_node else ToyCipher()

    @cached_property
    def typical(self) -> Table:
        """Return a table of which most is answered: every value of a feature is as common as the others; of ages, half are elderly."""
        if self.unit:
            return (0, 1, 2, 2)
        width = len(self.features)

        def crowding(table: Table) -> int:
            counts = [Counter(table[k::width]) for k in range(width)]
            return sum(count * count for of_feature in counts for count in of_feature.values())

        return min(self.tables, key=crowding)

    @cached_property
    def held(self) -> tuple[PartyTable, ...]:
        """Return every table as the Host holds it."""
        return tuple(self.records(table) for table in self.tables)

    @cached_property
    def numbered(self) -> PartyTable:
        """Return a table in which each cell has its place in :attr:`cells`."""
        places = np.arange(self.people * len(self.features), dtype=float).reshape(self.people, len(self.features))
        return PartyTable(HOST, self.ids, {name: places[:, k] for k, name in enumerate(self.features)})

    def records(self, table: Table) -> PartyTable:
        """Return a table as the Host holds it."""
        cells = np.array(self.values)[np.array(table).reshape(self.people, len(self.features))]
        return PartyTable(HOST, self.ids, {name: cells[:, k].astype(float) for k, name in enumerate(self.features)})


class ToyStore:
    """A store in memory whose secrets are known to the Guest: what noise hides is not counted as hidden."""

    def __init__(self, artefacts: Mapping[str, str], trainings: object = None) -> None:
        self._artefacts = dict(artefacts)
        self.trainings = trainings

    def artefact(self, model_id: str) -> str:
        """Return a partial model; raises ModelError if it is unknown."""
        if model_id not in self._artefacts:
            raise ModelError("model_not_stored", model=model_id)
        return self._artefacts[model_id]

    def put_artefact(self, model_id: str, text: str) -> str:
        """Store a partial model."""
        self._artefacts[model_id] = text
        return "digest"

    def put_training(self, *_: object) -> None:
        """Store nothing of a training."""

    def trained_here(self, _: str) -> bool:
        """Return whether a model is no import."""
        return True

    def content_hash(self, _: str) -> str:
        """Return nothing: the toy's ids are free."""
        return ""

    def secret(self, _: str) -> bytes:
        """Return the same bytes for every name."""
        return b"k" * 32


class ToyCipher(PlainPublicSide):
    """Plaintext that opens no more than the real ciphers would, and takes what they take."""

    room = 1 << 64

    def start_fold(self, keep: NDArray[np.bool_], plan: FoldPlan, added: Sequence[int] = ()) -> ToyFold:
        """Begin a batch, which may come in pieces as RLWE's do."""
        return ToyFold(PlainFold(keep, plan, added))

    def bin_sums(self, pairs: Any, nodes: Any, half: int = 31, *, alone: bool = False) -> list[bytes]:
        """Return sums of bins, of groups only modulo what the announced halves hold."""
        sums = super().bin_sums(pairs, nodes, half)
        if not alone:
            return sums
        cut = []
        for blob, (_, bins) in zip(sums, nodes, strict=True):
            first, second = _load(blob, (2, sum(count for _, count in bins)))
            packed = [((int(a) << half) + int(b)) % (1 << 2 * half) for a, b in zip(first, second, strict=True)]
            cut.append(_dump(np.array(packed, dtype=object)))
        return cut


class ToyNodeCipher:
    """Plaintext that takes the rows of one node at a time."""

    scheme = "none"
    bits = 0
    number_bits = 62

    def start_sums(self, bins: BinIndex, block: int, numbers: int) -> ToySums:
        """Begin a node."""
        return ToySums(bins)


class ToySums:
    """The sums of one node, whose rows come in one piece."""

    complete = False

    def __init__(self, bins: BinIndex) -> None:
        self._bins = bins
        self._sums: list[int] = []

    def add(self, blob: bytes) -> None:
        """Take the rows."""
        rows = len(self._bins[0][0]) if self._bins else 0
        numbers = _load(blob, (rows,)).tolist()
        for of_row, count in self._bins:
            sums = [0] * count
            for number, place in zip(numbers, of_row.tolist(), strict=True):
                sums[place] += number
            self._sums += sums
        self.complete = True

    def finish(self) -> bytes:
        """Return the sums, feature by feature."""
        return _dump(np.array(self._sums, dtype=object))


class ToyFold:
    """A batch of scores whose bytes come in pieces."""

    def __init__(self, whole: PlainFold) -> None:
        self._whole = whole
        self._pieces: list[bytes] = []

    def add(self, blob: bytes) -> None:
        """Take the next piece."""
        self._pieces.append(blob)

    def finish(self) -> Iterator[bytes]:
        """Yield the scores."""
        self._whole.add(b"".join(self._pieces))
        yield from self._whole.finish()


class ToyRanking:
    """A Host's ranking in the clear: the real circuit on both sides' bits. What the Guest chooses, it adds to the numbers."""

    def __init__(self, blinded: Blinded, shape: RankingShape, marks: MarkedNumbers | None = None) -> None:
        self._shape = shape
        parts = [blinded, *([marks.blinded] if marks else [])]
        # Ties are broken in the order of the features, and nothing but the Host's share hides a number.
        lift = (1 << (shape.width - 1)) - (1 << shape.tie_bits)
        shares = [part([tie + lift for tie in range(shape.n)])[1] for part in parts]
        sides = shape.sides(marks.sides if marks else None, OTHER)
        self._own = np.concatenate([*(shape.bits(numbers).ravel() for numbers in shares), sides])

    def share(self, offer: bytes) -> bytes:
        """Return what hides everything."""
        return b"blinded"

    def garble(self, choices: bytes) -> bytes:
        """Return which names are the largest, and a bit of each."""
        return _ranked(self._shape, choices, self._own.astype(np.uint8).tobytes())


@lru_cache(maxsize=1 << 14)
def _ranked(shape: RankingShape, choices: bytes, own: bytes) -> bytes:
    theirs = np.unpackbits(np.frombuffer(choices, dtype=np.uint8), count=shape.inputs[0])
    wires = [bits.astype(np.uint64)[:, np.newaxis] for bits in (theirs, np.frombuffer(own, dtype=np.uint8))]
    return outputs(PlainGates(), *wires, shape).astype(np.uint8).tobytes()


def blinded_in_the_clear(weighting: PaillierWeighting, values: Any, added: Sequence[int]) -> tuple[bytes, list[int]]:
    """Return the numbers themselves as the Host's shares; stands in for :meth:`PaillierWeighting.blinded`."""
    layout = weighting._layout
    shape = layout.shape.ranking
    shares: list[int] = []
    for value, held in zip(values, layout.layout(weighting._party), strict=True):
        of_pack = added[len(shares) : len(shares) + held]
        total = (int(value) << shape.tie_bits) + sum(more << (layout.slot * i) for i, more in enumerate(of_pack))
        shares += [(total >> (layout.slot * i)) % (1 << shape.width) for i in range(held)]
    return b"", shares


class ToyNoise(HostNoise):
    """Noise that the Guest knows, the same for every table; what it would hide is read by the Guest, unless :attr:`hidden` says so.

    Attributes
    ----------
    hidden : int
        How many numbers were drawn that hide what lies above a score: of each the Guest reads the announced width and no more.
    """

    def __init__(self, width: float) -> None:
        super().__init__(width, lambda purpose: b"k" * 32)
        self.hidden = 0

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items, each moved by one place: nobody keeps their own value."""
        return [*items[1:], *items[:1]]

    def choice(self, items: Sequence[Item]) -> Item:
        """Return the first item."""
        return items[0]

    def flags(self, *shape: int) -> NDArray[np.bool_]:
        """Return zeros."""
        return np.zeros(shape, dtype=bool)

    def below(self, limit: int) -> int:
        """Return 0, and note that something is hidden."""
        self.hidden += 1
        return 0


SMALL = World()
GROUPED = World(people=6, features=("a",))  # two groups of three people
# A row has two bits, a score one: what it costs is less than a row.
FINE = World(features=("a",), values=(0.0, 1.0, 2.0, 3.0), score_bits=1, floors=Floors(group_size=2, score_bits=1))
# Sums of a training need more than a hundred people, those of a cohort 16 or more, if at most half of them may be named: here all may.
ALL_NAMED = Floors(group_size=2, named=200.0)
WIDE = World(floors=ALL_NAMED)
DEEP = World(people=4, features=("a",), values=(0.0, 1.0, 2.0), floors=ALL_NAMED)  # two children of two people
BY_NODE = replace(DEEP, by_node=True)
NAMED = World(people=2, values=(0.0, 1.0, 2.0), median=1.0)  # for reasons: a row says more than one ranking
PAIRS = World(people=4, floors=ALL_NAMED)  # two groups of two people by each of two features
CROSSED = World(
    people=5, floors=ALL_NAMED
)  # a cell of two features together has two or three people, or is put into a rest
AGED = World(
    people=4, features=("a",), values=(30.0, 50.0, 70.0), unit="years"
)  # two elderly people and two younger ones
# The place of a cut between two values moves with one person: there are more outcomes than bins.
CUTS = World(features=("a",), values=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0), floors=ALL_NAMED)
LARGE = World(people=4, values=(0.0, 1.0, 2.0))

WORLDS = {
    "groups": GROUPED,
    "screening": GROUPED,
    "pairs": PAIRS,
    "together": CROSSED,
    "ages": AGED,
    "node sums": BY_NODE,
    "a score of one bit": FINE,
    "cuts": CUTS,
    "reasons": NAMED,
}
"""How the name of a script begins → the world in which it is played."""
ANSWERED_WIDE = frozenset(
    {
        "cohort",
        "cohort, twice with other terms",
        "training, bin sums",
        "training, sums of one row",
        "training, two splits at a node",
        "layout of no bits",
    }
)


def world_of(name: str) -> World:
    """Return the world in which a script is played."""
    for beginning, world in WORLDS.items():
        if name.startswith(beginning):
            return world
    return WIDE if name in ANSWERED_WIDE else SMALL


FEWEST = 2  # people, where the product has 20 or 50: the toy has three


@contextmanager
def toy_floors() -> Iterator[None]:
    """Within, protocols ask for :data:`FEWEST` people where they have a number of their own, and draw known numbers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            for constant in ("MIN_GROUP", "MIN_PEOPLE"):
                if name.startswith("backend.protocols") and hasattr(module, constant):
                    patch.setattr(module, constant, FEWEST)
        patch.setattr(training_host, "PEOPLE", FEWEST)
        patch.setattr(accountant, "CROWD", FEWEST)
        patch.setattr(pair_pieces, "PIECE_BYTES", 32)  # two people's pairs
        # patched: a ranking of two features in the clear, in which every share can be enumerated
        patch.setattr(weighting, "RankingHost", ToyRanking)
        patch.setattr(PaillierWeighting, "blinded", blinded_in_the_clear)
        patch.setattr(secrets, "SystemRandom", KnownRandom)
        # patched: arithmetic on columns, of which most tables have the same ones
        for module, name in (
            (grouping, "make_bins"),
            (binned, "make_bins"),
            (group_sums_host, "group"),
            (age_classes, "group"),
        ):
            patch.setattr(module, name, remembered(getattr(module, name)))
        patch.setattr(explanations_host, "CompiledFactors", remembered(CompiledFactors))
        # patched: what each message is asked for again and again: requests, and which methods a cipher has
        patch.setattr(approvals, "about_model", remembered(approvals.about_model))
        patch.setattr(approvals, "about_training", remembered(approvals.about_training))
        patch.setattr(typing, "_get_protocol_attrs", cache(typing._get_protocol_attrs))
        yield


def remembered(function: Callable[..., Item]) -> Callable[..., Item]:
    """Return a pure function that is worked out once for equal arguments."""
    results: dict[object, tuple[Item, object]] = {}

    def call(*arguments: Any, **options: Any) -> Item:
        key = (*map(_as_key, arguments), *options.items())
        if key not in results:
            # With the arguments, so that none is another one at the same address.
            results[key] = function(*arguments, **options), arguments
        return results[key][0]

    return call


def _as_key(argument: Any) -> object:
    """Return what equal arguments have in common: an array's numbers, a number, or which object it is."""
    if isinstance(argument, np.ndarray):
        return argument.dtype.str, argument.shape, argument.tobytes()
    return argument if isinstance(argument, int | str | tuple) else id(argument)


class KnownRandom(random.Random):
    """Numbers that the Guest knows, the same for every Host."""

    def __init__(self) -> None:
        super().__init__(7)
