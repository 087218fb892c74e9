"""An auditor with all halves recomputes reasons: the names of one person, and sums of contributions over a cohort.

Contributions are worked out in plain integers (:mod:`backend.privacy.plain_reasons`), so that they are exactly those that were ranked or
added up under encryption.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from backend.errors import GlassleafError
from backend.jobs import work
from backend.privacy.halves import Difference, GuestHalf, Place, columns_of, opened_as
from backend.privacy.plain_reasons import Numbers, PlainReasons, largest
from backend.protocols.explanations.host_factors import Decided, Flags
from backend.protocols.explanations.paillier_layout import PaillierLayout
from backend.protocols.explanations.statement import CohortStatement, NamesStatement
from backend.protocols.host_half import HostRow, HostSums
from backend.remark import Remark
from backend.store.accountant import COHORT, REASONS
from backend.trees.backgrounds import Background
from backend.trees.ensemble import Columns, GuestModel, HostModel


class ReasonsAgain:
    """Reasons of one model, with all of its halves.

    Parameters
    ----------
    hosts : mapping of str to HostModel
        Partial models of all Hosts of the chain.
    floor : int
        Shortest key, bits.
    """

    def __init__(self, model_id: str, model: GuestModel, hosts: Mapping[str, HostModel], floor: int) -> None:
        self._model_id = model_id
        self._model = model
        self._hosts = hosts
        self._floor = floor
        self._made: dict[tuple[Background, tuple[int, ...]], PlainReasons] = {}

    def _plain(self, background: Background, groups: tuple[int, ...] = ()) -> PlainReasons:
        key = background, groups
        if key not in self._made:
            self._made[key] = PlainReasons(self._model, self._hosts, background, groups)
        return self._made[key]

    def names(
        self, guest: GuestHalf, place: Place, rows: Mapping[str, HostRow]
    ) -> tuple[list[Difference], int] | Remark:
        """Recompute the names of one person; return what differs and how many steps were opened, or why it cannot be done."""
        request, index = place
        statement = guest.names.get(request)
        if statement is None or index >= len(statement.named):
            return Remark("guest_without_statement")
        if statement.named[index] is None:
            return Remark("not_answered")
        plain = self._plain(statement.background, statement.groups)
        missing = _not_covered(plain, rows)
        if missing is not None:
            return missing
        return _Names(self._model_id, guest, plain, place, statement, rows, self._floor).check()

    def sums(
        self, guest: GuestHalf, request: str, hosts: Mapping[str, HostSums]
    ) -> tuple[list[Difference], int] | Remark:
        """Recompute the sums of one cohort; returns as :meth:`names`."""
        statement = guest.cohorts.get(request)
        if statement is None:
            return Remark("guest_without_statement")
        plain = self._plain(statement.background)
        missing = _not_covered(plain, hosts)
        if missing is not None:
            return missing
        chain = plain.compiled.chain
        everybody = (guest.guest, *chain)
        people = hosts[chain[0]].people
        lengths = {len(column) for column in statement.columns.values()} or {len(people)}
        if lengths != {len(people)} or any(hosts[host].people != people for host in chain):
            return [self._of_cohort(request, everybody, Remark("sums_of_others"))], 0
        differences = []
        for host in chain:
            if tuple(hosts[host].about["shares"]) != plain.compiled.shares_of(host):
                why = Remark("shares_differ", {"host": host})
                differences.append(self._of_cohort(request, (guest.guest,), why))
        expected = self._summed(plain, statement, hosts, len(people))
        shape = plain.shape(1)
        room = 1 << shape.noise_bits
        for (party, feature), got, total in zip(plain.compiled.items, statement.sums, expected, strict=True):
            # the last Host hides what lies below the last digit that is told
            off = got - total
            if not 0 <= off < room:
                by = off / float(1 << shape.scale)
                why = Remark("sum_differs", {"party": party, "feature": feature, "by": f"{by:+.4f}"})
                differences.append(self._of_cohort(request, everybody, why, (by,)))
        return differences, 0

    def _of_cohort(self, request: str, parties: tuple[str, ...], why: Remark, by: tuple[float, ...] = ()) -> Difference:
        return Difference(self._model_id, COHORT, request, 0, "", parties, why, by)

    def _summed(
        self, plain: PlainReasons, statement: CohortStatement, hosts: Mapping[str, HostSums], people: int
    ) -> list[int]:
        """Return a sum of contributions an item."""
        totals = [0] * len(plain.compiled.items)
        columns = {host: columns_of(plain.hosts[host], hosts[host].values) for host in plain.compiled.chain}
        for index in range(people):
            work.check()
            guest_columns = _one(statement.columns, index)
            decided = {}
            for host in plain.compiled.chain:
                decided[host] = plain.decided(host, _one(columns[host], index), hosts[host].held[index])
            for item, value in enumerate(plain.contributions(guest_columns, decided)[-1].values()):
                totals[item] += value
        return totals


def _not_covered(plain: PlainReasons, rows: Mapping[str, HostRow] | Mapping[str, HostSums]) -> Remark | None:
    """Return why an answer cannot be recomputed; None if it can."""
    if any(host not in rows for host in plain.compiled.chain):
        return Remark("host_without_row")
    if any(rows[host].changed for host in plain.compiled.chain):
        return Remark("records_changed_since")
    return None


def _one(columns: Columns, index: int) -> Columns:
    return {name: column[index : index + 1] for name, column in columns.items()}


class _Names:
    """The names of one person."""

    def __init__(
        self,
        model_id: str,
        guest: GuestHalf,
        plain: PlainReasons,
        place: Place,
        statement: NamesStatement,
        rows: Mapping[str, HostRow],
        floor: int,
    ) -> None:
        self._model_id = model_id
        self._guest = guest
        self._plain = plain
        self._place = place
        self._statement = statement
        self._rows = rows
        self._floor = floor
        self._opened = 0

    def check(self) -> tuple[list[Difference], int]:
        """Compare shares, every step that the Guest opens, and the names."""
        differences = list(self._compared())
        return differences, self._opened

    def _compared(self) -> Iterator[Difference]:
        plain = self._plain
        statement = self._statement
        chain = plain.compiled.chain
        index = self._place[1]
        guest_columns = _one(statement.columns, index)
        decided: dict[str, Decided] = {}
        for host in chain:
            row = self._rows[host]
            if row.shares is not None and row.shares != plain.compiled.shares_of(host):
                yield self._differs((self._guest.guest,), Remark("shares_differ", {"host": host}))
                return
            values_shown = {name: [row.values.get(name)] for name in plain.features_of(host)}
            columns = columns_of(plain.hosts[host], values_shown)
            decided[host] = plain.decided(host, columns, row.held)
        contributions = plain.contributions(guest_columns, decided)
        drops = plain.drops(guest_columns, decided)
        shape = plain.shape(statement.count)

        # The parties that may be at fault: all since the last step that is proven right.
        suspects = [self._guest.guest]
        for number, host in enumerate(chain):
            verdict = self._as_expected(host, contributions[number], drops[number], number + 1)
            if verdict is False:
                yield self._differs(suspects, Remark("entries_differ", {"host": host}))
                return
            if verdict:
                suspects = []
                self._opened += 1
            suspects.append(host)
        # The answer that the last Host's bytes led to is the Guest's word.
        parties = tuple(dict.fromkeys([self._guest.guest, *suspects]))

        values = contributions[-1].values()
        named_items = statement.named[index] or ()
        ranked = self._ranked(plain.sides(guest_columns, decided), drops[-1].values())
        if largest(values, shape, named_items, ranked) != tuple(sorted(named_items)):
            yield self._differs(parties, *self._other_names(values, named_items, ranked, shape.scale))

    def _ranked(self, sides: Flags, falls: Sequence[int]) -> list[bool]:
        """Return whether each item is ranked: its value is on the side asked about and its reason's drop above 0, or no side was asked."""
        statement = self._statement
        ranked = []
        for item, (_, feature) in enumerate(self._plain.compiled.items):
            on_side = sides[item, 1 if feature in statement.below else 0]
            ranked.append(feature in statement.sideless or (bool(on_side) and falls[item] > 0))
        return ranked

    def _other_names(
        self, values: Sequence[int], named_items: Sequence[int], ranked: Sequence[bool], scale: int
    ) -> tuple[Remark, tuple[float, ...]]:
        """Return a remark on the wrong names, and by how much the largest contribution left out exceeds the smallest named one."""
        others = [value for item, value in enumerate(values) if item not in named_items and ranked[item]]
        left_out = max(others, default=0)
        smallest_named = min((values[item] for item in named_items), default=0)
        by = max(left_out, 0) / float(1 << scale) - smallest_named / float(1 << scale)
        features = [self._plain.compiled.items[item][1] for item in named_items]
        return Remark("names_differ", {"features": features, "by": f"{by:.4f}"}), (by,)

    def _as_expected(self, host: str, contributions: Numbers, drops: Numbers, parties: int) -> bool | None:
        """Return whether the terms that came to a Host are those that should have come; None if nobody can tell."""
        row = self._rows[host]
        opening = self._guest.opened.get((host, row.number))
        if not row.vector or opening is None:
            return None
        statement = self._statement
        key_bits = int.from_bytes(row.public_key, "big").bit_length()
        try:
            layout = PaillierLayout(self._plain.shape(statement.count), key_bits)
        except GlassleafError:
            return False
        expected = [*contributions.packed(layout, parties), *drops.packed(layout, parties)]
        return opened_as(row.public_key, row.vector, opening, expected, self._floor)

    def _differs(self, parties: Sequence[str], why: Remark, by: tuple[float, ...] = ()) -> Difference:
        request, place = self._place
        person = next(iter(self._rows.values())).person
        return Difference(self._model_id, REASONS, request, place, person, tuple(parties), why, by)
