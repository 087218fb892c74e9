"""The aims that speed is held to: each figure beside its aim, its peer and its floor, from the result files; and which claim became untrue.

`python -m bench.aims` prints the table; `--before FOLDER` compares with the result files that were there before a measurement.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.tables import Results, markdown, milliseconds, rounded

RESULTS = Path(__file__).resolve().parent / "results"
FILES = (
    "training_ciphers",
    "stream",
    "cipher",
    "curves",
    "alignment",
    "online",
    "reasons",
    "privacy",
    "processes",
)
HEADER = ("", "measured", "aim", "reached", "peer, same run", "floor")
NO = "**no**"
MILLION = 1_000_000
TREES = 100
TREE_SECONDS = 120
TREE_TIMES = 3
PAILLIER_SECONDS = 180
ROOT_SECONDS = 120
ROOT_BYTES = 4e9
STREAM_SECONDS = 360
STREAM_BYTES = 1e9
SCORES = 5_000
ONLINE = 150
ONLINE_MS = 60
ALIGNMENT_TIMES = 1.3
ALIGNMENT_SECONDS = 165
REASONS_SECONDS = 5
METER_SECONDS = 0.05
SCORE_BYTES = 132_500

GIGABIT = 125e6  # bytes a second

All = Mapping[str, Results]


@dataclass(frozen=True)
class Figure:
    """What was measured, beside what it is held to.

    Attributes
    ----------
    measured, peer, floor : str
        In words; the peer of the same run, and the least time that the arithmetic takes with what it counts.
    """

    measured: str
    reached: bool
    peer: str
    floor: str


@dataclass(frozen=True)
class Aim:
    """One figure that is held to something.

    Attributes
    ----------
    file : str
        That it is read from; :data:`FILES` it may look at besides.
    read : callable
        Result files by name → the figure; KeyError if they do not have it yet.
    why : str
        Where it is not reached: the reason, and the next idea.
    """

    name: str
    aim: str
    file: str
    read: Callable[[All], Figure]
    why: str

    def figure(self, results: All) -> Figure | None:
        """None if it was not measured yet, or the file is older than what its script measures."""
        try:
            return self.read(results)
        except KeyError:
            return None


def seconds(value: float) -> str:
    """Two significant figures at least; milliseconds below one second."""
    return milliseconds(value) if value < 1 else f"{rounded(value)} s"


def _by_cipher(results: All) -> dict[str, Results]:
    return {row["cipher"]: row for row in results["training_ciphers"]["ciphers"]}


def _trees(results: All, row: Results) -> float:
    """Seconds of a whole model, from the mean of a few trees and a later one: the first alone makes keys and tables."""
    few = results["training_ciphers"]["trees"]
    return float(few * row["seconds_a_tree"] + (TREES - few) * row["seconds_a_later_tree"])


def _whole(results: All) -> Figure:
    found = results["training_ciphers"]
    by_cipher = _by_cipher(results)
    whole = found["whole"]
    lattice = by_cipher["rlwe"]
    same = "the same trees as on plaintext" if whole["same_trees_as_plain"] else "trees that DIFFER from plaintext's"
    return Figure(
        f"{whole['seconds']:.0f} s, {same}",
        whole["trees"] == TREES and whole["seconds"] <= TREE_SECONDS and whole["same_trees_as_plain"],
        f"Paillier, 2,048 bits: {_trees(results, by_cipher['paillier']):.0f} s (worked out from {found['trees']} trees); "
        f"XGBoost on one thread: {whole['xgboost_seconds']:.2g} s",
        f"{seconds(TREES * lattice['floor_seconds_a_tree'])}: {lattice['floor']}, over {found['machine']['cores']} cores",
    )


def _ratio(results: All) -> Figure:
    by_cipher = _by_cipher(results)
    lattice = by_cipher["rlwe"]["seconds_a_later_tree"]
    paillier = by_cipher["paillier"]["seconds_a_later_tree"]
    return Figure(
        f"{paillier / lattice:.1f} × ({seconds(lattice)})",
        paillier / lattice >= TREE_TIMES,
        f"Paillier, 2,048 bits: {seconds(paillier)}",
        f"plaintext: {seconds(by_cipher['none']['seconds_a_later_tree'])}",
    )


def _paillier(results: All) -> Figure:
    row = results["training_ciphers"]["sampled"]
    return Figure(
        f"{_trees(results, row):.0f} s (worked out from {results['training_ciphers']['trees']} trees)",
        _trees(results, row) <= PAILLIER_SECONDS,
        f"all rows, full exponents: {_trees(results, _by_cipher(results)['paillier']):.0f} s",
        f"plaintext: {_trees(results, _by_cipher(results)['none']):.0f} s",
    )


def _large_tree(results: All) -> Figure:
    found = results["training_ciphers"]
    tree = found["tree"]
    return Figure(
        f"{tree['seconds']:.0f} s",
        tree["rows"] == MILLION and tree["exact"] and tree["seconds"] <= ROOT_SECONDS,
        f"XGBoost on one thread: {seconds(tree['xgboost_seconds'])}",
        f"{seconds(tree['floor_seconds'])}: {tree['floor']}, over {found['machine']['cores']} cores",
    )


def _large_memory(results: All) -> Figure:
    tree = results["training_ciphers"]["tree"]
    return Figure(
        f"{tree['peak_bytes'] / 1e9:.1f} GB, both parties and their workers",
        tree["rows"] == MILLION and tree["peak_bytes"] <= ROOT_BYTES,
        "–",
        f"{tree['bytes'] / 1e9:.2f} GB: what is sent",
    )


def _each(found: Results) -> float:
    """Floor of one score in seconds over all cores."""
    return float(found["floor"]["seconds"] / found["floor"]["people"] / found["machine"]["cores"])


def _stream(results: All) -> Figure:
    found = results["stream"]
    million = MILLION / found["rows_per_second"]
    how = "" if found["rows"] == MILLION else f", at the rate of {found['rows']:,} rows"
    return Figure(
        f"{million:.0f} s{how}",
        million <= STREAM_SECONDS and found["scored"] == found["rows"],
        f"plaintext: {MILLION / found['plain_rows_per_second']:.0f} s",
        f"{MILLION * _each(found):.0f} s: {found['floor']['counts']}, over the cores",
    )


def _stream_memory(results: All) -> Figure:
    found = results["stream"]
    return Figure(
        f"{found['peak_bytes'] / 1e6:,.0f} MB over {found['rows']:,} rows, the Host's table in it",
        found["peak_bytes"] <= STREAM_BYTES,
        f"plaintext: {found['plain_peak_bytes'] / 1e6:,.0f} MB",
        "–",
    )


def _bulk(results: All) -> Figure:
    found = results["cipher"]
    best = max(row["per_second"] for row in found["two_cores"])
    phe = next(row for row in found["keys"][-1]["rows"] if row["engine"] == "phe")
    return Figure(
        f"{best:,.0f}",
        best >= SCORES,
        f"`phe` on one core: {rounded(1 / phe['sample']['cold']['seconds'])}",
        f"{1 / _each(found):,.0f}: {found['floor']['counts']}",
    )


def _bytes(results: All) -> Figure:
    rows = {row["engine"]: row["sample"] for row in results["cipher"]["keys"][-1]["rows"]}
    sent = {name: row["bytes_up"] + row["bytes_back"] for name, row in rows.items()}
    numbers = results["cipher"]["sample"]["entries"]
    plain = min(sent, key=lambda name: (name != "none", name))
    others = [f"{label}: {sent[name] / 1e3:,.0f} KB" for name, label in PEERS.items() if name in sent]
    return Figure(
        f"{sent['rlwe'] / 1e3:,.0f} KB, {milliseconds(rows['rlwe']['warm']['seconds'])} warm",
        sent["rlwe"] <= SCORE_BYTES,
        "; ".join(others),
        f"{sent[plain] / 1e3:,.0f} KB: {numbers:,} numbers in plaintext",
    )


PEERS = {"heu-elgamal": "HEU EC-ElGamal", "paillier": "Paillier, 3,072 bits", "phe": "`phe`, 3,072 bits"}


def _an_id(found: Results, method: str) -> float:
    """Seconds of a core, both parties."""
    return float((found[method]["guest_seconds"] + found[method]["host_seconds"]) / found["records"])


def _alignment(results: All) -> Figure:
    found = results["alignment"]
    each = _an_id(found, "dh")
    floor = found["floor"]["seconds_an_id"]
    return Figure(
        f"{each / floor:.2f} × ({1e6 * each:.0f} µs of a core an id)",
        each / floor <= ALIGNMENT_TIMES,
        f"plain SHA-256, which protects nothing: {1e6 * _an_id(found, 'hashing'):.1f} µs",
        f"{1e6 * floor:.0f} µs: {found['floor']['counts']}",
    )


def _million_ids(results: All) -> Figure:
    found = results["alignment"]
    each = found["dh"]["wall_seconds"] / found["records"]
    return Figure(
        f"{MILLION * each:.0f} s, at the rate of {found['records']:,}",
        MILLION * each <= ALIGNMENT_SECONDS,
        "secretflow/psi, as published: 114 s for ten million on 8 cores a party",
        f"{MILLION * found['floor']['seconds_an_id'] / found['machine']['cores']:.0f} s: {found['floor']['counts']}, over the cores",
    )


def _online(results: All) -> Figure:
    found = results["online"]
    return Figure(
        f"{found['scores_per_second']:.0f} ({found['processor_ms_per_score']:.0f} ms of a core a score)",
        found["scores_per_second"] >= ONLINE,
        f"plaintext, the same server: {found['plain']['scores_per_second']:.0f}",
        f"{1 / _each(found):,.0f}: {found['floor']['counts']}",
    )


def _online_wait(results: All) -> Figure:
    """Reached where a load of so many scores a second has so short a wait."""
    found = results["online"]
    loads = [found, found["few"]]
    waits = [
        f"{one['ms']['p95']:.1f} ms, {one['scores_per_second']:.0f} scores/s ({one['callers']} callers)"
        for one in loads
    ]
    return Figure(
        "; ".join(waits),
        any(one["ms"]["p95"] <= ONLINE_MS and one["scores_per_second"] >= ONLINE for one in loads),
        f"plaintext, the same server: {found['plain']['ms']['p95']:.0f} ms",
        f"{milliseconds(found['floor']['seconds'])}: the same, one batch",
    )


def _reasons(results: All) -> Figure:
    cohorts = results["reasons"]["cohorts"]
    row = next(row for row in reversed(cohorts) if row["cipher"] == "rlwe")
    paillier = next(row for row in reversed(cohorts) if row["cipher"] == "paillier")
    spent = row["guest_seconds"] + row["host_seconds"]
    return Figure(
        f"{rounded(spent)} s of a core ({rounded(row['guest_seconds'])} s at the Guest)",
        row["people"] == 200 and spent <= REASONS_SECONDS,
        f"Paillier, 3,072 bits: {paillier['guest_seconds'] + paillier['host_seconds']:,.0f} s (worked out from 5 people)",
        f"{seconds(row['floor_seconds'])}: {row['floor']}",
    )


def _meter(results: All) -> Figure:
    rows = results["privacy"]["meter"]
    exact, bound = (
        ", ".join(f"{milliseconds(row[field])} at {row['bits']} bits" for row in rows)
        for field in ("seconds", "bound_seconds")
    )
    floor = ", ".join(milliseconds(row["floor_seconds"]) for row in rows)
    return Figure(
        f"exact: {exact}; the bound: {bound}, at most {max(row['bound_excess'] for row in rows):.1g} bits above",
        max(row["bound_seconds"] for row in rows) <= METER_SECONDS,
        "–",
        f"{floor}: additions of the exact meter, in a core's cache",
    )


def _processes(results: All) -> Figure:
    found = results["processes"]
    return Figure(
        f"{found['count']} of {found['bytes'] / 1e6:.0f} MB, for {found['parties']} parties",
        found["count"] <= 1,
        f"one a key: {found['parties']} of up to {found['alone_bytes'] / 1e6:.0f} MB",
        f"{found['floor_bytes'] / 1e6:.0f} MB: {found['floor']}",
    )


AIMS = (
    Aim(
        "a model of 100 trees under RLWE, credit card, 18,000 rows, two cores",
        f"≤ {TREE_SECONDS} s",
        "training_ciphers",
        _whole,
        "A third is the Host's products and their sums in SEAL, a sixth the transforms of 0/1 polynomials that are new below the root, "
        "both on worker processes and bound by SEAL's arithmetic ([decision](decisions/training.md)). Next: a wheel of "
        "SEAL with vectorised transforms and products (Intel HEXL).",
    ),
    Aim(
        "a later tree of it: times as fast as under Paillier",
        f"≥ {TREE_TIMES} ×",
        "training_ciphers",
        _ratio,
        "As above.",
    ),
    Aim(
        "a model of 100 trees under Paillier, 2,048 bits: short exponents and sampling",
        f"≤ {PAILLIER_SECONDS} s",
        "training_ciphers",
        _paillier,
        "Nearly half of it is the Host's shifting of 23 sums into one ciphertext, 86 squarings modulo n² a bin, without which "
        "decryption would take 23 times as long; products by bin are a fifth, encryption an eighth. Next: RLWE, the default, which is "
        "several times as fast.",
    ),
    Aim(
        "a tree over 1,000,000 rows by 20 features, 10 of them a Host's",
        f"≤ {ROOT_SECONDS} s",
        "training_ciphers",
        _large_tree,
        "Nearly all is the Host's 0/1 polynomials, a transform and two products a block and reply; they are made again where they pass "
        "1 GB. Next: as for 100 trees.",
    ),
    Aim("memory of it, both parties", "≤ 4 GB", "training_ciphers", _large_memory, "Blocks wait for workers."),
    Aim(
        "a table of 1,000,000 rows: `glassleaf score`, credit-card model, both parties",
        f"≤ {STREAM_SECONDS} s",
        "stream",
        _stream,
        "Residues leave SEAL through a file in memory and a compression, a third of an encryption. Next: bindings that give an array.",
    ),
    Aim(
        "memory of that command",
        "≤ 1 GB",
        "stream",
        _stream_memory,
        "A simulated Host holds its whole table in the same process: an id as text, and some 40 bytes a row. Next: ids in one block.",
    ),
    Aim(
        "scores a second under RLWE, two cores",
        f"≥ {SCORES:,}",
        "cipher",
        _bulk,
        "Residues leave SEAL through a file in memory and a compression, a third of an encryption ([below](#where-the-time-goes)). Next: "
        "bindings that give them as an array.",
    ),
    Aim(
        "alignment (dh): times four multiplications and two hashes an id",
        f"≤ {ALIGNMENT_TIMES:g} ×",
        "alignment",
        _alignment,
        "Python between libsodium's calls, and threads that wait for the interpreter's lock after each. Next: a call a thousand elements.",
    ),
    Aim(
        "alignment of 1,000,000 ids with one Host, both parties on two cores",
        f"≤ {ALIGNMENT_SECONDS} s",
        "alignment",
        _million_ids,
        "Both parties hash and multiply on all cores, one id at a time: most of the time is libsodium's group, and four multiplications "
        "and two hashes an id cannot be avoided ([alignment](alignment.md#what-it-costs)). Next: a wheel with a vectorised ristretto255.",
    ),
    Aim(
        "scores a second online, one person a request, demo of two Hosts",
        f"≥ {ONLINE}",
        "online",
        _online,
        "A batch costs about the same for one person as for sixteen, and nearly all of it is work of one interpreter: RLWE at three "
        "parties, some thirty statements in three databases, and HTTP ([online](online.md#speed)). Next: HTTP in a process of its own.",
    ),
    Aim(
        "95th percentile of its answers",
        f"≤ {ONLINE_MS} ms",
        "online",
        _online_wait,
        "An answer waits for the batch before its own, and then for its own; callers who wait for their answers cannot on average have "
        "them sooner than their number over the scores a second. Next: encrypt the next batch while the last Host folds this one.",
    ),
    Aim(
        "one score under RLWE: bytes, both ways",
        "≤ 132 KB, half of it",
        "cipher",
        _bytes,
        "[What one score's bytes are](#what-one-scores-bytes-are): N = 4,096 does not hold the flood of slots, and smaller primes at 8,192 "
        "save 30 % at most. Next, there: an inner product, 66 KB up and 66 back.",
    ),
    Aim(
        "reasons for a group of 200, credit card, RLWE",
        f"≤ {REASONS_SECONDS} s",
        "reasons",
        _reasons,
        "Counted are both parties on one core; they work at the same time, which no clock measured. Next: encryption on worker "
        "processes, which takes no less of a core ([decision](decisions/reasons.md)).",
    ),
    Aim(
        "the leak meter, one score of 100 trees, or a bound as useful",
        f"≤ {1000 * METER_SECONDS:.0f} ms",
        "privacy",
        _meter,
        "A finer scale has more sums to add up. Next: a bound instead of the count.",
    ),
    Aim(
        "processes that make obfuscators, parties of a simulation together",
        "1",
        "processes",
        _processes,
        "Every key has a process of its own. Next: one for all keys.",
    ),
)


def verdicts(results: All) -> dict[str, tuple[bool, str]]:
    """Every claim that was measured → whether it holds, and its figure in words; those of other tables, too."""
    figures = {aim.name: aim.figure(results) for aim in AIMS}
    found = {name: (of.reached, of.measured) for name, of in figures.items() if of}
    for file, content in results.items():
        if isinstance(rows := content.get("rows"), list):
            for row in rows:
                if isinstance(aim := row.get("aim"), dict) and "reached" in aim:
                    found[f"{file}: {row['name']}"] = bool(aim["reached"]), ""
    return found


def became_untrue(before: All, after: All) -> list[str]:
    """Claims that held before and do not hold now, in words."""
    old = verdicts(before)
    new = verdicts(after)
    return [
        f"{name}: {new[name][1]} (before: {was})" if was else name
        for name, (held, was) in old.items()
        if held and name in new and not new[name][0]
    ]


def aims(results: All) -> str:
    """The table, and a line for each aim that is not reached."""
    figures = [(aim, aim.figure(results)) for aim in AIMS]
    lines = [markdown(HEADER, [_row(aim, figure) for aim, figure in figures])]
    missed = [f"- **{aim.name}**: {aim.why}" for aim, figure in figures if figure and not figure.reached]
    unmeasured = dict.fromkeys(f"`{aim.file}`" for aim, figure in figures if figure is None)
    if missed:
        lines.append("Not reached, why, and what comes next:\n\n" + "\n".join(missed))
    if unmeasured:
        lines.append(f"Not measured yet, or before the script measured it: {', '.join(unmeasured)}; `make bench` does.")
    if "cores" in results.get("curves", {}) and "bulk" in results.get("cipher", {}):
        lines.append(on_paper(results))
    days = {str(results[aim.file]["machine"].get("date") or "") for aim in AIMS if aim.file in results} - {""}
    measured = f" Measured {' to '.join(dict.fromkeys((min(days), max(days))))}." if days else ""
    lines.append(
        f"A floor is the least that the arithmetic it names takes on this machine, at the measured cost of one operation.{measured}"
    )
    busy = [f"{name} ({content['machine']['load_before']:g})" for name, content in results.items() if _busy(content)]
    if busy:
        lines.append(f"The machine had other work (load average before) when these were measured: {', '.join(busy)}.")
    return "\n\n".join(lines)


def aims_of(file: str) -> Callable[[Results], str]:
    """What a script prints of its result: the lines of the table that are read from it, or why there are none."""

    def written(result: Results) -> str:
        if "skipped" in result:
            return f"Skipped: {result['skipped']}"
        own = [aim for aim in AIMS if aim.file == file]
        return markdown(HEADER, [_row(aim, aim.figure({file: result})) for aim in own])

    return written


def on_paper(results: All) -> str:
    """Where more cores would lead, by Amdahl's law on one and two, and what a line carries."""
    rates = {row["cores"]: row["per_second"] for row in results["curves"]["cores"] if row["engine"] == "rlwe"}
    serial = min(1.0, max(0.0, 2 * rates[1] / rates[2] - 1))
    sixteen, sixty_four = (rates[1] / (serial + (1 - serial) / cores) for cores in (16, 64))
    size = min(row["bytes_a_sample"] for row in results["cipher"]["bulk"] if row["engine"] == "rlwe")
    return (
        f"On paper, not measured, from the curves of {results['curves']['machine']['date']}: many scores under RLWE go from "
        f"{rates[1]:,.0f} a second on one core to {rates[2]:,.0f} on two, both parties. By Amdahl's law 16 cores "
        f"would give {sixteen:,.0f} and 64 {sixty_four:,.0f}; at "
        f"{size / 1e3:.0f} KB a score 1 Gbit/s carries {GIGABIT / size:,.0f}."
    )


def _row(aim: Aim, figure: Figure | None) -> list[str]:
    if figure is None:
        return [aim.name, "not measured yet", aim.aim, "–", "–", "–"]
    return [aim.name, figure.measured, aim.aim, "yes" if figure.reached else NO, figure.peer, figure.floor]


def _busy(content: Results) -> bool:
    return float(content["machine"].get("load_before") or 0.0) > 1.0


def read(folder: Path, names: tuple[str, ...] = ()) -> dict[str, Results]:
    """Result files of a folder by name; all if none is named."""
    files = sorted(folder.glob("*.json")) if not names else [folder / f"{name}.json" for name in names]
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()}


def _lines(before: Path | None) -> Iterator[str]:
    yield aims(read(RESULTS, FILES))
    if before is not None:
        lost = became_untrue(read(before), read(RESULTS))
        yield "Became untrue:\n" + "\n".join(f"- {line}" for line in lost) if lost else "No claim became untrue."


def main() -> None:
    """Print the table and, if there is something to compare with, what became untrue."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="folder with the result files as they were before")
    sys.stdout.write("\n\n".join(_lines(parser.parse_args().before)) + "\n")


if __name__ == "__main__":
    main()
