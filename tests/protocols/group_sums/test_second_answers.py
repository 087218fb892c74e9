"""A Host that answers once about the groups of some people: what a Guest that departs from the protocol tries, to be told more."""

from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from refused import raises
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session as OrmSession

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature, Kind
from backend.data.table import PartyTable, records_version
from backend.errors import QuestionRefused, SecurityError
from backend.protocols.alignment.ids import knows
from backend.protocols.alignment.messages import HiddenIds, JointRecords, StartAlignment
from backend.protocols.alignment.methods import guest_sides
from backend.protocols.group_sums.disclosure_bound import NAMED
from backend.protocols.group_sums.host import _Counting
from backend.protocols.group_sums.messages import AskGroupPairs, AskGroupSums, GroupPairs, GroupSums
from backend.protocols.host import HostParty
from backend.protocols.terms.floors import Floors
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.packing import to_bitmap
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.party_store import memory_store

GUEST, N = "bank", 60
TODAY = date(2026, 11, 24)
IDS = tuple(f"id{i:02}" for i in range(N))
GROUP_A = np.arange(N) % 2 == 0
EVERYONE = pack_rows(np.ones(N, dtype=bool))


class CountingHost:
    """A Host that counts answers about groups, and a Guest that sends it whatever it likes."""

    def __init__(self, missing=0, named=0.0):
        self.database, self.named = Database(), named
        self.start(GROUP_A, missing)

    def start(self, in_a, missing=0, day=TODAY, records="", kind=Kind.NUMERIC):
        """The Host with these records, on a day, and its numbers read as of a kind; its account is the one that it had."""
        x = np.where(np.arange(N) < missing, np.nan, np.arange(N, dtype=np.float64))
        columns = {"c": np.where(in_a, "a", "b").astype(object), "x": x}
        features = (Feature(name="c", meaning="c", kind=Kind.CATEGORICAL), Feature(name="x", meaning="x", kind=kind))
        self.party = HostParty(
            "host",
            PartyTable("host", IDS, columns),
            features,
            memory_store(),
            simulated=True,
            key_floor=512,
            floors=Floors(synthetic=not self.named, named=self.named or NAMED),
            accountant=Accountant(self.database, Limits(1), records_version(records, features), lambda: day),
        )

    def begun(self, conversation, side):
        """A conversation under a key, after alignment."""
        self.send(OfferKey(conversation, side.scheme, side.offer()))
        self.party._sessions.of(conversation, GUEST).rows = np.arange(N, dtype=np.intp)

    def send(self, message):
        return [answer for _, answer in self.party.answer(GUEST, message)]

    def sums(self, conversation, blob, half, side):
        """The sums of whatever one ciphertext a person holds, by the groups of `c`."""
        self.send(GroupPairs(conversation, EVERYONE, half, (blob,)))
        [answer] = self.send(AskGroupSums(conversation, GUEST, ("c",), 4))
        assert isinstance(answer, GroupSums)
        return side.decrypt_joined(answer.sums[0], 2, half)

    def counted(self):
        with self.database.read() as session:
            return session.execute(text("SELECT COUNT(*), COALESCE(SUM(asked), 0) FROM answers")).one()


def longer_key(than):
    """A key of as many bits whose modulus is larger, so that it reads the other one's ciphertexts."""
    while True:
        made = PaillierKeySide(PaillierSecretKey.generate(512, floor=512))
        if made.public.n > than.public.n:
            return made


def test_the_same_bytes_under_another_key_are_other_numbers_and_another_question():
    """Under a second key each person's ciphertext holds some 500 random bits: their sum would name everybody in the group."""
    host, first = CountingHost(), PaillierKeySide(PaillierSecretKey.generate(512, floor=512))
    second, half = longer_key(first), 255  # one sum a ciphertext
    blob = first.encrypt_joined([1] * N, half)
    host.begun("one", first)
    assert host.sums("one", blob, half, first) == [30, 30]
    before = host.counted()
    host.begun("two", second)
    with pytest.raises((SecurityError, QuestionRefused)):
        host.sums("two", blob, half, second)
    host.begun("three", first)
    assert host.sums("three", blob, half, first) == [30, 30], "as it was it is answered again"
    assert host.counted() == before


def test_a_key_that_is_offered_again_within_a_conversation_changes_no_question():
    host, first = CountingHost(), PaillierKeySide(PaillierSecretKey.generate(512, floor=512))
    second, half = longer_key(first), 255
    host.begun("one", first)
    blob = first.encrypt_joined([1] * N, half)
    assert host.sums("one", blob, half, first) == [30, 30]
    host.begun("one", second)
    assert host.sums("one", blob, half, first) == [30, 30], (
        "the sums stay under the key that the groups were begun with"
    )


class Killed(BaseException):
    """Nothing after it is done."""


@contextmanager
def killed_at(commit):
    """The process ends before its commit of this number, from 1, or behind it where the number is below 0; yields how many there were."""
    done = []

    def before(*about):
        done.append(0)
        if len(done) == commit:
            raise Killed

    def after(*about):
        if len(done) == -commit:
            raise Killed

    event.listen(Engine, "commit", before)
    event.listen(OrmSession, "after_commit", after)
    try:
        with suppress(Killed):
            yield done
    finally:
        event.remove(Engine, "commit", before)
        event.remove(OrmSession, "after_commit", after)


def test_killed_at_any_write_a_host_counts_sums_by_group_once_and_answers_the_same_bytes_alone():
    key, half = PaillierKeySide(PaillierSecretKey.generate(512, floor=512)), 255
    blob, other = (key.encrypt_joined([1] * N, half) for _ in range(2))
    with killed_at(0) as writes:
        host = CountingHost()
        made = len(writes)
        host.begun("one", key)
        assert host.sums("one", blob, half, key) == [30, 30]
    counted = host.counted()
    assert len(writes) - made == 1  # both questions are counted and bound to their bytes together
    for place in (sign * number for number in range(1, len(writes) - made + 1) for sign in (1, -1)):
        host = CountingHost()
        host.begun("one", key)
        with killed_at(place) as writes:
            host.sums("one", blob, half, key)
        assert len(writes) == abs(place), "it was killed there"
        host.start(GROUP_A)  # another process, on the same database
        host.begun("two", key)
        assert host.sums("two", blob, half, key) == [30, 30], place
        assert host.counted() == counted, place
        host.begun("three", key)
        with pytest.raises((SecurityError, QuestionRefused)):
            host.sums("three", other, half, key)


@pytest.mark.parametrize("features", [("y",), ("c", "y"), ("c", "c"), ("c",) * 1000])
def test_what_is_refused_as_no_question_is_not_counted(features):
    """Else a Guest fills the account with names of its own, or has one feature added up a million times by one message."""
    host, key = CountingHost(), PlainKeySide()
    host.begun("one", key)
    host.send(GroupPairs("one", EVERYONE, 20, (key.encrypt_joined([1] * N, 20),)))
    with pytest.raises(SecurityError, match="unknown feature, a feature named twice"):
        host.send(AskGroupSums("one", GUEST, features, 4))
    with pytest.raises(SecurityError, match="33 groups"):
        host.send(AskGroupSums("one", GUEST, ("c",), 33))
    assert host.counted() == (0, 0)


def test_a_message_about_several_features_is_counted_whole_or_not_at_all():
    host, key, some = CountingHost(), PlainKeySide(), np.arange(N) < N - 10
    host.begun("one", key)
    host.send(GroupPairs("one", pack_rows(some), 20, (key.encrypt_joined([1] * (N - 10), 20),)))
    host.send(AskGroupSums("one", GUEST, ("x",), 2))
    before = host.counted()
    host.send(GroupPairs("one", EVERYONE, 20, (key.encrypt_joined([1] * N, 20),)))
    with pytest.raises(SecurityError, match="part of such an answer"):
        host.send(AskGroupSums("one", GUEST, ("c", "x"), 2))
    assert host.counted() == before
    [answer] = host.send(AskGroupSums("one", GUEST, ("c",), 2))
    assert answer.features == ("c",)


@pytest.mark.parametrize(("feature", "receivers"), [("y", ("other",)), ("c", ("other", "other")), ("c", (GUEST,))])
def test_marks_of_a_host_that_nobody_gets_are_not_counted(feature, receivers):
    host = CountingHost()
    host.begun("one", PlainKeySide())
    with pytest.raises(SecurityError):
        host.send(AskGroupPairs("one", EVERYONE, feature, 4, receivers))
    assert host.counted() == (0, 0)


@pytest.mark.parametrize("knows_them", [False, True])
def test_nobody_declares_people_joint_whom_it_does_not_know(knows_them):
    """Strangers would make a few customers many people, among whom sums may name more (docs/decisions/groups.md)."""
    host, invented = CountingHost(), N - 10
    ids = [*IDS[:10], *(IDS[10:] if knows_them else (f"z{i}" for i in range(invented)))]
    side = guest_sides("dh", GUEST, ids, ["host"])["host"]
    [started] = host.send(StartAlignment("one", "dh", N, side.open()))
    side.opened(started.records, started.opening)
    for piece in side.pieces():
        [hidden] = host.send(HiddenIds("one", piece))
        side.take(hidden.answer)
    assert (side.positions() >= 0).sum() == (N if knows_them else 10)
    joint = JointRecords("one", to_bitmap(np.ones(N, dtype=bool)), knows("one", sorted(ids)))
    if knows_them:
        host.send(joint)
        assert len(host.party._sessions.of("one", GUEST).rows) == N
        return
    with pytest.raises(SecurityError, match="whose ids the Guest does not know"):
        host.send(joint)
    assert host.party._sessions.of("one", GUEST).rows is None
    with pytest.raises(SecurityError, match="belong to no alignment"):
        host.send(joint)  # one guess an alignment


class TestAGuestThatMarksPeopleAsItLikes:
    """One person with 1, the next with 2, then 4: a sum is a list of who is in the group (docs/decisions/groups.md)."""

    def named(self, host, people, half=None, least=30):
        """Of the first so many people, whom one question names; the others are marked with 0."""
        key = PaillierKeySide(PaillierSecretKey.generate(512, floor=512))
        conversation = f"{people} {least}"
        host.begun(conversation, key)
        half = half or people // 2 + 1
        marks = [1 << i if i < people else 0 for i in range(N)]
        host.send(GroupPairs(conversation, EVERYONE, half, (key.encrypt_joined(marks, half),)))
        [answer] = host.send(AskGroupSums(conversation, GUEST, ("c",), 2, least))
        [in_a, _] = [key.decrypt_numbers([c])[0] for c in key.public.load(answer.sums[0], 2)]
        return sum((in_a >> i & 1) == GROUP_A[i] for i in range(people))

    def test_everybody_is_named_by_one_question_where_nothing_holds_it(self):
        assert self.named(CountingHost(named=0.0), N) == N

    def test_a_host_refuses_sums_that_could_name_more_than_half_and_counts_nobody(self):
        host = CountingHost(named=0.5)
        for least in (20, 30):
            with pytest.raises(SecurityError, match="can bear"):
                self.named(host, N, least=least)
        with pytest.raises(SecurityError, match="could name more"):
            self.named(host, 28, half=14, least=20)
        assert host.counted() == (0, 0)
        assert self.named(host, 26, half=13) == 26 < N / 2

    def test_marks_that_no_groups_can_bear_are_refused_before_any_is_read(self):
        host = CountingHost(named=0.5)
        host.begun("one", PlainKeySide())
        with pytest.raises(SecurityError, match="Marks of 40 bits arrived about 60 people"):
            host.send(GroupPairs("one", EVERYONE, 20, (b"no ciphertexts",)))

    def test_marks_of_more_bits_than_were_announced_name_no_more(self):
        """The halves say 26 bits, the numbers hold 60: those above come back at random."""
        assert self.named(CountingHost(named=0.5), N, half=13) < 26 + 34 - 4


def test_sizes_of_groups_are_answered_by_one_smallest_size_alone():
    """With 5 people without a value: merged otherwise, the 5 join another group, and the difference shows them."""
    host, key = CountingHost(missing=5), PlainKeySide()
    host.begun("one", key)
    [first] = host.send(AskGroupPairs("one", EVERYONE, "x", 2, ()))
    assert min(n for _, _, n in first.groups) >= 20
    host.send(GroupPairs("one", EVERYONE, 20, (key.encrypt_joined([1] * N, 20),)))
    with pytest.raises((SecurityError, QuestionRefused)):
        host.send(AskGroupSums("one", GUEST, ("x",), 2, 30))
    [again] = host.send(AskGroupSums("one", GUEST, ("x",), 2, 20))
    assert again.groups == (first.groups,)


def test_the_same_cells_read_as_another_kind_are_other_records():
    """Else numbers in bins, and then in codes, are two answers about the same people, of which one is counted."""
    host = CountingHost(missing=25)
    asked = AskGroupPairs("one", EVERYONE, "x", 2, ())
    host.begun("one", PlainKeySide())
    [first] = host.send(asked)
    host.start(GROUP_A, missing=25)
    host.begun("one", PlainKeySide())
    assert host.send(asked) == [first]
    host.start(GROUP_A, missing=25, kind=Kind.BOOLEAN)
    host.begun("one", PlainKeySide())
    with pytest.raises((SecurityError, QuestionRefused)):
        host.send(asked)


class TestMarksThatAHostKeeps:
    """It keeps for a day what it encrypted; a Guest asks for that again with everything else changed."""

    ASKED = AskGroupPairs("one", EVERYONE, "c", 4, ("other",))

    @pytest.fixture
    def host(self):
        host = CountingHost()
        host.key = PaillierKeySide(PaillierSecretKey.generate(512, floor=512))
        host.begun("one", host.key)
        return host

    def marks(self, host, **changed):
        """Receiver → bytes, and the groups that the Guest was told."""
        *pieces, (_, told) = host.party.answer(GUEST, replace(self.ASKED, **changed))
        return {receiver: piece.pairs for receiver, piece in pieces}, told.groups

    def test_they_are_the_same_bytes_to_whoever_gets_them_and_are_counted_once(self, host):
        first, groups = self.marks(host)
        before = host.counted()
        assert host.key.decrypt_joined(first["other"][0], N, 255) == GROUP_A.astype(int).tolist()
        host.begun("two", host.key)
        again, told = self.marks(host, conversation="two", receivers=("third", "other"))
        assert again == {"other": first["other"], "third": first["other"]} and told == groups
        assert host.counted() == before

    @pytest.mark.parametrize(
        "changed", [{"most": 2}, {"rows": pack_rows(np.arange(N) > 0)}, {"rows": pack_rows(np.arange(N) > 29)}]
    )
    def test_of_other_groups_or_people_there_are_none(self, host, changed):
        self.marks(host)
        before = host.counted()
        with pytest.raises((SecurityError, QuestionRefused)):
            self.marks(host, **changed)
        assert host.counted() == before

    def test_under_another_key_there_are_none(self, host):
        self.marks(host)
        host.begun("two", longer_key(host.key))
        with pytest.raises((SecurityError, QuestionRefused)):
            self.marks(host, conversation="two")

    def test_joint_records_in_another_order_get_none(self, host):
        """Bytes that are kept in one order would be other people's in another."""
        self.marks(host)
        host.begun("two", host.key)
        host.party._sessions.of("two", GUEST).rows = np.arange(N, dtype=np.intp)[::-1]
        with pytest.raises((SecurityError, QuestionRefused)):
            self.marks(host, conversation="two")

    @pytest.mark.parametrize("days", [0, 28])
    def test_of_records_that_changed_there_are_none_also_when_the_groups_may_be_asked_for_again(self, host, days):
        """Groups counted 28 days ago are forgotten; marks that were sent yesterday are not, and are not those of the groups of today."""
        self.marks(host, receivers=())
        host.start(GROUP_A, day=TODAY + timedelta(days=max(0, days - 1)))
        host.begun("two", host.key)
        self.marks(host, conversation="two")
        host.start(np.arange(N) % 3 == 0, day=TODAY + timedelta(days=days), records="changed")
        host.begun("three", host.key)
        with pytest.raises((SecurityError, QuestionRefused)):
            self.marks(host, conversation="three")


class TestTwoFeaturesTogether:
    """Neither is answered about alone: of 60 people 40 are in group a; of these 20 are old, and of the others one is young."""

    CELLS = "c × x"

    @pytest.fixture
    def host(self):
        counting = CountingHost()
        people = np.arange(N)
        counting.start(people < 40)
        old = ((people >= 20) & (people < 59)).astype(float)
        counting.party._gate.table.columns["x"][:] = old
        return counting

    def asked(self, host, name, conversation="one", rows=EVERYONE, most=2):
        """The sizes of the groups, and their sums of one mark each."""
        key = PlainKeySide()
        host.begun(conversation, key)
        count = N if rows is EVERYONE else N - 1
        host.send(GroupPairs(conversation, rows, 20, (key.encrypt_joined([1] * count, 20),)))
        [answer] = host.send(AskGroupSums(conversation, GUEST, (name,), most))
        return [[n for *_, n in groups] for groups in answer.groups]

    def test_it_answers_as_often_as_it_is_asked_the_same(self, host):
        assert self.asked(host, self.CELLS) == self.asked(host, self.CELLS, "two") == [[20, 20, 20]]

    @pytest.mark.parametrize("then", ["c", "x", "x × c"])
    def test_it_answers_about_neither_alone_afterwards(self, host, then):
        """Those who are not old, 21, less those of them in group a, 20, are one person."""
        self.asked(host, self.CELLS)
        before = host.counted()
        with pytest.raises((SecurityError, QuestionRefused)):
            self.asked(host, then, "two")
        assert host.counted() == before

    @pytest.mark.parametrize("first", ["c", "x"])
    def test_it_does_not_answer_about_both_after_one_of_them(self, host, first):
        self.asked(host, first)
        with pytest.raises((SecurityError, QuestionRefused)):
            self.asked(host, self.CELLS, "two")

    @pytest.mark.parametrize("other", [{"rows": pack_rows(np.arange(N) > 0)}, {"most": 3}])
    def test_nor_of_other_people_or_in_other_groups(self, host, other):
        self.asked(host, self.CELLS)
        with pytest.raises((SecurityError, QuestionRefused)):
            self.asked(host, self.CELLS, "two", **other)

    def test_nor_does_it_mark_people_by_one_of_them(self, host):
        self.asked(host, self.CELLS)
        with pytest.raises((SecurityError, QuestionRefused)):
            host.send(AskGroupPairs("one", EVERYONE, "x", 2, ()))

    @pytest.mark.parametrize("name", ["c × c", "c × y", "c × x × z", " × ", "c × "])
    def test_what_is_no_two_features_of_its_own_is_refused_and_not_counted(self, host, name):
        with raises(SecurityError, "groups_not_possible"):
            self.asked(host, name)
        assert host.counted() == (0, 0)

    def test_that_booked_both_together_alone_would_tell_of_one_person(self, host, monkeypatch):
        sizes = _Counting.sizes

        def of_the_pair_alone(counting, name):
            return [counting._charge(("groups", name), "", charge.question.bits) for charge in sizes(counting, name)][
                :1
            ]

        # patched: a mutant of what is booked
        monkeypatch.setattr(_Counting, "sizes", of_the_pair_alone)
        [cells] = self.asked(host, self.CELLS)
        [young, _] = self.asked(host, "x", "two")[0]
        assert young - cells[0] == 1
