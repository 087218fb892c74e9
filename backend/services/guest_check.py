"""Checks that a Guest would work: its home, its table, its agreement, its port; problems as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backend.data.federation import load_federation
from backend.errors import GlassleafError
from backend.link.agreement import load_agreement
from backend.link.causes import cause_of
from backend.link.check import CheckedStep, check_link
from backend.link.config import LinkOptions
from backend.link.peers import LinkSettings
from backend.remark import Remark
from backend.services.linked import check_parties

if TYPE_CHECKING:
    from backend.services.operation import Operation


def check_guest(operation: Operation, folder: Path) -> Iterator[CheckedStep]:
    """Every step of the federation in a folder, each as soon as it is known; nothing is asked of a Host."""
    yield from _home(operation)
    try:
        federation = load_federation(folder)
    except GlassleafError as error:
        yield CheckedStep("table", False, cause_of(error))
        return
    yield CheckedStep("table", True, Remark("check_federation", {"federation": federation.name}))
    link = federation.link
    if link is None:
        return
    agreement = federation.folder / link.agreement
    if agreement.exists():
        try:
            check_parties(federation, load_agreement(agreement))
            yield CheckedStep("features", True, Remark("check_features"))
        except GlassleafError as error:
            yield CheckedStep("features", False, cause_of(error))
    settings = LinkSettings(LinkOptions(bind=link.bind))
    yield from check_link(federation.guest.name, agreement, federation.folder / link.keys, settings)


def _home(operation: Operation) -> Iterator[CheckedStep]:
    problems = operation.not_ready()
    for problem in problems:
        if problem.code != "federations_unusable":
            yield CheckedStep("home", False, problem)
    for why in operation.broken():
        yield CheckedStep("federations", False, why)
    if not problems:
        yield CheckedStep("home", True, Remark("check_home", {"folder": str(operation.home)}))
