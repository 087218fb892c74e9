"""docs/paper.md and its charts, from the results of the parts. A part that was not run is named, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
    opboost_order,
    opboost_page,
)
from bench.paper.data import Table
from bench.paper.template import fill
from bench.tables import Results


@dataclass(frozen=True)
class Part:
    """One paper.

    Attributes
    ----------
    measure : callable
        Tables by name, and whether it is a quick run → results, ready for JSON.
    text : callable
        Results → Markdown.
    charts : callable
        Results → charts by name.
    """

    title: str
    measure: Callable[[Mapping[str, Table], bool], Results]
    text: Callable[[Results], str]
    charts: Callable[[Results], dict[str, Chart]] = lambda results: {}


PARTS = {
    "fed-eini": Part("Fed-EINI (Chen et al.)", fed_eini.measure, fed_eini_page.text, fed_eini_page.charts),
    "fed-eini-many": Part("Fed-EINI on many instances", fed_eini.measure_many, fed_eini_page.many_text),
    "forest": Part("Federated random forest (Yao et al.)", forest.measure, forest_page.text),
    "riac": Part("RIAC, the forest paper's cipher (broken)", forest_ciphers.measure, forest_ciphers_page.text),
    "fl-dt": Part("FL-DT (Guo et al.)", fl_dt.measure, fl_dt_page.text),
    "opboost": Part("OpBoost (Li et al.)", opboost_order.measure, opboost_page.text, opboost_page.charts),
}
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


def stale(results: Mapping[str, Results], folder: Path) -> list[str]:
    """Names of the page and charts in `folder` that differ from what the results give."""
    fresh = {folder / "paper.md": text(results), **images(results, folder)}
    return [
        file.name for file, content in fresh.items() if not file.exists() or file.read_text(encoding="utf-8") != content
    ]


def text(results: Mapping[str, Results]) -> str:
    """The page."""
    quick = QUICK if any(own["quick"] for own in results.values()) else ""
    parts = "\n\n".join(f"## {part.title}\n\n{_section(part, results.get(name))}" for name, part in PARTS.items())
    return fill("page", quick=quick, parts=parts) + "\n"


def _section(part: Part, results: Results | None) -> str:
    if results is None:
        return "Not run yet."
    machine = results["machine"]
    later = f" {results['later']}" if "later" in results else ""
    return (
        f"{part.text(results)}\n\nMeasured in {_minutes(results['seconds'])} on {machine['cores']} cores ({machine['cpu']}), "
        f"Python {machine['python']}, {machine['date']}; load before: {machine['load_before']}.{later}"
    )


def _minutes(seconds: float) -> str:
    count = round(seconds / 60)
    return "1 minute" if count == 1 else f"{count} minutes"
