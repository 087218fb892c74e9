"""The results of `bench.paper.forest_ciphers` beside the figures that Yao et al. print."""

from __future__ import annotations

from bench.tables import Results, markdown, rounded

TABLE_7 = {
    "scalar": ("scalar multiplication", "53.17", "3.66", "14×"),
    "addition": ("addition", "148.38", "2.54", "58×"),
    "decryption": ("decryption", "4.76", "0.0036", "130×"),
    "encryption": ("encryption", "16570", "53.86", "307×"),
}  # µs


def blocks(results: Results) -> list[str]:
    """Blocks of Markdown."""
    seconds = results["seconds_each"]
    rows = []
    for operation, (title, *theirs) in TABLE_7.items():
        textbook, ours, broken = (seconds[cipher][operation] for cipher in ("phe", "glassleaf", "riac"))
        figures = [f"{rounded(1e6 * s)}" for s in (textbook, ours, broken)]
        rows.append([title, *figures, f"{rounded(textbook / broken)}×", f"{rounded(ours / broken)}×", *theirs])
    header = ["µs a number", "Paillier, `phe`", "Paillier, ours", "RIAC (broken)", "`phe` ÷ RIAC", "ours ÷ RIAC"]
    header += ["their Paillier", "their RIAC", "their speed-up"]
    textbook, ours, broken = (seconds[cipher]["encryption"] for cipher in ("phe", "glassleaf", "riac"))
    encryption = textbook / ours
    note = (
        f"{results['numbers']:,} numbers from N(0, 10⁸); Paillier with {results['bits']:,} bits, RIAC with {results['riac_bits']:,} bits "
        "(the paper names no size for either). **RIAC protects nothing**: its ciphertexts alone give 0/1 labels away (`python -m backend "
        f"attack T1`), so that its speed is that of no protection, and nothing in Glassleaf uses it. Ours encrypts {rounded(encryption)} "
        f"times as fast as `phe`: RIAC is ahead by {rounded(ours / broken)}, not by {rounded(textbook / broken)}. Their decryption, 4.76 "
        "µs beside an encryption of 16,570, cannot be a power modulo n²; the unit is likely ms in that row."
    )
    return ["### Table 7: RIAC beside Paillier", markdown(header, rows), note]
