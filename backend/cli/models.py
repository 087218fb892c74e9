"""The registered models from a shell: `models list`, what they are called, and their way from draft to retirement."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.model_text import in_words, model_text, release_text, watch_training
from backend.cli.output import (
    AsJson,
    Federation,
    ModelId,
    PassphraseFile,
    check_out,
    chosen_federation,
    open_glassleaf,
    print_result,
    save,
    say,
    split_list,
)
from backend.cli.packs import (
    PackFile,
    PackOut,
    Receiver,
    Sender,
    home_keys_text,
    known_federation,
    pack_key,
    packed_text,
    read_pack_file,
)
from backend.errors import ParameterError
from backend.i18n import Catalogue
from backend.remark import one_line
from backend.results import DEMO, told_by_scores
from backend.services.roles import OPERATOR, ROLES

if TYPE_CHECKING:
    from backend.services.lifecycle import ModelState
    from backend.services.sealing import Sealed

Person = Annotated[str, typer.Option("--as", help="Who takes the step (default: the system's user).")]
SealedIn = Annotated[str, typer.Option(help="A federation's folder, file or name.")]
Role = Annotated[str, typer.Option(help=f"In which role: {', '.join(ROLES)}. Nobody is authenticated here.")]
Because = Annotated[str, typer.Option(help="The reason, 10 characters or more.")]
app = typer.Typer(
    add_completion=False,
    name="models",
    invoke_without_command=True,
    help="The registered models: list them, name them, take them from draft to in use (docs/decisions/who-decides.md).",
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
        records = glassleaf.models.all()
        broken = glassleaf.federations.broken()
        states = glassleaf.models.states()
    from backend.cli import language_of_shell

    for name, why in broken.items():
        say(f"{name}: {one_line(why.sentence(language_of_shell()))}")
    text = "\n".join(model_text(r, states[r.id]) for r in records)
    document = [asdict(r) | _described(states[r.id]) for r in records]
    if text or not broken:
        print_result(document, text or "No model yet. Run `glassleaf demo` or `glassleaf train`.", as_json)
    else:  # it is not known whether there is a model
        print_result(document, (), as_json)
        raise typer.Exit(1)


@app.command()
def sealed(federation: SealedIn = DEMO, as_json: AsJson = False) -> None:
    """List the models of a federation that you trained and that were not released, with what each can still become."""
    with open_glassleaf() as glassleaf:
        sealed_models = glassleaf.sealed_models.all(chosen_federation(glassleaf, federation))
    document = [asdict(sealed_model) for sealed_model in sealed_models]
    print_result(document, "\n".join(map(_sealed_text, sealed_models)) or "No sealed model of yours.", as_json)


def _sealed_text(sealed_model: Sealed) -> str:
    """Return what a sealed model is and which steps it has left."""
    can = ["--coarser"] if sealed_model.bits is not None else []
    if sealed_model.trees < sealed_model.approved_trees:
        can.append(f"--trees up to {sealed_model.approved_trees}")
    can.append("no option, once its Hosts add wider dither")
    told_text = told_by_scores(sealed_model.record.release, sealed_model.record.score_bits).sentence()
    return f"{model_text(sealed_model.record)}\n  {told_text}\n  glassleaf models release {sealed_model.record.id}: {'; '.join(can)}."


@app.command()
def release(
    model: Annotated[str, typer.Argument(help="Id of a sealed model.")],
    federation: SealedIn = DEMO,
    coarser: Annotated[
        bool, typer.Option(help="Round its scores, at the Guest alone, to the finest bits that keep to the rule.")
    ] = False,
    score_bits: Annotated[int, typer.Option(help="Round its scores to so many bits instead.")] = 0,
    trees: Annotated[int, typer.Option(help="Let trees go on growing until there are so many.")] = 0,
    discard: Annotated[bool, typer.Option(help="Delete it instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a sealed model again, as it is or after one change, and release it if it keeps to the rule; else it stays sealed."""
    if sum(map(bool, (coarser, score_bits, trees, discard))) > 1:
        raise ParameterError("one_change_at_a_time")
    with open_glassleaf() as glassleaf:
        name = chosen_federation(glassleaf, federation)
        models = glassleaf.sealed_models
        if discard:
            models.discard(name, model)
            print_result({"discarded": model}, f"Deleted {model}.", as_json)
            return
        if trees:
            job = models.start_growing(name, model, trees)
        elif coarser or score_bits:
            job = models.start_coarser(name, model, score_bits or None)
        else:
            job = models.start_measuring(name, model)
        record = watch_training(job)
    print_result(asdict(record), [f"Released. {model_text(record)}", *release_text(record)], as_json)


@app.command()
def describe(
    model: ModelId,
    name: Annotated[str | None, typer.Option(help="What the model is called; empty takes its name away.")] = None,
    note: Annotated[str | None, typer.Option(help="What is worth knowing about it.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who answers for it.")] = None,
    places: Annotated[
        str | None,
        typer.Option(
            help="Where its people live, by commas, if elsewhere than the federation says; empty: as it says."
        ),
    ] = None,
    product: Annotated[
        str | None, typer.Option(help="What it is for, if something else than the federation says; empty: as it says.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give a model a name, a note or an owner, or places and a product of its own, by which law is chosen."""
    with open_glassleaf() as glassleaf:
        place_names = None if places is None else split_list(places)
        glassleaf.lifecycle.describe(model, name=name, text=note, owner=owner, places=place_names, product=product)
        state = glassleaf.lifecycle.standing(model).model
    print_result(_described(state), _line(state), as_json)


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
        f"{s.time[:19]}  {in_words(s.before)} → {in_words(s.after)}  {s.person} ({s.role})"
        + (f": {s.reason}" * bool(s.reason))
        for s in steps
    ]
    print_result([asdict(s) for s in steps], lines or "No step yet: a draft.", as_json)


@app.command()
def verdict(model: ModelId, as_json: AsJson = False) -> None:
    """What is true of a model, the worst first: broken, undecided, not measured, no breach shown; in the language of the shell."""
    from backend.cli import language_of_shell

    with open_glassleaf() as glassleaf:
        model_verdict = glassleaf.verdicts.of(model)
    words = Catalogue(language_of_shell())
    lines = [words.text(model_verdict.headline)]
    for fact in model_verdict.facts:
        lines.append(f"{words(f'verdict.{fact.state}')}: {words.text(fact.sentence)}")
    print_result(asdict(model_verdict), lines, as_json)


@app.command()
def address(federation: Federation, as_json: AsJson = False) -> None:
    """Print this home's public keys: one that packs for it are sealed with, and one that its own packs are signed with."""
    with open_glassleaf() as glassleaf:
        keys = glassleaf.model_packs.keys(known_federation(glassleaf, federation))
    print_result(asdict(keys), home_keys_text(keys), as_json)


@app.command()
def pack(
    model: ModelId,
    out: PackOut,
    receiver: Receiver = "",
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the Guest's half of a model with its policy, steps, reviews and signatures into one sealed file; the model stays."""
    check_out(out)
    key = pack_key(receiver, passphrase_file)
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.get(model)
        file = glassleaf.model_packs.pack(record.id, key)
        keys = glassleaf.model_packs.keys(record.federation)
    save(out, file)
    print_result({"model": record.id, "file": str(out), "sender": keys.signing}, packed_text(out, keys), as_json)


@app.command()
def unpack(
    federation: Federation,
    file: PackFile,
    sender: Sender = "",
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Register the Guest's half of a model that another home of this Guest packed; Hosts unpack their own halves."""
    blob, passphrase = read_pack_file(file, passphrase_file)
    with open_glassleaf() as glassleaf:
        name = known_federation(glassleaf, federation)
        unpacked = glassleaf.model_packs.unpack(name, blob, passphrase, sender)
        state = glassleaf.lifecycle.standing(unpacked.record.id).model
    hosts = ", ".join(unpacked.hosts)
    lines = [model_text(unpacked.record, state)]
    if unpacked.hosts and unpacked.simulated:
        lines.append(f"It scores here once the halves of {hosts} are here, too: `glassleaf host models unpack`.")
    elif unpacked.hosts:
        lines.append(
            f"{hosts}: approvals are theirs. What they allowed this Guest holds; otherwise they are asked again."
        )
    print_result({**asdict(unpacked), "state": state.state}, lines, as_json)


def _step(model: str, step: str, person: str, role: str, reason: str, as_json: bool) -> None:
    with open_glassleaf() as glassleaf:
        acting = glassleaf.acting(person, role)
        acting.lifecycle.step(model, step, reason=reason)
        state = acting.lifecycle.standing(model).model
    print_result(_described(state), _line(state), as_json)


def _described(state: ModelState) -> dict[str, str]:
    return {
        "name": state.name,
        "note": state.note,
        "owner": state.owner,
        "state": state.state,
        "places": state.places,
        "product": state.product,
    }


def _line(state: ModelState) -> str:
    law = ", ".join(part for part in (state.places, state.product) if part)
    law_text = f"; law of {law}" if law else ""
    title = f"{state.model_id}  {state.name or '(no name)'}"
    return f"{title}: {in_words(state.state)}, owned by {state.owner or 'nobody'}{law_text}"
