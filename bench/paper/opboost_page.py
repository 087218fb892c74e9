"""The results of `bench.opboost` beside the conclusions of Li et al."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from bench.charts import Chart
from bench.paper.template import fill
from bench.tables import Results, table

TITLES = {"global": "Global-Map", "adj": "Adj-Map", "local": "Local-Map"}
ORDER = ["Local-Map", "Adj-Map", "Global-Map"]  # from the best
CLOSE = 0.005  # of the AUC without noise
ALL_YES_OR_NO = ("a9a",)  # data whose columns have two values, on which the maps are one


def text(results: Results) -> str:
    """The paper's section of the page."""
    points = results.get("points")
    if not points:
        return "Not run: the credit-card data is absent."
    reached = []
    means = {}
    for name, title in TITLES.items():
        line = [p for p in points if p["map"] == name]
        enough = [p["epsilon"] for p in line if p["auc"] >= p["undisturbed"] - CLOSE]
        reached.append(f"{title} from ε = {min(enough):g} on" if enough else f"{title} at none of these ε")
        means[title] = mean(p["auc"] for p in line)
    order = _ordered(means)
    columns = {"ε": "{epsilon:g}", "ε·W": "{bound:.3g}"} | {title: f"{{{name}:.4f}}" for name, title in TITLES.items()}
    columns["Global-Map, seen from the ranks"] = "{on_ranks:.4f}"
    return fill(
        "opboost",
        results=results,
        p=results["parameters"],
        first=points[0],
        aucs=table(_by_epsilon(points), columns),
        close=CLOSE,
        reached=", ".join(reached),
        means=", ".join(f"{title} {means[title]:.4f}" for title in order),
        order="; the same order." if order == ORDER else f"; ours is {', '.join(order)}, with single draws of noise.",
        others=_others(results.get("others", ())),
    )


def _others(lines: Sequence[Results]) -> str:
    """The means of the maps on other tables; nothing if they were not measured."""
    if not lines:
        return ""
    columns = {
        "data": "{data}",
        "records": "{rows:,}",
        "without noise": "{undisturbed:.4f}",
        "Guest alone": "{alone:.4f}",
    }
    maps = {title: f"{{{name}:.4f}}" for name, title in TITLES.items()}
    sentences = []
    for line in lines:
        means = {title: line[name] for name, title in TITLES.items()}
        if line["data"] in ALL_YES_OR_NO:
            spread = max(means.values()) - min(means.values())
            sentences.append(
                f"On {line['data']} there is no order: all of its columns are yes or no, so the noise is the same under every map; the "
                f"three means are {spread:.4f} apart, by single draws of noise."
            )
        else:
            sentences.append(f"From the best on {line['data']}: {', '.join(_ordered(means))}.")
    return fill("opboost_others", others=table(list(lines), columns | maps), order=" ".join(sentences))


def _ordered(means: Mapping[str, float]) -> list[str]:
    """The maps, the best first."""
    return sorted(means, key=lambda title: -means[title])


def charts(results: Results) -> dict[str, Chart]:
    """The one chart, if there are points."""
    points = results.get("points")
    if not points:
        return {}
    rows = _by_epsilon(points)
    return {
        "opboost": Chart(
            "OpBoost: AUC on test records of the credit-card data",
            "ε, privacy a step of distance",
            [f"{row['epsilon']:g}" for row in rows],
            {title: [row[name] for row in rows] for name, title in TITLES.items()},
            {"without noise": points[0]["undisturbed"], "Guest alone": points[0]["alone"]},
        )
    }


def _by_epsilon(points: list[Results]) -> list[Results]:
    """A row an ε: the AUC of every map; of Global-Map also the bound over the whole width and what the Guest sees by itself."""
    rows: dict[float, Results] = {}
    for point in points:
        row = rows.setdefault(point["epsilon"], {"epsilon": point["epsilon"]})
        row[point["map"]] = point["auc"]
        if point["map"] == "global":
            row |= {"bound": point["feature_bound"], "on_ranks": point["auc_on_ranks"]}
    return [rows[epsilon] for epsilon in sorted(rows)]
