"""The auditor of terms of reasons: what an honest Guest sent always passes; crafted terms and false statements do not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import GUEST, random_world, with_bands, with_covers, with_medians

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.errors import ParameterError
from backend.privacy.request_audit import LoggedTerms, replay_terms
from backend.protocols.explanations.encryption import paillier_numbers
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.opening import TermsOpening, honest_numbers, values_alike
from backend.protocols.explanations.paillier_layout import PaillierLayout
from backend.protocols.scoring.opening import Opening, open_vector
from backend.protocols.scoring.packing import Packing
from backend.trees.backgrounds import COVERS, backgrounds
from backend.trees.ensemble import Registered
from backend.trees.serialization import content_hash, dump_guest


def open_terms(key, model, columns, terms):
    """What the Guest shows of terms that it made of these columns."""
    return TermsOpening(open_vector(key, terms), values_alike(model, columns))


def world_of(seed, n_hosts=2, **kwargs):
    return with_medians(with_covers(random_world(seed, n_hosts, **kwargs), seed))


def columns_of(world, person=0):
    return world.tables[GUEST].take(np.array([person])).columns


def sent(world, secret_key, change=lambda numbers: numbers, person=0, background=COVERS):
    """Terms of one person as the first Host logs them, and the Guest's key."""
    key, compiled = PaillierKeySide(secret_key), CompiledTerms(world.model, background)
    shape, host = compiled.shape(3), compiled.chain[0]
    layout, columns = PaillierLayout(shape, key.bits), columns_of(world, person)
    numbers = [*paillier_numbers(compiled, layout, columns), *paillier_numbers(compiled.drops(), layout, columns)]
    numbers = change(numbers)
    terms = key.public.dump(key.encrypt_numbers(numbers))
    stated = host, compiled.shares_of(host), shape.features, shape.value_bits
    return LoggedTerms(7, key.public.to_bytes(), terms, *stated), key


def audit(world, row, opener):
    text = dump_guest(world.model)
    registered = Registered(content_hash(text), Packing(world.model).layout)
    return replay_terms([row], opener, text, registered, floor=512).problems


@pytest.mark.parametrize(("seed", "n_hosts"), [(1, 1), (5, 2), (7, 3)])
def test_honest_terms_pass(seed, n_hosts, secret_key):
    world = world_of(seed, n_hosts, n_trees=2)
    row, key = sent(world, secret_key)
    assert audit(world, row, lambda r: open_terms(key, world.model, columns_of(world), r.terms)) == ()


def test_honest_terms_against_any_group_that_the_model_knows_pass_and_shares_of_two_groups_do_not(secret_key):
    world = with_medians(with_bands(random_world(5, 1, n_trees=2, n=430)))
    rows = {}
    for background in backgrounds(world.model):
        row, key = sent(world, secret_key, background=background)
        assert audit(world, row, lambda r, k=key: open_terms(k, world.model, columns_of(world), r.terms)) == ()
        rows[background.against] = row, key
    covers, of_all = rows["covers"][0], rows["all"][0]
    assert covers.shares != of_all.shares
    mixed, key = replace(covers, shares=of_all.shares), rows["covers"][1]
    ((_, problem),) = audit(world, mixed, lambda r: open_terms(key, world.model, columns_of(world), r.terms))
    assert "not those of the registered model" in problem
    unknown = replace(covers, shares=tuple(share / 3 for share in covers.shares))
    ((_, problem),) = audit(world, unknown, lambda r: open_terms(key, world.model, columns_of(world), r.terms))
    assert "no group" in problem


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_the_values_shown_give_the_terms_of_the_guests_own_and_no_more_of_them_than_the_splits_ask(seed, hosts):
    world = world_of(seed, hosts, n_trees=3, depth=4)
    try:
        compiled = CompiledTerms(world.model)
    except ParameterError:
        return  # no Host owns a split
    layout = PaillierLayout(compiled.shape(1), 2048)
    for person in range(4):
        columns = columns_of(world, person)
        shown = values_alike(world.model, columns)
        both = paillier_numbers(compiled, layout, columns), paillier_numbers(compiled.drops(), layout, columns)
        assert honest_numbers(world.model, shown, 2048) == both
        again = {n: np.array([v], dtype=object if isinstance(v, str) else columns[n].dtype) for n, v in shown.items()}
        assert values_alike(world.model, again) == shown  # the interval between two splits, and not where in it


@pytest.mark.parametrize(
    "craft",
    [
        lambda numbers: [numbers[0] + 1, *numbers[1:]],
        lambda numbers: [*numbers[:-1], numbers[-1] + (1 << 200)],
        lambda numbers: [1 << (3 * i % 400) for i in range(len(numbers))],
        lambda numbers: [2 * v + (v == 0) for v in numbers],
        lambda numbers: [-v - 1 for v in numbers],
    ],
)
def test_crafted_terms_are_found(craft, secret_key):
    world = world_of(5, n_trees=2)
    row, key = sent(world, secret_key, craft)
    ((number, problem),) = audit(world, row, lambda r: open_terms(key, world.model, columns_of(world), r.terms))
    assert number == 7 and "not those of the registered model" in problem


def test_terms_of_two_peoples_values_at_once_are_found(secret_key):
    """Every number is one that some honest Guest sends; together they are nobody's."""
    world = world_of(5, n_trees=3, n=12)
    both = [honest_numbers(world.model, values_alike(world.model, columns_of(world, i)), 512) for i in range(12)]
    of = [contributions + drops for contributions, drops in both]
    other = next(i for i in range(1, 12) if of[i] != of[0])
    apart = [j for j, (a, b) in enumerate(zip(of[0], of[other], strict=True)) if a != b]
    mixed = [*of[0][: apart[-1]], *of[other][apart[-1] :]]
    assert mixed not in of
    row, key = sent(world, secret_key, lambda _: mixed)
    for person in (0, other):
        assert audit(world, row, lambda r, p=person: open_terms(key, world.model, columns_of(world, p), r.terms))


def test_an_opening_of_other_numbers_or_without_values_is_found(secret_key):
    world = world_of(5, n_trees=2)
    honest, key = sent(world, secret_key)
    crafted, _ = sent(world, secret_key, lambda numbers: [numbers[0] + 1, *numbers[1:]])
    true = open_terms(key, world.model, columns_of(world), honest.terms)
    assert "does not belong to the logged" in audit(world, crafted, lambda _: true)[0][1]
    short = replace(true, sent=Opening(true.sent.numbers[1:], true.sent.roots[1:]))
    assert "different numbers of entries" in audit(world, honest, lambda _: short)[0][1]
    for values in ({}, dict.fromkeys(true.values, "x")):
        assert "no value" in audit(world, honest, lambda _, v=values: replace(true, values=v))[0][1]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"value_bits": 90}, "sizes"),
        ({"features": (9, 1, 1)}, "sizes"),
        ({"host": "host1"}, "sizes"),
        ({"shares": (0.0,)}, "shares"),
    ],
)
def test_sizes_and_shares_that_are_not_the_models_are_found(change, what, secret_key):
    """A larger bound leaves more of the modulus free; a share of 0 makes factors a plain 0 or 1."""
    world = world_of(5, n_trees=2)
    row, key = sent(world, secret_key)
    problems = audit(world, replace(row, **change), lambda r: open_terms(key, world.model, columns_of(world), r.terms))
    assert what in problems[0][1]
