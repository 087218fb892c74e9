"""Reports on a model: made, written, checked, signed off; and two models compared. Reads no Host's table and no Host's partial model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from pydantic import Base64Bytes

from backend.compliance.assessment import DISPARITY
from backend.crypto.signing import read_public
from backend.errors import FederationError, ParameterError
from backend.evaluation.validation.monitoring import read_monitored
from backend.evaluation.validation.suite import read_validation
from backend.fairness.alternatives import Search, read_search
from backend.jobs import Job, work
from backend.jobs.memory import give_back
from backend.privacy.given_away import GivenAway, given_away
from backend.reports import model_comparison
from backend.reports.build import Card, Sources, content_of, issued_of, sign_offs_of
from backend.reports.document import SIGN_OFF, Report, digest_of, make, schema, sign_off_holds, written
from backend.reports.files import FORMS, Checked, check
from backend.reports.model_comparison import Side, SideBySide, Sizes
from backend.reports.model_comparison import as_dict as comparison_as_dict
from backend.reports.render.fonts import language_of_pdf
from backend.reports.sections import answers
from backend.research.baselines import messages as _messages  # noqa: F401 (so that a report can say what comparisons sent)
from backend.results import ALTERNATIVES, MONITORING, VALIDATION, ModelRecord
from backend.services.audit import Auditor, AuditTrail, Note, recorded
from backend.services.cache import Cache
from backend.services.compliance import Compliance, MeasuredEvidence
from backend.services.dossiers import Dossiers
from backend.services.explanation import Explanation
from backend.services.model_card import ModelCards
from backend.services.model_difference import ModelDifference
from backend.services.policies import policy_of
from backend.services.registry import Registry
from backend.services.report_details import ReportDetails
from backend.services.verdicts import Verdicts
from backend.services.workspace import Workspace
from backend.store.schema import SignOff

if TYPE_CHECKING:
    from backend.reports.schema import SignOffLine

__all__ = ["FORMS", "ReportFile", "Reports", "comparison_as_dict", "schema"]

COLLECTED = 0.3  # share of the work on a PDF that is done once its report is made


def check_signed(blob: bytes, public_key: str) -> Checked:
    """Check a report's file by the public key of its Guest alone, hexadecimal or PEM, without a home.

    Raises
    ------
    ModelError
        The file was changed.
    ParameterError
        This is no key.
    """
    public = read_public(public_key)
    checked = check(blob)
    return replace(checked, signed_as_asked=checked.report.public_key == public)


@dataclass(frozen=True)
class ReportFile:
    """A report as a file, and what it was made from.

    Attributes
    ----------
    form : {"json", "html", "pdf"}
    language : {"en", "zh"}
        That it is in; JSON holds both.
    issued : str
        UTC, ISO 8601.
    content_sha256 : str
        Of the report's content then.
    """

    model_id: str
    form: str
    language: str
    issued: str
    content_sha256: str
    file: Base64Bytes = field(repr=False)


class Reports:
    """Reports of a home's models."""

    def __init__(
        self,
        workspace: Workspace,
        models: Registry,
        auditor: Auditor,
        audit: AuditTrail,
        explanation: Explanation,
        compliance: Compliance,
        cards: ModelCards,
        details: ReportDetails,
        dossiers: Dossiers,
        verdicts: Verdicts,
        contents: Cache[tuple[Sources, str]],
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._audit = audit
        self._explanation = explanation
        self._compliance = compliance
        self._cards = cards
        self._details = details
        self._dossiers = dossiers
        self._contents = contents
        self._verdicts = verdicts

    def make(self, model_id: str, *, ask_hosts: bool = True, at: Callable[[str], None] = lambda stage: None) -> Report:
        """Return the canonical report as of now; looking at it is not logged, :meth:`export` is.

        A file names the Hosts whose heads of the audit log were compared; one that is silent takes seconds. A page shows none of it,
        so that it need not `ask_hosts`. `at` is called with each stage.
        """
        at("collect")
        record = self._models.get(model_id)
        sources = self._sources(record)
        content = self._content(sources)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        by = (self._auditor.actor, self._auditor.role)
        at("ask")
        verdict = self._audit.verify(record.federation, ask_hosts=ask_hosts)
        issued = issued_of(sources, digest_of(content), verdict, now, by)
        return make(content, issued, self._workspace.signing_key(record.federation))

    @recorded("report")
    def export(self, note: Note, model_id: str, form: str, language: str = "en") -> bytes:
        """Return the report as a file; the audit log keeps its hash, the file's and the key that signed it.

        Parameters
        ----------
        form : {"json", "html", "pdf"}
        language : {"en", "zh"}
            JSON holds both. A PDF is English if this machine has no font with Chinese letters.

        Raises
        ------
        ParameterError
            The form or the language is unknown.
        """
        return self._export(note, model_id, form, language)[1]

    def start_file(self, model_id: str, form: str, language: str) -> Job[ReportFile]:
        """:meth:`export` in the background: a large PDF takes a while to draw, and a Host of another company may not answer."""
        return Job[ReportFile](
            lambda job: self._made(model_id, form, language, job), 0, size=f"{form} {language}"
        ).start()

    @recorded("report")
    def _made(self, note: Note, model_id: str, form: str, language: str, job: Job[ReportFile]) -> ReportFile:
        report, file = self._export(note, model_id, form, language, job.at)
        if form == "pdf":
            language = language_of_pdf(language)
        return ReportFile(model_id, form, language, report.issued.time, report.content_sha256, file)

    def _export(
        self, note: Note, model_id: str, form: str, language: str, at: Callable[[str], None] = lambda stage: None
    ) -> tuple[Report, bytes]:
        """Return the report and its file; `at` is called with each stage."""
        if form not in FORMS:
            raise ParameterError("unknown_report_format", form=form, known=tuple(FORMS))
        record = self._models.get(model_id)
        with work.part(0.0, COLLECTED):
            report = self.make(record.id, at=at)
        at("draw")
        with work.part(COLLECTED, 1.0):
            file = FORMS[form](report, language)
        give_back()
        hashes = {"content_sha256": report.content_sha256, "report_sha256": report.sha256}
        hashes |= {"file_sha256": sha256(file).hexdigest(), "public_key": report.public_key}
        note.about(record, format=form, language=language, **hashes)
        return report, file

    @staticmethod
    def answers(report: Report, language: str) -> tuple[tuple[str, str], ...]:
        """Return a regulator's questions, each with what the report answers."""
        return answers(report, language)

    @staticmethod
    def language_of_pdf(language: str) -> str:
        """Return the language that a PDF can be drawn in on this machine."""
        return language_of_pdf(language)

    def check(self, blob: bytes) -> Checked:
        """Check a report's file, and look for it in this home's audit logs; raises ModelError if it was changed."""
        checked = check(blob)
        entries = []
        for federation in self._workspace.federations():
            for entry in self._audit.entries(federation.name):
                same_report = entry.body.get("report_sha256") == checked.report.sha256
                same_key = entry.body.get("public_key", "") == checked.report.public_key
                if entry.action == "report" and same_report and same_key:
                    entries.append((federation.name, entry))
        checked = replace(checked, named_by=tuple(entries))
        issued_so = sha256(blob).hexdigest() in {entry.body.get("file_sha256") for _, entry in entries}
        if issued_so and checked.drawn == "other":
            checked = replace(checked, drawn="yes")
        return checked

    @recorded("sign-off")
    def sign_off(self, note: Note, model_id: str, person: str, statement: str) -> SignOff:
        """State something about the model as it is reported now; the statement names the hash of the report's content.

        Raises
        ------
        SecurityError
            The model's maker was to sign, or a signed-in user gave another name.
        """
        record = self._models.get(model_id)
        person = self._auditor.named(person)
        maker = self._workspace.model_states(record.federation).of(record.id).maker
        self._auditor.stand_apart(person, maker)
        digest = digest_of(self._content(self._sources(record)))
        role = self._auditor.role
        reviews = self._workspace.reviews(record.federation)
        key = self._workspace.signing_key(record.federation)
        sign = partial(key.sign, SIGN_OFF)
        signed = reviews.sign_off(record.content_hash, person, role, statement, digest, key.public, sign)
        note.about(record, content_sha256=digest, number=signed.number, person=signed.person)
        return signed

    def sign_offs(self, model_id: str) -> tuple[SignOffLine, ...]:
        """Return the sign-offs of the model, and whether each is of the report as it is now."""
        record = self._models.get(model_id)
        if not self._workspace.reviews(record.federation).sign_offs(record.content_hash):
            return ()
        sources = self._sources(record)
        return sign_offs_of(sources, digest_of(self._content(sources)))

    def sign_off_holds(self, model_id: str, line: SignOffLine) -> bool:
        """Return whether a statement about the model bears the Guest's signature."""
        record = self._models.get(model_id)
        return sign_off_holds(line, record.content_hash, self._workspace.signing_key(record.federation).public)

    def compare(self, first: str, second: str) -> SideBySide:
        """Two models of one federation compared; raises ParameterError if they are of two."""
        first_model = self._models.get(first)
        second_model = self._models.get(second)
        if first_model.federation != second_model.federation:
            raise ParameterError(
                "models_of_two_federations",
                first=first_model.id,
                first_federation=first_model.federation,
                second=second_model.id,
                second_federation=second_model.federation,
            )
        paired = ModelDifference.of(self._models, first_model, second_model)
        measured = (paired.figures, paired.n) if paired else ((), 0)
        changes = self._verdicts.compare(first_model.id, second_model.id)
        return model_comparison.compare(self._side(first_model), self._side(second_model), *measured, changes)

    def _side(self, record: ModelRecord) -> Side:
        evidence = MeasuredEvidence(self._models, record)
        parts = (part for part in self._cards.get(record.id).parts if part.part == record.metrics.part)
        return Side(
            record=record,
            sizes=Sizes.of(self._models.partial_model(record)),
            importance=self._explanation.importance(record.id),
            compliance=self._compliance.assess(record.id),
            disparities=evidence.disparities,
            bases={key: basis for key, basis in evidence.bases.items() if key[0] == DISPARITY},
            test_ids=frozenset(self._models.test_ids(record)),
            intervals={figure.name: (figure.low, figure.high) for part in parts for figure in part.figures},
        )

    def _content(self, sources: Sources) -> str:
        """Return what a report holds of a model, written again once anything that it is made of has changed."""
        model = sources.record.id

        def write() -> tuple[Sources, str]:
            return sources, written(content_of(sources))

        made_of, content = self._contents.get(model, write)
        if made_of != sources:
            rewritten = write()
            self._contents.drop(model)
            self._contents.get(model, lambda: rewritten)
            content = rewritten[1]
        return content

    def _sources(self, record: ModelRecord) -> Sources:
        evidence = MeasuredEvidence(self._models, record)
        reviews = self._workspace.reviews(record.federation)
        card = self._cards.get(record.id)
        ran = self._models.measured(record, VALIDATION)
        later = self._models.measured(record, MONITORING)
        return Sources(
            record=record,
            federation=self._workspace.federation(record.federation),
            model=self._models.partial_model(record),
            importance=self._explanation.importance(record.id),
            directions=self._explanation.directions(record.id),
            compliance=self._compliance.assess(record.id),
            reviews=reviews.history(record.content_hash),
            sign_offs=reviews.sign_offs(record.content_hash),
            entries=self._audit.entries(record.federation),
            standing=self._workspace.model_states(record.federation).standing(record.id),
            card=Card(card.parts[0], card.sources[card.parts[0].part], card.shifts) if card.parts else None,
            disparities=evidence.disparities or None,
            proxies=evidence.proxies or None,
            bases=evidence.bases,
            retrained=self._retrained(record),
            given_away=self._given_away(record),
            searches=self._searches(record),
            validation=read_validation(ran[""].rows[0]) if ran else None,
            monitored=read_monitored(later[""].rows[0]) if later else None,
            details=self._details.get(record.id),
            challenger=self._challenger(record),
            dossiers=self._dossiers.of(record.federation),
            verdict=self._verdicts.of(record.id),
            policy=policy_of(self._workspace, record),
            policy_version=self._workspace.policies(record.federation).in_force(record.id, datetime.now(UTC).date()),
        )

    def _challenger(self, record: ModelRecord) -> SideBySide | None:
        """Return the model compared with the one that its operator names."""
        details = self._details.get(record.id)
        if details and details.challenger:
            return self.compare(record.id, details.challenger)
        return None

    def _searches(self, record: ModelRecord) -> tuple[Search, ...]:
        """Return the searches from this model, and those that it was chosen from."""
        searches = self._searches_from(record)
        predecessor, _ = self._models.lineage(record.id)
        if predecessor is not None:
            for search in self._searches_from(predecessor):
                if search.choice and search.choice.model == record.id:
                    searches.append(search)
        return tuple(searches)

    def _searches_from(self, record: ModelRecord) -> list[Search]:
        measurements = self._models.measured(record, ALTERNATIVES)
        return [read_search(measurement.basis) for measurement in measurements.values()]

    def _given_away(self, record: ModelRecord) -> tuple[GivenAway, ...] | None:
        """Return what the simulated Hosts' answers have given away; None if their tables are gone or Hosts run at their own companies."""
        try:
            runtime = self._workspace.runtime(record.federation)
        except (FederationError, OSError):
            return None
        if not runtime.simulated:
            return None
        return tuple(given_away(host, runtime.operator.account(host)) for host in runtime.hosts)

    def _retrained(self, record: ModelRecord) -> tuple[SideBySide, ...]:
        """Return the model compared with the one that it replaces, then with those that replace it."""
        predecessor, successors = self._models.lineage(record.id)
        pairs = []
        if predecessor is not None:
            pairs.append((predecessor.id, record.id))
        for successor in successors:
            pairs.append((record.id, successor.id))
        return tuple(self.compare(first, second) for first, second in pairs)
