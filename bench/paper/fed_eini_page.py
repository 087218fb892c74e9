"""The results of `bench.paper.fed_eini` beside the figures that Chen et al. print."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.charts import Chart
from bench.paper.fed_eini import BASELINE, LEVELS, OURS, PAPERS, RLWE, WALKS
from bench.paper.template import fill
from bench.tables import Column, Results, rounded, table

TABLE_IV = {0.2: (0.880, 60.3), 0.8: (0.853, 55.0), 1.0: (0.855, 54.9)}  # Credit 1; MI and Fed-EINI alike
CREDIT_2 = {0.2: (0.773, 43.0), 0.8: (0.771, 41.0), 1.0: (0.771, 40.9)}
# §V-D: on the credit sets, and in the worst case (JDT)
RATIO = 0.27
WORST = 0.634
LINKS = ("LAN", "WAN")
# of the chart: engine, link
LINES = {
    f"{engine}, {link}": (engine, link)
    for engine, link in ((RLWE, "LAN"), (RLWE, "WAN"), (PAPERS, "WAN"), (OURS, "WAN"))
}


def text(results: Results) -> str:
    """The paper's section of the page."""
    lines = results["sampled"]
    trees = results["tree_counts"]
    largest = lines[-1]["runs"]
    levels = largest[LEVELS]
    ours = largest[RLWE]
    slower = ours["seconds"]["WAN"] > levels["seconds"]["WAN"]
    return fill(
        "fed_eini",
        results=results,
        table_iv=_table_iv(lines),
        equality="Every score is the same number under MI and Fed-EINI, to the last unit, as in the paper."
        if all(line["equal"] for line in lines)
        else "SCORES OF MI AND FED-EINI DIFFER, which they must not.",
        higher=_which_data(lines, results.get("other_data")),
        figure_7=_figure_7(lines),
        round_cost=_round_cost(lines[-1], results["machine"]["cores"]),
        levels=levels,
        levels_wan=rounded(levels["seconds"]["WAN"]),
        ours_wan=rounded(ours["seconds"]["WAN"]),
        hides=". Fed-EINI hides the paths, at the price of time." if slower else ".",
        by_instances=_times(results["instances"], "records", "scored"),
        by_features=_times(results["features"], "Host features", "features"),
        by_trees=_times(trees, "trees", "trees"),
        growth=_growth(results["features"], trees),
    )


def many_text(results: Results) -> str:
    """Figures 7 and 8 a on many instances, and how time grows with them."""
    parts = []
    for measured in results["sets"]:
        points = measured["points"]
        columns: dict[str, Column] = {"records; seconds over LAN / WAN": "{scored:,}"}
        columns |= {name: _both_links(name) for name in (*WALKS, RLWE)}
        columns["ratio"] = lambda point: " / ".join(_percent(_ratio(point, RLWE, link)) for link in LINKS)
        exponents = {name: exponent(points, name) for name in (*WALKS, RLWE)}
        parts.append(
            fill(
                "fed_eini_many_data",
                measured=measured,
                repeated=", repeated under new ids" if points[-1]["scored"] > measured["records"] else "",
                table=table(points, columns),
                exponents=", ".join(f"{name} {value:.2f}" for name, value in exponents.items()),
                equal="Every score is the same number in all of them."
                if all(point["equal"] for point in points)
                else "SCORES OF MI AND FED-EINI DIFFER, which they must not.",
            )
        )
    return fill("fed_eini_many", results=results, parts="\n\n".join(parts))


def exponent(points: Sequence[Results], name: str) -> float:
    """The slope of a line through the logarithms of instances and of seconds over the LAN."""
    scored = [point["scored"] for point in points]
    seconds = [point["runs"][name]["seconds"]["LAN"] for point in points]
    return float(np.polyfit(np.log(scored), np.log(seconds), 1)[0])


def charts(results: Results) -> dict[str, Chart]:
    """Charts by name."""
    points = results["instances"]
    lines = {name: [_ratio(p, engine, link) for p in points] for name, (engine, link) in LINES.items()}
    return {
        "fed-eini-ratio": Chart(
            "Time of Fed-EINI over time of MI, tree by tree (1 = as long)",
            "records scored together · dashed: the paper's ratio on the credit data, and its worst",
            [f"{p['scored']:,}" for p in points],
            lines,
            {"the paper: 27 %": RATIO, "the paper: 63.4 %": WORST},
            logarithmic=True,
        )
    }


def _table_iv(lines: Sequence[Results]) -> str:
    columns: dict[str, Column] = {"Credit 1": "{rate:.0%}", "test records": "{instances:,}"}
    for title, protocol in {"MI": BASELINE, "Fed-EINI": RLWE}.items():
        columns[f"{title}: AUC"] = f"{{quality[{protocol}][auc]:.3f}}"
        columns[f"{title}: KS"] = _ks(protocol)
    columns["theirs, both: AUC"] = lambda line: f"{TABLE_IV[line['rate']][0]:.3f}"
    columns["theirs: KS"] = lambda line: f"{TABLE_IV[line['rate']][1]:.1f}"
    return table(lines, columns)


def _ks(protocol: str) -> Column:
    return lambda line: f"{100 * line['quality'][protocol]['ks']:.1f}"


def _which_data(lines: Sequence[Results], other: Results | None) -> str:
    """Which data the paper's two rows fit, if the other table was measured, too."""
    if not other:
        return ""
    rows = []
    for line, another in zip(lines, other["lines"], strict=True):
        ours = {"auc": line["quality"][RLWE]["auc"], "ks": line["quality"][RLWE]["ks"]}
        rows.append({"rate": line["rate"], "cards": ours, "other": another})
    columns: dict[str, Column] = {
        "sample": "{rate:.0%}",
        f"{other['data']}: AUC": "{other[auc]:.3f}",
        "KS": lambda row: f"{100 * row['other']['ks']:.1f}",
        "the paper's Credit 1: AUC": lambda row: f"{TABLE_IV[row['rate']][0]:.3f}",
        "its KS": lambda row: f"{TABLE_IV[row['rate']][1]:.1f}",
        "credit cards: AUC": "{cards[auc]:.3f}",
        "KS, cards": lambda row: f"{100 * row['cards']['ks']:.1f}",
        "the paper's Credit 2: AUC": lambda row: f"{CREDIT_2[row['rate']][0]:.3f}",
        "KS of Credit 2": lambda row: f"{CREDIT_2[row['rate']][1]:.1f}",
    }
    last = rows[-1]
    return fill(
        "fed_eini_which_data",
        table=table(rows, columns),
        crossed=_apart(last["other"], TABLE_IV) + _apart(last["cards"], CREDIT_2),
        straight=_apart(last["cards"], TABLE_IV) + _apart(last["other"], CREDIT_2),
    )


def _apart(ours: Results, theirs: dict[float, tuple[float, float]]) -> float:
    return abs(float(ours["auc"]) - theirs[1.0][0])


def _figure_7(lines: Sequence[Results]) -> str:
    columns: dict[str, Column] = {
        "records": "{instances:,} ({rate:.0%})",
        **{name: _seconds(name, "LAN") for name in WALKS},
        "Fed-EINI, RLWE": _seconds(RLWE, "LAN"),
        "ratio": _ratio_column("LAN"),
        "ratio, WAN": _ratio_column("WAN"),
        "theirs": lambda line: "27 %",
    }
    return table(lines, columns)


def _round_cost(line: Results, cores: int) -> str:
    """What a round would have to cost for the paper's ratio; nothing if it is reached."""
    delay = round_delay(line, RLWE, RATIO)
    if delay is None:
        return ""
    rounds = line["runs"][BASELINE]["rounds"]
    return " " + fill("fed_eini_rounds", records=line["instances"], rounds=rounds, delay=delay, cores=cores)


def _times(points: Sequence[Results], title: str, size: str) -> str:
    names = [n for n in (*WALKS, PAPERS, OURS, RLWE) if any(n in p["runs"] for p in points)]
    columns = {name: _both_links(name) for name in names}
    return table(points, {f"{title}; seconds over LAN / WAN": f"{{{size}:,}}", **columns})


def _growth(features: Sequence[Results], trees: Sequence[Results]) -> str:
    """How the time grows with the paper's key."""
    ratios = [_ratio(p, PAPERS, "WAN") for p in trees]
    at_host = "features at the Host (in the paper they cost little)"
    parts = [
        f"At {features[0]['scored']} records.",
        _times_as_long(features, "features", at_host),
        _times_as_long(trees, "trees", "trees"),
    ]
    if None not in ratios:
        least_gain_at_fewest = ratios[0] == max(r for r in ratios if r is not None)
        parts.append(
            f"With the paper's key over the WAN Fed-EINI takes {', '.join(map(_percent, ratios))} of MI's time at "
            f"{', '.join(str(p['trees']) for p in trees)} trees. The paper finds the least gain at the fewest trees; "
            + (
                "so do we."
                if least_gain_at_fewest
                else "here MI's rounds grow with the trees as Fed-EINI's ciphertexts do."
            )
        )
    return " ".join(filter(None, parts))


def _times_as_long(points: Sequence[Results], size: str, what: str) -> str:
    """How many times the time, with the paper's key, at how many times the size."""
    first = points[0]
    last = points[-1]
    if first is last or PAPERS not in last["runs"]:
        return ""
    times = last["runs"][PAPERS]["seconds"]["WAN"] / first["runs"][PAPERS]["seconds"]["WAN"]
    return f"{last[size] / first[size]:.2g} times the {what} take {PAPERS} {times:.2g} times as long."


def round_delay(point: Results, engine: str, ratio: float) -> float | None:
    """Seconds that a round would have to cost on top for Fed-EINI to take `ratio` of MI's time; None if it does anyway."""
    ours = point["runs"][engine]
    walk = point["runs"][BASELINE]
    missing = ours["seconds"]["LAN"] - ratio * walk["seconds"]["LAN"]
    gained = ratio * walk["rounds"] - ours["rounds"]
    return missing / gained if missing > 0 and gained > 0 else None


def _ratio(point: Results, engine: str, link: str) -> float | None:
    run = point["runs"].get(engine)
    return None if run is None else float(run["seconds"][link] / point["runs"][BASELINE]["seconds"][link])


def _ratio_column(link: str) -> Column:
    return lambda point: _percent(_ratio(point, RLWE, link))


def _seconds(name: str, link: str) -> Column:
    return lambda point: f"{rounded(point['runs'][name]['seconds'][link])} s" if name in point["runs"] else "–"


def _both_links(name: str) -> Column:
    """Seconds over both links; a dash if the protocol was not timed on as many."""
    return lambda point: (
        " / ".join(rounded(point["runs"][name]["seconds"][link]) for link in LINKS) if name in point["runs"] else "–"
    )


def _percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{rounded(100 * ratio)} %"
