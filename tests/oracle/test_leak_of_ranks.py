"""Ranks of desensitised values tell less than is booked for them: by the probability of every reply, from the sampler's own thresholds.

Noise is the defence here, so the Guest does not know it. *Learned* is log2 of the sum, over all replies, of the largest probability that
any table gives the reply: no rule of the Guest's guesses better.
"""

import itertools
from functools import cache
from math import e, log2
from types import SimpleNamespace

import numpy as np
import pytest
from leak_crowd import Account, Candidate, Tape
from leak_worlds import CONVERSATION, World, toy_floors

from backend.protocols.approvals.messages import AskTraining
from backend.protocols.training.messages import StartRanks
from backend.protocols.training.opboost.host_side import HostRanks, NoisyColumn, noise_of
from backend.protocols.training.opboost.maps import ValueMap
from backend.protocols.training.opboost.sampling import thresholds

LEVELS = 4
# Three people, 64 tables; one value is so far off that it draws all others together.
WORLD = World(features=("a",), values=(0.0, 1.0, 3.0, 9.0))
SETTINGS = [
    *itertools.product(["global"], [2], [1.0], [0.05, 0.32, 0.5, 1.0]),
    *itertools.product(["local"], [2, 4], [1.0], [0.05, 0.32, 1.0]),
    *itertools.product(["adj"], [2, 4], [0.5, 2.0], [0.05, 0.32, 1.0]),
]


def asked_for(setting):
    """Return what asks for ranks with a noise: the training, and the start."""
    map_, theta, alpha, epsilon = setting
    noise = {"epsilon": epsilon, "map": map_, "mechanism": "exponential", "theta": theta, "alpha": alpha}
    training = AskTraining(
        CONVERSATION,
        algorithm="opboost",
        trees=1,
        depth=1,
        bins=0,
        exclude=(),
        hide_order=False,
        levels=LEVELS,
        **noise,
    )
    return training, StartRanks(CONVERSATION, levels=LEVELS, exclude=(), **noise)


@cache
def cells(step, size):
    """Return words that stand for all words that are read alike, for every true value, and the probability of each."""
    cuts = set()
    for anchor in range(size):
        cuts |= set(thresholds(step, size, anchor, 64))
    edges = [-1, *sorted(cuts), (1 << 64) - 1]
    words = []
    chances = []
    for low, high in itertools.pairwise(edges):
        words.append((low + 1 + high) // 2)
        chances.append((high - low) / 2**64)
    return np.array(words, dtype=np.uint64), np.array(chances)


@cache
def noisy_level_chances(noise):
    """Return the probability of each noisy level given each true one, ``(levels, levels)``: the product's own draws, by all words."""
    draws = [cells(noise.step, noise.levels if noise.map == "global" else noise.theta)]
    if noise.map == "adj":
        draws.insert(0, cells(noise.jump, noise.levels // noise.theta))
    grid = [axis.ravel() for axis in np.meshgrid(*(words for words, _ in draws), indexing="ij")]
    weights = np.ones(1)
    for _, chances in draws:
        weights = np.outer(weights, chances).ravel()
    rows = []
    for level in range(noise.levels):
        words = iter(grid)
        drawn = noise.desensitise(np.full(len(weights), level), lambda _, words=words: next(words))
        rows.append(np.bincount(drawn, weights=weights, minlength=noise.levels))
    return np.array(rows)


def reply_chances(start, bounds=None):
    """Return the probability of each reply given each table, ``(tables, replies)``; None = no bounds are declared."""
    chances = noisy_level_chances(noise_of(start))
    replies = {}
    column_of = []
    for noisy in itertools.product(range(LEVELS), repeat=WORLD.people):
        column = NoisyColumn("a", np.array(noisy, dtype=np.int16), ValueMap(0.0, 3.0, LEVELS))
        columns = SimpleNamespace(names=lambda _: ["a"], of=lambda *_, column=column: (column,))
        ranks = HostRanks(columns, np.arange(WORLD.people), start).ranks(CONVERSATION)
        column_of.append(replies.setdefault((ranks.counts, ranks.ranks), len(replies)))
    of_reply = np.eye(len(replies))[column_of]
    rows = []
    for table in WORLD.tables:
        values = np.array([WORLD.values[cell] for cell in table])
        # Without bounds the Host spans its own smallest to its largest value.
        lower, upper = bounds or (values.min(), values.max())
        levels = ValueMap(lower, upper, LEVELS).level(values)
        first, second, third = chances[levels]
        of_noisy = np.multiply.outer(np.multiply.outer(first, second), third).ravel()
        rows.append(of_noisy @ of_reply)
    return np.array(rows)


def learned(chances):
    """Return bits about each person with everybody else's value known, the worst case, and about everybody."""
    of_person = []
    for rest in WORLD.rests:
        most = max(chances[rest == number].max(axis=0).sum() for number in np.unique(rest))
        of_person.append(log2(most))
    return of_person, log2(chances.max(axis=0).sum())


@pytest.fixture(scope="module")
def told():
    """What ranks tell, by setting."""
    return {setting: learned(reply_chances(asked_for(setting)[1])) for setting in SETTINGS}


def booked(setting):
    """Return the bits that a real Host books about each person for ranks that it sends."""
    with toy_floors():
        account = Account(WORLD)
        host = Candidate(WORLD, WORLD.typical, account, Tape(), plays=False)
        replies = [host.say(message) for message in asked_for(setting)]
        assert [part[0] for part in replies[-1]] == ["Ranks"], setting
        return account.booked()


def short_of(told, of_setting):
    """Return the settings whose ranks tell more than is booked for them."""
    short = []
    for setting, (of_person, everybody) in told.items():
        bits = of_setting(setting)
        if max(of_person) > min(bits) or everybody > sum(bits):
            short.append(setting)
    return short


def test_ranks_tell_less_than_is_booked_for_them(told):
    assert len(told) >= 20
    assert not short_of(told, booked)


def test_a_host_that_books_less_is_caught(told):
    assert short_of(told, lambda _: (0.0,) * WORLD.people) == SETTINGS
    # A price by epsilon and width, right for the global map, is too little for the local one, which discloses the partition.
    by_epsilon = short_of(told, lambda setting: (setting[3] * (LEVELS - 1) * log2(e),) * WORLD.people)
    assert by_epsilon == [("local", 2, 1.0, 0.05), ("local", 2, 1.0, 0.32)]


def test_chances_are_those_of_the_draws(told):
    for map_, theta, alpha, epsilon in SETTINGS:
        start = asked_for((map_, theta, alpha, epsilon))[1]
        chances = noisy_level_chances(noise_of(start))
        assert np.allclose(chances.sum(axis=1), 1.0)
        drawn = noise_of(start).desensitise(np.full(4000, 1))
        assert np.abs(np.bincount(drawn, minlength=LEVELS) / 4000 - chances[1]).max() < 0.05


def largest_ratio(chances):
    """Return how many times as likely a reply is at most if one person has another value of the three smallest; 0 in 1 is infinite."""
    ratios = []
    near = (WORLD.cells < LEVELS - 1).all(axis=1)
    for rest in WORLD.rests:
        for number in np.unique(rest[near]):
            of_person = chances[near & (rest == number)]
            most = of_person.max(axis=0)
            with np.errstate(divide="ignore"):
                ratios.append((most[most > 0] / of_person.min(axis=0)[most > 0]).max())
    return max(ratios)


@pytest.mark.parametrize("epsilon", [0.05, 0.32, 1.0])
def test_the_papers_bound_covers_ranks_with_declared_bounds_and_not_with_the_records_extremes(epsilon):
    """Pr[y | x] ≤ e^(t·ε) · Pr[y | x'] within a partition of the local map: the three smallest values are in one, a level apart."""
    start = asked_for(("local", 2, 1.0, epsilon))[1]
    declared = WORLD.values[0], WORLD.values[-1]
    assert 1.0 < largest_ratio(reply_chances(start, declared)) <= e**epsilon
    assert largest_ratio(reply_chances(start)) == np.inf  # one person moves another one to the next partition
