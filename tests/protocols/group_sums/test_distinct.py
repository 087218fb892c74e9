"""About how many distinct values a Host's feature has: a place on a ladder, of enough people, once, and for a bit."""

from datetime import date, timedelta

import numpy as np
import pytest
from refused import raises
from sqlalchemy import text

from backend.crypto.plain import PlainKeySide
from backend.crypto.signing import SigningKey
from backend.data.dictionary import Feature, Kind
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.group_sums.messages import AskDistinct, DistinctValues
from backend.protocols.host import HostParty
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.terms.approvals import Approvals
from backend.protocols.terms.floors import Floors
from backend.protocols.terms.prices import screening_bits
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.messages import ApprovalPending, OfferKey
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.party_store import memory_store

GUEST, N = "bank", 60
TODAY = date(2026, 11, 24)
IDS = tuple(f"id{i:02}" for i in range(N))
FEATURES = (Feature(name="x", meaning="x", kind=Kind.NUMERIC), Feature(name="c", meaning="c", kind=Kind.CATEGORICAL))
COLUMNS = {"x": np.arange(N, dtype=np.float64), "c": np.array(["a", "b", None] * 20, dtype=object)}


class Host:
    def __init__(self, *, operator=False, group_size=0):
        self.database = Database()
        self.accountant = Accountant(self.database, Limits(1), "", lambda: TODAY)
        self.approvals = Approvals("host", Database(), SigningKey.generate(), lambda: TODAY) if operator else None
        self.party = HostParty(
            "host",
            PartyTable("host", IDS, COLUMNS),
            FEATURES,
            memory_store(),
            simulated=True,
            floors=Floors(group_size=group_size),
            accountant=self.accountant,
            approvals=self.approvals,
            sums=operator,
            measures=("screening",),
        )
        side = PlainKeySide()
        self.send(OfferKey("c", side.scheme, side.offer()))
        self.party._sessions.of("c", GUEST).rows = np.arange(N, dtype=np.intp)
        self.send(StatePurpose("c", "screening"))

    def send(self, message):
        return [answer for _, answer in self.party.answer(GUEST, message)]

    def place(self, feature, people=N):
        [answer] = self.send(AskDistinct("c", pack_rows(np.arange(N) < people), feature))
        return answer

    def booked(self):
        with self.database.read() as session:
            found = session.execute(text("SELECT subject, SUM(bits) FROM answers GROUP BY subject")).all()
        return dict(map(tuple, found))


def test_a_place_is_told_with_the_floor_and_a_bit_is_booked_about_each_person():
    host = Host(group_size=25)
    answer = host.place("x")
    assert isinstance(answer, DistinctValues) and (answer.place, answer.least) == (bytes([4]), 25)
    assert host.place("c").place == bytes([2]), "a missing value is none"
    assert set(host.booked().values()) == {2.0} and len(host.booked()) == N


def test_the_same_question_is_answered_again_and_one_about_others_of_them_is_not():
    host = Host()
    first = host.place("x")
    assert host.place("x") == first
    with raises(SecurityError, "people_in_common_until"):
        host.place("x", N - 1)
    assert set(host.booked().values()) == {1.0}


def test_fewer_people_than_a_group_has_and_features_of_others_are_refused():
    host = Host()
    with raises(SecurityError, "too_few_people_counted", people=19, least=20):
        host.place("x", 19)
    with raises(SecurityError, "not_a_feature_here"):
        host.place("income")
    assert host.booked() == {}


def test_the_operator_reads_what_a_screening_costs_before_anything_is_answered():
    host = Host(operator=True)
    assert isinstance(host.place("x"), ApprovalPending) and host.booked() == {}
    [request] = host.approvals.book.all()
    assert request.purpose == "screening"
    price = screening_bits(FEATURES, N)
    assert request.about == {"rows": N, "features": 2, "bits": pytest.approx(price), "least": 20}
    host.approvals.approve(request.number, "ana", TODAY + timedelta(days=3), N)
    assert isinstance(host.place("x"), DistinctValues)
    assert host.approvals.book.used(request.number) == 0, "a volume counts people whose groups are summed"
