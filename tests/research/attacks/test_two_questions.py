"""Two questions whose difference would tell of one person, of every pair of kinds, on a Host as it is shipped: nobody is found."""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from answering import Answering

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.errors import Cancelled, SecurityError
from backend.protocols.explanations.guest import ReasonsClient
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.messages import MIN_PEOPLE
from backend.protocols.host import HostParty
from backend.protocols.scoring.dither import DITHER, half_units
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import BlankValues, EncryptedScores, PermuteValues
from backend.protocols.scoring.packing import Packing
from backend.protocols.transport.messages import OfferKey
from backend.research.attacks.second_question import IDS
from backend.research.attacks.setup import HOST
from backend.store.accountant import Accountant
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host, load_host

OTHER_VALUES = {"permuted": PermuteValues, "blank": BlankValues}
KEY = PaillierKeySide(PaillierSecretKey.generate(1024, floor=512))
FEWER = "one tree fewer"
GROUP = range(MIN_PEOPLE + 1)


def halves(setup):
    """Id → the Guest's model and the Host's half: the same trees under two ids, and all but the last tree."""
    guest, host = setup.rounded(), load_host(setup.partial_model)
    host = replace(host, layout=Packing(guest).layout)
    last = len(guest.trees) - 1
    rest = {"rules": {k: r for k, r in host.rules.items() if k[0] < last}, "skeletons": host.skeletons[:-1]}
    own = {k: r for k, r in guest.rules.items() if k[0] < last}
    return {
        IDS[0]: (guest, host),
        IDS[1]: (guest, replace(host, salt="another")),
        FEWER: (replace(guest, trees=guest.trees[:-1], rules=own), replace(host, **rest)),
    }


class Shipped:
    """Hosts as they are shipped, several processes of one company on one database."""

    def __init__(self, setup, folder):
        self.setup, self.halves = setup, halves(setup)
        texts = {model_id: dump_host(host) for model_id, (_, host) in self.halves.items()}
        features = setup.federation.party(HOST).features
        self.hosts = [
            HostParty(
                HOST,
                setup.host,
                features,
                memory_store(texts),
                simulated=True,
                key_floor=512,
                accountant=Accountant(Database(folder)),
                dither=DITHER,
            )
            for _ in range(2)
        ]

    def people(self, rows, changed=()):
        """Rows of the Guest's table; the Guest's columns of `changed` are other people's."""
        own = self.setup.guest.take(np.array(rows))
        place = np.array([(row + 7) if row in changed else row for row in rows])
        return replace(own, columns=dict(self.setup.guest.take(place).columns))

    def ask(self, kind, people, model_id=IDS[0], process=0, broken_off=False):
        """What the Guest gets: units, names or sums; raises SecurityError where nobody is answered about."""
        guest = self.halves[model_id][0]
        with self.setup.session(self.hosts[process]) as session:
            if kind in OTHER_VALUES:
                session.send(HOST, OfferKey(session.name, "none", PlainKeySide().offer()))
                feature = next(iter(self.setup.host.columns))
                session.send(HOST, OTHER_VALUES[kind](session.name, people.ids, (feature,)))
            if kind in ("score", *OTHER_VALUES):
                heard = {"expect_each": partial(cancelled, session)} if broken_off else {}
                compiled = CompiledGuest(guest)
                scored = self.setup.guest_party().score(
                    model_id, compiled, people, PlainKeySide(), Answering(session, heard)
                )
                if len(scored.refused) == len(people.ids):
                    raise SecurityError("refused")
                return np.array(scored.units)[[i for i in range(len(people.ids)) if i not in scored.refused]]
            side = KEY if kind == "reasons" else PlainKeySide()
            client = ReasonsClient(session, people.party, model_id, CompiledTerms(guest), side)
            if kind == "cohort":
                return client.sums(people).sums.sum()
            named = client.names(people, 2)
            if len(named.refused) == len(people.ids):
                raise SecurityError("refused")
            return named.names


def cancelled(session, kind, *hosts):
    """Somebody stops once it is known who is held, which a Host says when all are counted."""
    if kind is EncryptedScores:
        raise Cancelled("stopped")
    return session.expect_each(kind, *hosts)


@pytest.fixture
def shipped(setup, tmp_path):
    return Shipped(setup, tmp_path)


@pytest.mark.parametrize("second", ["the same", "row changed", "other id", "tree fewer", "other process", "one fewer"])
@pytest.mark.parametrize("kind", ["score", "reasons", "cohort"])
@pytest.mark.slow
def test_nobody_is_answered_about_twice_in_one_kind_of_question(kind, second, shipped):
    rows = list(GROUP) if kind == "cohort" else [0]
    shipped.ask(kind, shipped.people(rows))
    again = {
        "the same": {},
        "row changed": {"changed": (0,)},
        "other id": {"model_id": IDS[1]},
        "tree fewer": {"model_id": FEWER},
        "other process": {"process": 1},
        "one fewer": {"rows": rows[1:] or rows},
    }[second]
    people = shipped.people(again.pop("rows", rows), again.pop("changed", ()))
    with pytest.raises(SecurityError):
        shipped.ask(kind, people, **again)


@pytest.mark.parametrize("broken_off", [False, True])
@pytest.mark.parametrize("first", ["score", *OTHER_VALUES])
def test_who_was_scored_with_any_values_is_scored_with_no_others_also_where_it_was_broken_off(
    first, broken_off, shipped
):
    """The difference of two scores of one person, of which one is without a feature, is what that feature adds for the person."""
    people = shipped.people(GROUP)
    with suppress(Cancelled):
        shipped.ask(first, people, broken_off=broken_off)
    for second in ("score", *OTHER_VALUES):
        with pytest.raises(SecurityError):
            shipped.ask(second, people)
        with pytest.raises(SecurityError):
            shipped.ask(second, shipped.people(list(GROUP)[1:]), process=1)


def test_groups_that_add_up_to_others_tell_of_nobody(shipped):
    first, second = list(range(50)), list(range(50, 100))
    shipped.ask("cohort", shipped.people(first))
    shipped.ask("cohort", shipped.people(second))
    for union in ([*first, *second], [*first, *second[1:]], [*first[1:], *second, 100]):
        with pytest.raises(SecurityError):
            shipped.ask("cohort", shipped.people(union))


@pytest.mark.parametrize(("first", "second"), [p for p in product(("score", "cohort"), repeat=2) if p[0] != p[1]])
def test_scores_and_a_group_s_sums_together_identify_nobody(first, second, shipped, setup):
    """Everybody of a group but one is scored, and the group added up: what is left of the one is under 50 dithers."""
    rows, compiled = list(GROUP), setup.compiled()
    asked = {"score": shipped.people(rows[1:]), "cohort": shipped.people(rows, changed=(0,))}
    for kind in (first, second):
        shipped.ask(kind, asked[kind])
    alone = shipped.ask("score", shipped.people(rows[:1]))[0]  # with the true row; the sums have another
    half = half_units(DITHER, compiled.score_bits)
    people = setup.guest.take(np.array([7]))
    constant, entries = compiled.encode(people.columns, 1)
    expected = setup.keep.astype(np.float64) @ entries.T.astype(np.float64) + np.array(constant)
    # units of the one under another row: known up to the dithers of all the others
    width = (len(rows) - 1) * half + len(rows) * 2
    fits_sums = np.abs(expected[:, 0] - expected[0, 0]) <= width
    own = compiled.encode(setup.guest.take(np.array([0])).columns, 1)
    score_of = setup.keep.astype(np.float64) @ own[1].T.astype(np.float64) + np.array(own[0])
    fits_score = np.abs(score_of[:, 0] - alone) <= half
    answers = setup.keep.astype(np.float64) @ setup.codes
    assert fits_score[0] and fits_sums[0]
    assert len(np.unique(answers[fits_score & fits_sums])) > 1
