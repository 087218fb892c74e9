"""What the measurements results, as Markdown for people: printed by each script and written into the documents by `bench.readme`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

Results = dict[str, Any]
Column = str | Callable[[Any], str]

DATA = {"demo": "demo", "credit_card": "credit card"}
# a short cell that begins like this is a figure, and is aligned right
FIGURE = r"(?=.{0,20}$)[\d+–><-]|$"
DAY = 86_400  # seconds
FIRST = "the model itself"
FAR = 100  # times the largest size that was measured; beyond it a straight line says nothing
HEAVIEST = 16  # packages that are shown
TOO_SHORT = 0.001  # seconds; less is no measure of a ratio
RLWE_KEY = re.compile(r"n(\d+)-q(\d+)-t(\d+)")
PAILLIER = re.compile(r"paillier (\d+)")


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns of figures are aligned right."""
    frame = pd.DataFrame(list(rows), columns=pd.Index(header), dtype=str)
    figures = [bool(frame.iloc[:, i].str.match(FIGURE).all()) for i in range(len(header))]
    sides = ["right" if is_figure else "left" for is_figure in figures]
    return frame.to_markdown(index=False, disable_numparse=True, colalign=sides)


def table(rows: Collection[Mapping[str, Any]], columns: Mapping[str, Column]) -> str:
    """A line a row; a column is a format string over the row's fields, or a function of the row."""
    cells = [[c.format_map(row) if isinstance(c, str) else c(row) for c in columns.values()] for row in rows]
    return markdown(list(columns), cells)


def rounded(number: float) -> str:
    """Two significant figures at least."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def milliseconds(seconds: float) -> str:
    """Two significant figures at least."""
    return f"{rounded(1000 * seconds)} ms"


def in_words(key: str) -> str:
    """A parameter set or engine as the reader knows it: ``n8192-q120-t557057`` is N = 8,192, q = 120 bits."""
    if match := RLWE_KEY.fullmatch(key):
        return f"N = {int(match[1]):,}, q = {match[2]} bits"
    if match := PAILLIER.fullmatch(key):
        return f"Paillier, {int(match[1]):,} bits"
    return {"rlwe": "RLWE", "none": "plaintext"}.get(key, key)


def measured_on(machine: Results) -> str:
    """The machine behind a block of figures."""
    return f"Measured on one machine: {machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, gmpy2 {machine['gmpy2']}."


def _rounded_seconds(field: str) -> Callable[[Results], str]:
    return lambda row: f"{rounded(row[field])} s"


def cipher(results: Results) -> str:
    """Every cipher beside its peers: those whose key has a size at every size, the others once."""
    largest = results["keys"][-1]
    facts = results["sample"]
    rows = [
        row | {"batches": [b for b in results["bulk"] if (b["engine"], b["key"]) == (row["engine"], row["key"])]}
        for last in largest["rows"]
        for key in results["keys"]
        for row in key["rows"]
        if row["engine"] == last["engine"] and (key is largest or row["key"] != last["key"])
    ]
    columns: dict[str, Column] = {
        "": lambda row: row["label"] if row["engine"] != "none" else in_words(row["engine"]),
        "key": lambda row: in_words(row["key"]),
        "encrypt, cold": lambda row: _times_phe(row, "cold"),
        "warm": lambda row: _times_phe(row, "warm"),
        "one sample, cold": lambda row: milliseconds(row["sample"]["cold"]["seconds"]),
        "one sample, warm": lambda row: (
            milliseconds(row["sample"]["warm"]["seconds"]) if "warm" in row["sample"] else ""
        ),
        "bulk, one core": _bulk_rate,
        "KB a sample": _kilobytes,
    }
    note = (
        f"One model, {facts['model']}: {facts['leaves']:,} leaves, which ours fold into {facts['entries']:,} numbers; peers encrypt a "
        f"number a leaf. Encryption: times as fast as `phe` with a key of the same size ({largest['bits']:,} bits where the cipher has no "
        "such key), measured in turns; for RLWE, N is the degree of the polynomials and q the size of their coefficients. Cold: nothing is "
        "precomputed, tables are in memory. Warm: pools of precomputed randomness are full. Everything on one core, the work of Guest "
        f"and Host added up, medians of {results['repeats']}. Bulk: at the best batch size; in brackets KB of a sample there. "
        "A peer's sample is put together from its encryption, masked sum and decryption."
    )
    best = {row["how"]: row for row in sorted(results.get("two_cores", []), key=lambda row: row["per_second"])}
    rates = [f"{row['per_second']:,.0f} scores a second ({how})" for how, row in best.items()]
    two_cores = [f"RLWE on two cores: {', '.join(rates)}."] if rates else []
    return "\n\n".join([table(rows, columns), note, *two_cores])


def peers(results: Results) -> str:
    """Encryption, addition and decryption of other people's ciphers beside ours, each with a key of the same size where it has one."""
    rows = []
    for key in results["keys"]:
        largest = key is results["keys"][-1]
        ours = next(row for row in key["rows"] if row["engine"] == "paillier-short")
        for row in key["rows"]:
            # a cipher whose key has one size is compared once
            if row["peer"] and (largest or row["key"] == ours["key"]):
                rows.append(row | {"ours": ours})
    columns: dict[str, Column] = {
        "": "{label}",
        "key": lambda row: in_words(row["key"]),
        "encryption": lambda row: milliseconds(row["encrypt"]["cold"]["seconds"]),
        "sum of a score": lambda row: milliseconds(row["masked_sum_seconds"]),
        "decryption": lambda row: milliseconds(row["decrypt_seconds"]),
        "encryption ÷ ours": lambda row: rounded(
            row["encrypt"]["cold"]["seconds"] / row["ours"]["encrypt"]["cold"]["seconds"]
        ),
        "sum ÷ ours": lambda row: rounded(row["masked_sum_seconds"] / row["ours"]["masked_sum_seconds"]),
        "decryption ÷ ours": lambda row: rounded(row["decrypt_seconds"] / row["ours"]["decrypt_seconds"]),
    }
    facts = results["sample"]
    note = (
        "Ours is Paillier with short exponents, nothing precomputed, and a key of the same size (of the largest size where the cipher has "
        f"one of its own). The sum of a score adds up about half of {facts['leaves']:,} encrypted leaves; ours reads and checks them, too, "
        f"and makes the sum fresh. Encryption is a number's. One core, in turns, medians of {results['repeats']}."
    )
    return "\n\n".join([table(rows, columns), note])


def _times_phe(row: Results, state: str) -> str:
    return f"{row['encrypt'][state]['ratio']:,.0f}×" if row["engine"] != "none" and state in row["encrypt"] else ""


def _bulk_rate(row: Results) -> str:
    rate = max((b["per_second"] for b in row["batches"]), default=1 / row["sample"]["cold"]["seconds"])
    return f"{rounded(rate)} scores/s"


def _kilobytes(row: Results) -> str:
    single = (row["sample"]["bytes_up"] + row["sample"]["bytes_back"]) / 1000
    batched = min((b["bytes_a_sample"] / 1000 for b in row["batches"]), default=single)
    return f"{single:,.0f}" + (f" ({batched:,.0f})" if batched < 0.9 * single else "")


def growth(results: Results) -> str:
    """Cost as leaves, Hosts and cores grow."""
    columns: dict[str, Column] = {
        "cipher": lambda point: in_words(point["engine"]),
        "samples": "{samples:,}",
        "cores": "{cores}",
        "throughput": lambda point: f"{rounded(point['per_second'])} scores/s",
    }
    note = (
        f"Seconds and bytes of one sample, all parties on one core, Paillier cold, medians of {results['repeats']} (once if one takes "
        "over 20 s); by cores: through the service's own parties with a worker a core."
    )
    by_size = [_by_size(results[curve], curve) for curve in ("leaves", "hosts")]
    return "\n\n".join([*by_size, table(results["cores"], columns), note])


def growth_by_axis(results: Results) -> str:
    """How training, scoring and alignment grow along one axis at a time, the exponents, and which limit comes next."""
    machine = results["machine"]
    rows = []
    for task in ("training", "scoring", "alignment"):
        for axis, values in results["axes"].items():
            # ids alone are aligned
            if task == "alignment" and axis not in ("rows", "parties"):
                continue
            rows.append({"task": task, "axis": axis, **_along(results, task, axis, values)})
    columns: dict[str, Column] = {
        "": "{task}",
        # a party more is a Host more, and one Guest is always there
        "axis": lambda row: "Hosts" if row["axis"] == "parties" else row["axis"],
        "sizes": lambda row: _steps(row["sizes"], "{:,}"),
        "processor seconds": lambda row: _steps(row["processor_seconds"]),
        "× plaintext": lambda row: _steps(row["ratios"]),
        "MB sent": lambda row: _steps([sent / 1e6 for sent in row["bytes"]]),
        "memory, MB": lambda row: _steps([peak / 1e6 for peak in row["peak_bytes"]]),
        "exponent: time": lambda row: f"{row['exponents']['processor_seconds']:.2f}",
        "bytes": lambda row: f"{row['exponents']['bytes']:.2f}",
        "memory": lambda row: f"{row['exponents']['peak_bytes']:.2f}",
        "next limit": lambda row: _limit(row, results["memory_bytes"], results["cores"]),
    }
    words = []
    if results["reduced"]:
        words.append("at a reduced base")
    if machine["load_before"] > machine["cores"]:
        words.append("under load")
    how = f"Measured {', '.join(words)} (load average before: {machine['load_before']}). " if words else ""
    base = results["base"]
    note = (
        f"{how}The base is {base['rows']:,} rows, {base['features']} features, {base['trees']} trees and {base['parties']} parties; of a "
        "training a tenth of the trees. Time, bytes and memory are those under RLWE, for alignment with blinded ids; its plaintext is "
        "hashed ids. Processor seconds are those of all parties and their workers; memory is the most that they held. An exponent is the "
        "slope of a line through the logarithms. The next limit is what comes first on a straight line through the two largest sizes: "
        f"the memory of this machine, {results['memory_bytes'] / 1e9:,.0f} GB, or a day of the parties' cores ({results['cores']})."
    )
    return "\n\n".join([table(rows, columns), note])


def _along(results: Results, task: str, axis: str, values: Sequence[int]) -> Results:
    """The measured figures of a task under encryption at each value of an axis, and the exponents."""
    points = []
    for value in values:
        wanted = results["base"] | {axis: value}
        points.append(next(point for point in results["points"] if wanted.items() <= point.items()))
    sizes = [point[axis] - (axis == "parties") for point in points]
    found: Results = {"sizes": sizes, "exponents": {}}
    for name in ("processor_seconds", "bytes", "peak_bytes"):
        found[name] = [point[task]["rlwe"][name] for point in points]
        found["exponents"][name] = float(np.polyfit(np.log(sizes), np.log(found[name]), 1)[0])
    plain = [point[task]["none"]["processor_seconds"] for point in points]
    found["ratios"] = [
        None if there < TOO_SHORT else here / there
        for here, there in zip(found["processor_seconds"], plain, strict=True)
    ]
    return found


def _steps(numbers: Sequence[float | None], form: str = "") -> str:
    """The first and the last number along an axis; what was not measured is a dash."""
    cells = []
    for number in (numbers[0], numbers[-1]):
        if number is None:
            cells.append("–")
        else:
            cells.append(form.format(number) if form else rounded(number))
    return " → ".join(cells)


def _limit(row: Results, memory: int, cores: int) -> str:
    """Which limit comes first, and at which size; on a straight line through the two largest sizes."""
    before, last = row["sizes"][-2:]
    limits = []
    for name, bound, words in (("processor_seconds", DAY * cores, "a day"), ("peak_bytes", memory, "memory")):
        low, high = row[name][-2:]
        if high > low:
            limits.append((last + (bound - high) * (last - before) / (high - low), words))
    if not limits:
        return "none in sight"
    size, words = min(limits)
    if size > FAR * last:
        return f"none within {FAR} ×"
    return f"{words} at {float(f'{size:.2g}'):,.0f}"


def _by_size(points: Sequence[Results], size: str) -> str:
    measured = {(p[size], p["engine"], p["samples"]): p for p in points if "left_out" not in p}
    kinds = list(dict.fromkeys((engine, n) for _, engine, n in measured))

    def cell(value: int, engine: str, n: int) -> str:
        point = measured.get((value, engine, n))
        if point is None:
            return "left out"
        return f"{milliseconds(point['seconds_a_sample'])}, {rounded(point['bytes_a_sample'] / 1000)} KB"

    entries = {p[size]: p["entries"] for p in points}
    rows = [[f"{value:,}", f"{n:,}", *(cell(value, *kind) for kind in kinds)] for value, n in entries.items()]
    header = [
        size.replace("hosts", "Hosts"),
        "numbers",
        *(f"{in_words(engine)}: {_together(n)}" for engine, n in kinds),
    ]
    return markdown(header, rows)


def _together(n: int) -> str:
    return "one by one" if n == 1 else f"{n:,} together"


def curves(results: Results) -> str:
    """Everything of `bench.curves`: scores by batch size, and both blocks of docs/speed.md."""
    columns: dict[str, Column] = {
        "cipher": lambda point: in_words(point["engine"]),
        "samples": "{samples:,}",
        "scores a second": lambda point: point.get("left_out") or rounded(point["per_second"]),
    }
    return "\n\n".join([table(results["samples"], columns), growth(results), where(results)])


def where(results: Results) -> str:
    """Where the time goes, a row a way of scoring: milliseconds of each stage and, in brackets, its floor."""
    lines = []
    for work in results["where"]:
        line = {"": f"{in_words(work['engine'])}, {work['how']}, {_together(work['samples'])}"}
        for stage in work["stages"]:
            line[f"{stage['party']}: {stage['stage']}"] = _beside_floor(stage)
        for wire in work["wires"]:
            line[f"wire: {wire['wire']}"] = _beside_floor(wire)
        line["bytes"] = f"{work['bytes']:,}"
        lines.append(line)
    titles = list(dict.fromkeys(title for line in lines for title in line))
    note = (
        "Milliseconds, the floor in brackets: modular multiplications under Paillier, transforms under RLWE, bytes copied or sent. "
        "bench/results/curves.json names what each floor counts."
    )
    return f"{markdown(titles, [[line.get(title, '') for title in titles] for line in lines])}\n\n{note}"


def _beside_floor(stage: Results) -> str:
    time = rounded(1000 * stage["seconds"])
    floor = stage["floor_seconds"]
    return time if floor is None else f"{time} ({rounded(1000 * floor)})"


def score_bits(results: Results) -> str:
    """Quality by number of score bits."""
    rows = [row | {"data": DATA[run["federation"]]} for run in results["runs"] for row in run["rows"]]
    columns = {"data": "{data}", "bits": "{bits}", "AUC": "{auc:.4f}", "KS": "{ks:.4f}", "alone": "{alone:.1%}"}
    return table(rows, columns)


def training(results: Results) -> str:
    """Quality and time beside XGBoost."""
    if "numbers" not in results:
        return f"Left out: {results['skipped']}."
    names = {"numbers": "coded columns as numbers", "codes": "coded columns as categories"}
    columns = {
        "credit card": "{title}",
        "AUC": "{auc:.4f}",
        "XGBoost's AUC": "{xgboost_auc:.4f}",
        "KS": "{ks:.4f}",
        "XGBoost's KS": "{xgboost_ks:.4f}",
        "time": "{seconds:.2f} s",
        "XGBoost's time": "{xgboost_seconds:.2f} s",
    }
    note = (
        f"{results['trees']} trees of depth {results['depth']}, {results['bins']} bins; XGBoost's `hist` gets the same rows and bins and "
        "one thread. Our time is of alignment and growth on plaintext, messages included; on ciphertexts: [training](training.md#ciphers)."
    )
    rows = [results[kind] | {"title": title} for kind, title in names.items()]
    return "\n\n".join([table(rows, columns), note])


def training_ciphers(results: Results) -> str:
    """Training on ciphertexts, by cipher, and the largest node of a tree over many rows."""
    if "ciphers" not in results:
        return f"Left out: {results['skipped']}."
    names = {"none": "plaintext", "rlwe": "RLWE, lattice", "paillier": "Paillier, {key_bits:,} bits"}
    by_name = {row["cipher"]: row for row in results["ciphers"]}
    columns: dict[str, Column] = {
        "": lambda row: names[row["cipher"]].format_map(row),
        "a tree": "{seconds_a_tree:.1f} s",
        "a later tree": "{seconds_a_later_tree:.1f} s",
        "MB a tree": lambda row: f"{row['bytes_a_tree'] / 1e6:.1f}",
    }
    root = results["root"]
    paillier = by_name["paillier"]
    lattice = by_name["rlwe"]
    times = paillier["seconds_a_later_tree"] / lattice["seconds_a_later_tree"]
    more = lattice["bytes_a_tree"] / paillier["bytes_a_tree"]
    same = "the same models, byte for byte" if results["same_trees"] else "models that DIFFER"
    whole = root["encrypt_seconds"] + root["sum_seconds"] + root["decrypt_seconds"]
    note = (
        f"{DATA[results['federation']].capitalize()} data, {results['trees']} trees of depth {results['depth']} over "
        f"{results['rows']:,} rows, {results['bins']} bins, all ciphers in one run (`python -m bench.training_ciphers`), once; they "
        f"grow {same}. A tree after the "
        f"first is {times:.1f} times as fast under RLWE as under Paillier, for {more:.1f} times the bytes."
    )
    full = results["whole"]
    check = "the sums are exact" if root["exact"] else "the sums are WRONG"
    trees = "the same trees" if full["same_trees_as_plain"] else "trees that DIFFER"
    model = (
        f"A model of {full['trees']} trees takes {full['seconds']:.0f} s under RLWE, alignment included, both parties on these cores "
        f"(aim: {_aim(full['aim'] | {'field': 'seconds'})}), {full['seconds'] / full['plain_seconds']:.0f} times plaintext "
        f"and {rounded(full['seconds'] / full['xgboost_seconds'])} times XGBoost on one thread; {trees} as on plaintext."
    )
    busy = results["machine"]["load_before"]
    large = (
        f"The root of a tree over {root['rows']:,} rows by {root['features']} features of 33 bins takes {whole:.0f} s, of which the "
        f"Guest's encryption is {root['encrypt_seconds']:.0f} s, {root['bytes'] / 1e6:,.0f} MB on the wire and "
        f"{root['peak_bytes'] / 1e9:.1f} GB of memory, both parties and their workers together; {check}."
        + (
            f" The machine had other work, a load average of {busy} at the start: ratios mean more than seconds."
            if busy > 1
            else ""
        )
    )
    return "\n\n".join([table(results["ciphers"], columns), note, model, large])


def alignment(results: Results) -> str:
    """What finding the joint records costs."""
    names = {"hashing": "plain SHA-256 of ids (broken: ids can be guessed)", "dh": "dh", "bloom": "bloom"}
    columns: dict[str, Column] = {
        "": "{title}",
        "Guest": "{guest_seconds:.2g} s",
        "Host": "{host_seconds:.2g} s",
        "sent by Guest": lambda row: f"{row['guest_bytes'] / 1e6:.2f} MB",
        "sent by Host": lambda row: f"{row['host_bytes'] / 1e6:.2f} MB",
        "messages": "{messages}",
    }
    return table([results[name] | {"title": title} for name, title in names.items()], columns)


def ranking(results: Results) -> str:
    """What finding the largest contributions costs."""
    wires = [wire["wire"] for wire in results["rows"][0]["wires"]]
    columns: dict[str, Column] = {
        "key": "{key_bits:,}",
        "n": "{numbers}",
        "Guest": "{guest_seconds:.2g} s",
        "Host": "{host_seconds:.2g} s",
        "and-gates": "{gates:,}",
        "sent": lambda row: f"{(row['guest_bytes'] + row['host_bytes']) / 1e3:.0f} kB",
        "rounds": str(results["rounds"]),
        **{name: f"+ {{wires[{i}][seconds]:.2g}} s" for i, name in enumerate(wires)},
        "peer, at least": lambda row: f"{row['peer_seconds']:.2g} s" if "ratio" in row else "–",
        "ratio": lambda row: f"{row['ratio']:.0f} ×" if "ratio" in row else "–",
    }
    note = (
        "The peer is `tno.mpc.protocols.secure_comparison`: n − 1 + k·⌈log₂ n⌉ times the measured time of one of its comparisons, both "
        "parties together; carrying winners and names along and its DGK key are not charged."
    )
    return "\n\n".join([table(results["rows"], columns), note])


def reasons(results: Results) -> str:
    """What reasons cost, and whether they are those of plaintext SHAP values."""
    both: dict[str, Column] = {"model": "{model}", "cipher": _reason_cipher}
    single = both | {
        "ciphertexts": "{ciphertexts:,}",
        "Guest": "{terms_guest_seconds:.2g} s",
        "Hosts": "{terms_host_seconds:.2g} s",
        "ranking": lambda row: f"{row['ranking_guest_seconds'] + row['ranking_host_seconds']:.2g} s",
        "keys": lambda row: f"{row['key_bytes'] / 1e6:.2f} MB",
        "sent": lambda row: f"{row['bytes'] / 1e6:.2f} MB",
        "a score": "{score_seconds:.2g} s",
        "ratio to it": "{to_score:.1f} ×",
        "peer, at least": _rounded_seconds("peer_seconds"),
        "ratio": "{ratio:.0f} ×",
    }
    cohort = both | {
        "people": "{people:,}",
        "measured": "{measured:,}",
        "Guest": _rounded_seconds("guest_seconds"),
        "Hosts": _rounded_seconds("host_seconds"),
        "sent": lambda row: f"{row['bytes'] / 1e6:.0f} MB",
    }
    faithful: dict[str, Column] = {
        "faithfulness": "{model}",
        "same four names as plaintext SHAP": "{same_names:.1%} of {people}",
        "largest error of a contribution": "{largest_error:.1g} (bound {error_bound:.1g})",
        "same names if contributions had scores' dither": lambda row: " and ".join(
            f"{share:.1%} (width {width})" for width, share in row["same_under_dither_of_contributions"].items()
        ),
    }
    between = "Means over a group; if fewer people were measured, the figures of all are extrapolated from theirs:"
    tables = [
        table(results["rows"], single),
        between,
        table(results["cohorts"], cohort),
        table(results["faithfulness"], faithful),
    ]
    return "\n\n".join(tables)


def backgrounds(results: Results) -> str:
    """Groups that reasons compare with: values by shares beside values one by one, and what a Host can guess of the group."""
    groups = {"all": "all", "approved": "only just approved"}
    columns: dict[str, Column] = {
        "model": "{model}",
        "compared with": lambda row: groups[row["against"]],
        "records": "{records:,}",
        "one by one": "{one_by_one:,}",
        "people": "{people:,}",
        "same reasons": "{same_reasons:.0%}",
        "reasons in common": "{overlap:.0%}",
        "mean difference": "{difference:.0%}",
        "a Host's guess (AUC)": lambda row: _guess(row["told_auc"]),
        "from exact shares": lambda row: _guess(row["exact_auc"]),
        "from covers": lambda row: _guess(row["covers_auc"]),
    }
    return table(results["rows"], columns)


def _guess(area: float | None) -> str:
    return "nothing to guess" if area is None else f"{area:.2f}"


def _reason_cipher(row: Results) -> str:
    return "RLWE" if row["cipher"] == "rlwe" else f"Paillier, {row['key_bits']:,}"


def privacy(results: Results) -> str:
    """Paths that fit a score, and quality, by resolution and dither; and the meter's speed."""
    columns: dict[str, Column] = {
        "bits": "{score_bits}",
        "dither (width)": lambda point: f"{point['dither']:g}" if point["dither"] else "none",
        "one path only": "{unique:.1%}",
        "paths that fit (median)": "{paths:g}",
        "AUC": "{metrics[auc]:.4f}",
        "KS": "{metrics[ks]:.4f}",
    }
    first = results["points"][0]
    meter = ", ".join(f"{m['seconds']:.3f} s at {m['bits']} bits" for m in results["meter"])
    note = (
        f"{DATA[results['federation']].capitalize()} data, {results['trees']} trees of depth {results['depth']}, "
        f"{first['people']:,} test records compared with {first['records']:,} Host records. The leak meter reads a score of a "
        f"model of {results['meter'][0]['trees']} trees in {meter} (processor time)."
    )
    if all("bound_seconds" in m for m in results["meter"]):
        bound = ", ".join(f"{m['bound_seconds']:.3f} s" for m in results["meter"])
        over = max(m["bound_excess"] for m in results["meter"])
        note += f" Its bound takes {bound}, and lies at most {over:.2g} bits above what the score tells."
    return f"{table(results['points'], columns)}\n\n{note}"


def coverage(results: Results) -> str:
    """How often each interval about fairness held the truth."""
    rows = [row for row in results["rows"] if 2 * row["n"] >= results["runs"]]
    figures = dict.fromkeys(row["figure"] for row in rows)

    def held(figure: str, gap: bool) -> str:
        found = [r["held"] for r in rows if r["figure"] == figure and r["case"].startswith("no ") != gap]
        ends = dict.fromkeys(f"{100 * share:.1f}" for share in (min(found), max(found)))
        return f"{'–'.join(ends)} %"

    columns: dict[str, Column] = {
        "95 % interval of": "{figure}",
        "holds the truth without a gap": lambda row: held(row["figure"], False),
        "with a gap": lambda row: held(row["figure"], True),
    }
    note = (
        f"Simulated people whose true rates are known, {results['runs']:,} runs of each case ({results['runs'] // 2:,} of associations, of "
        "AUC and of searches); lowest and highest case of each figure, without cases in which it is suppressed in most runs: groups of 600 "
        "and 300, of 120 and 60, and four of 500 to 60 records; associations of 200 to 5,000 records in 2 × 2 to 5 × 10 groups; searches "
        f"of eight alternatives at two decisions, 800 records. Other decisions at {results['cutoff']:.0%}."
    )
    return f"{table([{'figure': figure} for figure in figures], columns)}\n\n{note}"


def verdicts(results: Results) -> str:
    """How often a validation's test shows a breach, leaves it undecided or passes, if the truth is known; a row a truth."""
    titles = {"fail": "fails", "warn": "warns", "undecided": "undecided", "pass": "passes"}
    truths: dict[tuple[str, str], list[Results]] = {}
    for row in results["rows"]:
        truths.setdefault((row["test"], row["truth"]), []).append(row)

    def shares(row: Results) -> str:
        rounded_shares = {title: f"{row[verdict]:.0%}" for verdict, title in titles.items()}
        return ", ".join(f"{title} {share}" for title, share in rounded_shares.items() if share != "0%")

    sizes = [f"{row['n']:,} records" for row in next(iter(truths.values()))]
    lines = []
    for (test, truth), rows in truths.items():
        alone = " / ".join(f"{row['alone']:.0%}" for row in rows)
        lines.append([f"`{test}`", truth, *(shares(row) for row in rows), alone])
    note = (
        f"{results['runs']:,} simulated validations a cell. Calibration by group is of 24 features in four equal groups, as many figures "
        "as on the credit cards; a group has a quarter of the records. In `disparity` a third of the people are in the smaller group."
    )
    return f"{markdown(['test', 'truth', *sizes, 'the figure alone would fail'], lines)}\n\n{note}"


def label_leak(results: Results) -> str:
    """What a Host infers about labels in training, by the bound on what sets tell."""
    columns: dict[str, Column] = {
        "": "{title}",
        "one set tells": lambda row: f"{row['bits']:.3f} bits" if "bits" in row else "–",
        "attacker's AUC": "{auc:.3f}",
        "accuracy": "{accuracy:.1%}",
        "mutual information": "{nmi:.3f}",
        "model's AUC": lambda row: f"{row['model_auc']:.4f}" if "model_auc" in row else "–",
    }

    def title(row: Results) -> str:
        if row["complete"]:
            return "`--complete`, no bound"
        return f"`--label-bound {row['bound']:g}`" if row["bound"] else "no bound"

    rows = [results["own"] | {"title": "the Host's own columns alone"}]
    rows += [row | {"title": title(row)} for row in results["rows"]]
    note = (
        f"{DATA[results['federation']].capitalize()} data, {results['records']:,} training records, {results['trees']} trees of depth "
        f"{results['depth']}; the larger class alone is {results['prior']:.1%} of them. AUC and accuracy whichever cluster is taken for "
        "which label; mutual information is normalised."
    )
    return f"{table(rows, columns)}\n\n{note}"


def pages(results: Results) -> str:
    """Every page of the dashboard, a row a page: on the demo and on a large model."""
    empty = next((row["seconds"] for row in results["rows"] if row["size"] == "none"), None)
    walked: dict[str, dict[str, Results]] = {}
    for row in results["rows"]:
        if row["size"] != "none":
            walked.setdefault(row["page"], {})[row["size"]] = row
    titles = []
    aims = []
    for size in results["models"]:
        titles += [f"{size}: server", "title", "complete"]
        aim = next(row["aim_seconds"] for row in results["rows"] if row["size"] == size)
        aims.append(f"{size} {milliseconds(aim)}")
    lines = [
        [page, *(cell for size in results["models"] for cell in _walk(rows.get(size)))] for page, rows in walked.items()
    ]
    sizes = "; ".join(
        f"{size}: {of['features']} features, {of['trees']} trees, {of['leaves']:,} leaves, {of['findings']} findings"
        for size, of in results["models"].items()
    )
    beside = f" An empty page is complete after {milliseconds(empty)}." if empty else ""
    note = (
        f"Milliseconds; all synthetic ({sizes}). Server: processor time of the dashboard's process, also for somebody who has signed in "
        f"(aim: at most {milliseconds(results['server_aim_seconds'])}). Title and complete: from the click in the sidebar to the title and "
        f"to the last change of the page, in Chromium at 1440 × 900, warm; median of {results['rounds']} walks, the worst in brackets "
        f"(aim: {', '.join(aims)}).{beside} The load average of the machine was {results['machine']['load_before']} before and "
        f"{results['load_after']} after, browser and dashboard included."
    )
    return f"{markdown(['page', *titles], lines)}\n\n{note}"


def _walk(row: Results | None) -> list[str]:
    """Cells of one page and model, in milliseconds."""
    if row is None:
        return ["–"] * 3
    server = rounded(1000 * row["server_seconds"])
    if "signed_in_seconds" in row:
        server += f" / {rounded(1000 * row['signed_in_seconds'])}"
    worst = rounded(1000 * row["worst_seconds"])
    return [server, rounded(1000 * row["title_seconds"]), f"{rounded(1000 * row['seconds'])} ({worst})"]


def startup(results: Results) -> str:
    """How long a command and the library take to start, beside their aims."""
    columns: dict[str, Column] = {
        "whole process": "`{command}`",
        "median": "{seconds:.2f} s",
        "fastest": "{fastest_seconds:.2f} s",
        "ratio to the libraries": "{ratio:.1f} ×",
        "aim": lambda row: _aim(row["aim"]) if row["aim"] else "",
    }
    note = f"One process after the other, in turns, medians of {results['repeats']}; the demo was prepared before."
    return f"{table(results['rows'], columns)}\n\n{note}"


def sessions(results: Results) -> str:
    """Many people in the dashboard at once, beside the aims."""
    columns: dict[str, Column] = {
        "what": "{name}",
        "answers": "{answers:,}",
        "median": "{median_seconds:.2f} s",
        "95th percentile": "{p95_seconds:.2f} s",
        "aim": lambda row: (
            f"at most {row['aim']['at_most']:g} s: {'reached' if row['aim']['reached'] else 'not reached'}"
        ),
    }
    low, high = results["pause"]
    reached = "reached" if results["memory_mb"] <= results["memory_aim_mb"] else "not reached"
    note = (
        f"{results['sessions']} sessions at once, each with {low:g} to {high:g} s between two clicks. The server's process "
        f"held {results['memory_mb']:.0f} MB in the end (aim: at most {results['memory_aim_mb']} MB: {reached})."
    )
    return f"{table(results['rows'], columns)}\n\n{note}"


def memory(results: Results) -> str:
    """What the dashboard's process holds, action after action, beside the aim."""
    columns: dict[str, Column] = {
        "what": "{name}",
        "most": "{peak_mb:.0f} MB",
        "at rest afterwards": "{rest_mb:.0f} MB",
    }
    reached = "reached" if results["peak_mb"] <= results["aim_mb"] else "not reached"
    return (
        f"{table(results['rows'], columns)}\n\nAt most {results['peak_mb']:.0f} MB, {results['rest_mb']:.0f} MB at rest in the end "
        f"(aim: at most {results['aim_mb']} MB: {reached}). The load average of the machine was {results['machine']['load_before']} before."
    )


def links(results: Results) -> str:
    """What links between companies cost beside the simulation, and the aims."""
    columns: dict[str, Column] = {
        "what": "{name}",
        "simulation": lambda row: _time(row["simulation_seconds"]),
        "over links": lambda row: _time(row["links_seconds"]),
        "95th percentile": lambda row: _time(row["links_p95_seconds"]),
        "ratio": "{ratio:.2f} ×",
        "aim": lambda row: _links_aim(row["aim"]),
    }
    note = (
        f"{results['data']}, {results['hosts']} Hosts, each a process of its own; RLWE, mTLS on localhost. "
        f"{results['scores']} people one by one in an open conversation, with {results['trees']} trees of depth {results['depth']} "
        f"({results['leaves']} leaves); medians of {results['repeats']} tables and trainings. Simulation and links took turns; the "
        "ratio is the median of the turns'."
    )
    here = measured_on(results["machine"]) if "machine" in results else ""
    elsewhere = [row for row in results["rows"] if "machine" in row and measured_on(row["machine"]) != here]
    lines = [
        f"{row['name'].capitalize()}: {measured_on(row['machine'])[0].lower()}{measured_on(row['machine'])[1:]}"
        for row in elsewhere
    ]
    return "\n\n".join([table(results["rows"], columns), note, *lines])


def _time(seconds: float) -> str:
    return milliseconds(seconds) if seconds < 1 else f"{seconds:.1f} s"


def _links_aim(aim: Results) -> str:
    words = {
        "at_most": "at most {:g} ×",
        "at_least": "at least {:.0%} of the throughput",
        "at_most_ms": "at most {:g} ms",
        "p95_at_most_ms": "95th percentile {:g} ms",
    }
    aims = ", ".join(text.format(aim[name]) for name, text in words.items() if name in aim)
    return f"{aims}: {'reached' if aim['reached'] else 'not reached'}"


def _aim(aim: Results) -> str:
    unit = {"ratio": "×", "seconds": "s"}[aim["field"]]
    return f"at most {aim['at_most']:g} {unit}: {'reached' if aim['reached'] else 'not reached'}"


def headline(results: Results) -> str:
    """The four figures that matter, each beside its peer; `results` holds whole result files by name."""
    largest = results["cipher"]["keys"][-1]
    sample = results["cipher"]["sample"]
    rows = {row["engine"]: row["sample"] for row in largest["rows"]}
    bulk = max(b["per_second"] for b in results["cipher"]["bulk"] if b["engine"] == "rlwe")
    plain = results["training"]["numbers"]
    ciphers = results["training_ciphers"]
    whole = ciphers["whole"]
    by_name = {row["cipher"]: row for row in ciphers["ciphers"]}
    slower = by_name["paillier"]["seconds_a_later_tree"] / by_name["rlwe"]["seconds_a_later_tree"]
    reasons_ = next(r for r in results["reasons"]["rows"] if r["leaves"] == sample["leaves"] and r["cipher"] == "rlwe")
    phe = rows["phe"]["cold"]["seconds"]
    lines = [
        [
            f"one score, Paillier, {largest['bits']:,} bits",
            f"{milliseconds(rows['paillier']['cold']['seconds'])}; {milliseconds(rows['paillier']['warm']['seconds'])} warm",
            f"`phe`: {milliseconds(phe)}",
        ],
        ["many scores, RLWE, one core", f"{rounded(bulk)} a second", f"`phe`: {rounded(1 / phe)} a second"],
        [
            f"reasons for one score (up to {results['reasons']['names']} names), RLWE",
            milliseconds(reasons_["seconds"]),
            f"the score itself: {milliseconds(reasons_['score_seconds'])}; `phe`: {rounded(reasons_['peer_seconds'])} s or more",
        ],
        [
            f"AUC of {results['training']['trees']} trees of depth {results['training']['depth']}",
            f"{plain['auc']:.4f}",
            f"XGBoost: {plain['xgboost_auc']:.4f}",
        ],
    ]
    note = (
        f"Scores and reasons: {sample['model']}; all parties' work added up on one core, without the time on the wire. Warm: pools "
        f"of precomputed randomness are full. The price: training {whole['trees']} trees over {ciphers['rows']:,} rows takes "
        f"{whole['seconds'] / 60:.1f} minutes under RLWE, the default, {whole['seconds'] / whole['plain_seconds']:.0f} times plaintext, "
        f"for the same trees; Paillier at {by_name['paillier']['key_bits']:,} bits takes {slower:.0f} times as long "
        "([training](docs/training.md#ciphers))."
    )
    return f"{markdown(['', 'Glassleaf', 'beside it'], lines)}\n\n{note}"


def alternatives(results: Results) -> str:
    """The first model and the frontier of its search at the first cut-off; and the answer at each."""
    columns: dict[str, Column] = {
        "model": "{title}",
        "AUC": "{auc[value]:.4f}",
        "change": lambda row: change(row, "auc"),
        "accepted": "{accepted:.1%}",
        "gap": "{gap[value]:+.4f}",
        "change of its width": lambda row: change(row, "gap"),
        "ratio": "{ratio[value]:.3f}",
    }

    def change(row: Results, figure: str) -> str:
        interval = row[f"{figure}_together"]
        if interval is None:
            return "–"
        return f"{row[f'{figure}_change']['value']:+.4f} [{interval['low']:+.4f}, {interval['high']:+.4f}]"

    def title(row: Results) -> str:
        tried = row["tried"]
        own = results["parameters"]
        changes = [f"without {', '.join(tried['without'])}"] if tried["without"] else []
        changes += ["expected directions"] if tried["constraints"] != own["constraints"] else []
        changes += [f"depth {tried['depth']}"] if tried["depth"] != own["depth"] else []
        changes += [f"λ {tried['reg_lambda']:g}"] if tried["reg_lambda"] != own["reg_lambda"] else []
        return "; ".join(changes) or FIRST

    rows = [row | {"title": title(row)} for row in results["rows"]]
    answers = []
    for cutoff in results["cutoffs"]:
        here = [row for row in rows if row["at"] == cutoff]
        found, sure = (sum(row[what] for row in here) for what in ("narrower", "sure"))
        answers.append(
            f"At the cut-off {cutoff:g}, {found} of {len(here) - 1} alternatives lose at most {results['tolerance']:g} of AUC and have a "
            f"narrower gap as measured; for {sure} of them both hold with 95 % for all alternatives together."
        )
    groups = results["groups"]
    reference = results["groups"][results["reference"]]
    sizes = " and ".join(f"{g['n']:,} of {results['attribute']} {g['name']}" for g in groups)
    own = results["parameters"]
    attribute = results["attribute"]
    records = f"{results['records']:,} validation records"
    note = (
        f"{DATA[results['federation']].capitalize()} data, {own['trees']} trees of depth {own['depth']}, {records}: "
        f"{sizes}. The table is at the cut-off {results['cutoffs'][0]:g}; a gap is the share accepted less that of {attribute} "
        f"{reference['name']}. Of the alternatives those on the frontier are shown; intervals hold for all of them together. "
        + " ".join(answers)
    )
    shown = [row for row in rows if row["at"] == results["cutoffs"][0] and (row["frontier"] or row["title"] == FIRST)]
    return f"{table(shown, columns)}\n\n{note}"


# block → (result file, writer); several files, separated by blanks, come as a dict by name
def weight(results: Results) -> str:
    """MB of each installation, and the packages that weigh most."""
    totals = []
    shares: dict[str, Results] = {}
    for installation in results["installations"]:
        command = installation["command"]
        packages = installation["packages"]
        totals.append(f"`{command}`: {rounded(installation['bytes'] / 1e6)} MB in {len(packages)} packages")
        for name, size in packages.items():
            shares.setdefault(name, {"package": name, "bytes": size})[command] = size
    heaviest = sorted(shares.values(), key=lambda share: -share["bytes"])[:HEAVIEST]
    columns: dict[str, Column] = {"package": "{package}", "MB": lambda share: rounded(share["bytes"] / 1e6)}
    for installation in results["installations"]:
        columns[f"`{installation['command']}`"] = _yes_in(installation["command"])
    return "\n\n".join([table(heaviest, columns), f"{'; '.join(totals)}; the {len(heaviest)} heaviest are shown."])


def _yes_in(command: str) -> Column:
    return lambda share: "yes" if command in share else ""


BLOCKS: dict[str, tuple[str, Callable[[Results], str]]] = {
    "alignment": ("alignment", alignment),
    "alternatives": ("alternatives", alternatives),
    "backgrounds": ("backgrounds", backgrounds),
    "cipher": ("cipher", cipher),
    "coverage": ("coverage", coverage),
    "growth": ("curves", growth),
    "growth_by_axis": ("growth", growth_by_axis),
    "headline": ("cipher training training_ciphers reasons", headline),
    "label_leak": ("label_leak", label_leak),
    "links": ("links", links),
    "memory": ("memory", memory),
    "pages": ("pages", pages),
    "peers": ("cipher", peers),
    "privacy": ("privacy", privacy),
    "ranking": ("ranking", ranking),
    "reasons": ("reasons", reasons),
    "score_bits": ("score_bits", score_bits),
    "sessions": ("sessions", sessions),
    "startup": ("startup", startup),
    "training": ("training", training),
    "training_ciphers": ("training_ciphers", training_ciphers),
    "verdicts": ("verdicts", verdicts),
    "weight": ("weight", weight),
    "where": ("curves", where),
}


def foretold(results: Results) -> str:
    """The share of scores that fit one path only: the line through all models, each table left out once, and the models."""
    line = results["line"]
    left_out: dict[str, Column] = {
        "table": "{table}",
        "models": "{models}",
        "within the range by the others": "{inside:.0%}",
        "above it": "{above:.0%}",
    }
    grid: dict[str, Column] = {
        "table": "{table}",
        "algorithm": "{algorithm}",
        "trees": "{trees}",
        "depth": "{depth}",
        "foretold": "{low:.1%} to {high:.1%}",
        "measured": "{share:.1%}",
    }
    drawn = (
        f"Log-odds through {line['models']} models: {line['start']:.2f}, less {line['per_doubling']:.2f} for twice the trees and "
        f"{line['per_level']:.2f} for a level; of a table that was left out nine in ten lie within {line['spread']:.2f}."
    )
    return "\n\n".join([drawn, table(results["left_out"], left_out), table(results["models"], grid)])
