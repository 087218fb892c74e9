"""One feature against every other, whoever holds the two: the tables are those counted in one place."""

import numpy as np
import pytest
from joints import Asking, joined
from worlds import GUEST

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.dictionary import Feature
from backend.errors import ParameterError, SecurityError
from backend.protocols.group_sums.contingency import ContingencyTable
from backend.protocols.group_sums.grouping import group
from backend.protocols.group_sums.guest import GroupQuestions
from backend.store.accountant import Limits

MOST, BINS, N = 3, 4, 240


def crossing(parties, rows, leave_out=(), on_piece=lambda done, total: None, named=0.0, **options):
    joint = parties.joint
    questions = GroupQuestions(joint.conversation, GUEST, joint.key, rows, named)
    columns = joint.table.take(np.flatnonzero(rows)).columns
    others = [(p, f) for p, features in joint.features.items() for f in features if f.name not in leave_out]
    return ContingencyTable(Asking(questions, on_piece), GUEST, columns, others, max_groups=MOST, bins=BINS, **options)


def counted(parties, rows, feature, other):
    """The table, everything in one place."""
    first, second = (group(f, parties.columns[f.name][rows], most) for f, most in ((feature, MOST), (other, BINS)))
    table = np.zeros((len(first.groups), len(second.groups)), dtype=int)
    for a, b in zip(first.index, second.index, strict=True):
        table[a, b] += 1
    return table.tolist()


@pytest.mark.parametrize("holder", [GUEST, "host0"])
@pytest.mark.parametrize("cipher", ["none", "paillier"])
def test_every_table_is_the_one_that_is_counted_in_one_place(holder, cipher, secret_key):
    key = PaillierKeySide(secret_key) if cipher == "paillier" else None
    with joined(4, n=N, gaps=0.2, key=key) as parties:
        rows = np.random.default_rng(0).random(N) < 0.7
        feature = next(f for f in parties.joint.features[holder] if f.name.endswith("_c"))
        groups, tables = crossing(parties, rows, (feature.name,)).tables(holder, feature)
        others = {(p, f.name): f for p, fs in parties.joint.features.items() for f in fs if f.name != feature.name}
        assert set(tables) == set(others) and sum(g.n for g in groups) == rows.sum()
        for key_, other in others.items():
            assert tables[key_].tolist() == counted(parties, rows, feature, other)


def test_it_says_what_is_going_on_and_where():
    with joined(4, n=N, gaps=0.2) as parties:
        stages, pieces = [], []
        rows, feature = np.ones(N, dtype=bool), parties.joint.features["host1"][2]
        crossing(
            parties,
            rows,
            (feature.name,),
            at=lambda *stage: stages.append(stage),
            on_piece=lambda *piece: pieces.append(piece),
        ).tables("host1", feature)
        assert stages == [("marks", "host1")]
        assert pieces[0][0] == 0 and pieces[-1][0] == pieces[-1][1] > 0


@pytest.mark.parametrize("holder", [GUEST, "host0"])
def test_a_feature_without_groups_is_refused_at_once(holder):
    with joined(4, n=60, gaps=0.2) as parties:
        rows, feature = np.arange(60) < 30, parties.joint.features[holder][0]
        with pytest.raises(ParameterError, match="two groups of at least 20"):
            crossing(parties, rows, (feature.name,)).tables(holder, feature)


def test_what_broke_off_between_a_hosts_marks_and_the_guests_is_asked_to_the_end():
    """Groups of more than twenty are asked for then, which asking ahead has to say too: else it is another question, and refused."""
    with joined(4, n=N, gaps=0.0, limits=Limits(1)) as parties:
        rows, feature = np.ones(N, dtype=bool), parties.joint.features["host0"][0]

        def broken(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            crossing(parties, rows, (feature.name,), broken, named=0.5).tables("host0", feature)
        groups, tables = crossing(parties, rows, (feature.name,), named=0.5).tables("host0", feature)
        assert min(g.n for g in groups) > 20 and any(party == GUEST for party, _ in tables)


def test_a_host_that_reports_two_different_things_is_detected():
    with joined(4, n=N, gaps=0.2) as parties:
        host, feature = parties.served.hosts["host0"], parties.joint.features["host0"][0]
        other = Feature(name=feature.name, meaning="another column")
        made = crossing(parties, np.ones(N, dtype=bool), (feature.name,))
        questions = made._client.questions
        asked = questions.ask

        def meanwhile(wanted, most, source=None, **options):
            if source is None:  # between the two questions the Host's column becomes a constant for half of the records
                column = host._gate.table.columns[other.name].copy()
                column[: N // 2] = 0.0
                host._gate.table.columns[other.name] = column
            return asked(wanted, most, source, **options)

        questions.ask = meanwhile
        with pytest.raises(SecurityError, match="two different things"):
            made.tables("host0", feature)


def test_where_nobody_else_holds_a_feature_no_record_is_encrypted_by_a_host():
    with joined(4, n=N, gaps=0.2) as parties:
        feature = parties.joint.features["host0"][0]
        others = [f.name for p, fs in parties.joint.features.items() if p != GUEST for f in fs]
        _, tables = crossing(parties, np.ones(N, dtype=bool), others).tables("host0", feature)
        assert set(tables) == {(GUEST, f.name) for f in parties.joint.features[GUEST]}
        assert {(a, b) for a, b, kind, _ in parties.sent if kind == "GroupPairs"} == {(GUEST, "host0")}
