"""What a shell asks about a person's reasons: `reasons`, with a notice where wanted; and `cohort`, means over many people."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.output import AsJson, Bits, ModelId, check_out, open_glassleaf, print_result, save, watched
from backend.cli.policy import policy_line
from backend.errors import ParameterError
from backend.i18n import Catalogue, counted
from backend.services.reasons import FORMATS, MAX_REASONS, CohortRequest, ReasonsRequest
from backend.services.scoring import ScoringRequest, cipher_named

if TYPE_CHECKING:
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.results import Score
    from backend.services.policies import Policy
    from backend.services.reasons import PersonReasons

app = typer.Typer(add_completion=False)
LANGUAGES = ("en", "zh")  # of a notice


@app.command()
def reasons(
    model: ModelId,
    person: Annotated[str, typer.Option("--id", help="Id of a person in the Guest's table.")],
    names: Annotated[int, typer.Option(help="Reasons at most.")] = MAX_REASONS,
    cipher: Annotated[str, typer.Option(help="rlwe, paillier or paillier-short.")] = ReasonsRequest.cipher,
    bits: Bits = ReasonsRequest.key_bits,
    against: Annotated[
        str,
        typer.Option(
            help="Compare with all (applicants), approved (only just) or covers (training weights). [default: all if counted]"
        ),
    ] = ReasonsRequest.against,
    notice: Annotated[str, typer.Option(help="Write a notice of adverse action: en or zh; needs --out.")] = "",
    out: Annotated[Path | None, typer.Option(help="File of the notice: .txt, .html or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Name what raised a person's score most, Host features included, under encryption; no value is opened.

    A person who was scored with the same values within 30 days is not scored again.
    """
    if out is None:
        kind = ""
    else:
        kind = out.suffix.lower().removeprefix(".")
    if bool(notice) != (out is not None) or (notice and (kind not in FORMATS or notice not in LANGUAGES)):
        raise ParameterError("notice_options_wrong", formats=tuple(f".{form}" for form in FORMATS))
    with open_glassleaf() as glassleaf:
        record = glassleaf.models.get(model)
        chosen_cipher = cipher_named(cipher)
        scored = None
        sheet = glassleaf.samples.of_person(record.id, person)
        if out is not None:
            check_out(out)
            glassleaf.reasons.check_notice(record.id, notice, against)
            request = ScoringRequest(record.id, sheet, None, chosen_cipher, bits, hold=True)
            scored = glassleaf.reasons.scored_before(record.id, sheet) or watched(glassleaf.scoring.start(request))
            if scored.scores[0].decision not in ("decline", ""):  # no names are needed, and asking for them is counted
                _print_not_declined(record.id, scored.scores[0], scored.policy, as_json)
                glassleaf.scoring.handed_over(scored)
                raise typer.Exit(1)
        request_names = ReasonsRequest(
            record.id, sheet, names, chosen_cipher, key_bits=bits, scored=scored, hold=True, against=against
        )
        result = watched(glassleaf.reasons.start(request_names))
        person_reasons = result.people[0]
        if out is not None and not person_reasons.problem:
            save(out, glassleaf.reasons.notice(result, person, notice, kind))
        body = {
            "model": result.model_id,
            **_body(person_reasons),
            **_sizes(result.transcript),
            "ciphertexts": result.ciphertexts,
        }
        body |= {
            "cipher": result.cipher,
            "key_bits": result.key_bits,
            "features": result.features,
            "against": result.against,
            "compared": result.compared,
            "decided": result.decided,
            "seconds": result.seconds,
        }
        ranked = f"{counted(result.features, 'features')} ranked under {result.cipher} in {result.seconds:.1f} s"
        group = Catalogue("en")(f"compared.said_{result.against}", people=f"{result.compared:,}")
        if result.decided:
            remembered_note = [f"Scored on {result.decided[:10]}: no second score was asked for."]
        else:
            remembered_note = []
        lines = [_text(person_reasons), *remembered_note, group, f"{ranked}, {body['bytes']:,} bytes in all."]
        if out is not None and not person_reasons.problem:
            body |= {"notice": str(out), "blocked": person_reasons.blocked}
            blocked = " (no notice: a reason is a prohibited basis, or nobody has shown that it is none)"
            lines.append(f"Written: {out}{blocked if person_reasons.blocked else ''}")
        print_result(body, lines, as_json)
        glassleaf.reasons.handed_over(result)
    if person_reasons.problem or (out is not None and person_reasons.blocked):
        raise typer.Exit(1)


@app.command()
def cohort(
    model: ModelId,
    samples: Annotated[int, typer.Option(help="Random test records; 50 or more.")] = CohortRequest.samples,
    cipher: Annotated[
        str, typer.Option(help="rlwe, paillier, paillier-short, or none (protects nothing).")
    ] = CohortRequest.cipher,
    bits: Bits = CohortRequest.key_bits,
    seed: Annotated[int, typer.Option(help="Which records.")] = CohortRequest.seed,
    as_json: AsJson = False,
) -> None:
    """Mean contribution of every feature over a group of people: SHAP values added up under encryption."""
    with open_glassleaf() as glassleaf:
        request = CohortRequest(
            glassleaf.models.get(model).id, samples=samples, cipher=cipher_named(cipher), key_bits=bits, seed=seed
        )
        importances = watched(glassleaf.reasons.start_cohort(request))
    wide = max(len(row.feature) for row in importances)
    lines = [f"{row.feature:{wide}}  {row.mean:+.4f}  {row.party}" for row in importances]
    first = importances[0]
    lines.append(
        f"Means over {counted(first.people, 'people')} under {first.cipher}, each within ±{first.error_bound:.1g}."
    )
    print_result({"features": [asdict(row) for row in importances]}, lines, as_json)


def _print_not_declined(model: str, score: Score, policy: Policy, as_json: bool) -> None:
    """The answer that was paid for, and why there is no notice."""
    body = {
        "model": model,
        "id": score.id,
        "decision": score.decision,
        "probability": score.probability,
        "policy": policy.version,
        "notice": "",
    }
    text = (
        f"{score.id}: {score.decision} at {score.probability:.1%}: not declined, so there are no reasons to state. No notice was written, "
        f"and no reasons were asked for. {policy_line(policy)}"
    )
    print_result(body, text, as_json)


def _body(person_reasons: PersonReasons) -> dict[str, Any]:
    s = person_reasons.score
    totals = {"base": s.base, "guest_part": s.guest_part, "hosts_part": s.hosts_part}
    return {
        "id": s.id,
        "decision": s.decision,
        "band": s.band,
        "points": s.points,
        "policy": s.policy,
        "probability": s.probability,
        **totals,
        "reasons": [asdict(reason) for reason in person_reasons.reasons],
        "problem": person_reasons.problem,
    }


def _sizes(transcript: tuple[TranscriptEntry, ...]) -> dict[str, int]:
    return {"messages": len(transcript), "bytes": sum(entry.bytes for entry in transcript)}


def _text(person_reasons: PersonReasons) -> str:
    s = person_reasons.score
    if person_reasons.problem:
        return f"{s.id}: {person_reasons.problem}"
    parts = f"base {s.base:+.3f}, Guest's part {s.guest_part:+.3f}, Hosts' part {s.hosts_part:+.3f}"
    if s.points is None:
        points = ""
    else:
        points = f", {counted(s.points, 'points')}"
    if s.policy:
        by = f" by version {s.policy} of the policy"
    else:
        by = " at the base rate: nobody has set a line"
    lines = [f"{s.id}: {s.decision} at {s.probability:.1%}{points}{by}; {parts}"]
    for r in person_reasons.reasons:
        lines.append(
            f"  {r.feature} ({r.party}); value: {r.side or 'no side'}; a higher value: {r.learned} (expected: {r.expected})"
        )
        for blocker in r.blockers:
            lines.append(f"    BLOCKER: {blocker.in_words(Catalogue('en'))}")
    if not person_reasons.reasons:
        lines.append("  no feature raised the score whose value in the middle would have lowered it")
    return "\n".join(lines)
