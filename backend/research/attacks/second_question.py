"""P1, P2, P5: a second question whose difference from the first tells of one person. Plays a Guest that asks what it may, twice.

P1: the contributions of the same group are added up again after one Guest row was changed. P2: those of a group and of one person fewer,
under two ids of the same trees. What the sums differ by is that person's margin. P5: the same person under several ids of the same trees:
dithers that differ average out. Hosts without an account, and dithers drawn from a salt of the model, exist only here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from backend.crypto.plain import PlainKeySide
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.explanations.guest import ReasonsClient
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.messages import MIN_PEOPLE
from backend.protocols.host import HostParty
from backend.protocols.scoring.dither import DITHER, dithers, half_units
from backend.protocols.scoring.packing import Packing
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import HOST, MODEL_ID, PEOPLE, AttackSetup, attack_setup
from backend.store.accountant import Accountant
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host, load_host

IDS = tuple(f"{MODEL_ID}-{i}" for i in range(3))  # of the same trees
NEAR = 0.05  # of a margin: contributions are rounded at random


def run_changed_row(seed: int, people: int = PEOPLE, targets: int = 6) -> AttackOutcome:
    """P1: read by how much another Guest row would move the margin of `targets` people, each in a group of their own."""
    setup = attack_setup(people)
    draw = np.random.default_rng(seed)

    def groups(host: HostParty, group: NDArray[np.intp]) -> tuple[float, float]:
        changed = setup.guest.take(group)
        other_person = setup.guest.take(np.array([(group[0] + 1) % len(setup.guest.ids)]))
        columns = {}
        for name in changed.columns:
            columns[name] = np.concatenate([other_person.columns[name], changed.columns[name][1:]])
        swapped = replace(changed, columns=columns)
        difference = _sum(setup, host, swapped, IDS[0]) - _sum(setup, host, setup.guest.take(group), IDS[0])
        alone = replace(other_person, ids=changed.ids[:1])
        return difference, _margin(setup, alone) - _margin(setup, setup.guest.take(group[:1]))

    return _differences(setup, draw, targets, MIN_PEOPLE, groups)


def run_other_id(seed: int, people: int = PEOPLE, targets: int = 6) -> AttackOutcome:
    """P2: read the margin of `targets` people, each the one by whom two groups differ that are asked about under two ids."""
    setup = attack_setup(people)
    draw = np.random.default_rng(seed)
    twin = _host(setup, None)

    def groups(host: HostParty, group: NDArray[np.intp]) -> tuple[float, float]:
        whole_group = setup.guest.take(group)
        without_first = setup.guest.take(group[1:])
        difference = _sum(setup, host, whole_group, IDS[0]) - _sum(setup, host, without_first, IDS[1])
        # the part of the model's margin that is no feature's contribution
        base = (_margins(setup, without_first).sum() - _sum(setup, twin, without_first, IDS[0])) / len(
            without_first.ids
        )
        return difference, _margin(setup, setup.guest.take(group[:1])) - base

    return _differences(setup, draw, targets, MIN_PEOPLE + 1, groups)


def run_dither(seed: int, people: int = PEOPLE, targets: int = 60) -> AttackOutcome:
    """P5: get different scores of `targets` people from several ids of the same trees, to average dither out."""
    setup = attack_setup(people)
    draw = np.random.default_rng(seed)
    table = setup.guest.take(setup.draw_people(draw, targets))
    layout = Packing(setup.rounded()).layout
    half = half_units(DITHER, layout.dither_bits)
    has_record = np.ones(targets, dtype=bool)
    salted = []
    for i in range(len(IDS)):
        salted.append(dithers(f"salt {i}", layout, table.ids, has_record, half))
    host = _host(setup, None, dither=DITHER)
    shipped = [_scored(setup, host, table, model_id) for model_id in IDS]

    def moved(answers: list[list[int]]) -> tuple[int, int]:
        return sum(len(set(of_person)) > 1 for of_person in zip(*answers, strict=True)), targets

    setting = {"people": targets, "ids": len(IDS)}
    return AttackOutcome(count(moved, salted), count(moved, shipped), chance=0.0, setting=setting)


def _differences(
    setup: AttackSetup,
    draw: np.random.Generator,
    targets: int,
    size: int,
    groups: Callable[[HostParty, NDArray[np.intp]], tuple[float, float]],
) -> AttackOutcome:
    """Ask about a group twice for each target; `groups` returns the difference of the sums, and the truth."""
    rows = setup.draw_people(draw, targets * size).reshape(targets, size)

    def read(accountant: Accountant | None) -> tuple[int, int]:
        host = _host(setup, accountant)
        right = 0
        for group in rows:
            try:
                difference, truth = groups(host, group)
            except SecurityError:  # the second question was refused
                continue
            right += abs(difference - truth) < NEAR
        return right, targets

    setting = {"people": targets, "group": size}
    return AttackOutcome(count(read, None), count(read, Accountant(Database())), chance=0.0, setting=setting)


def _host(setup: AttackSetup, accountant: Accountant | None, dither: float = 0.0) -> HostParty:
    """The Host with the same trees under several ids, each with a salt of its own."""
    model = replace(load_host(setup.partial_model), layout=Packing(setup.rounded()).layout)
    texts = {}
    for model_id in IDS:
        texts[model_id] = dump_host(replace(model, salt=f"salt of {model_id}"))
    features = setup.federation.party(HOST).features
    store = memory_store(texts)
    return HostParty(HOST, setup.host, features, store, simulated=True, accountant=accountant, dither=dither)


def _sum(setup: AttackSetup, host: HostParty, people: PartyTable, model_id: str) -> float:
    """Contributions of a group, added up over all people and features."""
    with setup.session(host) as session:
        terms = CompiledTerms(setup.rounded())
        client = ReasonsClient(session, setup.guest.party, model_id, terms, PlainKeySide())
        return float(client.sums(people).sums.sum())


def _scored(setup: AttackSetup, host: HostParty, people: PartyTable, model_id: str) -> list[int]:
    with setup.session(host) as session:
        return setup.guest_party().score(model_id, setup.compiled(), people, PlainKeySide(), session).units


def _margin(setup: AttackSetup, person: PartyTable) -> float:
    """The truth: one person's margin."""
    return float(_margins(setup, person)[0])


def _margins(setup: AttackSetup, people: PartyTable) -> NDArray[np.float64]:
    margins: NDArray[np.float64] = setup.compiled().margins(_scored(setup, _host(setup, None), people, IDS[0]))[:, 0]
    return margins
