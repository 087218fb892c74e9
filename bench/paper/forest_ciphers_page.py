"""The results of `bench.paper.forest_ciphers` beside the figures that Yao et al. print."""

from __future__ import annotations

from bench.paper.template import fill
from bench.tables import Results, markdown, rounded

# µs of Paillier and RIAC, and the speed-up
TABLE_7 = {
    "scalar": ("scalar multiplication", "53.17", "3.66", "14×"),
    "addition": ("addition", "148.38", "2.54", "58×"),
    "decryption": ("decryption", "4.76", "0.0036", "130×"),
    "encryption": ("encryption", "16570", "53.86", "307×"),
}


def text(results: Results) -> str:
    """The cipher's section of the page."""
    rows = []
    seconds = results["seconds_each"]
    for operation, (title, *theirs) in TABLE_7.items():
        textbook, ours, broken = (seconds[cipher][operation] for cipher in ("phe", "glassleaf", "riac"))
        figures = [rounded(1e6 * s) for s in (textbook, ours, broken)]
        rows.append([title, *figures, f"{rounded(textbook / broken)}×", f"{rounded(ours / broken)}×", *theirs])
    header = ["µs a number", "Paillier, `phe`", "Paillier, ours", "RIAC (broken)", "`phe` ÷ RIAC", "ours ÷ RIAC"]
    return fill(
        "riac",
        results=results,
        table_7=markdown([*header, "their Paillier", "their RIAC", "their speed-up"], rows),
        # encryption is the last operation
        encryption=rounded(textbook / ours),
        ahead_of_ours=rounded(ours / broken),
        ahead_of_phe=rounded(textbook / broken),
    )
