"""The results of `bench.paper.forest` beside the figures that Yao et al. print."""

from __future__ import annotations

from collections.abc import Iterable

from bench.paper.template import fill
from bench.tables import Column, Results, rounded, table

LINK_BYTES = 300_000  # a second, §5.1
TABLE_5 = {
    "SecureBoost": ("0.1", "10 s"),
    "unoptimised, node by node": ("1", "1 s"),
    "unoptimised, level by level": ("1", "1 s"),
    "streaming": ("8", "0.12 s"),
    "batching": ("3,000", "0.2 s"),
}
# rate → form → kB, seconds of transfer
TABLE_6 = {
    0.1: {"V0": (788.9, 5.136), "V1": (333.3, 2.170), "V2": (112.2, 0.732)},
    0.5: {"V0": (394.4, 25.680), "V1": (333.3, 2.170), "V2": (112.5, 3.662)},
    0.9: {"V0": (7888, 51.360), "V1": (333.3, 2.170), "V2": (2125, 13.834)},
}
A9A_AUC = {"secureboost": 0.89, "forest": 0.89, "centralised": 0.90}  # Table 4
MIN_SPEEDUP = 4.3  # SecureBoost's minutes over the forest's in Table 2: the least but a9a's
FORMS = {"V0": "V0, JSON", "V1": "V1, a bit a record", "V2": "V2, gaps"}
MODELS = {"SecureBoost": "secureboost", "forest": "forest"}


def text(results: Results) -> str:
    """The paper's section of the page."""
    timed = results["training"]
    sets = results["row_sets"]
    faster = [line["secureboost"]["linked_seconds"] / line["forest"]["linked_seconds"] for line in timed]
    served = {line["model"]: line for line in results["serving"]}
    rounds = {name: rounded(line["rounds"]) for name, line in served.items()}
    return fill(
        "forest",
        results=results,
        table_2=_table_2(timed),
        timed=timed[0],
        faster=_listed(map(rounded, faster)),
        why_slower=_why_slower(timed[0]) if min(faster) <= MIN_SPEEDUP else "",
        table_4=_table_4(results["auc"]),
        tested=_listed(f"{line['test']:,}" for line in results["auc"]),
        gaps=_listed(f"{line['forest'] - line['centralised']:+.3f}" for line in results["auc"]),
        a9a=_a9a(results["auc"]),
        table_5=_table_5(results["serving"]),
        batching=served["batching"],
        batch_kb=rounded(served["batching"]["bytes"] / 1000),
        node_rounds=rounds["unoptimised, node by node"],
        level_rounds=rounds["unoptimised, level by level"],
        boost_rounds=rounds["SecureBoost"],
        table_6=_table_6(sets),
        rows=sets[0]["records"],
        sent=", ".join(f"{line['sent'] / 1000:,.1f} kB at {line['rate']:.0%}" for line in sets),
        bits_kb=sets[0]["forms"]["V1"]["bytes"] / 1000,
    )


def _listed(parts: Iterable[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def _why_slower(line: Results) -> str:
    """Why the forest gains less than the paper's."""
    splits = rounded(line["forest"]["splits"] / line["secureboost"]["splits"])
    return fill("forest_slower", splits=splits, rows=line["records"])


def _table_2(lines: list[Results]) -> str:
    columns: dict[str, Column] = {"minutes": "{data}, {records:,} training rows"}
    for over, field, unit in (("", "seconds", 60), (", over the link", "linked_seconds", 60), (", MB", "bytes", 1e6)):
        for title, name in MODELS.items():
            columns[title + over] = _in_units(name, field, unit)
    return table(lines, columns)


def _in_units(name: str, field: str, unit: float) -> Column:
    return lambda line: rounded(line[name][field] / unit)


def _table_4(lines: list[Results]) -> str:
    names = MODELS | {"centralised": "centralised"}
    return table(lines, {"AUC": "{data}"} | {title: f"{{{name}:.3f}}" for title, name in names.items()})


def _a9a(lines: list[Results]) -> str:
    """How the AUC on a9a compares with the paper's; nothing if it was not measured."""
    line = next((line for line in lines if line["data"] == "a9a"), None)
    if line is None:
        return ""
    differences = (f"{line[name] - theirs:+.3f}" for name, theirs in A9A_AUC.items())
    return "On a9a we differ from the paper's SecureBoost by {}, its forest by {} and its centralised forest by {}.".format(
        *differences
    )


def _table_5(lines: list[Results]) -> str:
    columns: dict[str, Column] = {
        "": "{model}",
        "QPS": lambda line: rounded(line["per_second"]),
        "QPS at most": lambda line: rounded(line["at_most"]),
        "latency": lambda line: f"{rounded(line['latency'])} s",
        "rounds": lambda line: rounded(line["rounds"]),
        "KB a query": lambda line: rounded(line["bytes"] / 1000),
        "their QPS": lambda line: TABLE_5[line["model"]][0],
        "their latency": lambda line: TABLE_5[line["model"]][1],
    }
    return table(lines, columns)


def _table_6(sets: list[Results]) -> str:
    rows = [
        {**line["forms"][form], "rate": line["rate"], "form": name, "theirs": TABLE_6[line["rate"]][form]}
        for line in sets
        for form, name in FORMS.items()
    ]
    columns: dict[str, Column] = {
        "rate": "{rate:.0%}",
        "form": "{form}",
        "kB": lambda row: f"{row['bytes'] / 1000:,.1f}",
        "transfer": lambda row: f"{row['bytes'] / LINK_BYTES:.3f} s",
        "encoding": lambda row: f"{rounded(1000 * row['seconds'])} ms",
        "their kB": "{theirs[0]:,.1f}",
        "their transfer": "{theirs[1]:.3f} s",
    }
    return table(rows, columns)
