"""What is decided, compared and filed about a model: retraining, reviews, reports, the audit log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from backend.compliance.assessment import DISPARITY, PROXIES
from backend.errors import ParameterError
from backend.jobs import Job
from backend.reports.build import Card, Sources, content_of, issued_of, sign_offs_of
from backend.reports.document import Report, make
from backend.reports.document import content_hash as report_content_hash
from backend.reports.files import FORMS, Checked, check, language_of_pdf
from backend.reports.model_comparison import Side, SideBySide, Sizes, compare
from backend.reports.schema import SignOffLine
from backend.reports.sections import answers
from backend.results import (
    ModelRecord,
)
from backend.services import audit
from backend.services.measuring import Measuring
from backend.services.registry import bases_of, rows_of
from backend.services.request_replay import HostReplay, replay_requests
from backend.services.retraining import RetrainingRequest, lineage, training_of
from backend.store.audit_log import Entry, Verdict
from backend.store.reviews import Review, ReviewVerdict, SignOff


class Filing(Measuring):
    """What is decided, compared and filed about a model: retraining, reviews, reports, the audit log."""

    def start_retraining(self, request: RetrainingRequest) -> Job[SideBySide]:
        """Train a model again without some features and measure both, in the background; the first model stays.

        Once the new model is grown it is in the registry, even where the measuring after it is stopped.
        """

        def work(job: Job[SideBySide]) -> SideBySide:
            record = self.model(request.model_id)
            asked = training_of(record, self.guest_model(record.id), request, self.federation(record.federation))
            after = self._train(asked, job, retrained_from=record.id)
            job.points = ()  # the curve is of the training, which is over
            new = {"new_model": after.id, "new_sha256": after.content_hash, "without": list(request.without)}
            self._audit.note(record.federation, "retrain", {**audit.of_model(record), **new, "outcome": audit.DONE})
            for model_id in (record.id, after.id):
                for wanted in request.measured(model_id):
                    self._disparity(wanted, job)
            return self.side_by_side(record.id, after.id)

        return Job(work, self.model(request.model_id).n_trees).start()

    def lineage(self, model_id: str) -> tuple[ModelRecord | None, tuple[ModelRecord, ...]]:
        """The model that a model was retrained from, and those retrained from it, newest first."""
        record = self.model(model_id)
        return lineage(record, self.models(record.federation))

    def side_by_side(self, first: str, second: str) -> SideBySide:
        """Two models of one federation compared; raises ParameterError where they are of two."""
        before, after = self.model(first), self.model(second)
        if before.federation != after.federation:
            raise ParameterError(
                f"{before.id} is a model of {before.federation!r}, {after.id} one of {after.federation!r}. "
                "Choose two models of one federation."
            )
        return compare(self._side(before), self._side(after))

    def _side(self, record: ModelRecord) -> Side:
        disparities = self._measured(record, DISPARITY)
        return Side(
            record=record,
            sizes=Sizes.of(self._partial_model(record)),
            importance=self._importance(record),
            compliance=self.compliance(record.id),
            disparities=rows_of(disparities),
            bases=bases_of({}, disparities),
            test_ids=frozenset(self._test_ids(record)),
        )

    def review(
        self, model_id: str, rule: str, feature: str, verdict: ReviewVerdict, reason: str, person: str
    ) -> Review:
        """Confirm or override a finding, with a reason; what was decided before is kept.

        Raises
        ------
        ParameterError
            The model has no such finding, or a field is not usable.
        """
        record = self.model(model_id)
        if not any((f.rule_id, f.feature) == (rule, feature) for f in self.compliance(record.id).findings):
            raise ParameterError(
                f"The model {record.id} has no finding of the rule {rule!r} on the feature {feature!r}."
            )
        done = self._catalogue.reviews(record.federation).review(
            record.content_hash, rule, feature, verdict, reason, person
        )
        body = {
            **audit.of_model(record),
            "rule": rule,
            "feature": feature,
            "verdict": verdict,
            "number": done.number,
        }
        self._audit.note(record.federation, "override", {**body, "person": done.person})
        return done

    def reviews(self, model_id: str) -> tuple[Review, ...]:
        """Every decision about the model's findings, oldest first."""
        record = self.model(model_id)
        return self._catalogue.reviews(record.federation).history(record.content_hash)

    def sign_off(self, model_id: str, person: str, statement: str) -> SignOff:
        """State something about the model as it is reported now; the statement names the hash of the report's content."""
        record = self.model(model_id)
        digest = report_content_hash(content_of(self._sources(record)))
        done = self._catalogue.reviews(record.federation).sign_off(
            record.content_hash, person, self._audit.role, statement, digest
        )
        body = {**audit.of_model(record), "content_sha256": digest, "number": done.number, "person": done.person}
        self._audit.note(record.federation, "sign-off", body)
        return done

    def sign_offs(self, model_id: str) -> tuple[SignOffLine, ...]:
        """Who stands by the model, and whether by what is reported of it now."""
        record = self.model(model_id)
        if not self._catalogue.reviews(record.federation).sign_offs(record.content_hash):
            return ()
        sources = self._sources(record)
        return sign_offs_of(sources, content_of(sources))

    def report(self, model_id: str) -> Report:
        """The canonical report as of now; looking at it is not logged, :meth:`export_report` is."""
        record = self.model(model_id)
        sources = self._sources(record)
        content, now = content_of(sources), datetime.now(UTC).isoformat(timespec="seconds")
        by = (self._audit.actor, self._audit.role)
        return make(content, issued_of(sources, content, self.verify_audit(record.federation), now, by))

    def export_report(self, model_id: str, form: str, language: str = "en") -> bytes:
        """The report as a file; the audit log keeps its hash.

        Parameters
        ----------
        form : {"json", "html", "pdf"}
        language : {"en", "zh"}
            JSON holds both. A PDF is English where this machine has no font with Chinese letters.

        Raises
        ------
        ParameterError
            There is no such form or language.
        """
        if form not in FORMS:
            raise ParameterError(f"The format is {form!r}; choose one of {', '.join(FORMS)}.")
        record = self.model(model_id)
        report = self.report(record.id)
        written = FORMS[form](report, language)
        body = {
            **audit.of_model(record),
            "format": form,
            "language": language,
            "content_sha256": report.content_sha256,
        }
        self._audit.note(record.federation, "report", {**body, "report_sha256": report.sha256})
        return written

    @staticmethod
    def report_answers(report: Report, language: str) -> tuple[tuple[str, str], ...]:
        """A regulator's questions, each with what the report answers."""
        return answers(report, language)

    @staticmethod
    def language_of_pdf(language: str) -> str:
        """The language that a PDF can be drawn in on this machine."""
        return language_of_pdf(language)

    def check_report(self, blob: bytes) -> Checked:
        """Check a report's file, and look for it in this home's audit logs; raises ModelError where it was changed."""
        checked = check(blob)
        named = [
            (federation.name, entry)
            for federation in self.federations()
            for entry in self.audit_entries(federation.name)
            if entry.action == "report" and entry.body.get("report_sha256") == checked.report.sha256
        ]
        return replace(checked, named_by=tuple(named))

    def _sources(self, record: ModelRecord) -> Sources:
        proxies, disparities = (self._measured(record, kind) for kind in (PROXIES, DISPARITY))
        return Sources(
            record=record,
            federation=self.federation(record.federation),
            model=self._partial_model(record),
            importance=self._importance(record),
            directions=self.directions(record.id),
            compliance=self.compliance(record.id),
            reviews=self.reviews(record.id),
            sign_offs=self._catalogue.reviews(record.federation).sign_offs(record.content_hash),
            entries=self.audit_entries(record.federation),
            card=self._card(record),
            disparities=rows_of(disparities) or None,
            proxies=rows_of(proxies) or None,
            bases=bases_of(proxies, disparities),
            retrained=self._retrained(record),
        )

    def _card(self, record: ModelRecord) -> Card | None:
        found = self.model_card(record.id)
        return Card(found.parts[0], found.sources[found.parts[0].part], found.shifts) if found.parts else None

    def _retrained(self, record: ModelRecord) -> tuple[SideBySide, ...]:
        """The model beside the one that it replaces, then beside those that replace it."""
        before, after = self.lineage(record.id)
        pairs = [(before.id, record.id)] if before else []
        return tuple(self.side_by_side(*pair) for pair in (*pairs, *((record.id, new.id) for new in after)))

    def audit_entries(self, federation: str) -> list[Entry]:
        """Everything that was logged about a federation, oldest first."""
        return self._catalogue.audit_log(federation).entries()

    def verify_audit(self, federation: str) -> Verdict:
        """Check the log's chain, and against what its Hosts were told of it."""
        return self._audit.verify(federation)

    def replay_requests(self, federation: str) -> tuple[HostReplay, ...]:
        """An auditor has the Guest open the requests that Hosts have kept in secret, and checks their weights (simulation)."""
        found = replay_requests(self._catalogue.runtime(federation), self._catalogue.guest_store(federation))
        rows = sum(one.found.rows for one in found)
        self._audit.note(
            federation, "replay", {"rows": rows, "problems": sum(len(one.found.problems) for one in found)}
        )
        return found

    def export_audit(self, federation: str) -> str:
        """The log as lines of JSON, a line an entry; exporting is logged too, as the last line."""
        self._audit.note(federation, "export", {"what": "audit"})
        return self._catalogue.audit_log(federation).export()

    def note_sign_in(self, way: str) -> None:
        """Log in every federation that the actor signed in, by `way` (the identity provider's name)."""
        for federation in self.federations():
            self._audit.note(federation.name, "sign-in", {"way": way})
