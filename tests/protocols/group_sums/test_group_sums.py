"""Sums by group: as if counted in one place, under either cipher; small groups stay at the Host; nobody reads more than its part."""

import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from joints import joined
from refused import raises
from worlds import GUEST

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.errors import Cancelled, HostRefused, PartyUnreachable, SecurityError, WrongAnswer
from backend.protocols.group_sums import guest
from backend.protocols.group_sums import host as group_host
from backend.protocols.group_sums.grouping import MIN_GROUP, sides_of
from backend.protocols.group_sums.guest import GroupQuestions, _possible
from backend.protocols.group_sums.messages import AskGroupPairs, AskGroupSums, GroupPairs, MoreGroupPairs
from backend.protocols.training import pair_pieces
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.codec import decode

N = 300


@contextmanager
def asking(seed=0, n=N, share=0.8, gaps=0.2, **options):
    """Parties whose records overlap wholly, and the Guest's end of a conversation about a part of the records."""
    with joined(seed, n=n, gaps=gaps, **options) as parties:
        joint = parties.joint
        rows = np.random.default_rng(seed).random(n) < share
        yield parties, GroupQuestions(joint.conversation, GUEST, joint.key, rows), rows


def in_the_clear(column, rows, groups):
    """Masks of the records in each group, worked out from the column alone: codes by name, bins by rank."""
    values = column[rows]
    if values.dtype == object:
        known = {g.name for g in groups if g.kind == "code"} | {None for g in groups if g.kind == "missing"}
        return [
            np.array([v not in known if g.kind == "rest" else v == (g.name or None) for v in values]) for g in groups
        ]
    ranks = np.argsort(values, kind="stable")  # missing ones last
    masks, start = [], 0
    for g in groups:
        mask = np.zeros(len(values), dtype=bool)
        mask[ranks[start : start + g.n]] = True
        masks.append(mask)
        start += g.n
    return masks


def every_feature(parties):
    return {host: [f.name for f in parties.joint.features[host]] for host in parties.joint.conversation.hosts}


@pytest.mark.parametrize("cipher", ["none", "paillier"])
def test_sums_by_group_are_those_counted_in_one_place(cipher, secret_key):
    with asking(key=PaillierKeySide(secret_key) if cipher == "paillier" else None) as (parties, questions, rows):
        draw = np.random.default_rng(1)
        marks = [draw.integers(0, 2, rows.sum()) for _ in range(9)] + [draw.integers(0, 1 << 16, rows.sum())]
        questions.send(marks, parties.joint.conversation.hosts, largest=[1] * 9 + [1 << 16])
        tables = questions.ask(every_feature(parties), 4)
        assert len(tables) == 6
        for (_, feature), table in tables.items():
            masks = in_the_clear(parties.columns[feature], rows, table.groups)
            assert [g.n for g in table.groups] == [mask.sum() for mask in masks]
            assert table.sums.tolist() == [[int(mark[mask].sum()) for mask in masks] for mark in marks]


@pytest.mark.parametrize("cipher", ["none", "paillier"])
def test_two_hosts_features_are_related_and_a_hosts_own_too(cipher, secret_key):
    with asking(key=PaillierKeySide(secret_key) if cipher == "paillier" else None) as (parties, questions, rows):
        groups = questions.have_sent("host0", "host0_c", 4, ["host1", "host0"])
        assert [g.kind for g in groups] == ["code"] * 4 + ["missing"]
        rest = {"host1": ["host1_x", "host1_c"], "host0": ["host0_y"]}
        tables = questions.ask(rest, 3, source="host0")
        assert set(tables) == {("host1", "host1_x"), ("host1", "host1_c"), ("host0", "host0_y")}
        asked = in_the_clear(parties.columns["host0_c"], rows, groups)
        for (_, feature), table in tables.items():
            masks = in_the_clear(parties.columns[feature], rows, table.groups)
            assert table.sums.tolist() == [[int((a & b).sum()) for b in masks] for a in asked[:-1]]


@pytest.mark.parametrize("cipher", ["none", "paillier"])
def test_sums_by_two_features_are_those_counted_in_one_place(cipher, secret_key):
    key = PaillierKeySide(secret_key) if cipher == "paillier" else None
    with asking(key=key) as (parties, questions, rows):
        marks = [np.random.default_rng(1).integers(0, 2, rows.sum()) for _ in range(2)]
        questions.send(marks, ["host0"])
        [(about, table)] = questions.ask({"host0": ["host0_x × host0_y"]}, 2).items()
        assert about == ("host0", "host0_x × host0_y")
        kinds = [g.kind for g in table.groups]
        assert kinds[-1] == "rest" and set(kinds[:-1]) == {"cell"} and len(kinds) > 4
        in_groups = []
        for name in ("host0_x", "host0_y"):
            groups = questions.ask({"host0": [name]}, 2)["host0", name].groups  # a simulation counts nothing
            masks = in_the_clear(parties.columns[name], rows, groups)
            in_groups.append({(g.kind, g.name): mask for g, mask in zip(groups, masks, strict=True)})
        left = np.ones(rows.sum(), dtype=bool)
        for g, sums in zip(table.groups, table.sums.T, strict=True):
            cell = left.copy()
            for side, of_feature in zip(sides_of(g) if g.kind == "cell" else (), in_groups, strict=g.kind == "cell"):
                cell &= of_feature[side.kind, side.name.partition("/")[0]]
            assert (g.n, sums.tolist()) == (cell.sum(), [int(mark[cell].sum()) for mark in marks]) and g.n >= MIN_GROUP
            left &= ~cell
        assert not left.any()


def test_a_host_that_names_other_groups_than_asked_for_is_named(monkeypatch):
    honest = group_host.group_together

    def lying(first, second, least):
        made = honest(first, second, least)
        return replace(made, groups=tuple(replace(g, name='[["code", "a"], ["bin", "9/9"]]') for g in made.groups))

    # patched: a Host that lies
    monkeypatch.setattr(group_host, "group_together", lying)
    with asking() as (_, questions, rows):
        questions.send([np.ones(rows.sum(), dtype=np.int64)], ["host0"])
        with raises(WrongAnswer, "groups_not_as_asked"):
            questions.ask({"host0": ["host0_x × host0_y"]}, 2)


def test_what_one_host_sends_of_each_record_never_reaches_the_guest():
    with asking() as (parties, questions, _):
        questions.have_sent("host0", "host0_c", 4, ["host1"])
        questions.ask({"host1": ["host1_x"]}, 3, source="host0")
        told = [(a, b, kind) for a, b, kind, _ in parties.sent if "Group" in kind]
        assert told == [
            (GUEST, "host0", "AskGroupPairs"),
            ("host0", "host1", "GroupPairs"),
            ("host0", GUEST, "GroupPairsSent"),
            (GUEST, "host1", "AskGroupSums"),
            ("host1", GUEST, "GroupSums"),
        ]


@pytest.mark.parametrize(("seed", "agreed"), [(0, 0), (1, 0), (2, 0), (2, 33)])
def test_no_group_that_leaves_a_host_is_small(seed, agreed):
    with asking(seed, n=110, gaps=0.15, min_group=agreed) as (parties, questions, rows):
        assert all(one.n >= max(MIN_GROUP, agreed) for one in questions.have_sent("host0", "host0_c", 4, ["host1"]))
        questions.send([np.ones(rows.sum(), dtype=np.int64)], parties.joint.conversation.hosts)
        questions.ask(every_feature(parties), 8)
        answers = [decode(blob) for _, to, kind, blob in parties.sent if kind == "GroupSums" and to == GUEST]
        sizes = [[n for _, _, n in groups] for answer in answers for groups in answer.groups]
        assert sizes and all(min(of) >= max(MIN_GROUP, agreed) and sum(of) == rows.sum() for of in sizes)


def test_of_few_records_nothing_is_disclosed():
    with asking(n=100, share=0.3) as (parties, questions, rows):
        assert rows.sum() < 2 * MIN_GROUP
        questions.send([np.ones(rows.sum(), dtype=np.int64)], parties.joint.conversation.hosts)
        assert questions.ask(every_feature(parties), 8) == {}
        assert questions.have_sent("host0", "host0_c", 4, ["host1"]) == ()


def test_the_same_question_is_answered_in_fresh_ciphertexts(secret_key):
    with asking(n=90, share=2.0, key=PaillierKeySide(secret_key)) as (parties, questions, rows):
        questions.send([np.ones(rows.sum(), dtype=np.int64)], ["host0"])
        first, second = (questions.ask({"host0": ["host0_x"]}, 3) for _ in range(2))
        assert [t.sums.tolist() for t in first.values()] == [t.sums.tolist() for t in second.values()]
        one, other = (decode(blob).sums for _, _, kind, blob in parties.sent if kind == "GroupSums")
        assert one != other


def test_equal_marks_of_a_host_are_different_ciphertexts(secret_key):
    side = PaillierKeySide(secret_key)
    with asking(n=90, share=2.0, key=side) as (parties, questions, rows):
        questions.have_sent("host0", "host0_x", 2, ["host1"])
        [pairs] = [decode(blob) for _, _, kind, blob in parties.sent if kind == "GroupPairs"]
        width = side.public.width
        assert len({pairs.pairs[0][i : i + width] for i in range(0, len(pairs.pairs[0]), width)}) == rows.sum()


def to_host(parties, host, message):
    """What a Host answers if a party departs from the protocol."""
    return list(parties.served.hosts[host].answer(GUEST, message) or ())


def test_a_host_refuses_what_is_not_its_to_answer():
    with asking() as (parties, questions, rows):
        questions.send([np.ones(rows.sum(), dtype=np.int64)], ["host0"])
        questions.ask({"host0": ["host0_x"]}, 4)
        everyone = pack_rows(rows)
        for message, reason in [
            (AskGroupSums("c", GUEST, ("host1_x",), 4), "unknown feature"),
            (AskGroupSums("c", GUEST, ("host0_x",), 1), "1 group was asked for"),
            (AskGroupSums("c", GUEST, ("host0_x",), 33), "33 groups were asked for"),
            (AskGroupSums("c", "host1", ("host0_x",), 4), "host1 has not sent"),
            (AskGroupPairs("c", everyone, "host0_c", 4, ("host1", GUEST)), "who could read them"),
            (AskGroupPairs("c", everyone, "label", 4, ("host1",)), "unknown feature"),
            (AskGroupPairs("c", everyone[:-1], "host0_c", 4, ("host1",)), "was refused"),
            (GroupPairs("c", everyone, 5, (b"\x00" * 8,)), "were expected"),
        ]:
            with pytest.raises(SecurityError, match=reason):
                to_host(parties, "host0", message)


def test_only_the_guest_gets_sums():
    with asking() as (parties, questions, rows):
        questions.send([np.ones(rows.sum(), dtype=np.int64)], ["host0"])
        questions.ask({"host0": ["host0_x"]}, 4)
        host = parties.served.hosts["host0"]
        with pytest.raises(SecurityError, match="not opened"):
            list(host.answer("host1", AskGroupSums("c", GUEST, ("host0_x",), 4)))
        with pytest.raises(SecurityError, match="not opened"):
            list(host.answer("host1", AskGroupPairs("c", pack_rows(rows), "host0_x", 4, ("host1",))))


def test_without_alignment_there_are_no_groups():
    with asking() as (parties, _, rows):
        host = parties.served.hosts["host0"]
        host._sessions.of("c").rows = None
        with pytest.raises(SecurityError, match="before ids were aligned"):
            to_host(parties, "host0", AskGroupPairs("c", pack_rows(rows), "host0_x", 4, ("host1",)))


class TamperingHost:
    """Changes what comes back to the Guest."""

    def __init__(self, session, **changes):
        self._session, self._changes = session, changes

    def __getattr__(self, name):
        return getattr(self._session, name)

    def expect_each(self, kind, hosts):
        return {h: replace(m, **self._changes) for h, m in self._session.expect_each(kind, hosts).items()}


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "host1"},
        {"features": ("host0_y",)},
        {"features": ("host0_x", "host0_x")},
        {"sums": ()},
    ],
)
def test_an_answer_to_another_question_is_discarded(changes):
    with asking() as (_, questions, rows):
        questions.send([np.ones(rows.sum(), dtype=np.int64)], ["host0"])
        questions._session = TamperingHost(questions._session, **changes)
        with pytest.raises(SecurityError, match="stopped"):
            questions.ask({"host0": ["host0_x"]}, 2)


def test_sums_that_do_not_add_up_are_discarded():
    with asking() as (_, questions, rows):
        questions.send([np.ones(rows.sum(), dtype=np.int64)], ["host0"])
        wrong = np.array([[1, 2, 3], [0, 0, 0]], dtype="<i8").tobytes()
        questions._session = TamperingHost(questions._session, sums=(wrong,))
        with pytest.raises(SecurityError, match="do not add up"):
            questions.ask({"host0": ["host0_x"]}, 2)


@pytest.mark.parametrize("moved", [1, -1])
def test_sums_that_their_groups_are_too_small_for_are_discarded(moved):
    """As many in all as were sent, but more than a group has people, or fewer than none in the other."""
    with asking() as (_, questions, rows):
        questions.send([np.zeros(rows.sum(), dtype=np.int64), np.ones(rows.sum(), dtype=np.int64)], ["host0"])
        right = questions.ask({"host0": ["host0_x"]}, 2)["host0", "host0_x"]
        sums = right.sums.copy()
        sums[:, 0] += moved
        sums[:, 1] -= moved
        assert _possible(right, questions._sent[GUEST])
        for wrong in (np.stack([sums[0], right.sums[1]]), np.stack([right.sums[0], sums[1]])):
            assert not _possible(replace(right, sums=wrong), questions._sent[GUEST])


@pytest.mark.parametrize(
    "reported",
    [
        lambda n: (),
        lambda n: (("bin", "1", 200), ("bin", "2", 200)),
        lambda n: (("bin", "1", MIN_GROUP - 1), ("bin", "2", n - MIN_GROUP + 1)),
        lambda n: (("bin", "1", 50), ("bin", "2", 50), ("bin", "3", n - 100)),
        lambda n: (("bin", "2", n // 2), ("bin", "1", n - n // 2)),
    ],
)
def test_a_host_whose_groups_were_not_asked_for_is_named(reported):
    """Of no or other records, of too few people, too many groups, or bins in another order."""
    with asking() as (_, questions, rows):
        n = int(rows.sum())
        questions.send([np.ones(n, dtype=np.int64)], ["host0"])
        questions._session = TamperingHost(questions._session, groups=(reported(n),))
        with raises(WrongAnswer, "groups_not_as_asked", host="host0"):
            questions.ask({"host0": ["host0_x"]}, 2)
        marks = reported(n)
        if marks:
            questions._session = TamperingHost(questions._session._session, groups=marks)
            with raises(WrongAnswer, "groups_not_as_asked", host="host0"):
                questions.have_sent("host0", "host0_x", 2, ["host1"])


def test_groups_of_another_feature_are_discarded():
    with asking() as (_, questions, _):
        questions._session = TamperingHost(questions._session, feature="host0_x")
        with pytest.raises(SecurityError, match="out of turn"):
            questions.have_sent("host0", "host0_c", 4, ["host1"])


def test_sending_tells_how_far_it_is_and_can_be_stopped(monkeypatch):
    monkeypatch.setattr(guest, "CHUNK_RECORDS", 100)
    with asking(share=2.0) as (parties, questions, _):
        seen = []
        marks = [np.ones(N, dtype=np.int64)] * 9  # 9 bits each: six to a number of 59
        questions.send(marks, ["host0"], on_piece=lambda done, total: seen.append((done, total)))
        assert seen == [(d, 600) for d in range(0, 700, 100)]

        def stop():
            raise Cancelled("stopped")

        monkeypatch.setattr(parties.joint.conversation, "check", stop)
        with pytest.raises(Cancelled):
            questions.send(marks, ["host0"])


def pairs_sent(parties, sender=GUEST, to="host0"):
    """The messages in which pairs went from one party to another."""
    named = [(a, b, blob) for a, b, kind, blob in parties.sent if kind in ("GroupPairs", "MoreGroupPairs")]
    return [decode(blob) for a, b, blob in named if (a, b) == (sender, to)]


@pytest.mark.parametrize("cipher", ["none", "paillier"])
def test_pairs_in_pieces_give_the_sums_of_pairs_in_one(cipher, secret_key, monkeypatch):
    key = PaillierKeySide(secret_key) if cipher == "paillier" else None
    found = []
    for size in (1 << 22, 3000):
        monkeypatch.setattr(pair_pieces, "PIECE_BYTES", size)
        with asking(key=key) as (parties, questions, rows):
            marks = [np.random.default_rng(1).integers(0, 1 << 20, rows.sum()) for _ in range(15)]
            questions.send(marks, ["host0", "host1"], largest=[1 << 20] * 15)
            groups = questions.have_sent("host0", "host0_c", 4, ["host1", "host0"])
            tables = questions.ask(every_feature(parties), 4) | questions.ask({"host1": ["host1_x"]}, 3, source="host0")
            own = questions.ask({"host0": ["host0_y"]}, 3, source="host0")
            found.append([table.sums.tolist() for table in (*tables.values(), *own.values())])
            sent = pairs_sent(parties), pairs_sent(parties, "host0", "host1")
            assert groups and pairs_sent(parties) == pairs_sent(parties, to="host1"), "the same bytes to every Host"
    assert found[0] == found[1]
    for messages in sent:
        assert len(messages) > 1 and [type(m) for m in messages[1:]] == [MoreGroupPairs] * (len(messages) - 1)
        assert all(sum(map(len, m.pairs)) <= 3000 for m in messages)


def after(parties, messages, happens):
    """A look at the cancel flag; once the Guest has sent so many messages of pairs, something happens."""

    def check():
        if len(pairs_sent(parties)) == messages:
            happens()

    return check


def stop():
    raise Cancelled("stopped")


def test_who_is_stopped_between_two_pieces_leaves_nothing_at_the_host(monkeypatch):
    monkeypatch.setattr(pair_pieces, "PIECE_BYTES", 16 * 50)
    with asking() as (parties, questions, rows):
        conversation = parties.joint.conversation
        with monkeypatch.context() as patch, pytest.raises(Cancelled):
            patch.setattr(conversation, "check", after(parties, 2, stop))
            questions.send([np.ones(rows.sum(), dtype=np.int64)], ["host0"])
        with pytest.raises(HostRefused, match="before all of their encrypted pairs"):
            questions.ask({"host0": ["host0_x"]}, 4)
        conversation.close()
        until, sessions = time.monotonic() + 30, parties.served.hosts["host0"]._sessions
        while len(sessions) and time.monotonic() < until:
            time.sleep(0.01)
        assert not len(sessions)


def test_a_host_that_goes_down_between_two_pieces_is_named(monkeypatch):
    monkeypatch.setattr(pair_pieces, "PIECE_BYTES", 16 * 50)
    with asking() as (parties, questions, rows):
        down = after(parties, 2, lambda: parties.served.stop("host0"))
        monkeypatch.setattr(parties.joint.conversation, "check", down)
        with pytest.raises(PartyUnreachable, match="host0 is not reachable"):
            questions.send([np.ones(rows.sum(), dtype=np.int64)], ["host0"])


def test_a_piece_that_does_not_follow_is_refused(monkeypatch):
    monkeypatch.setattr(pair_pieces, "PIECE_BYTES", 16 * 200)
    with asking() as (parties, questions, rows):
        questions.would_answer("host0", ["host0_x"], 4)  # ids are aligned
        everyone, left = pack_rows(rows), int(rows.sum()) - 200
        begun = GroupPairs("c", everyone, 5, (bytes(16 * 200),))
        with pytest.raises(SecurityError, match="host1 has not sent"):
            list(parties.served.hosts["host0"].answer("host1", MoreGroupPairs("c", (b"",))) or ())
        for more, reason in [
            ([bytes(16 * left), bytes(16 * left)], "follows no other"),
            ([bytes(16 * left - 16)], "were expected"),
            ([], "follows no other"),
        ]:
            to_host(parties, "host0", begun)
            with pytest.raises(SecurityError, match=reason):
                to_host(parties, "host0", MoreGroupPairs("c", tuple(more)))
            with pytest.raises(SecurityError, match="follows no other"):  # what was refused ended them
                to_host(parties, "host0", MoreGroupPairs("c", (bytes(16 * left),)))
        to_host(parties, "host0", begun)
        to_host(parties, "host0", MoreGroupPairs("c", (bytes(16 * left),)))
        with pytest.raises(SecurityError, match="follows no other"):
            to_host(parties, "host0", MoreGroupPairs("c", (bytes(16 * left),)))


@pytest.mark.parametrize("half", [0, 31])
def test_halves_that_no_pair_has_are_refused(half):
    with asking() as (parties, questions, rows):
        questions.would_answer("host0", ["host0_x"], 4)  # ids are aligned
        with pytest.raises(SecurityError, match="under this key 1 to 30 are possible"):
            to_host(parties, "host0", GroupPairs("c", pack_rows(rows), half, ()))


def test_who_only_asks_whether_it_would_be_answered_is_told_no_group(monkeypatch):
    monkeypatch.setattr(pair_pieces, "PIECE_BYTES", 16 * 50)  # no ciphertexts are one piece, of however many records
    with asking() as (parties, questions, rows):
        questions.would_answer("host0", ["host0_c", "host0_x"], 4)
        host = parties.served.hosts["host0"]
        list(host.answer(GUEST, GroupPairs("c", pack_rows(rows), 1, ())) or ())
        [(receiver, told)] = host.answer(GUEST, AskGroupSums("c", GUEST, ("host0_c", "host0_x"), 4))
        assert (receiver, told.features, told.groups, told.sums) == (GUEST, (), (), ())
        questions.send([np.ones(int(rows.sum()), dtype=np.int64)], ["host0"])
        assert questions.ask({"host0": ["host0_c"]}, 4)  # in the same conversation


def test_what_a_lying_host_makes_of_group_sums():
    """It exchanges people between groups as it likes, as long as totals stay and no group has more marks than people."""
    with asking() as (_, questions, rows):
        marks = [np.arange(rows.sum()) % 2]
        questions.send(marks, ["host0"])
        right = questions.ask({"host0": ["host0_x"]}, 2)["host0", "host0_x"]
        sent = questions._sent[GUEST]
        moved = right.sums.copy()
        moved[:, 0] += 5
        moved[:, 1] -= 5
        assert _possible(replace(right, sums=moved), sent)  # not covered
        moved[:, 0] += right.groups[0].n
        moved[:, 1] -= right.groups[0].n
        assert not _possible(replace(right, sums=moved), sent)
        lost = right.sums.copy()
        lost[:, 0] -= 1
        assert not _possible(replace(right, sums=lost), sent)
