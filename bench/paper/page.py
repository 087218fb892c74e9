"""docs/paper.md and its charts, from what the parts found. A part that was not run is named, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.paper import (
    fed_eini,
    fed_eini_page,
    fl_dt,
    fl_dt_page,
    forest,
    forest_ciphers,
    forest_ciphers_page,
    forest_page,
    opboost,
    opboost_page,
)
from bench.paper.data import Table

Found = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One paper.

    Attributes
    ----------
    title : str
    measure : callable
        Tables by name, and whether quickly → what was found, ready for JSON.
    tell : callable
        What was found → blocks of Markdown.
    draw : callable
        What was found → charts by name, as SVG.
    not_run : dict of str to str
        What the paper has and this page has not → why.
    """

    title: str
    measure: Callable[[Mapping[str, Table], bool], Found]
    tell: Callable[[Found], list[str]]
    draw: Callable[[Found], dict[str, str]]
    not_run: Mapping[str, str]


PARTS = {
    "fed-eini": Part(
        "Fed-EINI (Chen et al.)", fed_eini.measure, fed_eini_page.tell, fed_eini_page.draw, fed_eini_page.NOT_RUN
    ),
    "forest": Part(
        "Federated random forest (Yao et al.)", forest.measure, forest_page.tell, forest_page.draw, forest_page.NOT_RUN
    ),
    "riac": Part(
        "RIAC, the forest paper's cipher (broken)",
        forest_ciphers.measure,
        forest_ciphers_page.tell,
        forest_ciphers_page.draw,
        forest_ciphers_page.NOT_RUN,
    ),
    "fl-dt": Part("FL-DT (Guo et al.)", fl_dt.measure, fl_dt_page.tell, fl_dt_page.draw, fl_dt_page.NOT_RUN),
    "opboost": Part("OpBoost (Li et al.)", opboost.measure, opboost_page.tell, opboost_page.draw, opboost_page.NOT_RUN),
}
INTRODUCTION = """# The papers' tables, ours beside theirs

Written by `make paper` (`python -m bench.paper`) from bench/results/paper-\\*.json: what four papers print, measured again with this
project on the data that can be had. Models are trained through the service, as a user's are, and scored by the parties it runs. Our
figures are those of one small machine and one run; theirs are copied from the papers. Where they differ, a sentence says why; "likely"
marks a reason that was not measured."""
QUICK = (
    "This is a quick run on small samples, to see that everything works. Its figures mean nothing beside the papers'."
)


def write(results: Mapping[str, Found], folder: Path) -> Path:
    """Write ``paper.md`` and ``images/paper-*.svg`` into `folder`; returns the page's path."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, found in results.items():
        for chart, svg in PARTS[name].draw(found).items():
            (images / f"paper-{chart}.svg").write_text(svg, encoding="utf-8")
    page = folder / "paper.md"
    page.write_text(text(results), encoding="utf-8")
    return page


def text(results: Mapping[str, Found]) -> str:
    """The page."""
    blocks = [INTRODUCTION]
    if any(found["quick"] for found in results.values()):
        blocks.append(QUICK)
    for name, part in PARTS.items():
        blocks.append(f"## {part.title}")
        found = results.get(name)
        blocks += ["Not run yet."] if found is None else [*part.tell(found), _measured(found)]
    left_out = [f"- {what}: {why}" for part in PARTS.values() for what, why in part.not_run.items()]
    blocks += ["## Not run", "\n".join(left_out)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _measured(found: Found) -> str:
    machine = found["machine"]
    return (
        f"Measured in {found['seconds'] / 60:.0f} minutes on {machine['cores']} cores ({machine['cpu']}), Python "
        f"{machine['python']}, {machine['date']}; load before: {machine['load_before']}."
    )
