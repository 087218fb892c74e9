"""The Host's side: ranks by hand, rules that mean what a rank cut means, noise that is drawn once, messages that are refused."""

import secrets

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.data.dictionary import Feature, Kind
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.host import HostParty
from backend.protocols.training.messages import AskBinSums, Ranks, StartRanks, TakeRankSplits
from backend.protocols.training.opboost import host_side
from backend.protocols.training.opboost.host_side import INDICATORS, HostRanks, NoisyColumns
from backend.protocols.transport.packing import from_numbers
from backend.store.party_store import memory_store

NUMBER = Feature(name="x", meaning="x")
FLAG = Feature(name="b", meaning="b", kind=Kind.BOOLEAN)
CODE = Feature(name="c", meaning="c", kind=Kind.CATEGORICAL)


@pytest.fixture
def quiet(monkeypatch):
    """Every word is the middle of its distribution, so that answers can be worked out by hand: at ε = 20 that is the true value."""
    draw_the_middle(monkeypatch)


def draw_the_middle(patch):
    middle = np.uint64(1 << 63)
    # patched: every word is the middle of its distribution, so that answers can be worked out by hand
    patch.setattr(host_side.SecretWords, "of_records", lambda words: np.full(len(words._ids), middle))
    patch.setattr(host_side.SecretWords, "stream", lambda words, count: np.full(count, middle))


def start(**changes):
    asked = {"map": "global", "mechanism": "laplace", "epsilon": 0.5, "theta": 4, "alpha": 1.0, "levels": 64}
    return StartRanks("c", **(asked | {"exclude": ()} | changes))


def table(**columns):
    n = len(next(iter(columns.values())))
    kinds = {name: object if name == "c" else np.float64 for name in columns}
    arrays = {name: np.array(values, dtype=kinds[name]) for name, values in columns.items()}
    return PartyTable("h", tuple(f"i{i}" for i in range(n)), arrays)


def ranked(held, features, rows=None, **changes):
    rows = np.arange(len(held.ids)) if rows is None else np.array(rows)
    return HostRanks(NoisyColumns(held, features, secrets.token_bytes(32)), rows, start(**{"epsilon": 20.0} | changes))


def read(answer, column):
    return from_numbers(answer.ranks[column], answer.counts[column] + 1).tolist()


def test_ranks_are_dense_and_the_last_number_marks_a_missing_value(quiet):
    answer = ranked(table(x=[30, 10, 20, np.nan, 20]), [NUMBER]).ranks("c")
    assert (answer.features, answer.counts, read(answer, 0)) == (("x",), (3,), [2, 0, 1, 3, 1])


def test_only_joint_records_are_ranked_in_their_order(quiet):
    answer = ranked(table(x=[30, 10, 20, 40]), [NUMBER], rows=[3, 1]).ranks("c")
    assert (answer.counts, read(answer, 0)) == ((2,), [1, 0])


def test_a_rank_never_shows_the_value(quiet):
    """Salaries in other units and with other bounds give the same bytes."""
    first, second = (ranked(table(x=x), [NUMBER]).ranks("c") for x in ([1.0, 2.0, 5.0], [-3e6, 0.0, 9e6]))
    assert first == second


@pytest.mark.parametrize(("bounds", "same"), [((0.0, 100.0), True), (None, False)])
def test_with_declared_bounds_nobodys_value_moves_anybody_elses_rank(bounds, same, quiet):
    feature = NUMBER.model_copy(update={"bounds": bounds})
    people = [10.0, 50.0, 90.0]
    first, second = (ranked(table(x=[*people, last]), [feature]).ranks("c") for last in (95.0, 1e6))
    others = [read(answer, 0)[:3] for answer in (first, second)]
    assert (others[0] == others[1]) == same


def test_a_yes_or_no_column_has_two_ranks_whatever_the_levels(quiet):
    answer = ranked(table(b=[1, 0, np.nan, 1]), [FLAG]).ranks("c")
    assert (answer.counts, read(answer, 0)) == ((2,), [1, 0, 2, 1])


def test_categories_become_yes_or_no_columns_of_one_feature(quiet):
    held = table(c=["red", "blue", None, "red"])
    answer = ranked(held, [CODE]).ranks("c")
    assert (answer.features, answer.counts) == (("c", "c"), (2, 2))
    assert sorted(read(answer, i) for i in range(2)) == [[0, 1, 2, 0], [1, 0, 2, 1]]


def test_the_order_of_a_features_categories_is_secret(quiet):
    held = table(c=[str(i) for i in range(20)])
    answers = {ranked(held, [CODE]).ranks("c").ranks for _ in range(3)}
    assert len(answers) == 3


def test_rare_categories_get_no_column_and_say_no_everywhere(quiet):
    codes = [str(i) for i in range(INDICATORS + 5)] * 2 + ["rare"]
    answer = ranked(table(c=codes), [CODE]).ranks("c")
    assert len(answer.ranks) == INDICATORS
    assert [read(answer, i)[-1] for i in range(INDICATORS)] == [0] * INDICATORS


def test_left_out_features_are_not_sent():
    assert ranked(table(x=[1, 2], b=[0, 1]), [NUMBER, FLAG], exclude=("x",)).ranks("c").features == ("b",)


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e4, 1e4), st.sampled_from([0.0, 1.0, 2.0])), min_size=1, max_size=30),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_without_noise_a_rule_sends_every_record_where_its_rank_goes(values, default_left):
    held = table(x=[np.nan if v is None else v for v in values])
    with pytest.MonkeyPatch.context() as patch:
        draw_the_middle(patch)
        host = ranked(held, [NUMBER])
    answer = host.ranks("c")
    rank = np.array(read(answer, 0))
    cuts = range(answer.counts[0] + 1)
    many = [(0,) * len(cuts), tuple(cuts), (0,) * len(cuts), tuple(cuts), (default_left,) * len(cuts)]
    host.take_splits(TakeRankSplits("c", *many))
    for cut in cuts:
        expected = np.where(rank == answer.counts[0], default_left, rank < cut)
        assert (host.rules[0, cut].goes_left(held.columns["x"]) == expected).all()


def test_an_indicators_rule_sends_its_category_right_and_an_unseen_one_where_missing_values_go(quiet):
    held = table(c=["red", "blue", None, "green"])
    host = ranked(held, [CODE])
    column = next(i for i in range(3) if read(host.ranks("c"), i) == [1, 0, 2, 0])  # red
    host.take_splits(TakeRankSplits("c", (0, 0, 0), (0, 1, 2), (column,) * 3, (1, 0, 2), (True, False, False)))
    values = np.array(["red", "blue", "green", None, "violet"], dtype=object)
    assert host.rules[0, 0].goes_left(values).tolist() == [False, True, True, True, True]
    assert host.rules[0, 1].goes_left(values).tolist() == [False] * 5
    assert host.rules[0, 2].goes_left(values).tolist() == [True, True, True, False, False]


def test_noise_is_drawn_once_so_that_repeated_trainings_average_nothing_out():
    columns = NoisyColumns(table(x=np.arange(300.0)), [NUMBER], secrets.token_bytes(32))
    rows = np.arange(300)
    first, again, other = (HostRanks(columns, rows, start(epsilon=e)).ranks("c").ranks for e in (0.05, 0.05, 0.06))
    assert first == again != other
    fresh = NoisyColumns(table(x=np.arange(300.0)), [NUMBER], secrets.token_bytes(32))
    assert HostRanks(fresh, rows, start(epsilon=0.05)).ranks("c").ranks != first


def test_a_column_without_any_value_has_no_rank():
    answer = ranked(table(x=[np.nan, np.nan], c=[None, None]), [NUMBER, CODE]).ranks("c")
    assert (answer.features, answer.counts, read(answer, 0)) == (("x",), (0,), [0, 0])


@pytest.mark.parametrize(
    "parts",
    [
        ((0,), (0,), (1,), (1,), (True,)),
        ((0,), (0,), (-1,), (1,), (True,)),
        ((0,), (0,), (0,), (4,), (True,)),
        ((0,), (0,), (0,), (-1,), (True,)),
        ((0, 1), (0,), (0,), (1,), (True,)),
    ],
)
def test_splits_by_unknown_columns_or_ranks_are_refused(quiet, parts):
    host = ranked(table(x=[1, 2, 3]), [NUMBER])
    with pytest.raises(SecurityError, match="refused"):
        host.take_splits(TakeRankSplits("c", *parts))
    assert host.rules == {}


@pytest.mark.parametrize("change", [{"epsilon": 1e9}, {"map": "none"}, {"mechanism": "float"}, {"levels": 1 << 40}])
def test_a_host_sends_nothing_for_a_setting_out_of_range(change):
    with pytest.raises(SecurityError, match="nothing was sent"):
        ranked(table(x=[1, 2]), [NUMBER], **change)


def test_a_host_answers_in_the_right_order_only():
    host = HostParty("h", table(x=[1, 2, 3]), [NUMBER], memory_store(), simulated=True, key_floor=512)
    session = host._sessions.of("c", "bank")
    with pytest.raises(SecurityError, match="before ids were aligned"):
        list(host.answer("bank", start()))
    with pytest.raises(SecurityError, match="not a training"):
        list(host.answer("bank", TakeRankSplits("c", (), (), (), (), ())))
    session.rows = np.arange(3)
    ((receiver, answer),) = list(host.answer("bank", start()))
    assert receiver == "bank" and isinstance(answer, Ranks)
    with pytest.raises(SecurityError, match="one on ranks"):
        list(host.answer("bank", AskBinSums("c", (), (), (), (), (), ())))
