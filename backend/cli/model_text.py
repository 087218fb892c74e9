"""Texts about a model: while it grows, when it was measured, and in one line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from backend.cli.output import SHORT_TICK, in_utc, quality_text, say, watched
from backend.i18n import counted
from backend.results import RANKS, told_by_scores

if TYPE_CHECKING:
    from backend.jobs import Job
    from backend.results import ModelRecord
    from backend.services.lifecycle import ModelState


def watch_training(job: Job[ModelRecord]) -> ModelRecord:
    """Return the model of a training; meanwhile say each tree that has grown."""
    n_shown = 0

    def print_new_trees(job: Job[ModelRecord]) -> None:
        nonlocal n_shown
        for p in job.points[n_shown:]:
            if math.isnan(p.auc_training):
                auc = ""
            else:
                auc = f"AUC {p.auc_training:.4f} / {p.auc_validation:.4f} "
            say(
                f"tree {p.tree}/{p.trees}  loss {p.log_loss_training:.4f} / {p.log_loss_validation:.4f}  "
                f"{auc}(training / validation)  {p.seconds:.1f} s"
            )
            n_shown += 1

    return watched(job, print_new_trees, SHORT_TICK)


def release_text(r: ModelRecord) -> list[str]:
    """Return what the scores of a new model tell, and which scale was taken."""
    if r.release is None:
        if r.hosts:
            return [told_by_scores(None, r.score_bits).sentence()]
        return []
    coarser = [f"{share:.1%} at {bits}" for bits, share in r.release.unique[1:]]
    asked_bits = r.release.asked_bits
    coarser_note = [
        f"Scores are multiples of 2^-{r.score_bits}, not 2^-{asked_bits} as asked: these would have named too many paths."
    ]
    lines = coarser_note if asked_bits else []
    lines.append(told_by_scores(r.release, r.score_bits).sentence())
    if coarser and r.release.measurable:
        lines.append(f"With fewer bits behind the point: {', '.join(coarser)}.")
    return lines


def model_text(r: ModelRecord, state: ModelState | None = None) -> str:
    """Return one line about a model, with its name and state if they are given."""
    cipher_texts = {"none": "plaintext (simulation)", RANKS: "noisy ranks", "rlwe": f"RLWE, degree {r.key_bits}"}
    on = cipher_texts.get(r.cipher, f"Paillier, {r.key_bits} bits")
    if r.algorithm.startswith("imported"):
        how = r.algorithm
    else:
        how = f"{r.algorithm} on {on}"
    parts = [
        r.id,
        *(filter(None, (state.name, in_words(state.state))) if state else ()),
        r.federation,
        in_utc(r.created),
    ]
    return "  ".join(
        [*parts, f"{counted(r.n_trees, 'trees')}, {counted(r.n_leaves, 'leaves')}", how, quality_text(r.metrics)]
    )


def in_words(state: str) -> str:
    """Return a state as people write it."""
    return state.replace("_", " ")
