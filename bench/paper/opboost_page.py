"""What `bench.paper.opboost` found, beside what Li et al. conclude."""

from __future__ import annotations

from statistics import mean
from typing import Any

from bench.paper.chart import Chart
from bench.tables import markdown

Found = dict[str, Any]

TITLES = {"global": "Global-Map", "adj": "Adj-Map", "local": "Local-Map"}
ORDER = ["Local-Map", "Adj-Map", "Global-Map"]  # from the best
CLOSE = 0.005  # of the undisturbed AUC
NOT_RUN = {
    "OpBoost, the Salaries data and the LDP baselines": "neither the data nor a mechanism without order is part of the project.",
}


def tell(found: Found) -> list[str]:
    """Blocks of Markdown."""
    points = found["points"]
    if not points:
        return ["Not run: the credit-card data is absent."]
    p = found["parameters"]
    setting = (
        f"{p['trees']} trees of depth {p['depth']}, learning rate {p['learning_rate']}, {p['levels']} levels, "
        f"partitions of θ = {p['theta']} levels, α = {p['alpha']:g}, {p['mechanism']} mechanism, on "
        f"{found['rows']:,} records of the credit-card data, split between Guest and Host as in `docs/data.md`. The "
        f"noise of every point is drawn once. AUC of the released scores on {points[0]['n_test']:,} test records; "
        f"without noise it is {points[0]['undisturbed']:.4f}, with the Guest's columns alone "
        f"{points[0]['alone']:.4f}."
    )
    epsilons = sorted({point["epsilon"] for point in points})
    at = {(point["map"], point["epsilon"]): point for point in points}
    rows = [[f"{e:g}", *(f"{at[m, e]['auc']:.4f}" for m in TITLES)] for e in epsilons]
    return [
        setting,
        "### Accuracy against ε",
        "![AUC of the three maps over ε](images/paper-opboost.svg)",
        markdown(["ε", *TITLES.values()], rows),
        _conclusions(found),
    ]


def draw(found: Found) -> dict[str, str]:
    """The one chart, where there are points."""
    points = found["points"]
    if not points:
        return {}
    epsilons = sorted({point["epsilon"] for point in points})
    at = {(point["map"], point["epsilon"]): point["auc"] for point in points}
    return {
        "opboost": Chart(
            "OpBoost: AUC on test records of the credit-card data",
            "ε, privacy a step of distance",
            [f"{e:g}" for e in epsilons],
            {title: [at[m, e] for e in epsilons] for m, title in TITLES.items()},
            {"without noise": points[0]["undisturbed"], "Guest alone": points[0]["alone"]},
        ).svg()
    }


def _conclusions(found: Found) -> str:
    reached, means = [], {}
    for name, title in TITLES.items():
        line = [p for p in found["points"] if p["map"] == name]
        enough = [p["epsilon"] for p in line if p["auc"] >= p["undisturbed"] - CLOSE]
        reached.append(f"{title} from ε = {min(enough):g} on" if enough else f"{title} at none of these ε")
        means[title] = mean(p["auc"] for p in line)
    order = sorted(means, key=lambda title: -means[title])
    return (
        f"Within {CLOSE:g} of the AUC without noise: {', '.join(reached)}. In the mean over these ε, "
        f"{', '.join(f'{title} {means[title]:.4f}' for title in order)}. The paper's curves are drawn, not printed, "
        "and on other data, so only the order can be compared: it advises Adj-Map over Global-Map for accuracy, and "
        "Local-Map, which keeps the order between partitions at every ε, to those who need no protection across "
        "partitions"
        + ("; the same order." if order == ORDER else f"; ours is {', '.join(order)}, with single draws of noise.")
    )
