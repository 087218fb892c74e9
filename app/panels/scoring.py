"""What the pages Score and Score a file share: the job, the cipher that it runs under, and how the values stayed hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from app import session, user_jobs
from app.panels import engine, frame, result, run, sight, standing
from app.texts import Texts
from app.view_models import View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from backend.jobs import Job
    from backend.results import ScoreBatch
    from backend.services.job_registry import Upload
    from backend.services.scoring import ScoringRequest


class About(NamedTuple):
    """What a scoring was asked for: its cipher, the bits of its key, and features of the Guest whose values were assumed."""

    cipher: engine.Engine
    key_bits: int
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoringPanel:
    """The scoring of one page.

    Attributes
    ----------
    kind : {"score", "people"}
        Name of the job.
    people : DataFrame
        The Guest's records.
    """

    t: Texts
    view: View
    kind: str
    people: pd.DataFrame = field(repr=False)

    @property
    def job(self) -> Job[ScoreBatch] | None:
        """Return the last scoring of this page, whatever its model."""
        return user_jobs.find(self.kind)

    @property
    def running(self) -> Job[ScoreBatch] | None:
        """Return the scoring while it runs."""
        return user_jobs.running(self.job)

    @property
    def about(self) -> About | None:
        """Return what the last scoring was asked for; None if that is not known."""
        about: About | None = user_jobs.about(self.kind)
        return about

    @property
    def upload(self) -> Upload | None:
        """Return the file that the running scoring works on."""
        return user_jobs.upload(self.kind)

    @property
    def last(self) -> ScoreBatch | None:
        """Return the last scores, if this model gave them."""
        job = self.job
        batch = job.result if job is not None else None
        if batch is not None and batch.model_id == self.view.record.id:
            return batch
        return None

    def begin(self, request: ScoringRequest, assumed: tuple[str, ...] = (), upload: Upload | None = None) -> None:
        """Start a scoring, of a file that is kept until it has ended."""
        about = About("rlwe" if request.cipher == "rlwe" else "paillier", request.key_bits, assumed)
        start = partial(session.service().scoring.start, request)
        user_jobs.start(self.kind, start, about=about, upload=upload)
        session.keep(f"followed:{self.kind}", id(self.job))

    def followed(self) -> bool:
        """Return whether this session has watched the scoring: who opens the page and finds an old answer did not ask for it."""
        return bool(session.kept(f"followed:{self.kind}") == id(self.job))

    def follow(self) -> None:
        """Draw a scoring that is under way."""
        if self.running is not None:
            session.keep(f"followed:{self.kind}", id(self.running))
            run.follow(self.t, self.view, self.running, self.kind, session.rerun)

    def received(self, batch: ScoreBatch) -> None:
        """Tell the service that an answer was drawn, which need not be held any longer, and remember it for the session."""
        if not session.once(f"received:{self.kind}", (batch.run, batch.seconds)):
            return
        session.service().scoring.handed_over(batch)
        if self.about is None or not self.about.assumed:
            when = session.clock(user_jobs.since(self.kind), st.context.timezone)
            session.keep("scored", standing.noted(session.kept("scored", ()), batch, when))

    def cipher(self, people: int) -> tuple[engine.Engine, int]:
        """Draw the line on the cipher for a number of people, and behind it the choice; return the cipher and the bits of its key."""
        self._keep_choice(people)
        one_output = self.view.model.outputs.slots(self.view.record.n_trees) == 1
        speeds = user_jobs.speeds(self.view.record.id, self.view.model.guest)
        suited = partial(session.service().scoring.suited, self.view.record.id)
        cipher, bits = engine.line(self.t, people, speeds, one_output, suited, partial(self._on_line, people))
        session.keep("engine", (cipher, bits))
        return cipher, bits

    def _keep_choice(self, people: int) -> None:
        """After a reload the line says what the running scoring runs under, not what would suit the next one."""
        if self.running is None or self.about is None or session.kept("engine") is not None:
            return
        if self.about.cipher != session.service().scoring.suited(self.view.record.id, people):
            session.choose("score_cipher", self.about.cipher)
        if self.about.cipher == "paillier":
            session.choose("score_key_bits", self.about.key_bits)

    def _on_line(self, people: int, cipher: str, bits: int) -> Callable[[str], None]:
        """Draw the parties' pools; return what draws the line on the cipher with how far they are."""
        backend = session.service()
        usage: dict[str, int] = {}
        if cipher == "paillier":
            backend.federations.warm_up(self.view.record.federation, bits)
            obfuscators = backend.scoring.obfuscators(self.view.record.id)
            usage = {party: people * count for party, count in obfuscators.items()}
        read = partial(backend.federations.pools, self.view.record.federation)
        run.pools(self.t, self.view, read, cipher, usage)
        has_pools = bool(run.needed(self.view, read(), cipher))

        def lacking() -> int:
            return run.lacking(run.needed(self.view, read(), cipher), usage)

        def said(words: str) -> None:
            if not has_pools:
                st.caption(words)
                return
            draw = partial(run.readiness, self.t, words, lacking)
            # Again every second while they lack something and no other clock ticks.
            if user_jobs.busy() or not lacking():
                draw()
            else:
                run.pools_filling(draw, lambda: not lacking())

        return said

    def how(self, batch: ScoreBatch, more: Callable[[], None] = lambda: None) -> None:
        """Draw how the values behind the scores stayed hidden, and `more` about what was learned, once it is opened."""
        if result.usable(batch):
            opened = frame.box(self.t("score.how"), "visibility_off", f"{self.kind}_how")
        else:
            opened = None
        if opened is None:
            return
        with opened:
            moment = self._moment(batch)
            if batch.recalled and not moment.carried:
                st.caption(f":material/history: {self.t('transcript.from_journal')}")
            frame.section(self.t, "transcript.sight")
            sight.draw(self.t, self.view, moment, "seen")
            result.learned(self.t, self.view, batch)
            result.guarded(self.t, self.view, batch)
            bits = engine.textbook_bits(batch)
            seconds = partial(session.service().protocol_comparison.textbook_seconds, self.view.record.id, bits)
            more()
            result.computed(self.t, self.view, batch, seconds, bits)

    def _moment(self, batch: ScoreBatch) -> sight.ScoringMoment:
        """Return what the parties have seen; through a Host's eyes in the synthetic demo alone."""
        scored: Sequence[str] = tuple(score.id for score in batch.scores if score.scored)
        in_demo = self.view.federation.synthetic and self.view.federation.link is None
        look = None
        if in_demo and len(scored) == 1 and scored[0] in self.people.index:
            look = partial(session.service().demonstration.look_as, self.view.record.id, person=scored[0])
        return sight.ScoringMoment(batch.transcript, scored, batch, look)
