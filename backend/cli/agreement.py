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

    found = load_agreement(file)
    print_result({"hash": found.hash, **found.model_dump(mode="json")}, _text(found), as_json)


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
    made = drafted(parties, terms)
    disclosed = made.hosts.encode()
    # The agreement is written last: without it, the same command goes on where it was killed.
    if hosts.is_file():
        if hosts.read_bytes() != disclosed:
            raise ParameterError("agreement_file_exists", file=hosts)
    else:
        save(hosts, disclosed)
    save(out, made.agreement.encode())
    found = load_agreement(out)
    text = (
        f"Written to {out}, and what Hosts disclose to {hosts}. Read it, change what is to be changed; then every party signs it.\n"
        + "\n".join(_text(found))
    )
    print_result({"file": str(out), "hash": found.hash}, text, as_json)


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
    left = [party.name for party in agreement.load_agreement(file).parties if party.name not in signed]
    if left:
        waits = f"; {', '.join(left)} still to sign"
    else:
        waits = "; all parties have signed"
    print_result({"signed": list(signed), "left": left}, f"Signed by {', '.join(signed)}{waits}.", as_json)


@app.command()
def verify(file: File, as_json: AsJson = False) -> None:
    """Check every signature and the days; exit status 1 if it is not in force."""
    from backend.errors import SecurityError
    from backend.link.agreement import load_agreement, load_in_force, signers
    from backend.link.rpc import require_grpc

    require_grpc()
    found = load_agreement(file)
    signed = signers(file)
    problem = ""
    try:
        load_in_force(file, found.guest.name, datetime.now(UTC))
    except SecurityError as error:
        problem = str(error)
    text = f"{found.hash}\nsigned by {', '.join(signed) or 'nobody'}\n{problem or 'in force'}"
    print_result(
        {"hash": found.hash, "signed": list(signed), "in_force": not problem, "problem": problem},
        text,
        as_json,
        ok=not problem,
    )


def _text(found: Agreement) -> list[str]:
    lines = [found.title, f"hash {found.hash}", f"from {found.valid_from} to {found.valid_until} (UTC)"]
    lines += [f"amends {found.previous}"] if found.previous else []
    for party in found.parties:
        if party.address:
            where = f"listens at {party.address}"
        else:
            where = "dials out"
        lines.append(f"{party.name} ({party.role}): {party.title}, {party.spiffe}, {where}")
    for one in found.purposes:
        if one.models == "ask":
            models = "its operator is asked for each model"
        else:
            models = f"{counted(len(one.models), 'models')}"
        models += ", and about sums by group" if one.sums == "ask" else ""
        lines += [
            f"{one.name}: {one.title}",
            f"  {one.legal_basis}; until {one.valid_until}{f', {one.hours} UTC' if one.hours else ''}",
            f"  {one.rows_per_day or 'any number of'} rows a day, kept {counted(one.retention_days, 'days')}; {models}",
            f"  keys of {one.floors.key_bits} bits, answers about a person in 28 days: {one.floors.budget}, dither {one.floors.dither:g}, "
            f"groups of {one.floors.group_size}, of which a Guest that lies could name {100 * one.floors.named:g} %",
            f"  {', '.join(one.kinds)}",
        ]
    return lines
