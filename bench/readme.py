"""Writes measured figures into the documents, between ``<!-- figures: NAME -->`` and ``<!-- end -->``, and draws one.

Reads `bench/results/*.json`, which `make bench` writes; needs the standard library alone. `--check` fails when something differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.plot import figure
from bench.tables import TABLES, markdown, rounded

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
FIGURE = ROOT / "docs" / "images" / "cipher-speed.svg"
BETWEEN = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
TITLES = {"demo": "demo", "credit_card": "credit card"}


def main() -> int:
    """Write the figures into every document that has room for them, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a document is stale")
    check = parser.parse_args().check
    stale = []
    for page, fresh in pages().items():
        if not page.exists() or page.read_text(encoding="utf-8") != fresh:
            if check:
                stale.append(page.relative_to(ROOT).as_posix())
            else:
                page.write_text(fresh, encoding="utf-8")
    if stale:
        sys.stderr.write(
            f"{', '.join(stale)}: figures differ from bench/results. Run `make docs` and commit the result.\n"
        )
    return 1 if stale else 0


def pages() -> dict[Path, str]:
    """README.md, every page of docs/ and the figure, as they should be."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    fresh = {page: filled(page.read_text(encoding="utf-8")) for page in documents}
    curves = _read("curves")
    return fresh | ({FIGURE: figure(curves)} if curves else {})


def filled(text: str) -> str:
    """`text` with its figures as they are in the results."""
    return BETWEEN.sub(lambda m: f"{m[1]}{FIGURES[m[2]]()}\n{m[3]}", text)


def _read(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def of_cipher(name: str) -> str:
    """One of :data:`bench.tables.TABLES`, with the machine it was measured on."""
    file, table = TABLES[name]
    found = _read(file)
    return "Not measured yet: `make bench`." if found is None else f"{table(found)}\n\n{_measured_on(found['machine'])}"


def training() -> str:
    """Quality and time beside XGBoost."""
    found = _read("training")
    if found is None or "encrypted" not in found:
        return "Not measured yet: `make bench` with the credit-card data."
    names = {"numbers": "coded columns as numbers", "codes": "coded columns as categories"}
    rows = [
        [
            names[kind],
            f"{r['auc']:.4f}",
            f"{r['xgboost_auc']:.4f}",
            f"{r['ks']:.4f}",
            f"{r['xgboost_ks']:.4f}",
            f"{r['seconds']:.2f} s",
            f"{r['xgboost_seconds']:.2f} s",
        ]
        for kind, r in ((k, found[k]) for k in names)
    ]
    header = ["credit card", "AUC", "XGBoost", "KS", "XGBoost", "seconds", "XGBoost"]
    e = found["encrypted"]
    same = "are the same trees, byte for byte" if e["same_trees_as_plain"] else "DIFFER from the plain ones"
    note = (
        f"{found['trees']} trees of depth {found['depth']}, {found['bins']} bins; XGBoost's `hist` gets the same rows and bins and one "
        f"thread. Our seconds are of alignment and growth on plaintext, messages included. On ciphertexts {e['trees']} trees "
        f"of depth {e['depth']} over {e['rows']:,} rows take {e['seconds'] / 60:.1f} minutes at {e['key_bits']:,} bits on all cores "
        "(measured once), "
        f"{e['times_plain']:.0f} times plaintext and {e['times_xgboost']:,.0f} times XGBoost, and {same}."
    )
    return "\n\n".join([markdown(header, rows), note])


def alignment() -> str:
    """What finding the joint records costs."""
    found = _read("alignment")
    if found is None:
        return "Not measured yet: `make bench`."
    names = {"hashing": "plain SHA-256 of ids (broken: ids can be guessed)", "dh": "dh", "bloom": "bloom"}
    rows = [
        [
            names[way],
            *(f"{found[way][f'{party}_seconds']:.2g} s" for party in ("guest", "host")),
            *(f"{found[way][f'{party}_bytes'] / 1e6:.2f} MB" for party in ("guest", "host")),
            str(found[way]["messages"]),
        ]
        for way in names
    ]
    return markdown(["", "Guest", "Host", "sent by Guest", "sent by Host", "messages"], rows)


def ranking() -> str:
    """What finding the largest contributions costs."""
    found = _read("ranking")
    if found is None:
        return "Not measured yet: `make bench`."
    header = [
        "key",
        "n",
        "Guest",
        "Host",
        "and-gates",
        "sent",
        "rounds",
        *(r["wire"] for r in found["rows"][0]["wires"]),
    ]
    rows = [
        [
            f"{r['key_bits']:,}",
            str(r["numbers"]),
            f"{r['guest_seconds']:.2g} s",
            f"{r['host_seconds']:.2g} s",
            f"{r['gates']:,}",
            f"{(r['guest_bytes'] + r['host_bytes']) / 1e3:.0f} kB",
            str(found["rounds"]),
            *(f"+ {w['seconds']:.2g} s" for w in r["wires"]),
            *([f"{r['peer_seconds']:.2g} s", f"{r['ratio']:.0f} ×"] if "ratio" in r else ["–", "–"]),
        ]
        for r in found["rows"]
    ]
    note = (
        "The peer is `tno.mpc.protocols.secure_comparison`: n − 1 + k·⌈log₂ n⌉ times the measured time of one of its comparisons, both "
        "parties together, with nothing for carrying winners and names along and nothing for its DGK key. "
        + _measured_on(found["machine"])
    )
    return "\n\n".join([markdown([*header, "peer, at least", "ratio"], rows), note])


def reasons() -> str:
    """What reasons cost, and whether they are the plain ones."""
    found = _read("reasons")
    if found is None:
        return "Not measured yet: `make bench`."
    header = [
        "model",
        "cipher",
        "ciphertexts",
        "Guest",
        "Hosts",
        "ranking",
        "keys",
        "sent",
        "a score",
        "ratio to it",
        "peer, at least",
        "ratio",
    ]
    rows = [
        [
            r["model"],
            _reason_cipher(r),
            f"{r['ciphertexts']:,}",
            f"{r['terms_guest_seconds']:.2g} s",
            f"{r['terms_host_seconds']:.2g} s",
            f"{r['ranking_guest_seconds'] + r['ranking_host_seconds']:.2g} s",
            f"{r['key_bytes'] / 1e6:.2f} MB",
            f"{r['bytes'] / 1e6:.2f} MB",
            f"{r['score_seconds']:.2g} s",
            f"{r['to_score']:.1f} ×",
            f"{rounded(r['peer_seconds'])} s",
            f"{r['ratio']:.0f} ×",
        ]
        for r in found["rows"]
    ]
    groups = [
        [
            g["model"],
            _reason_cipher(g),
            f"{g['people']:,}",
            f"{g['measured']:,}",
            f"{rounded(g['guest_seconds'])} s",
            f"{rounded(g['host_seconds'])} s",
            f"{g['bytes'] / 1e6:.0f} MB",
        ]
        for g in found["cohorts"]
    ]
    sums = markdown(["model", "cipher", "people", "measured", "Guest", "Hosts", "sent"], groups)
    told = [
        f"**Faithfulness** ({f['model']}): the four names by the protocol's own integers are those of plain SHAP values for "
        f"{f['same_names']:.1%} of {f['people']} people; the largest error of a contribution is {f['largest_error']:.1g}, the bound "
        f"{f['error_bound']:.1g}. "
        "The dither of scores does not touch contributions; were they dithered, the four names would stay the same for "
        + " and ".join(f"{share:.1%} (width {w})" for w, share in f["same_under_dither_of_contributions"].items())
        + " of these people."
        for f in found["faithfulness"]
    ]
    between = "Means over a group; where fewer people were measured, the figures of all are worked out from theirs:"
    return "\n\n".join([markdown(header, rows), between, sums, *told, _measured_on(found["machine"])])


def _reason_cipher(row: dict[str, Any]) -> str:
    return "RLWE" if row["cipher"] == "rlwe" else f"Paillier, {row['key_bits']:,}"


def score_bits() -> str:
    """Quality by number of score bits."""
    found = _read("score_bits")
    if found is None:
        return "Not measured yet: `make bench`."
    rows = [
        [TITLES[run["federation"]], str(r["bits"]), f"{r['auc']:.4f}", f"{r['ks']:.4f}", f"{r['alone']:.1%}"]
        for run in found["runs"]
        for r in run["rows"]
    ]
    return markdown(["data", "bits", "AUC", "KS", "alone"], rows)


def privacy() -> str:
    """Paths that fit a score, and quality, by resolution and dither; and the meter's speed."""
    found = _read("privacy")
    if found is None:
        return "Not measured yet: `make bench`."
    rows = [
        [
            str(p["score_bits"]),
            f"{p['dither']:g}" if p["dither"] else "none",
            f"{p['unique']:.1%}",
            f"{p['paths']:g}",
            f"{p['metrics']['auc']:.4f}",
            f"{p['metrics']['ks']:.4f}",
        ]
        for p in found["points"]
    ]
    first = found["points"][0]
    meter = ", ".join(f"{m['seconds']:.3f} s at {m['bits']} bits" for m in found["meter"])
    note = (
        f"{TITLES[found['federation']].capitalize()} data, {found['trees']} trees of depth {found['depth']}, "
        f"{first['people']:,} test records compared with {first['records']:,} Host records. The leak meter reads a score of a "
        f"model of {found['meter'][0]['trees']} trees in {meter} (processor time)."
    )
    header = ["bits", "dither (width)", "one path only", "paths that fit (median)", "AUC", "KS"]
    return f"{markdown(header, rows)}\n\n{note}\n\n{_measured_on(found['machine'])}"


def _measured_on(machine: dict[str, Any]) -> str:
    return f"Measured on one machine: {machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, gmpy2 {machine['gmpy2']}."


FIGURES: dict[str, Callable[[], str]] = {
    "alignment": alignment,
    "ranking": ranking,
    "reasons": reasons,
    "training": training,
    "score_bits": score_bits,
    "privacy": privacy,
} | {name: partial(of_cipher, name) for name in TABLES}


if __name__ == "__main__":
    sys.exit(main())
