"""Tables of what `bench.cipher` and `bench.curves` found, in Markdown. Standard library alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Found = dict[str, Any]


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cipher(found: Found) -> str:
    """Every cipher beside its peers: those whose key has a size at every size, the others once."""
    largest, facts = found["keys"][-1], found["sample"]
    rows = [
        _cipher_row(found, row)
        for last in largest["rows"]
        for key in found["keys"]
        for row in key["rows"]
        if row["engine"] == last["engine"] and (key is largest or row["key"] != last["key"])
    ]
    header = ["", "key", "encrypt: cold", "warm", "one sample: cold", "warm", "bulk, one core", "KB a sample"]
    note = (
        f"One model, {facts['model']}: {facts['leaves']:,} leaves, which ours fold into {facts['entries']:,} numbers; peers encrypt a "
        f"number a leaf. Encryption: times as fast as `phe` with a key of the same size ({largest['bits']:,} bits where the cipher has no "
        "such key), in turns. Cold: nothing is made in advance, tables are in memory. Warm: pools are full. Everything on one core, the "
        f"work of Guest and Host added up, medians of {found['repeats']}. Bulk: at the best batch size; in brackets KB of a sample there. "
        "A peer's sample is put together from its encryption, masked sum and decryption."
    )
    return "\n\n".join([markdown(header, rows), note, *_two_cores(found)])


def _cipher_row(found: Found, row: Found) -> list[str]:
    sample, encrypt = row["sample"], row["encrypt"] if row["engine"] != "none" else {}
    batches = [b for b in found["bulk"] if (b["engine"], b["key"]) == (row["engine"], row["key"])]
    rate = max((b["per_second"] for b in batches), default=1 / sample["cold"]["seconds"])
    alone = (sample["bytes_up"] + sample["bytes_back"]) / 1000
    least = min((b["bytes_a_sample"] / 1000 for b in batches), default=alone)
    return [
        row["label"],
        row["key"],
        *(f"{encrypt[how]['ratio']:,.0f}×" if how in encrypt else "" for how in ("cold", "warm")),
        *(milliseconds(sample[how]["seconds"]) if how in sample else "" for how in ("cold", "warm")),
        f"{rounded(rate)} scores/s",
        f"{alone:,.0f}" + (f" ({least:,.0f})" if least < 0.9 * alone else ""),
    ]


def _two_cores(found: Found) -> list[str]:
    best = {row["how"]: row for row in sorted(found.get("two_cores", []), key=lambda row: row["per_second"])}
    rates = [f"{row['per_second']:,.0f} scores a second ({how})" for how, row in best.items()]
    return [f"RLWE on two cores: {', '.join(rates)}."] if rates else []


def growth(found: Found) -> str:
    """Cost as leaves, Hosts and cores grow."""
    by_cores = [
        [p["engine"], f"{p['samples']:,}", str(p["cores"]), f"{rounded(p['per_second'])} scores/s"]
        for p in found["cores"]
    ]
    note = (
        f"Seconds and bytes of one sample, all parties on one core, Paillier cold, medians of {found['repeats']} (once where one takes "
        "over 20 s); by cores: through the service's own parties with a worker a core."
    )
    cores = markdown(["engine", "samples", "cores", "throughput"], by_cores)
    return "\n\n".join([_grown(found["leaves"], "leaves"), _grown(found["hosts"], "hosts"), cores, note])


def _grown(points: list[Found], by: str) -> str:
    measured = {(p[by], p["engine"], p["samples"]): p for p in points if "left_out" not in p}
    kinds = list(dict.fromkeys((engine, n) for _, engine, n in measured))

    def cell(value: int, kind: tuple[str, int]) -> str:
        point = measured.get((value, *kind))
        if point is None:
            return "left out"
        return f"{milliseconds(point['seconds_a_sample'])}, {rounded(point['bytes_a_sample'] / 1000)} KB"

    numbers = {p[by]: p["entries"] for p in points}
    rows = [[f"{value:,}", f"{n:,}", *(cell(value, kind) for kind in kinds)] for value, n in numbers.items()]
    return markdown([by, "numbers", *(f"{engine}, {n:,} at once" for engine, n in kinds)], rows)


def where(found: Found) -> str:
    """Where the time goes, stage by stage, beside its floor."""
    rows = []
    for work in found["where"]:
        name = f"{work['engine']}, {work['how']}, {work['samples']:,} at once"
        for stage in work["stages"]:
            floor = "" if stage["floor_seconds"] is None else milliseconds(stage["floor_seconds"])
            rows.append([name, stage["party"], stage["stage"], milliseconds(stage["seconds"]), floor, stage["floor"]])
            name = ""
        for wire in work["wires"]:
            times = [milliseconds(wire["seconds"]), milliseconds(wire["floor_seconds"])]
            rows.append(["", "wire", wire["wire"], *times, f"{work['bytes']:,} bytes over bandwidth"])
    return markdown(["", "party", "stage", "time", "floor", "what the floor counts"], rows)


def milliseconds(seconds: float) -> str:
    """Two figures at least."""
    return f"{rounded(1000 * seconds)} ms"


def rounded(number: float) -> str:
    """Two figures at least."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def pages(found: Found) -> str:
    """Every page of the dashboard on a large model."""
    rows = [
        [r["page"], *(f"{r[name]:.2f} s" for name in ("title_seconds", "seconds", "worst_seconds"))]
        for r in found["rows"]
    ]
    note = (
        f"{found['features']} features of three parties, {found['trees']} trees, {found['leaves']:,} leaves, {found['findings']} findings, "
        f"all made up. From the click in the sidebar to the title and to the last change of the page, in Chromium at 1440 × 900, "
        f"warm; median and worst of {found['rounds']} walks. The load average of the machine was {found['machine']['load_before']} before "
        f"and {found['load_after']} after, browser and dashboard included."
    )
    return "\n\n".join([markdown(["page", "title", "complete", "worst"], rows), note])


TABLES: dict[str, tuple[str, Callable[[Found], str]]] = {
    "cipher": ("cipher", cipher),
    "growth": ("curves", growth),
    "where": ("curves", where),
    "pages": ("pages", pages),
}
