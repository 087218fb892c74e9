"""The auditor: what an honest Guest sent always passes; crafted weights, another opening and another model do not."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, random_world, with_outputs

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.errors import SecurityError
from backend.privacy.request_audit import HonestWeights, replay
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.opening import Opening, open_vector
from backend.protocols.scoring.packing import Packing, canaries
from backend.store.accountant import SCORE
from backend.store.database import Database
from backend.store.request_log import RequestLog
from backend.store.schema import LoggedRow
from backend.trees.ensemble import Registered
from backend.trees.serialization import content_hash, dump_guest


def sent(world, secret_key, change=lambda numbers: numbers, canary=True):
    """A request for the first person, as it would be logged, and who opens it."""
    key, compiled, table = PaillierKeySide(secret_key), CompiledGuest(world.model), world.tables[GUEST]
    riding = canaries(key.seed, "m", table.ids[:1], compiled.trees) if canary else None
    columns = {name: column[:1] for name, column in table.columns.items()}
    numbers = change([int(v) for v in compiled.encode(columns, 1, riding)[1][0]])
    vector = key.public.dump(key.encrypt_numbers(numbers))
    row = LoggedRow("2026-01-01", SCORE, "m", table.ids[0], key.public.to_bytes(), vector)
    row.number = 1
    return row, key


def audit(world, row, opener, partial_model=None):
    text = dump_guest(partial_model or world.model)
    return replay([row], opener, text, registered(world.model), floor=512)


def registered(model):
    """What an honest Guest tells a Host of its partial model."""
    return Registered(content_hash(dump_guest(model)), Packing(model).layout)


@pytest.mark.parametrize("kind", ["plain", "vectors", "class trees", "median"])
@pytest.mark.parametrize("canary", [True, False])
def test_an_honest_request_passes_with_and_without_canaries(kind, canary, secret_key):
    world = random_world(5, 2, n_trees=3)
    world = world if kind == "plain" else with_outputs(world, kind, 5)
    row, key = sent(world, secret_key, canary=canary)
    found = audit(world, row, lambda r: open_vector(key, r.vector))
    assert found.rows == 1 and found.problems == ()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.booleans())
def test_whatever_an_honest_guest_encodes_is_possible(seed, hosts, canary):
    world = random_world(seed, hosts, n_trees=5, depth=4)
    compiled, table = CompiledGuest(world.model), world.tables[GUEST]
    riding = canaries(b"s", "m", table.ids, compiled.trees) if canary else None
    weights = HonestWeights(world.model)
    for row in compiled.encode(table.columns, len(table.ids), riding)[1]:
        weights.check([int(v) for v in row])


@pytest.mark.parametrize(
    "craft",
    [
        lambda numbers: [1 << j for j in range(len(numbers))],
        lambda numbers: [2 * v for v in numbers],
        lambda numbers: [numbers[0] + 1, *numbers[1:]],
        lambda numbers: [numbers[0] + (1 << 63), *numbers[1:]],
    ],
)
def test_crafted_weights_are_found(craft, secret_key):
    world = random_world(5, 2, n_trees=3)
    row, key = sent(world, secret_key, craft, canary=False)
    found = audit(world, row, lambda r: open_vector(key, r.vector))
    assert len(found.problems) == 1 and "not those of the registered model" in found.problems[0][1]


def test_an_opening_that_is_not_that_of_the_ciphertexts_is_found(secret_key):
    """A Guest that crafted weights cannot open them as honest ones."""
    world = random_world(5, 2, n_trees=3)
    honest_row, key = sent(world, secret_key)
    crafted_row, _ = sent(world, secret_key, lambda numbers: [1 << j for j in range(len(numbers))])
    true = open_vector(key, crafted_row.vector)
    lie = replace(true, numbers=open_vector(key, honest_row.vector).numbers)
    for opening in (lie, open_vector(key, honest_row.vector)):
        assert (
            "does not belong to the logged ciphertexts"
            in audit(world, crafted_row, lambda _, o=opening: o).problems[0][1]
        )
    short = Opening(true.numbers[1:], true.roots[1:])
    assert "different numbers of entries" in audit(world, crafted_row, lambda _: short).problems[0][1]


def test_a_refusal_to_open_and_another_partial_model_count_against_the_guest(secret_key):
    world = random_world(5, 1, n_trees=3)
    row, key = sent(world, secret_key)

    def refuses(_):
        raise SecurityError("no")

    assert audit(world, row, refuses).problems == ((1, "no"),)
    other = replace(world.model, base_scores=(9.0,))
    found = audit(world, row, lambda r: open_vector(key, r.vector), partial_model=other)
    assert "not the one that was registered" in found.problems[0][1]
    unregistered = replay([row], refuses, dump_guest(world.model), Registered("", None), floor=512)
    assert unregistered.problems == ((1, "no partial model was registered"),)


@pytest.mark.parametrize(
    "lie",
    [{"score_bits": 0}, {"score_bits": 9}, {"slots": 2, "slot_bits": 30}, {"scale": 3}],
)
def test_a_layout_told_that_is_not_the_registered_one_is_found(lie, secret_key):
    """G12: a Host adds dither and books bits by the layout that it was told."""
    world = random_world(5, 1, n_trees=3)
    row, key = sent(world, secret_key)
    honest = registered(world.model)
    told = replace(honest, layout=replace(honest.layout, **lie))
    text = dump_guest(world.model)
    for layout in (told, replace(honest, layout=None)):
        found = replay([row], lambda r: open_vector(key, r.vector), text, layout, floor=512)
        assert [number for number, _ in found.problems] == [1]
        assert "score layout" in found.problems[0][1]


def test_a_registered_model_of_fewer_bits_than_dither_needs_is_found(secret_key):
    world = random_world(5, 1, n_trees=3)
    coarse = replace(world.model, score_bits=3)
    row, key = sent(world, secret_key)
    text = dump_guest(coarse)
    found = replay([row], lambda r: open_vector(key, r.vector), text, registered(coarse), floor=512)
    assert "3" in found.problems[0][1] and "4" in found.problems[0][1]


def test_a_ciphertext_opens_to_what_was_encrypted(secret_key):
    key = PaillierKeySide(secret_key)
    values = [0, 1, -7, 1 << 200]
    ciphertexts = key.encrypt_numbers(values)
    for value, c, (m, r) in zip(values, ciphertexts, key.open(ciphertexts), strict=True):
        assert m == value and 0 < r < key.public.n
        assert key.public.encrypt_with(m, pow(int(r), int(key.public.n), int(key.public.n2))) == c


def test_a_log_keeps_rows_at_its_rate_until_they_are_audited(tmp_path):
    log = RequestLog(Database(tmp_path), rate=0.25)
    ids = tuple(f"id{i}" for i in range(400))
    log.note("m", ids, b"key", [i.to_bytes(2, "big") for i in range(400)])
    kept = RequestLog(Database(tmp_path)).rows()
    assert 50 < len(kept) < 150 and len({row.subject for row in kept}) == len(kept)
    assert all(int.from_bytes(row.vector, "big") == int(row.subject[2:]) for row in kept)
    log.forget([row.number for row in kept[1:]])
    assert [row.subject for row in log.rows()] == [kept[0].subject]
    never = RequestLog(Database(), rate=0.0)
    never.note("m", ids, b"key", [b"x"] * 400)
    never.note("m", (), b"key", [])
    assert never.rows() == []


def test_a_flood_of_later_requests_displaces_none_of_the_earlier_ones_more_than_of_its_own():
    log = RequestLog(Database(), rate=1.0, max_rows=100)
    log.note("m", [f"crafted{i}" for i in range(100)], b"key", [b"x"] * 100)
    for k in range(9):
        log.note("m", [f"flood{k} {i}" for i in range(100)], b"key", [b"x"] * 100)
    kept = [row.subject for row in log.rows()]
    crafted = sum(subject.startswith("crafted") for subject in kept)
    assert len(kept) == 100 and 0 < crafted < 35  # a tenth of all that came, as of the others


def test_a_log_that_cannot_be_written_answers_nothing(tmp_path):
    log = RequestLog(Database(tmp_path), rate=1.0)
    (tmp_path / "store.db").write_bytes(b"no database" * 1000)
    with pytest.raises(SecurityError, match="cannot store requests"):
        log.note("m", ("a",), b"key", [b"x"])


def test_numbers_of_another_count_are_refused():
    with pytest.raises(SecurityError, match="0 entries were sent"):
        HonestWeights(random_world(5, 1).model).check([])
