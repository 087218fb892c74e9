"""The agreement between companies from a shell: `agreement draft`, `show`, `sign`, `verify`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import AsJson, check_out, day_of, print_result, save
from backend.errors import ParameterError
from backend.i18n import counted

if TYPE_CHECKING:
    from backend.link.agreement import Agreement

File = Annotated[Path, typer.Argument(help="The agreement with its signatures, e.g. agreement.toml.")]
app = typer.Typer(
    add_completion=False,
    name="agreement",
    no_args_is_help=True,
    help="What Guest and Hosts have agreed to: draft, show, sign, verify. Needs the extra `link`.",
)


@app.command()
def show(file: File, as_json: AsJson = False) -> None:
    """Show parties, purposes, limits and the hash that all have to see."""
    from backend.link.agreement import load_agreement

    agreement = load_agreement(file)
    print_result({"hash": agreement.hash, **agreement.model_dump(mode="json")}, _text(agreement), as_json)


@app.command()
def draft(
    parties: Annotated[
        list[Path],
        typer.Argument(
            help="What each party hands out: the Guest its NAME.party.toml, a Host what `host disclose` writes."
        ),
    ],
    title: Annotated[str, typer.Option(help="What the agreement is called.")],
    purpose: Annotated[str, typer.Option(help="What is asked for, e.g. Credit scores of applicants.")],
    legal_basis: Annotated[str, typer.Option(help="On which legal basis.")],
    until: Annotated[str, typer.Option(metavar="DATE", help="Last day (UTC), e.g. 2027-12-31.")],
    address: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the Guest listens.")],
    hosts: Annotated[
        Path,
        typer.Option(
            help="File to write what Hosts disclose to, for the Guest's federation.toml; it may not be there yet."
        ),
    ] = Path("hosts.toml"),
    out: Annotated[Path, typer.Option(help="File to write; it may not be there yet.")] = Path("agreement.toml"),
    rows_per_day: Annotated[int, typer.Option(help="People a day at most; 0 = not limited.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Write an agreement to begin with: one purpose, every kind of message, the usual floors. Read it before you sign it."""
    from backend.link.agreement import load_agreement
    from backend.link.draft import AgreementTerms
    from backend.link.draft import draft as drafted

    check_out(out)
    check_out(hosts)
    if out.exists():
        raise ParameterError("agreement_file_exists", file=out)
    terms = AgreementTerms(title, purpose, legal_basis, day_of(until), address, rows_per_day)
    drafts = drafted(parties, terms)
    disclosed = drafts.hosts.encode()
    # The agreement is written last: without it, the same command goes on where it was killed.
    if hosts.is_file():
        if hosts.read_bytes() != disclosed:
            raise ParameterError("agreement_file_exists", file=hosts)
    else:
        save(hosts, disclosed)
    save(out, drafts.agreement.encode())
    agreement = load_agreement(out)
    text = (
        f"Written to {out}, and what Hosts disclose to {hosts}. Read it, change what is to be changed; then every party signs it.\n"
        + "\n".join(_text(agreement))
    )
    print_result({"file": str(out), "hash": agreement.hash}, text, as_json)


@app.command()
def sign(
    file: File,
    keys: Annotated[Path, typer.Option(help="Folder of your keys.")] = Path("keys"),
    amends: Annotated[
        Path | None, typer.Option(help="The agreement before, where this one amends it; its hash is compared.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add your signature to your copy of the agreement; others' signatures come over the links."""
    from backend.link import agreement
    from backend.link.identity import load_identity
    from backend.link.rpc import require_grpc

    require_grpc()
    signed = agreement.sign(file, load_identity(keys), amends)
    unsigned = []
    for party in agreement.load_agreement(file).parties:
        if party.name not in signed:
            unsigned.append(party.name)
    if unsigned:
        waits = f"; {', '.join(unsigned)} still to sign"
    else:
        waits = "; all parties have signed"
    print_result({"signed": list(signed), "left": unsigned}, f"Signed by {', '.join(signed)}{waits}.", as_json)


@app.command()
def verify(file: File, as_json: AsJson = False) -> None:
    """Check every signature and the days; exit status 1 if it is not in force."""
    from backend.errors import SecurityError
    from backend.link.agreement import load_agreement, load_in_force, signers
    from backend.link.rpc import require_grpc

    require_grpc()
    agreement = load_agreement(file)
    signed = signers(file)
    problem = ""
    try:
        load_in_force(file, agreement.guest.name, datetime.now(UTC))
    except SecurityError as error:
        problem = str(error)
    text = f"{agreement.hash}\nsigned by {', '.join(signed) or 'nobody'}\n{problem or 'in force'}"
    print_result(
        {"hash": agreement.hash, "signed": list(signed), "in_force": not problem, "problem": problem},
        text,
        as_json,
        ok=not problem,
    )


def _text(agreement: Agreement) -> list[str]:
    lines = [agreement.title, f"hash {agreement.hash}", f"from {agreement.valid_from} to {agreement.valid_until} (UTC)"]
    lines += [f"amends {agreement.previous}"] if agreement.previous else []
    for party in agreement.parties:
        if party.address:
            where = f"listens at {party.address}"
        else:
            where = "dials out"
        lines.append(f"{party.name} ({party.role}): {party.title}, {party.spiffe}, {where}")
    for purpose in agreement.purposes:
        floors = purpose.floors
        if purpose.models == "ask":
            models = "its operator is asked for each model"
        else:
            models = f"{counted(len(purpose.models), 'models')}"
        models += ", and about sums by group" if purpose.sums == "ask" else ""
        lines += [
            f"{purpose.name}: {purpose.title}",
            f"  {purpose.legal_basis}; until {purpose.valid_until}{f', {purpose.hours} UTC' if purpose.hours else ''}",
            f"  {purpose.rows_per_day or 'any number of'} rows a day, kept {counted(purpose.retention_days, 'days')}; {models}",
            f"  keys of {floors.key_bits} bits, answers about a person in 28 days: {floors.budget}, dither {floors.dither:g}, "
            f"groups of {floors.group_size}, of which a Guest that lies could name {100 * floors.named:g} %",
            f"  {', '.join(purpose.kinds)}",
        ]
    return lines
