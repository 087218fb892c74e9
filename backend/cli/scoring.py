"""People scored from a shell: `score` and `evaluate`."""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from backend.cli.output import (
    AccountFile,
    AsJson,
    Backend,
    Bits,
    Decimal,
    Encoding,
    Header,
    Ids,
    Jobs,
    ModelId,
    Scheduler,
    Sheet,
    WhatIf,
    check_out,
    open_glassleaf,
    print_result,
    quality_text,
    save,
    save_account,
    watched,
    workers_of,
)
from backend.cli.policy import policy_line
from backend.errors import (
    ApprovalPending,
    Cancelled,
    GlassleafError,
    HostBusy,
    ParameterError,
    PartyUnreachable,
    StoreError,
)
from backend.i18n import counted
from backend.remark import Remark
from backend.results import counts_of, csv_text, earlier_rows, with_earlier
from backend.services.audit import decisions
from backend.services.samples import Reading
from backend.services.scoring import KEY_BITS, ScoringRequest, cipher_named
from backend.services.streaming import StreamRequest, in_groups

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.results import Score, ScoreBatch
    from backend.services import Glassleaf
    from backend.services.policies import Policy

app = typer.Typer(add_completion=False)
SHOWN_ROWS = 20  # scores in the text; --json and --out have all
NOT_ALL_OK = 3  # exit status: a row is not `ok`; 2 is a wrong command line
STAGES_BEFORE_QUESTIONS = ("start", "read")  # stages of a scoring before people are asked about
RETRIABLE_ERRORS = (
    Cancelled,
    HostBusy,
    PartyUnreachable,
    ApprovalPending,
    StoreError,
)  # what the same command may get over
T = TypeVar("T")


@app.command()
def evaluate(
    model: ModelId = "latest",
    samples: Annotated[int, typer.Option(help="Test records to score again under encryption; 0 = none.")] = 50,
    bits: Bits = KEY_BITS,
    as_json: AsJson = False,
) -> None:
    """Metrics on all test records, and on a sample of them scored under encryption."""
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.get(model)
        result = glassleaf.scoring.evaluate(record.id, min(samples, record.metrics.n), bits, watch=watched)
    text = f"{record.id}: {quality_text(result.registered)}"
    if result.encrypted is not None:
        text += (
            f"\nscored again under {bits}-bit encryption in {result.seconds:.1f} s: {quality_text(result.encrypted)}"
        )
    print_result({"model": record.id, **asdict(result)}, text, as_json)


@app.command()
def score(
    context: typer.Context,
    model: ModelId,
    samples: Annotated[
        str,
        typer.Argument(
            help="CSV, XLSX or Parquet with the id column and the Guest's features (or ids alone); or the URL of a database."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="CSV to write the scores to, or Parquet; needed for more than 5,000 rows.")
    ] = None,
    table: Annotated[str, typer.Option(help="Table or view of the database.")] = "",
    what_if: WhatIf = None,
    bits: Bits = KEY_BITS,
    cipher: Annotated[
        str,
        typer.Option(
            help="paillier; rlwe (lattice, for bulk); paillier-short; none: plaintext, protects nothing. Default: paillier; of more than "
            "5,000 rows rlwe, where it holds the model's scores."
        ),
    ] = "",
    encoding: Encoding = "",
    decimal: Decimal = "",
    sheet: Sheet = "",
    header: Header = "",
    ids: Ids = "",
    jobs: Jobs = 0,
    backend: Backend = "loky",
    scheduler: Scheduler = "",
    account: AccountFile = None,
    check: Annotated[bool, typer.Option(help="Score once more on plaintext and compare (simulated Hosts).")] = False,
    as_json: AsJson = False,
) -> None:
    """Score samples with encrypted inference (Fed-EINI); exit status 1 if nobody was scored, 3 if a row is not ok."""
    workers = workers_of(jobs, backend, scheduler)
    chosen_cipher = cipher_named(cipher) if cipher else None
    for file in (out, account):
        if file is not None:
            check_out(file)
    source = samples if "://" in samples else Path(samples)
    how = Reading(encoding, decimal, sheet, header, ids)
    with open_glassleaf(workers) as glassleaf:
        record = glassleaf.models.get(model)  # a wrong name before a wrong file
        again = _again(context, record.id)
        if in_groups(source, out):
            if out is None or check:
                raise ParameterError("long_table_needs_file")
            stream = StreamRequest(model, source, out, table, how, what_if, chosen_cipher, bits, account)
            _streamed(glassleaf, stream, again, as_json)
            return
        read = glassleaf.samples.read(model, Path(samples), how=how)
        if account is not None:
            save_account(account, glassleaf.samples.account(record.id, read))
        request = ScoringRequest(model, read, what_if, chosen_cipher or "paillier", bits, hold=True)
        batch = _ended(glassleaf.scoring.start(request), again)
        counts = counts_of(batch.scores)
        scored = counts["ok"] + counts["partial"]
        # a repeated command that had ended after all keeps the scores that it wrote
        scores_file = out if out is not None and (scored or not out.exists()) else None
        n_kept = _saved(scores_file, glassleaf.scoring.csv(batch), batch) if scores_file is not None else 0
        plain = None
        if check:
            plain = glassleaf.scoring.start(ScoringRequest(model, read, what_if, "none"), counted=False).get()
        document, text = _in_words(batch, plain, scores_file)
        if n_kept:
            document["kept"] = n_kept
            text += "\n" + Remark("rows_kept", {"n": n_kept, "file": str(scores_file)}).sentence()
        print_result(document, text, as_json)
        glassleaf.scoring.handed_over(batch)
    if document.get("equal_to_plain") is False or not scored:
        raise typer.Exit(1)
    if counts["ok"] < len(batch.scores):
        raise typer.Exit(NOT_ALL_OK)


def _saved(file: Path, data: bytes, batch: ScoreBatch) -> int:
    """Write scores to a file; rows that failed keep their line of an earlier file. Returns how many these are."""
    n_kept = 0
    if file.is_file():
        failed = {score.id for score in batch.scores if score.status == "failed"}
        data, n_kept = with_earlier(data, earlier_rows(file, batch.model_id, failed))
    save(file, data)
    return n_kept


def remark_document(remark: Remark) -> dict[str, Any]:
    """Return a remark as JSON has it: code, values, place and English sentence."""
    return {**remark.plain(), "sentence": remark.sentence()}


def _again(context: typer.Context, model_id: str) -> str:
    """Return the same command, with the model's own name, since another may be the latest by then; a database's URL may hold a password."""
    words = ["glassleaf", "score"]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if parameter.name == "model":
            words.append(model_id)
        elif parameter.param_type_name == "argument":
            words.append("URL" if "://" in str(value) else str(value))
        elif value != parameter.get_default(context):
            words += [parameter.opts[0]] if value is True else [parameter.opts[0], str(value)]
    return shlex.join(words)


def _ended(job: Job[T], again: str) -> T:
    """Return a scoring's result; of one that was stopped once people could be asked about, the command that goes on with it is named."""
    try:
        return watched(job)
    except GlassleafError as error:
        goes_on = isinstance(error, RETRIABLE_ERRORS) or type(error) is GlassleafError  # the latter: a full disk
        if job.stage in STAGES_BEFORE_QUESTIONS or not goes_on:
            raise
        if isinstance(error, Cancelled):
            why = Remark("stopped")
        else:
            why = error.remarks[0]
        raise GlassleafError("stopped_halfway", why=why, done=job.done, total=job.total, again=again) from error


def _streamed(glassleaf: Glassleaf, request: StreamRequest, again: str, as_json: bool) -> None:
    """Score a table of any length; what was stopped goes on where it was."""
    streamed = _ended(glassleaf.streaming.start(request), again)
    lines = [f"Note: {note.sentence()}" for note in streamed.notes]
    if streamed.resumed:
        went_on = f", {streamed.resumed:,} of them before"
    else:
        went_on = ""
    if streamed.written:
        where = f"written to {request.out}"
    else:
        where = f"{request.out} was left as it is"
    pace = f"{(streamed.rows - streamed.resumed) / max(streamed.seconds, 1e-9):,.0f} rows/s"
    counts = f"{streamed.scored:,} scored ({streamed.partial:,} of them partial), {streamed.refused:,} refused, {streamed.failed:,} failed"
    lines.append(f"{counts}{went_on}, in {streamed.seconds:.1f} s ({pace}) under {streamed.cipher}; {where}")
    if streamed.kept:
        lines.append(Remark("rows_kept", {"n": streamed.kept, "file": str(request.out)}).sentence())
    if streamed.dither > 0:
        lines.append(f"Margins are within ±{streamed.dither:g} of the model's: the last Host has added dither.")
    print_result(
        asdict(streamed) | {"notes": [remark_document(note) for note in streamed.notes]},
        lines,
        as_json,
        ok=bool(streamed.scored),
    )
    if streamed.failed or streamed.partial or streamed.refused:
        raise typer.Exit(NOT_ALL_OK)


@app.command()
def samples(model: ModelId = "latest", as_json: AsJson = False) -> None:
    """List the ids of the test records as a sheet for `score`; of an imported model, all joint ones."""
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.get(model)
        ids = glassleaf.models.test_ids(record)
        column = glassleaf.federations.get(record.federation).guest.id
    sheet = csv_text([[column], *([i] for i in ids)])
    print_result({"model": record.id, "column": column, "ids": ids}, sheet.rstrip("\n"), as_json)


def _score_text(s: Score) -> str:
    remarks = "".join(f"\n    {remark.sentence()}" for remark in s.remarks)
    if math.isnan(s.probability):
        probability = ""
    else:
        probability = f"  probability {s.probability:.1%}"
    if s.predicted or s.decision:
        outcome = f"  {s.predicted or s.decision}"
    else:
        outcome = ""
    if s.points is None:
        points = ""
    else:
        points = f"  {counted(s.points, 'points')}"
    if s.marks and s.decision != s.band:
        because = f"  ({', '.join(s.marks)})"
    else:
        because = ""
    what_if = f"  [what-if: {s.what_if}]" if s.what_if else ""
    return f"{s.id}: score {s.margin:+.4f}{probability}{points}{outcome}{because}{what_if}{remarks}"


def _decided_text(counts: dict[str, int], policy: Policy) -> str:
    """Return how people were decided about, and by which policy."""
    decided = ", ".join(f"{n:,} {decision}" for decision, n in counts.items())
    if decided:
        return f"{decided}. {policy_line(policy)}"
    return policy_line(policy)


def _in_words(batch: ScoreBatch, plain: ScoreBatch | None, out: Path | None) -> tuple[dict[str, Any], str]:
    """Return a scoring as a document and in words."""
    document: dict[str, Any] = asdict(batch)
    counts = counts_of(batch.scores)
    document["counts"] = counts
    for row, score in zip(document["scores"], batch.scores, strict=True):
        row["remarks"] = [remark_document(remark) for remark in score.remarks]
    document["notes"] = [remark_document(note) for note in batch.notes]
    lines = [f"Note: {note.sentence()}" for note in batch.notes]
    lines += [_score_text(s) if s.scored else f"{s.id}: {s.problem}" for s in batch.scores[:SHOWN_ROWS]]
    lines += [f"… and {len(batch.scores) - SHOWN_ROWS:,} more"] if len(batch.scores) > SHOWN_ROWS else []
    lines.append(_decided_text(decisions(batch.scores), batch.policy))
    rows = f"{counts['ok']:,} ok, {counts['partial']:,} partial, {counts['refused']:,} refused, {counts['failed']:,} failed"
    cost = f"{counted(batch.ciphertexts_per_sample, 'ciphertexts')} a sample for {counted(batch.leaves, 'leaves')}"
    traffic = (
        f"{counted(sum(m.bytes for m in batch.transcript), 'bytes')} in {counted(len(batch.transcript), 'messages')}"
    )
    lines.append(f"{rows}, in {batch.seconds:.2f} s: {cost}, {traffic}" + (f"; written to {out}" if out else ""))
    if batch.dither > 0:
        lines.append(f"Margins are within ±{batch.dither:g} of the model's: the last Host has added dither.")
    if batch.canaries > 0:
        lines.append(f"{batch.canaries:,} canaries intact: no Host has tampered with these scores.")
    if plain is not None:
        document["equal_to_plain"] = all(
            not s.scored or abs(s.margin - p.margin) <= batch.dither
            for s, p in zip(batch.scores, plain.scores, strict=True)
        )
        if batch.dither:
            exactly = f"within dither's ±{batch.dither:g}"
        else:
            exactly = "integer for integer"
        lines.append(f"Equal to the scores on plaintext, {exactly}: {document['equal_to_plain']}")
    return document, "\n".join(lines)
