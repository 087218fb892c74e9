"""Federations from a shell: `demo`, `init`, `credit-card`, `federations`."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.model_text import model_text
from backend.cli.output import (
    AsJson,
    Decimal,
    Encoding,
    Header,
    Sheet,
    check_out,
    open_glassleaf,
    print_result,
    save_account,
    split_list,
)
from backend.errors import ParameterError
from backend.i18n import counted
from backend.remark import one_line
from backend.services.federations import ORDERS, PLACES, PRODUCTS

if TYPE_CHECKING:
    from backend.services.federations import ColumnReading, Overview

app = typer.Typer(add_completion=False)
SHOWN_CODES = 6  # of a column in the text; --json has all


@app.command()
def init(
    table: Annotated[
        Path, typer.Argument(help="One table with everything: ids, features, label (CSV, XLSX or Parquet).")
    ],
    label: Annotated[str, typer.Option(help="Column to be predicted.")],
    guest: Annotated[
        str,
        typer.Option(help="The Guest's feature columns, separated by commas; a name with a comma in double quotes."),
    ],
    host: Annotated[list[str], typer.Option(help="A Host and its feature columns: name=C,D. Repeat for more Hosts.")],
    out: Annotated[Path, typer.Option(help="Folder to write the federation to.")],
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column with each record's id (default: rows are numbered).")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="What the label is: binary, classes or number (default: read off its cells).")
    ] = None,
    positive: Annotated[str | None, typer.Option(help="Binary label's value that counts as 1, e.g. yes.")] = None,
    dictionary: Annotated[Path | None, typer.Option(help="CSV with name, meaning, unit, kind … per feature.")] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="A text that means a missing value: COLUMN=TEXT, or *=TEXT for every feature. Repeat for more."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the federation (default: the table's).")] = None,
    label_meaning: Annotated[
        str | None, typer.Option(help="What the label (binary: the positive one) says about a person.")
    ] = None,
    keep: Annotated[
        str, typer.Option(help="Columns that stay in the Guest's file without being a feature, e.g. sample weights.")
    ] = "",
    encoding: Encoding = "",
    decimal: Decimal = "",
    sheet: Sheet = "",
    header: Header = "",
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            help="Rows that are left out, by what is wrong: no-outcome, unclear-outcome (a dash, unknown), no-id, "
            "repeated-id (the first stays) or ragged. Repeat for more."
        ),
    ] = None,
    one_spelling: Annotated[
        list[str] | None,
        typer.Option(
            help="A column whose texts that differ in case or spaces alone, or are ways to write yes and no, are one text; "
            "* for all. Repeat for more."
        ),
    ] = None,
    days: Annotated[
        list[str] | None,
        typer.Option(
            help="A column of dates that becomes days since the earliest year began; COLUMN=dmy or COLUMN=mdy if 03/04/2024 leaves open "
            "which comes first. Repeat for more."
        ),
    ] = None,
    place: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Where the people live: {', '.join(PLACES)}. Law of other places is not applied. Repeat for more."
        ),
    ] = None,
    product: Annotated[
        str, typer.Option(help=f"What the model is for: {', '.join(PRODUCTS)}. Law of other products is not applied.")
    ] = "",
    account: Annotated[
        Path | None, typer.Option(help="JSON file to write how the table was read to: what --json prints.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Split one table into the parties' files and a federation file, and say how the table was read."""
    from backend.services.federations import LEFT_OUT, TO_FILL_IN, Division, Reading

    if account is not None:
        check_out(account)
    hosts: dict[str, tuple[str, ...]] = {}
    for text in host:
        party, equals, columns = text.partition("=")
        if not equals or not columns:
            raise ParameterError("option_not_columns", option="--host", text=text)
        if party in hosts:
            raise ParameterError("host_given_twice", name=party)
        hosts[party] = split_list(columns)
    for rows in leave_out or ():
        if rows not in LEFT_OUT:
            raise ParameterError("unknown_choice", option="--leave-out", value=rows, choices=tuple(LEFT_OUT))
    for option, values, choices in (
        ("--place", place or (), PLACES),
        ("--product", (product,) * bool(product), PRODUCTS),
    ):
        for value in values:
            if value not in choices:
                raise ParameterError("unknown_choice", option=option, value=value, choices=choices)
    marks = _missing_texts(missing or [])
    division = Division(
        label,
        split_list(guest),
        hosts,
        id_column,
        positive,
        task,
        dictionary,
        name,
        label_meaning,
        missing=marks,
        reading=Reading(encoding, decimal, sheet, header),
        keep=split_list(keep),
        leave_out=tuple(leave_out or ()),
        one_spelling=tuple(one_spelling or ()),
        days=_date_orders(days or []),
        places=tuple(place or ()),
        product=product,
    )
    with open_glassleaf() as glassleaf:
        federation, read = glassleaf.federations.init_with_account(table, division, out)
    parties = {p.name: [f.name for f in p.features] for p in federation.parties}
    document = {**read.document(), "folder": str(out), "parties": parties}
    document["dictionary"] = {
        "to_fill_in": str(out / TO_FILL_IN) if (out / TO_FILL_IN).exists() else "",
        "shipped": read.dictionary,
    }
    lines = [f"Federation {federation.name!r} written to {out}:"]
    for party, features in parties.items():
        lines += [
            f"  {party}: {counted(len(features), 'features')}",
            *(f"    {_column_text(column)}" for column in read.columns if column.party == party),
        ]
    lines += [*_label_text(read), *_to_do(read, out), f"Next: glassleaf train {out}"]
    lines += [f"Note: {note.sentence()}" for note in read.notes]
    if account is not None:
        save_account(account, document)
    print_result(document, lines, as_json)


def _date_orders(days: list[str]) -> dict[str, str]:
    """Return what comes first in each column's dates; empty if its cells tell."""
    orders = {}
    for text in days:
        column, equals, order = text.rpartition("=")
        if not equals or order not in ORDERS:
            column = text
            order = ""
        orders[column] = order
    return orders


def _missing_texts(wishes: list[str]) -> dict[str, list[str]]:
    """Column → texts; a column's name may hold ``=``, a text of a missing value hardly ever does."""
    marks: dict[str, list[str]] = {}
    for wish in wishes:
        column, equals, text = wish.rpartition("=")
        if not equals or not column or not text:
            raise ParameterError("missing_text_wrong", text=wish)
        marks.setdefault(column, []).append(text)
    return marks


def _column_text(column: ColumnReading) -> str:
    """One line about a column: kind, what it holds, what is missing, and what looks odd."""
    unit = f" in {column.unit}" if column.unit else ""
    if column.empty:
        content = "no value at all: nothing can be learned from it"
    elif column.constant:
        content = "one value only: nothing can be learned from it"
    elif column.codes:
        commonest = [f"{text!r} {count:,}" for text, count in list(column.codes.items())[:SHOWN_CODES]]
        content = f"{counted(len(column.codes), 'codes')}: {', '.join(commonest)}" + (
            " …" if len(column.codes) > SHOWN_CODES else ""
        )
    else:
        content = f"{column.low:g} to {column.high:g}"
    absent = ", ".join(f"{f'{text!r}' if text else 'empty'} {count:,}" for text, count in column.missing.items())
    lines = [f"{column.name}: {column.kind}{unit}, {content}; missing: {absent or 'none'}"]
    if column.unclear:
        marks = ", ".join(f"{text!r} {count:,}" for text, count in column.unclear.items())
        wish = shlex.quote(f"{column.name}={next(iter(column.unclear))}")
        if column.kind == "numeric":
            lines.append(
                f"UNCLEAR: {marks} stand apart from the other numbers; if they mean no value: --missing {wish}"
            )
        else:
            lines.append(
                f"UNCLEAR: {marks} are categories; where such a text means that there is no value: --missing {wish}"
            )
    if column.unlike:
        marks = ", ".join(f"{text!r} {count:,}" for text, count in column.unlike.items())
        wish = shlex.quote(f"{column.name}={next(iter(column.unlike))}")
        lines.append(f"UNCLEAR: {marks} are written unlike the other codes; if they mean no value: --missing {wish}")
    if column.dates:
        lines.append("UNCLEAR: these look like dates; a number (days, years) or leaving it out says more")
    elif column.few:
        lines.append("UNCLEAR: few whole numbers; if they are codes, give it the kind categorical in a dictionary")
    elif column.same_length:
        lines.append(
            f"UNCLEAR: whole numbers that all have {len(str(int(column.high)))} digits; if they are codes (a zip code, a trade), give it "
            "the kind categorical in a dictionary or leave it out"
        )
    return "\n      ".join(lines)


def _label_text(read: Overview) -> list[str]:
    """Return what is predicted and, of two outcomes, who counts as positive and is declined."""
    outcomes = ", ".join(f"{text!r} {count:,}" for text, count in read.outcomes.items())
    lines = [f"  label {read.label}: {read.task}{f', {outcomes}' if outcomes else ''}"]
    if read.task == "binary":
        people = sum(read.outcomes.values())
        negative = next(text for text in read.outcomes if text != read.positive)
        count = read.outcomes[read.positive]
        lines.append(
            f"  Positive are the {count:,} of {counted(people, 'records')} whose {read.label} is {read.positive!r} "
            f"({read.label_meaning}). A higher score means more like them, and whoever reaches the cut-off is DECLINED. If these are the "
            f"good ones, start again with --positive {shlex.quote(negative)}."
        )
    return lines


def _to_do(read: Overview, out: Path) -> list[str]:
    """Return how to give missing meanings."""
    bare = sum(not column.described for column in read.columns)
    if not bare:
        return []
    if read.dictionary:
        shipped = f" {read.dictionary} describes most of them: --dictionary {shlex.quote(read.dictionary)}."
    else:
        shipped = ""
    from backend.services.federations import TO_FILL_IN

    return [
        f"  {bare} of {counted(len(read.columns), 'features')} have no meaning yet; notices and reports need them.{shipped} "
        f"Fill in {out / TO_FILL_IN} and give it with --dictionary to an init into another folder."
    ]


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Prepare the built-in demo federation and its first model (synthetic data)."""
    began = time.perf_counter()
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.all(glassleaf.training.prepare_demo())[0]
        text = model_text(record, glassleaf.models.states()[record.id])
    print_result(asdict(record), f"Demo ready in {time.perf_counter() - began:.1f} s. {text}", as_json)


@app.command(name="credit-card")
def credit_card(
    out: Annotated[Path, typer.Option(help="Folder to write the federation to.")], as_json: AsJson = False
) -> None:
    """Fetch the 'default of credit card clients' data from OpenML and write it as a federation."""
    with open_glassleaf() as glassleaf:
        federation = glassleaf.federations.fetch_credit_card(out)
    print_result(
        {"federation": federation.name, "folder": str(out)},
        f"Federation {federation.name!r} written to {out}.\nNext: glassleaf train {out}",
        as_json,
    )


@app.command()
def federations(as_json: AsJson = False) -> None:
    """List the federations of this home, and those that cannot be used with the reason; then exit status 1."""
    with open_glassleaf() as glassleaf:
        broken = glassleaf.federations.broken()
        usable = []
        for federation in glassleaf.federations.all():
            if federation.name not in broken:
                usable.append(federation)
    document = {
        "federations": [
            {"name": f.name, "title": f.title, "folder": str(f.folder), "parties": [party.name for party in f.parties]}
            for f in usable
        ],
        "broken": {name: str(why) for name, why in broken.items()},
    }
    lines = []
    for f in usable:
        parties = ", ".join(party.name for party in f.parties)
        lines.append(f"{f.name}  {f.title}  {parties}  {f.folder}")
    from backend.cli import language_of_shell

    lines += [f"{name}  {one_line(why.sentence(language_of_shell()))}" for name, why in broken.items()]
    nothing = "No federation yet. Run `glassleaf demo` or `glassleaf init`."
    print_result(document, lines or nothing, as_json, ok=not broken)
