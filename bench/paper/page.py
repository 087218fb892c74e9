"""docs/paper.md and its charts, from the results of the parts. A part that was not run is named, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.charts import Chart
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
from bench.tables import Results


@dataclass(frozen=True)
class Part:
    """One paper.

    Attributes
    ----------
    title : str
    measure : callable
        Tables by name, and whether it is a quick run → results, ready for JSON.
    blocks : callable
        Results → blocks of Markdown.
    charts : callable
        Results → charts by name.
    not_run : dict of str to str
        What the paper has and this page has not → why.
    """

    title: str
    measure: Callable[[Mapping[str, Table], bool], Results]
    blocks: Callable[[Results], list[str]]
    charts: Callable[[Results], dict[str, Chart]] = lambda results: {}
    not_run: Mapping[str, str] = field(default_factory=dict)


PARTS = {
    "fed-eini": Part(
        "Fed-EINI (Chen et al.)", fed_eini.measure, fed_eini_page.blocks, fed_eini_page.charts, fed_eini_page.NOT_RUN
    ),
    "forest": Part(
        "Federated random forest (Yao et al.)", forest.measure, forest_page.blocks, not_run=forest_page.NOT_RUN
    ),
    "riac": Part("RIAC, the forest paper's cipher (broken)", forest_ciphers.measure, forest_ciphers_page.blocks),
    "fl-dt": Part("FL-DT (Guo et al.)", fl_dt.measure, fl_dt_page.blocks, fl_dt_page.charts, fl_dt_page.NOT_RUN),
    "opboost": Part(
        "OpBoost (Li et al.)", opboost.measure, opboost_page.blocks, opboost_page.charts, opboost_page.NOT_RUN
    ),
}
INTRODUCTION = """# The papers' tables, ours beside theirs

Written by `make paper` (`python -m bench.paper`) from bench/results/paper-\\*.json: what four papers print, measured again with this
project on the data that can be had. Models are trained through the service, as a user's are, and scored by the parties it runs. Our
figures are those of one small machine and one run; theirs are copied from the papers. Where they differ, a sentence says why; "likely"
marks a reason that was not measured."""
QUICK = (
    "This is a quick run on small samples, to see that everything works. Its figures mean nothing beside the papers'."
)


def write(results: Mapping[str, Results], folder: Path) -> Path:
    """Write ``paper.md`` and ``images/paper-*.svg`` into `folder`; returns the page's path."""
    page = folder / "paper.md"
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for file, content in {page: text(results), **images(results, folder)}.items():
        file.write_text(content, encoding="utf-8")
    return page


def images(results: Mapping[str, Results], folder: Path) -> dict[Path, str]:
    """Every chart of the page, as SVG."""
    charts = {name: chart for part, own in results.items() for name, chart in PARTS[part].charts(own).items()}
    return {folder / "images" / f"paper-{name}.svg": chart.svg() for name, chart in charts.items()}


def text(results: Mapping[str, Results]) -> str:
    """The page."""
    blocks = [INTRODUCTION]
    if any(own["quick"] for own in results.values()):
        blocks.append(QUICK)
    for name, part in PARTS.items():
        blocks.append(f"## {part.title}")
        own = results.get(name)
        blocks += ["Not run yet."] if own is None else [*part.blocks(own), _measured(own)]
    left_out = [f"- {what}: {why}" for part in PARTS.values() for what, why in part.not_run.items()]
    blocks += ["## Not run", "\n".join(left_out)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _measured(results: Results) -> str:
    machine = results["machine"]
    return (
        f"Measured in {results['seconds'] / 60:.0f} minutes on {machine['cores']} cores ({machine['cpu']}), Python "
        f"{machine['python']}, {machine['date']}; load before: {machine['load_before']}."
    )
