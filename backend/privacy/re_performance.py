"""An auditor with all halves of a sample recomputes scores, reasons and sums, and says what differs, by how much and whose it is.

A third role: it sees both parties' partial models, and their values of the people in the sample. Each Host hands over its half
(:mod:`backend.protocols.host_half`), the Guest its own. Under Paillier the Guest also opens what came to each Host, which can be
done in one way only, so that each step of the chain is checked by itself. Under RLWE, and of sums, the answer alone is compared.

A score that is wrong although every step before it is right was moved by the last Host, or is misreported by the Guest: replies are not
signed one by one, so that no half proves which. Of a ranking that is wrong the same is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.jobs import work
from backend.privacy.halves import Difference, GuestHalf, Place, columns_of, opened_as
from backend.privacy.re_performed_reasons import ReasonsAgain
from backend.privacy.re_performed_sums import sums_again
from backend.protocols.host_half import HostHalf, HostRow, HostSums
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost
from backend.remark import Remark
from backend.store.accountant import COHORT, GROUPS, REASONS, SCORE
from backend.trees.ensemble import GuestModel, HostModel
from backend.trees.serialization import content_hash, load_guest, load_host


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
        Why answers of the sample could not be recomputed, and how many.
    reasons : int
        People whose names were recomputed.
    sums : int
        Sums over a cohort, and by a feature's groups, that were recomputed.
    """

    scores: int
    opened: int
    differences: tuple[Difference, ...]
    not_covered: tuple[tuple[Remark, int], ...]
    reasons: int = 0
    sums: int = 0


class _Model:
    """One model with all of its halves."""

    def __init__(self, model_id: str, guest: GuestModel, hosts: Mapping[str, HostModel], floor: int) -> None:
        self.guest = guest
        self.compiled = CompiledGuest(guest)
        self.steps = self.compiled.folding.steps
        self.hosts = [step.host for step in self.steps]
        self._partial_models = hosts
        self._compiled = {step.host: CompiledHost(step, hosts[step.host].rules) for step in self.steps}
        self.reasons = ReasonsAgain(model_id, guest, hosts, floor)

    def passed_on(self, index: int, entries: Sequence[int], row: HostRow) -> list[int]:
        """Return one person's entries as the Host at `index` of the chain passes them on (Fed-EINI eq. 10 and 13)."""
        step = self.steps[index]
        partial_model = self._partial_models[step.host]
        values = {}
        for rule in partial_model.rules.values():
            values[rule.feature] = [row.values.get(rule.feature)]
        columns = columns_of(partial_model, values)
        keep = self._compiled[step.host].decide(columns, np.array([row.held]))[0].tolist()
        sums = [0] * step.n_out
        for entry, keeps, target in zip(entries, keep, step.target, strict=True):
            if keeps:
                sums[target] += entry
        return sums


def re_perform(guest: GuestHalf, hosts: Sequence[HostHalf], floor: int = KEY_BITS_FLOOR) -> RePerformed:
    """Recompute every answer of which all Hosts' rows and the Guest's statement are there.

    Parameters
    ----------
    hosts : sequence of HostHalf
        One a Host.
    floor : int
        Shortest key, bits; lower only in tests.
    """
    audit = _Audit(guest, hosts, floor)
    audit.of_people()
    audit.of_cohorts()
    audit.of_groups()
    return audit.found()


class _Audit:
    """What was found so far."""

    def __init__(self, guest: GuestHalf, hosts: Sequence[HostHalf], floor: int) -> None:
        self._guest = guest
        self._hosts = hosts
        self._floor = floor
        self._models: dict[str, _Model | Remark] = {}
        self._done: Counter[str] = Counter()
        self._opened = 0
        self._differences: list[Difference] = []
        self._reasons: dict[str, Remark] = {}
        self._not_covered: Counter[str] = Counter()

    def found(self) -> RePerformed:
        """Return all of it."""
        not_covered = [(self._reasons[code], n) for code, n in self._not_covered.most_common()]
        return RePerformed(
            self._done[SCORE],
            self._opened,
            tuple(self._differences),
            tuple(not_covered),
            self._done[REASONS],
            self._done[COHORT] + self._done[GROUPS],
        )

    def of_people(self) -> None:
        """Recompute scores and names, person by person."""
        rows: dict[tuple[str, str, Place], dict[str, HostRow]] = {}
        for half in self._hosts:
            for row in half.rows:
                rows_of_hosts = rows.setdefault((row.kind, row.model_id, (row.request, row.place)), {})
                if half.host not in rows_of_hosts or row.vector:
                    rows_of_hosts[half.host] = row
        for (kind, model_id, place), of_hosts in rows.items():
            work.check()
            model = self._model(model_id)
            if isinstance(model, Remark):
                self._skip(model)
            elif kind == SCORE:
                self._take(kind, _Run(model, self._guest, model_id, place, of_hosts, self._floor).recomputed())
            else:
                self._take(kind, model.reasons.names(self._guest, place, of_hosts))

    def of_cohorts(self) -> None:
        """Recompute sums of contributions, cohort by cohort."""
        cohorts: dict[tuple[str, str], dict[str, HostSums]] = {}
        for half in self._hosts:
            for sums in half.sums:
                if sums.kind == COHORT:
                    cohorts.setdefault((sums.model_id, sums.request), {})[half.host] = sums
        for (model_id, request), of_hosts in cohorts.items():
            work.check()
            model = self._model(model_id)
            if isinstance(model, Remark):
                self._skip(model)
            else:
                self._take(COHORT, model.reasons.sums(self._guest, request, of_hosts))

    def of_groups(self) -> None:
        """Recompute sums by group, feature by feature."""
        marked: dict[tuple[str, str, str], HostSums] = {}
        for half in self._hosts:
            for sums in half.sums:
                if sums.kind == GROUPS and not sums.about["source"]:
                    marked[half.host, sums.request, sums.about["features"][0]] = sums
        for half in self._hosts:
            for sums in half.sums:
                if sums.kind != GROUPS or not sums.about["source"]:
                    continue
                for feature in sums.about["features"]:
                    work.check()
                    difference = sums_again(self._guest, half.host, sums, feature, marked)
                    if isinstance(difference, Remark):
                        self._skip(difference)
                    else:
                        differences = [] if difference is None else [difference]
                    self._take(GROUPS, (differences, 0))

    def _model(self, model_id: str) -> _Model | Remark:
        if model_id not in self._models:
            self._models[model_id] = _model(model_id, self._guest, self._hosts, self._floor)
            self._differences += _other_models(model_id, self._guest, self._hosts)
        return self._models[model_id]

    def _skip(self, why: Remark) -> None:
        self._reasons[why.code] = why
        self._not_covered[why.code] += 1

    def _take(self, kind: str, outcome: tuple[list[Difference], int] | Remark) -> None:
        if isinstance(outcome, Remark):
            self._skip(outcome)
            return
        differences, opened = outcome
        self._done[kind] += 1
        self._opened += opened
        self._differences += differences


def _model(model_id: str, guest: GuestHalf, hosts: Sequence[HostHalf], floor: int) -> _Model | Remark:
    """Return a model with all of its halves, or why it cannot be recomputed."""
    if model_id not in guest.models:
        return Remark("guest_without_model")
    loaded = load_guest(guest.models[model_id])
    partial_models = {}
    for half in hosts:
        if model_id in half.models:
            partial_models[half.host] = load_host(half.models[model_id])
    registered = {model.guest_hash for model in partial_models.values()}
    if registered != {content_hash(guest.models[model_id])}:
        return Remark("other_model_registered")
    if not {step.host for step in CompiledGuest(loaded).folding.steps} <= partial_models.keys():
        return Remark("host_without_half")
    return _Model(model_id, loaded, partial_models, floor)


def _other_models(model_id: str, guest: GuestHalf, hosts: Sequence[HostHalf]) -> list[Difference]:
    """Return the Hosts that deliver other thresholds than they registered; the hash from their registration binds them.

    No hash is registered for a record: a Host that shows the same false record as in its answer is not found.
    """
    differences = []
    registered = guest.registered.get(model_id, {})
    for half in hosts:
        delivered_model = half.models.get(model_id)
        registered_hash = registered.get(half.host)
        if (
            delivered_model is not None
            and registered_hash is not None
            and content_hash(delivered_model) != registered_hash
        ):
            why = Remark("other_half_registered", {"host": half.host})
            differences.append(Difference(model_id, "model", "", 0, "", (half.host,), why))
    return differences


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
        self._opened = 0
        self._differences: list[Difference] = []

    def recomputed(self) -> tuple[list[Difference], int] | Remark:
        """Return what differs and how many steps were opened, or why it cannot be recomputed."""
        reason = self._why_not()
        if reason is not None:
            return reason
        self._check()
        return self._differences, self._opened

    def _why_not(self) -> Remark | None:
        request, place = self._place
        statement = self._guest.statements.get(request)
        if statement is None or place >= len(statement.units):
            return Remark("guest_without_statement")
        if place in statement.refused:
            return Remark("not_answered")
        if any(host not in self._rows for host in self._model.hosts):
            return Remark("host_without_row")
        if any(self._rows[host].changed for host in self._model.hosts):
            return Remark("records_changed_since")
        return None

    def _check(self) -> None:
        """Compare every step with what it should be."""
        request, place = self._place
        statement = self._guest.statements[request]
        compiled = self._model.compiled
        columns = {}
        for name, column in statement.columns.items():
            columns[name] = column[place : place + 1]

        # The Guest's message by its own values: with the numbers that ride on it, and without.
        if statement.canaries:
            riding = self._guest.canaries.get(self._place)
        else:
            riding = None
        if riding is None:
            canaries = None
        else:
            canaries = np.array(riding, dtype=np.int64).reshape(-1, 1)
        offsets = statement.offsets[place : place + 1].copy()
        constant, bare = compiled.encode(columns, 1)
        _, carrying = compiled.encode(columns, 1, canaries, offsets)
        entries = [int(number) for number in bare[0]]
        carried = [int(number) for number in carrying[0]]

        suspects = [self._guest.guest]
        for index, host in enumerate(self._model.hosts):
            row = self._rows[host]
            # The message that this Host received, if it was kept and the Guest opens it.
            verdict = self._as_expected(host, row, carried)
            if verdict is False:
                self._differs(suspects, Remark("entries_differ", {"host": host}))
                return
            if verdict:
                suspects = []
                self._opened += 1
            has_record = statement.has_record.get(host)
            if has_record is not None and bool(has_record[place]) != row.held:
                self._differs((host,), Remark("held_otherwise", {"host": host}))
            entries = self._model.passed_on(index, entries, row)
            carried = self._model.passed_on(index, carried, row)
            suspects.append(host)

        # The score: the constant, the sum of the entries, and the last Host's dither.
        last = self._model.hosts[-1]
        dither = self._rows[last].added
        if np.abs(compiled.packing.unpack([dither])).max() > statement.dither:
            self._differs((last,), Remark("added_beyond_dither", {"host": last}))
        expected = constant[0] + sum(entries) + dither
        got = statement.units[place]
        if got != expected:
            parties = tuple(dict.fromkeys([self._guest.guest, *suspects]))
            by = (compiled.margins([got]) - compiled.margins([expected]))[0]
            largest_difference = float(by[np.argmax(np.abs(by))])
            self._differs(parties, Remark("score_differs", {"by": f"{largest_difference:+.4f}"}), tuple(by.tolist()))

    def _as_expected(self, host: str, row: HostRow, expected: Sequence[int]) -> bool | None:
        """Return whether what came to a Host is what should have come; None if nobody can tell."""
        opening = self._guest.opened.get((host, row.number))
        if not row.vector or opening is None:
            return None
        return opened_as(row.public_key, row.vector, opening, expected, self._floor)

    def _differs(self, parties: Sequence[str], why: Remark, by: tuple[float, ...] = ()) -> None:
        request, place = self._place
        person = next(iter(self._rows.values())).person
        self._differences.append(Difference(self._model_id, SCORE, request, place, person, tuple(parties), why, by))
