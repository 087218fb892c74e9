"""Which programs may ask `serve`: `tokens add`, `list`, `revoke`. A token is shown when it is made, and never again."""

from __future__ import annotations

from typing import Annotated

import typer

from backend.cli.output import AsJson, open_glassleaf, print_result, split_list
from backend.server.tokens import Tokens

app = typer.Typer(
    add_completion=False, name="tokens", no_args_is_help=True, help="Which programs may ask `glassleaf serve`."
)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Which program it is for.")],
    models: Annotated[str, typer.Option(help="Models that it may ask, separated by commas (default: all).")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, this once; only its hash is kept."""
    with open_glassleaf() as glassleaf:
        model_ids = tuple(glassleaf.models.get(model).id for model in split_list(models))
        token = Tokens(glassleaf.home).add(name, model_ids)
    print_result({"name": name, "models": model_ids, "token": token}, token, as_json)


@app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List tokens by name, with the models that they reach."""
    with open_glassleaf() as glassleaf:
        all_tokens = Tokens(glassleaf.home).all()
    lines = [f"{token.name}: {', '.join(token.models) or 'all models'}" for token in all_tokens]
    text = "\n".join(lines) or "No token yet: `glassleaf serve` listens to this machine's own programs alone."
    print_result([{"name": token.name, "models": token.models} for token in all_tokens], text, as_json)


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="Its name.")], as_json: AsJson = False) -> None:
    """Delete a token; who bears it is refused from now on."""
    with open_glassleaf() as glassleaf:
        Tokens(glassleaf.home).revoke(name)
    print_result({"revoked": name}, f"Revoked: {name}", as_json)
