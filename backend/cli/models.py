"""The registered models from a shell: `models list`, what they are called, and their way from draft to retirement."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, ModelId, in_utc, open_glassleaf, print_result, quality_text, say
from backend.remark import one_line
from backend.results import RANKS
from backend.services.roles import OPERATOR, ROLES

if TYPE_CHECKING:
    from backend.results import ModelRecord
    from backend.services.lifecycle import ModelState

Person = Annotated[str, typer.Option("--as", help="Who takes the step (default: the system's user).")]
Role = Annotated[str, typer.Option(help=f"In which role: {', '.join(ROLES)}. Nobody is authenticated here.")]
Because = Annotated[str, typer.Option(help="The reason, 10 characters or more.")]
app = typer.Typer(
    add_completion=False,
    name="models",
    invoke_without_command=True,
    help="The registered models: list them, name them, take them from draft to in use (docs/decisions/0019-lifecycle.md).",
)


@app.callback()
def models(context: typer.Context, as_json: AsJson = False) -> None:
    """List the registered models, newest first; with a step behind it, take that step."""
    if context.invoked_subcommand is None:
        list_models(as_json)


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List the registered models, newest first; a federation that cannot be used is named with its reason, and left out."""
    with open_glassleaf() as glassleaf:
        records, broken, states = glassleaf.models.all(), glassleaf.federations.broken(), glassleaf.models.states()
    from backend.cli import language_of_shell

    for name, why in broken.items():
        say(f"{name}: {one_line(why.sentence(language_of_shell()))}")
    text = "\n".join(model_text(r, states[r.id]) for r in records)
    document = [asdict(r) | _described(states[r.id]) for r in records]
    if text or not broken:
        print_result(document, text or "No model yet. Run `glassleaf demo` or `glassleaf train`.", as_json)
    else:  # nobody knows whether there is a model
        print_result(document, (), as_json)
        raise typer.Exit(1)


@app.command()
def describe(
    model: ModelId,
    name: Annotated[str | None, typer.Option(help="What the model is called; empty takes its name away.")] = None,
    note: Annotated[str | None, typer.Option(help="What is worth knowing about it.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who answers for it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Give a model a name, a note or an owner."""
    with open_glassleaf() as glassleaf:
        glassleaf.lifecycle.describe(model, name=name, text=note, owner=owner)
        found = glassleaf.lifecycle.standing(model).model
    print_result(_described(found), _line(found), as_json)


@app.command()
def submit(model: ModelId, person: Person = "", role: Role = OPERATOR, as_json: AsJson = False) -> None:
    """Ask for a review: draft → in review. An operator's or an analyst's step."""
    _step(model, "submit", person, role, "", as_json)


@app.command()
def approve(
    model: ModelId, because: Because = "", person: Person = "", role: Role = OPERATOR, as_json: AsJson = False
) -> None:
    """Approve a model in review: a regulator's step, not of who trained, owns or submitted it; a reason where findings are undecided."""
    _step(model, "approve", person, role, because, as_json)


@app.command()
def use(model: ModelId, person: Person = "", role: Role = OPERATOR, as_json: AsJson = False) -> None:
    """Put an approved model in use, in place of the one in use, which is approved from then on. An operator's step."""
    _step(model, "use", person, role, "", as_json)


@app.command("return")
def return_(
    model: ModelId, because: Because = "", person: Person = "", role: Role = OPERATOR, as_json: AsJson = False
) -> None:
    """Return a model in review, approved or in use to draft, with a reason. A regulator's step."""
    _step(model, "return", person, role, because, as_json)


@app.command()
def retire(
    model: ModelId, because: Because = "", person: Person = "", role: Role = OPERATOR, as_json: AsJson = False
) -> None:
    """Retire a model for good, with a reason. An operator's step."""
    _step(model, "retire", person, role, because, as_json)


@app.command()
def history(model: ModelId, as_json: AsJson = False) -> None:
    """Every step that a model took: when, who, in which role, why."""
    with open_glassleaf() as glassleaf:
        steps = glassleaf.lifecycle.history(model)
    lines = [
        f"{s.time[:19]}  {_in_words(s.before)} → {_in_words(s.after)}  {s.person} ({s.role})"
        + (f": {s.reason}" * bool(s.reason))
        for s in steps
    ]
    print_result([asdict(s) for s in steps], lines or "No step yet: a draft.", as_json)


def _step(model: str, step: str, person: str, role: str, reason: str, as_json: bool) -> None:
    with open_glassleaf() as glassleaf:
        acting = glassleaf.acting(person, role)
        acting.lifecycle.step(model, step, reason=reason)
        found = acting.lifecycle.standing(model).model
    print_result(_described(found), _line(found), as_json)


def _in_words(state: str) -> str:
    return state.replace("_", " ")


def _described(state: ModelState) -> dict[str, str]:
    return {"name": state.name, "note": state.note, "owner": state.owner, "state": state.state}


def _line(state: ModelState) -> str:
    return (
        f"{state.model_id}  {state.name or '(no name)'}: {_in_words(state.state)}, owned by {state.owner or 'nobody'}"
    )


def model_text(r: ModelRecord, state: ModelState | None = None) -> str:
    """One line about a model; what it is called and how far it has come where that is given."""
    other = {"none": "plaintext (simulation)", RANKS: "noisy ranks", "rlwe": f"RLWE, degree {r.key_bits}"}
    on = other.get(r.cipher, f"Paillier, {r.key_bits} bits")
    how = r.algorithm if r.algorithm.startswith("imported") else f"{r.algorithm} on {on}"
    parts = [
        r.id,
        *(filter(None, (state.name, _in_words(state.state))) if state else ()),
        r.federation,
        in_utc(r.created),
    ]
    return "  ".join([*parts, f"{r.n_trees} trees, {r.n_leaves} leaves", how, quality_text(r.metrics)])
