"""A score shown to an audience: one synthetic person scored, explained, attacked and raced ahead of the telling; how a Host saw the person.

Where Hosts are simulated, nothing of it is counted against a budget. Hosts at companies of their own count it as any other question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from backend.data.demo import demo_federation
from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.errors import GlassleafError
from backend.jobs import Job
from backend.services.registry import Registry
from backend.services.workspace import Workspace

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.research.attacks.result import AttackResult
    from backend.results import ModelRecord, ScoreBatch
    from backend.services.protocol_comparison import Compared, ComparisonRequest, ProtocolComparison, Shape
    from backend.services.reasons import Reasons, ReasonsService
    from backend.services.samples import Samples
    from backend.services.scoring import Scoring

ATTACK = "A1"  # on the step in which Hosts lock numbers again
POLL_SECONDS = 0.2  # after which a race that was stopped ends
HIGH = 0.9  # share of these people below the one who is shown
SEED = 7  # of which test records are looked at: all, in one order
PIECES = ("score", "reasons", "attack", "race")


def to_be_made() -> Federation:
    """Return the demo's companies as they are before their tables are written: all that the first step shows."""
    return demo_federation()


def needs_explanation(feature: Feature) -> bool:
    """Return whether an audience would ask why a feature is used: it is tagged as protected, is no quantity, or has no expected effect."""
    tagged = feature.sensitivity not in ("", "none")
    return tagged or feature.kind is not Kind.NUMERIC or feature.expected_direction is ExpectedDirection.NONE


@dataclass(frozen=True)
class HostView:
    """One Host's own view of one synthetic person.

    Attributes
    ----------
    values : tuple of (Feature, Any)
        Its columns and what they hold; empty if it has no record of the person.
    entries : tuple of (bool or None)
        Whether it keeps each encrypted entry that reaches it; None if none of its splits has a say.
    """

    host: str
    values: tuple[tuple[Feature, Any], ...]
    entries: tuple[bool | None, ...]

    @property
    def kept(self) -> int:
        """Entries that it lets through because its values allow them."""
        return sum(entry is True for entry in self.entries)

    @property
    def ruled_out(self) -> int:
        """Entries that its values rule out."""
        return sum(entry is False for entry in self.entries)


@dataclass(frozen=True)
class Shown:
    """The pieces to show so far.

    Attributes
    ----------
    person : str
        Id of the person who is scored.
    numbers : dict of str to int
        Host → encrypted numbers about the person that reach it; they follow from the model alone.
    scored, reasons, attack, race : object or None
        Each None until it is there.
    failed : dict of str to GlassleafError
        Piece → why it is missing.
    """

    model_id: str
    person: str
    numbers: dict[str, int] = field(default_factory=dict)
    scored: ScoreBatch | None = None
    reasons: Reasons | None = None
    attack: AttackResult | None = None
    race: Compared | None = None
    failed: dict[str, GlassleafError] = field(default_factory=dict)


class Demonstration:
    """Runs what is shown, and looks through a Host's eyes in federations whose people are synthetic."""

    def __init__(
        self,
        workspace: Workspace,
        models: Registry,
        samples: Samples,
        scoring: Scoring,
        reasons: ReasonsService,
        comparison: ProtocolComparison,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._samples = samples
        self._scoring = scoring
        self._reasons = reasons
        self._comparison = comparison

    def look_as(self, model_id: str, host: str, person: str) -> HostView:
        """Return what `host` holds about `person`, and which entries it keeps under the model.

        Raises
        ------
        SecurityError
            The federation is not marked as synthetic, or the Host owns no split of the model.
        """
        record = self._models.get(model_id)
        runtime = self._workspace.runtime(record.federation)
        decision = runtime.decision(host, record.id, person)
        features = {}
        for feature in runtime.federation.party(host).features:
            features[feature.name] = feature
        return HostView(
            host, tuple((features[name], value) for name, value in decision.values.items()), decision.entries
        )

    def person(self, model_id: str) -> str:
        """Return the id of the person who is shown: a test record of whom, by what the Guest holds, a high score can be expected.

        Of such a person there are reasons to tell. Only the Guest's columns and outcomes are read.
        """
        record = self._models.get(model_id)
        runtime = self._workspace.runtime(record.federation)
        rows = self._models.test_rows(record, len(self._models.test_ids(record)), SEED)
        if record.task == "binary":
            positive = rows[runtime.labels()[rows] == 1]
            rows = positive if len(positive) else rows
        people = runtime.table.take(rows)
        constant, entries = self._models.compiled(record).guest.encode(people.columns, len(rows))
        expected = np.array(constant, dtype=float) + entries.sum(axis=1).astype(float)
        order = np.argsort(expected, kind="stable")
        return str(people.ids[order[int(HIGH * (len(order) - 1))]])

    def _numbers(self, record: ModelRecord) -> dict[str, int]:
        """Return Host → encrypted numbers about one person that reach it."""
        from backend.protocols.scoring.fed_eini import host_plan  # noqa: PLC0415 (the first step is drawn before protocols are loaded)

        folding = self._models.compiled(record).guest.folding
        numbers = {}
        count = folding.n_entries
        for index, step in enumerate(folding.steps):
            numbers[step.host] = count
            count = host_plan(folding, index).n_out
        return numbers

    def start(self, model_id: str, earlier: Shown | None = None) -> Job[Shown]:
        """Score the person, then give reasons, attack the scoring and race it, in the background; ``job.result`` grows piece by piece.

        ``job.stage`` is what runs, ``job.done`` the number of pieces that are there. A piece that fails is left out, with the reason; the
        others are run all the same, but for a score that fails: without it the job fails.

        Parameters
        ----------
        earlier : Shown, optional
            The result of an earlier run: only the missing pieces are run.
        """
        return Job[Shown](lambda job: self._run(model_id, job, earlier), len(PIECES)).start()

    def _run(self, model_id: str, job: Job[Shown], earlier: Shown | None) -> Shown:
        # The first step is drawn before any of this is loaded.
        from backend.research.attacks.lab import run_all  # noqa: PLC0415 (as above)
        from backend.services.reasons import ReasonsRequest  # noqa: PLC0415 (as above)
        from backend.services.scoring import ScoringRequest  # noqa: PLC0415 (as above)

        record = self._models.get(model_id)
        runtime = self._workspace.runtime(record.federation)
        counted = not runtime.simulated
        result = earlier or Shown(model_id, self.person(model_id), self._numbers(record))
        job.result = result
        sheet = self._samples.of_person(model_id, result.person)
        scored = result.scored or self._scoring.run(ScoringRequest(model_id, sheet), job, counted=counted)
        job.result = result = replace(result, scored=scored)

        def reasons() -> Reasons:
            return self._reasons.run(ReasonsRequest(model_id, sheet, scored=scored), job, counted=counted)

        def race() -> Compared:
            running = self._comparison.start(race_request(model_id, None if runtime.simulated else _shape(record)))
            while running.wait(POLL_SECONDS).state == "running":
                if job.cancelled():
                    running.cancel()
            return running.get()

        pieces: tuple[tuple[str, Callable[[Shown], Shown]], ...] = (
            ("reasons", lambda result: replace(result, reasons=reasons())),
            ("attack", lambda result: replace(result, attack=run_all([ATTACK])[0])),
            ("race", lambda result: replace(result, race=race())),
        )
        for name, run in pieces:
            job.check()
            if getattr(result, name) is not None:
                continue
            job.at(name, runtime.guest.name)
            try:
                result = run(result)
                result = replace(result, failed={piece: why for piece, why in result.failed.items() if piece != name})
            except GlassleafError as error:
                job.check()
                result = replace(result, failed={**result.failed, name: error})
            job.result = result
        job.at("done", runtime.guest.name, len(PIECES))
        return result


def race_request(model_id: str, shape: Shape | None) -> ComparisonRequest:
    """Return a race of Fed-EINI, one question a level and one question a node: the old way as it is fast, and as it was published."""
    from backend.research.baselines.batch_sizes import PAIR  # noqa: PLC0415 (as above)
    from backend.services.protocol_comparison import NODE_BY_NODE, ComparisonRequest  # noqa: PLC0415 (as above)

    return ComparisonRequest(model_id, names=(PAIR[0], NODE_BY_NODE, PAIR[1]), shape=shape)


def _shape(record: ModelRecord) -> Shape:
    """Return the size of a synthetic model like this one: Hosts at companies of their own run no other protocol."""
    from backend.services.protocol_comparison import Shape  # noqa: PLC0415 (as above)

    return Shape(trees=min(record.n_trees, 200), depth=min(max(record.depth, 2), 8), hosts=min(len(record.hosts), 5))
