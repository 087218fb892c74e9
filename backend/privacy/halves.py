"""The halves that an auditor has: the Guest's here, a Host's in :mod:`backend.protocols.host_half`; and what may differ between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.keys import PaillierPublicKey
from backend.errors import GlassleafError, SecurityError
from backend.privacy.request_audit import check_opened
from backend.protocols.explanations.statement import CohortStatement, NamesStatement, load_cohort, load_names
from backend.protocols.group_sums.statement import GroupStatement, load_groups
from backend.protocols.scoring.opening import Opening
from backend.protocols.scoring.statement import ScoreStatement, load_statement
from backend.remark import Remark
from backend.trees.ensemble import Columns, HostModel

Place = tuple[str, int]  # request, and position in it
Opened = Mapping[tuple[str, int], Opening]  # (Host, number in its log) → what came to it


@dataclass(frozen=True, repr=False)
class GuestHalf:
    """The Guest's half.

    Attributes
    ----------
    models : dict of str to str
        Model → the Guest's partial model.
    statements : dict of str to ScoreStatement
        Request → how its scores came about.
    canaries : dict of (str, int) to tuple of int
        Place → each tree's number, if there was one.
    opened : dict of (str, int) to Opening
        (Host, number in its log) → what came to it, opened.
    names : dict of str to NamesStatement
        Request → how its reasons came about.
    cohorts : dict of str to CohortStatement
        Request → how its sums of contributions came about.
    registered : dict of str to dict of str to str
        Model → Host → SHA-256 of its partial model, as the Host told it when the model was trained.
    groups : dict of str to GroupStatement
        Name (:func:`backend.protocols.group_sums.statement.name_of_sums`) → how these sums came about.
    """

    guest: str
    models: Mapping[str, str]
    statements: Mapping[str, ScoreStatement] = field(default_factory=dict)
    canaries: Mapping[Place, tuple[int, ...]] = field(default_factory=dict)
    opened: Opened = field(default_factory=dict)
    names: Mapping[str, NamesStatement] = field(default_factory=dict)
    cohorts: Mapping[str, CohortStatement] = field(default_factory=dict)
    groups: Mapping[str, GroupStatement] = field(default_factory=dict)
    registered: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def dump(self) -> str:
        """Return the half as JSON."""
        opened = []
        for (host, number), opening in self.opened.items():
            opened.append([host, number, [str(m) for m in opening.numbers], [str(r) for r in opening.roots]])
        body = {
            "guest": self.guest,
            "models": dict(self.models),
            "statements": _dumped(self.statements),
            "canaries": [[request, place, list(numbers)] for (request, place), numbers in self.canaries.items()],
            "opened": opened,
            "names": _dumped(self.names),
            "cohorts": _dumped(self.cohorts),
            "groups": _dumped(self.groups),
            "registered": {model: dict(hashes) for model, hashes in self.registered.items()},
        }
        return json.dumps(body)


def _dumped(statements: Mapping[str, Any]) -> dict[str, str]:
    return {name: statement.dump() for name, statement in statements.items()}


def load_guest_half(text: str) -> GuestHalf:
    """Read a half that was dumped; raises SecurityError if `text` is not one."""
    try:
        body = json.loads(text)
        canaries = {
            (str(request), int(place)): tuple(map(int, numbers)) for request, place, numbers in body["canaries"]
        }
        opened = {}
        for host, number, numbers, roots in body["opened"]:
            opened[str(host), int(number)] = Opening(tuple(map(int, numbers)), tuple(map(int, roots)))
        models = {str(name): str(model) for name, model in body["models"].items()}
        registered = {}
        for name, hashes in body["registered"].items():
            registered[str(name)] = {str(host): str(sha) for host, sha in hashes.items()}
        return GuestHalf(
            str(body["guest"]),
            models,
            {str(name): load_statement(text_of_part) for name, text_of_part in body["statements"].items()},
            canaries,
            opened,
            {str(name): load_names(text_of_part) for name, text_of_part in body["names"].items()},
            {str(name): load_cohort(text_of_part) for name, text_of_part in body["cohorts"].items()},
            {str(name): load_groups(text_of_part) for name, text_of_part in body["groups"].items()},
            registered,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SecurityError("half_unreadable") from error


@dataclass(frozen=True)
class Difference:
    """A figure that differs from what the halves give.

    Attributes
    ----------
    model_id : str
        Empty of sums by group, which are asked without a model.
    kind : str
        ``score``, ``reasons``, ``cohort`` or ``groups``; ``model`` if a Host hands over another partial model than it registered.
    person : str
        Empty of sums.
    parties : tuple of str
        Whose it is: one party, or those of which one is at fault.
    by : tuple of float
        By how much: the margin of each output is too high; a contribution that was not named is larger than one that was; a sum is too
        high. Empty if it is no number that differs.
    """

    model_id: str
    kind: str
    request: str
    place: int
    person: str
    parties: tuple[str, ...]
    why: Remark
    by: tuple[float, ...] = ()


def column_of(values: Sequence[Any], *, is_number: bool) -> NDArray[Any]:
    """Return a column of a half as a table has it."""
    if not is_number:
        return np.array(values, dtype=object)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def columns_of(model: HostModel, values: Mapping[str, Sequence[Any]]) -> Columns:
    """Return the columns that a Host's rules read."""
    is_number = {rule.feature: rule.threshold is not None for rule in model.rules.values()}
    return {name: column_of(values[name], is_number=numeric) for name, numeric in is_number.items()}


def opened_as(public_key: bytes, vector: bytes, opening: Opening, expected: Sequence[int], floor: int) -> bool:
    """Return whether logged ciphertexts open to these numbers; `floor` is the shortest key, bits."""
    try:
        key = PaillierPublicKey.from_bytes(public_key, floor)
        check_opened(key, vector, opening)
    except GlassleafError:
        return False
    n = int(key.n)
    return [number % n for number in opening.numbers] == [number % n for number in expected]
