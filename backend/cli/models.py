"""The registered models from a shell: `models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from backend.cli.output import AsJson, open_glassleaf, print_result, quality_text, say
from backend.results import RANKS

if TYPE_CHECKING:
    from backend.results import ModelRecord

app = typer.Typer(add_completion=False)


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the registered models, newest first; a federation that cannot be used is named with its reason, and left out."""
    with open_glassleaf() as glassleaf:
        records, broken = glassleaf.models.all(), glassleaf.federations.broken()
    for name, reason in broken.items():
        say(f"The federation {name!r} cannot be used, and its models are not listed. {reason}")
    text = "\n".join(model_text(r) for r in records) or "No model yet. Run `glassleaf demo` or `glassleaf train`."
    print_result([asdict(r) for r in records], text, as_json)


def model_text(r: ModelRecord) -> str:
    """One line about a model."""
    on = {"none": "plaintext (simulation)", RANKS: "noisy ranks"}.get(r.cipher, f"Paillier, {r.key_bits} bits")
    how = r.algorithm if r.algorithm.startswith("imported") else f"{r.algorithm} on {on}"
    return (
        f"{r.id}  {r.federation}  {r.created[:19]}  {r.n_trees} trees, {r.n_leaves} leaves  {how}  "
        f"{quality_text(r.metrics)}"
    )
