"""Ways of scoring compared from a shell: `compare`; and a forest that loses a worker: `serve-forest`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli.output import SHORT_TICK, AsJson, Bits, open_glassleaf, print_result, say, watched
from backend.errors import ParameterError
from backend.services.forest_serving import ServingRequest
from backend.services.protocol_comparison import (
    NODE_BY_NODE_SAMPLES,
    PROTOCOLS,
    SYNTHETIC,
    ComparisonRequest,
    Link,
    Shape,
    usual_protocols,
)
from backend.services.scoring import KEY_BITS, cipher_named

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.research.baselines.comparison import ProtocolResult
    from backend.services.forest_serving import ServingTrial
    from backend.services.protocol_comparison import Compared

app = typer.Typer(add_completion=False)


@app.command()
def compare(
    model: Annotated[str, typer.Argument(help="Model id, the beginning of one, 'latest', or 'synthetic'.")],
    samples: Annotated[int, typer.Option(help="Random test records to score by every protocol.")] = 1,
    trees: Annotated[int | None, typer.Option(help="Of a synthetic model: 1 to 200.")] = None,
    depth: Annotated[int | None, typer.Option(help="Of a synthetic model: 2 to 8 splits on every path.")] = None,
    features: Annotated[int | None, typer.Option(help="Of a synthetic model: 4 to 100, half of them a Host's.")] = None,
    latency: Annotated[float, typer.Option(help="Milliseconds that a message travels.")] = 50.0,
    bandwidth: Annotated[float, typer.Option(help="Kilobytes a second that a party can send.")] = 300.0,
    cipher: Annotated[str, typer.Option(help="Fed-EINI's: paillier; rlwe; paillier-short; none.")] = "paillier",
    bits: Bits = KEY_BITS,
    every: Annotated[bool, typer.Option("--all", help="Node by node too, for any number of samples.")] = False,
    as_json: AsJson = False,
) -> None:
    """Every way of scoring side by side, over a simulated network: rounds, bytes, time, who learned what."""
    link = Link(latency / 1000, bandwidth * 1000)
    names = PROTOCOLS if every else usual_protocols(samples)
    shape = _synthetic_shape(model, trees=trees, depth=depth, features=features)
    with open_glassleaf() as glassleaf:
        if shape is not None and not glassleaf.models.all():
            glassleaf.training.prepare_demo()  # whose key is used
        whose = glassleaf.models.get(model if shape is None else "latest").id
        request = ComparisonRequest(whose, samples, names, shape, cipher=cipher_named(cipher), key_bits=bits)
        compared = _watch_comparison(glassleaf.protocol_comparison.start(request)).over(link)
    left_out = [name for name in PROTOCOLS if name not in names]
    print_result(
        {**compared.as_dict(), "left_out": left_out},
        _comparison_text(compared, left_out),
        as_json,
        ok=all(row.equal for row in compared.runs.rows),
    )


@app.command(name="serve-forest")
def serve_forest(
    model: Annotated[str, typer.Argument(help="A forest: model id, the beginning of one, or 'latest'.")] = "latest",
    samples: Annotated[int, typer.Option(help="Test records in every batch.")] = ServingRequest.samples,
    batches: Annotated[int, typer.Option(help="Batches, ten a second.")] = ServingRequest.batches,
    workers: Annotated[int, typer.Option(help="Processes that hold the trees.")] = ServingRequest.workers,
    lost_at: Annotated[int, typer.Option(help="Batch before which a worker is killed.")] = ServingRequest.lost_at,
    as_json: AsJson = False,
) -> None:
    """Serve a forest in one round, in the clear (simulation), while one of its workers is lost."""
    with open_glassleaf() as glassleaf:
        trial = watched(
            glassleaf.forest_serving.start(
                ServingRequest(glassleaf.models.get(model).id, samples, batches, workers, lost_at)
            )
        )
        print_result(trial.as_dict(), _serving_text(trial), as_json)


def _serving_text(trial: ServingTrial) -> str:
    lost = trial.without
    lines = [
        f"{len(trial.batches)} batches of {trial.samples} people, {trial.trees} trees on {trial.request.workers} workers; all answered."
    ]
    if lost:
        first = lost[0]
        if trial.whole_again:
            back = f"batch {trial.whole_again}"
        else:
            back = "not within the trial"
        lines += [
            f"Worker 1 was killed before batch {trial.request.lost_at}; "
            f"{len(lost)} batches went on without its {len(first.missing)} trees.",
            f"A prediction moved by at most {max(batch.shift for batch in lost):.3f}; all trees answered again: {back}.",
        ]
    slowest = max(trial.batches, key=lambda batch: batch.seconds)
    lines.append(f"The slowest batch took {slowest.seconds:.2f} s (number {slowest.number}).")
    return "\n".join(lines)


def _synthetic_shape(model: str, **options: int | None) -> Shape | None:
    """Return the shape of `compare synthetic`; None if an own model is compared on."""
    set_options = {name: value for name, value in options.items() if value is not None}
    if model == SYNTHETIC:
        return Shape(**set_options)
    if set_options:
        raise ParameterError(
            "option_of_synthetic_model", option=f"--{next(iter(set_options))}", model=model, synthetic=SYNTHETIC
        )
    return None


def _watch_comparison(job: Job[Compared]) -> Compared:
    printed = ""

    def print_protocol(job: Job[Compared]) -> None:
        nonlocal printed
        if job.stage != printed and job.stage in PROTOCOLS:
            printed = job.stage
            say(f"{printed}: protocol {job.done + 1} of {job.total}, {job.seconds:.0f} s")

    return watched(job, print_protocol, SHORT_TICK)


def _comparison_text(compared: Compared, left_out: list[str]) -> str:
    runs = compared.runs
    key = {"paillier": f"Paillier, {runs.key_bits} bits", "rlwe": f"RLWE, degree {runs.key_bits}"}.get(
        runs.cipher, "plaintext"
    )
    if runs.samples == 1:
        people = "1 sample"
    else:
        people = f"{runs.samples:,} samples"
    pools = {"warm": ", obfuscators made before", "cold": ", obfuscators made while scoring"}.get(compared.pools, "")
    head = (
        "protocol",
        "rounds",
        "hops",
        "bytes",
        "compute s",
        "network s",
        "total s",
        "Guest learned",
        "Hosts learned",
        "equal",
    )
    table = [head, *(_comparison_cells(row) for row in runs.rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    shape = compared.shape
    if shape is None:
        synthetic = ""
    else:
        synthetic = f", {shape.trees} trees of depth {shape.depth}, {shape.features} features"
    lines = [
        f"{compared.model_id}{synthetic}: {people}, {runs.link.latency * 1000:g} ms and {runs.link.bandwidth / 1000:g} kB/s; "
        f"Fed-EINI under {key}{pools}"
    ]
    for line in table:
        cells = []
        for i, (cell, width) in enumerate(zip(line, widths, strict=True)):
            is_number = 0 < i < 7
            cells.append(cell.rjust(width) if is_number else cell.ljust(width))
        lines.append("  ".join(cells).rstrip())
    lines.append(
        "Learned: bits a sample about other parties' records, at most; the Guest's as path + score + held. Compute is measured, "
        "network simulated. All but fed-eini are for comparison only: simulated Hosts alone answer them."
    )
    if left_out:
        lines.append(
            f"Left out for more than {NODE_BY_NODE_SAMPLES} samples: {', '.join(left_out)}; --all runs it too."
        )
    return "\n".join(lines)


def _comparison_cells(row: ProtocolResult) -> tuple[str, ...]:
    e, (guest, *hosts) = row.exchange, row.learned
    seconds = (f"{v:.3f}" for v in (e.compute, e.network, e.total))
    learned = " + ".join((_bits(guest.directions), _bits(guest.score), str(guest.held)))
    others = ", ".join(f"{h.party} {_bits(h.bits)}" for h in hosts)
    return (
        row.protocol,
        str(e.rounds),
        str(e.hops),
        f"{e.bytes:,}",
        *seconds,
        learned,
        others,
        "yes" if row.equal else "NO",
    )


def _bits(count: float | None) -> str:
    return "not counted" if count is None else f"{count:.1f}"
