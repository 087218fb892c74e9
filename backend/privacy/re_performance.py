"""An auditor with both halves of a sample recomputes scores, and says what differs, by how much and whose it is.

A third role: it sees both parties' partial models, and their values of the people in the sample. Each Host hands over its half
(:mod:`backend.protocols.scoring.host_half`), the Guest its own. Under Paillier the Guest also opens what came to each Host, which can be
done in one way only, so that each step of the chain is checked by itself. Under RLWE the score alone is compared.

A score that is wrong although every step before it is right was moved by the last Host, or is misreported by the Guest: replies are not
signed one by one, so that no half proves which.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from backend.crypto.paillier.keys import KEY_BITS_FLOOR, PaillierPublicKey
from backend.errors import GlassleafError, SecurityError
from backend.jobs import work
from backend.privacy.request_audit import check_opened
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost
from backend.protocols.scoring.host_half import HostHalf, HostRow
from backend.protocols.scoring.opening import Opening
from backend.protocols.scoring.statement import ScoreStatement, load_statement
from backend.remark import Remark
from backend.trees.ensemble import GuestModel, HostModel
from backend.trees.serialization import content_hash, load_guest, load_host

Place = tuple[str, int]  # request, and position in it
Opened = Mapping[tuple[str, int], Opening]  # (Host, number in its log) → what came to it


@dataclass(frozen=True, repr=False)
class GuestHalf:
    """The Guest's half.

    Attributes
    ----------
    models : dict of str to str
        Model → the Guest's partial model.
    statements : dict of str to ScoreStatement
        Request → how its scores came about.
    canaries : dict of (str, int) to tuple of int
        Place → each tree's number, if there was one.
    opened : dict of (str, int) to Opening
        (Host, number in its log) → what came to it, opened.
    """

    guest: str
    models: Mapping[str, str]
    statements: Mapping[str, ScoreStatement]
    canaries: Mapping[Place, tuple[int, ...]] = field(default_factory=dict)
    opened: Opened = field(default_factory=dict)

    def dump(self) -> str:
        """Return the half as JSON."""
        opened = [
            [host, number, [str(m) for m in opening.numbers], [str(r) for r in opening.roots]]
            for (host, number), opening in self.opened.items()
        ]
        body = {
            "guest": self.guest,
            "models": dict(self.models),
            "statements": {request: one.dump() for request, one in self.statements.items()},
            "canaries": [[request, place, list(numbers)] for (request, place), numbers in self.canaries.items()],
            "opened": opened,
        }
        return json.dumps(body)


def load_guest_half(text: str) -> GuestHalf:
    """Return a half that was dumped; raise SecurityError if it is none."""
    try:
        body = json.loads(text)
        canaries = {
            (str(request), int(place)): tuple(map(int, numbers)) for request, place, numbers in body["canaries"]
        }
        opened = {}
        for host, number, numbers, roots in body["opened"]:
            opened[str(host), int(number)] = Opening(tuple(map(int, numbers)), tuple(map(int, roots)))
        statements = {str(request): load_statement(one) for request, one in body["statements"].items()}
        models = {str(name): str(model) for name, model in body["models"].items()}
        return GuestHalf(str(body["guest"]), models, statements, canaries, opened)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SecurityError("half_unreadable") from error


@dataclass(frozen=True)
class Difference:
    """What is not as the halves say.

    Attributes
    ----------
    parties : tuple of str
        Whose it is: one party, or those of which one is at fault.
    by : tuple of float
        By how much the margin of each output is too high; empty if it is not a score that differs.
    """

    model_id: str
    request: str
    place: int
    person: str
    parties: tuple[str, ...]
    why: Remark
    by: tuple[float, ...] = ()


@dataclass(frozen=True)
class RePerformed:
    """What an auditor found.

    Attributes
    ----------
    scores : int
        Scores that were recomputed.
    opened : int
        Steps of chains that were checked by their ciphertexts.
    not_covered : tuple of (Remark, int)
        Why scores of the sample could not be recomputed, and how many.
    """

    scores: int
    opened: int
    differences: tuple[Difference, ...]
    not_covered: tuple[tuple[Remark, int], ...]


class _Model:
    """One model with all of its halves."""

    def __init__(self, guest: GuestModel, hosts: Mapping[str, HostModel]) -> None:
        self.guest = guest
        self.compiled = CompiledGuest(guest)
        self.steps = self.compiled.folding.steps
        self.hosts = [step.host for step in self.steps]
        self._compiled = {step.host: CompiledHost(step, hosts[step.host].rules) for step in self.steps}
        self._numbers = {}
        for step in self.steps:
            rules = hosts[step.host].rules.values()
            self._numbers[step.host] = {rule.feature: rule.threshold is not None for rule in rules}

    def passed_on(self, index: int, entries: Sequence[int], row: HostRow) -> list[int]:
        """Return what the Host at `index` of the chain makes of one person's entries (Fed-EINI eq. 10 and 13)."""
        step = self.steps[index]
        columns = {}
        for name, is_number in self._numbers[step.host].items():
            value = row.values.get(name)
            columns[name] = (
                np.array([np.nan if value is None else value]) if is_number else np.array([value], dtype=object)
            )
        keep = self._compiled[step.host].decide(columns, np.array([row.held]))[0].tolist()
        sums = [0] * step.n_out
        for entry, kept, target in zip(entries, keep, step.target, strict=True):
            if kept:
                sums[target] += entry
        return sums


def re_perform(guest: GuestHalf, hosts: Sequence[HostHalf], floor: int = KEY_BITS_FLOOR) -> RePerformed:
    """Recompute every score of which all Hosts' rows and the Guest's statement are there.

    Parameters
    ----------
    hosts : sequence of HostHalf
        One a Host.
    floor : int
        Shortest key, bits; lower only in tests.
    """
    rows: dict[tuple[str, Place], dict[str, HostRow]] = {}
    for half in hosts:
        for row in half.rows:
            known = rows.setdefault((row.model_id, (row.request, row.place)), {})
            if half.host not in known or row.vector:
                known[half.host] = row
    models: dict[str, _Model | Remark] = {}
    differences: list[Difference] = []
    reasons: dict[str, Remark] = {}
    not_covered: Counter[str] = Counter()
    scores = 0
    opened = 0
    for (model_id, place), of_hosts in rows.items():
        work.check()
        if model_id not in models:
            models[model_id] = _model(model_id, guest, hosts)
        model = models[model_id]
        if isinstance(model, Remark):
            reasons[model.code] = model
            not_covered[model.code] += 1
            continue
        run = _Run(model, guest, model_id, place, of_hosts, floor)
        reason = run.not_covered()
        if reason is not None:
            reasons[reason.code] = reason
            not_covered[reason.code] += 1
            continue
        run.check()
        scores += 1
        opened += run.opened
        differences += run.differences
    return RePerformed(
        scores, opened, tuple(differences), tuple((reasons[code], n) for code, n in not_covered.most_common())
    )


def _model(model_id: str, guest: GuestHalf, hosts: Sequence[HostHalf]) -> _Model | Remark:
    """Return a model with all of its halves, or why it cannot be recomputed."""
    if model_id not in guest.models:
        return Remark("guest_without_model")
    loaded = load_guest(guest.models[model_id])
    partial_models = {half.host: load_host(half.models[model_id]) for half in hosts if model_id in half.models}
    registered = {model.guest_hash for model in partial_models.values()}
    if registered != {content_hash(guest.models[model_id])}:
        return Remark("other_model_registered")
    if not {step.host for step in CompiledGuest(loaded).folding.steps} <= partial_models.keys():
        return Remark("host_without_half")
    return _Model(loaded, partial_models)


class _Run:
    """One person of one request, from the Guest's entries to its score."""

    def __init__(
        self,
        model: _Model,
        guest: GuestHalf,
        model_id: str,
        place: Place,
        rows: Mapping[str, HostRow],
        floor: int,
    ) -> None:
        self._model = model
        self._guest = guest
        self._model_id = model_id
        self._place = place
        self._rows = rows
        self._floor = floor
        self.opened = 0
        self.differences: list[Difference] = []

    def not_covered(self) -> Remark | None:
        """Return why it cannot be recomputed; None if it can."""
        request, place = self._place
        statement = self._guest.statements.get(request)
        if statement is None or place >= len(statement.units):
            return Remark("guest_without_statement")
        if place in statement.refused:
            return Remark("not_scored")
        if any(host not in self._rows for host in self._model.hosts):
            return Remark("host_without_row")
        if any(self._rows[host].changed for host in self._model.hosts):
            return Remark("records_changed_since")
        return None

    def check(self) -> None:
        """Compare every step with what it should be."""
        request, place = self._place
        statement = self._guest.statements[request]
        compiled = self._model.compiled
        columns = {name: column[place : place + 1] for name, column in statement.columns.items()}

        # What the Guest sends, by its own values: with the numbers that ride on it, and without.
        riding = self._guest.canaries.get(self._place) if statement.canaries else None
        canaries = None if riding is None else np.array(riding, dtype=np.int64).reshape(-1, 1)
        offsets = statement.offsets[place : place + 1].copy()
        constant, bare = compiled.encode(columns, 1)
        _, carrying = compiled.encode(columns, 1, canaries, offsets)
        entries = [int(number) for number in bare[0]]
        carried = [int(number) for number in carrying[0]]

        suspects = [self._guest.guest]
        for index, host in enumerate(self._model.hosts):
            row = self._rows[host]
            # What came to this Host, as far as it was kept and the Guest opens it.
            verdict = self._as_expected(host, row, carried)
            if verdict is False:
                self._differs(suspects, Remark("entries_differ", {"host": host}))
                return
            if verdict:
                suspects = []
                self.opened += 1
            told = statement.held.get(host)
            if told is not None and bool(told[place]) != row.held:
                self._differs((host,), Remark("held_otherwise", {"host": host}))
            entries = self._model.passed_on(index, entries, row)
            carried = self._model.passed_on(index, carried, row)
            suspects.append(host)

        # The score: what no Host decides, the sum, and the last Host's dither.
        last = self._model.hosts[-1]
        added = self._rows[last].added
        if np.abs(compiled.packing.unpack([added])).max() > statement.dither:
            self._differs((last,), Remark("added_beyond_dither", {"host": last}))
        expected = constant[0] + sum(entries) + added
        got = statement.units[place]
        if got != expected:
            parties = tuple(dict.fromkeys([self._guest.guest, *suspects]))
            by = (compiled.margins([got]) - compiled.margins([expected]))[0]
            most = float(by[np.argmax(np.abs(by))])
            self._differs(parties, Remark("score_differs", {"by": f"{most:+.4f}"}), tuple(by.tolist()))

    def _as_expected(self, host: str, row: HostRow, expected: Sequence[int]) -> bool | None:
        """Return whether what came to a Host is what should have come; None if nobody can tell."""
        opening = self._guest.opened.get((host, row.number))
        if not row.vector or opening is None:
            return None
        try:
            key = PaillierPublicKey.from_bytes(row.public_key, self._floor)
            check_opened(key, row.vector, opening)
        except GlassleafError:
            return False
        n = int(key.n)
        return [number % n for number in opening.numbers] == [number % n for number in expected]

    def _differs(self, parties: Sequence[str], why: Remark, by: tuple[float, ...] = ()) -> None:
        request, place = self._place
        person = next(iter(self._rows.values())).person
        self.differences.append(Difference(self._model_id, request, place, person, tuple(parties), why, by))
