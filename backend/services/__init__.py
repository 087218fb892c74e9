"""Everything a user can do, as the Guest sees it: one service a use case, composed by :class:`Glassleaf`.

The dashboard and the command line reach the backend through it alone. A service is made when it is first used, with what it needs
handed in; so a command loads no more than the services that it uses.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from backend.errors import NotAvailable, ParameterError, SecurityError, SignInError, StoreError
from backend.remark import Remark
from backend.services.audit import Auditor, AuditTrail
from backend.services.cache import Cache
from backend.services.job_registry import JobRegistry
from backend.services.registry import Registry
from backend.services.roles import OPERATOR, ROLES, TITLES, titles_of
from backend.services.system_user import system_user
from backend.services.workspace import Workspace

if TYPE_CHECKING:
    from backend.crypto.workers import Workers
    from backend.reports.build import Sources
    from backend.services.accounts import Account, Accounts
    from backend.services.age_check import AgeChecks
    from backend.services.alternatives import Alternatives
    from backend.services.attack_runs import AttackRuns
    from backend.services.compliance import Compliance
    from backend.services.demonstration import Demonstration
    from backend.services.dossiers import Dossiers
    from backend.services.explanation import Explanation
    from backend.services.fairness import Fairness
    from backend.services.federations import Federations
    from backend.services.forest_serving import ForestServing
    from backend.services.host_dossier import HostDossier
    from backend.services.host_operator import HostOperator
    from backend.services.keys import Keys
    from backend.services.leakage import Leakage
    from backend.services.lifecycle import Lifecycle
    from backend.services.measurement import Measurement
    from backend.services.model_card import ModelCard, ModelCards
    from backend.services.model_difference import ModelDifferences
    from backend.services.model_import import ModelImport
    from backend.services.model_packs import ModelPacks
    from backend.services.monitoring import Monitoring
    from backend.services.notice_details import NoticeDetails
    from backend.services.online import Online
    from backend.services.operation import Operation
    from backend.services.own_data import OwnData
    from backend.services.people import People
    from backend.services.policies import PolicyService
    from backend.services.protocol_comparison import ProtocolComparison
    from backend.services.reasons import ReasonsService
    from backend.services.report_details import ReportDetails
    from backend.services.reports import Reports
    from backend.services.retraining import Retraining
    from backend.services.reviews import ReviewService
    from backend.services.samples import Samples
    from backend.services.scoring import Scoring
    from backend.services.screening import Screenings
    from backend.services.sealed_models import SealedModels
    from backend.services.sealing import Sealing
    from backend.services.streaming import Streaming
    from backend.services.training import Training
    from backend.services.validation import ValidationService
    from backend.services.verdicts import Verdicts

_log = logging.getLogger("glassleaf")
CONTENTS_KEPT = 4  # contents of reports, of the models looked at last: one of 500 features has 0.6 MB


class _Shared:
    """The parts that all actors of a home share; closing them closes them for all."""

    def __init__(self, workspace: Workspace, workers: Workers | None) -> None:
        self.workspace = workspace
        self.models = Registry(workspace)
        self._given = workers
        self.cards: Cache[ModelCard] = Cache()
        self.contents: Cache[tuple[Sources, str]] = Cache(CONTENTS_KEPT)
        self.jobs = JobRegistry(workspace)

    @cached_property
    def workers(self) -> Workers:
        """Who encrypts bulk uploads."""
        from backend.crypto.workers import Workers, cores

        return self._given or Workers(cores())

    def close(self) -> None:
        """Stop all Hosts, workers and background threads."""
        self.jobs.close()
        self.workspace.close()
        if self._given is not None or "workers" in vars(self):
            self.workers.close()


class Glassleaf:
    """The Guest's services over one home.

    Parameters
    ----------
    home : Path, optional
        Where state lives; default ``GLASSLEAF_HOME``, else the platform's user data folder.
    key_floor : int, optional
        Shortest key, bits; lower only in tests.
    pools : bool
        Whether obfuscators are made in the background, and Hosts get the audit log's head there.
    workers : Workers, optional
        Who encrypts bulk uploads, and does simulated Hosts' long work; default one process a core of this machine.
    actor, role : str
        Who the audit log says it was; default the operating system's user, as operator. Nobody is authenticated here.
    """

    def __init__(
        self,
        home: Path | None = None,
        *,
        key_floor: int | None = None,
        pools: bool = True,
        workers: Workers | None = None,
        actor: str = "",
        role: str = OPERATOR,
    ) -> None:
        folder = home or os.environ.get("GLASSLEAF_HOME") or platformdirs.user_data_path("glassleaf")
        workspace = Workspace(
            Path(folder).expanduser(),
            key_floor,
            pools,
            on_key=self._key_made,
            on_expired=self._expired,
            on_approval=self._approval,
            on_links=self._links,
            workers=workers,
        )
        self._shared = _Shared(workspace, workers)
        self._auditor = Auditor(workspace, actor or system_user(), role)

    def __repr__(self) -> str:
        return f"Glassleaf({str(self.home)!r})"

    @property
    def home(self) -> Path:
        """Where state lives."""
        return self._shared.workspace.home

    def acting(self, actor: str, role: str) -> Glassleaf:
        """Return the same services for another person, who is named in the audit log; closing either closes both. Nobody is authenticated.

        Raises
        ------
        ParameterError
            The role does not exist.
        """
        if role not in ROLES:
            raise ParameterError("unknown_role", role=role, roles=ROLES)
        return self._with(Auditor(self._shared.workspace, actor or system_user(), role))

    def signed_in(self, account: Account, role: str) -> Glassleaf:
        """Return the same services for an account that :attr:`accounts` has just found; raise SignInError if it does not have the role."""
        if role not in account.roles:
            raise SignInError("account_lacks_role", role=TITLES.get(role, role), roles=titles_of(account.roles))
        return self._with(Auditor(self._shared.workspace, account.actor, role, signed_in=True))

    def _with(self, auditor: Auditor) -> Glassleaf:
        copy = object.__new__(Glassleaf)
        copy._shared = self._shared
        copy._auditor = auditor
        return copy

    def __enter__(self) -> Glassleaf:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all Hosts, workers and background threads."""
        self._shared.close()

    def _key_made(self, federation: str, cipher: str, bits: int) -> None:
        self._auditor.note(federation, "key", {"cipher": cipher, "key_bits": bits}, tell=False)

    def _expired(self, federation: str, deleted: dict[str, dict[str, int]]) -> None:
        self._auditor.note(federation, "retention", {"deleted": deleted}, tell=False)

    def _approval(self, federation: str, terms: dict[str, Any]) -> None:
        self._auditor.note(federation, "approval", terms, tell=False)

    def _links(self, federation: str, conversations: Collection[str]) -> None:
        """Log that this process has the links, or which conversations another one left open: who compares logs can see why."""
        from backend.store.audit_log import LINKS

        if conversations:
            body = {"broken_off": list(conversations)}
        else:
            body = {}
        try:
            self._auditor.note(federation, LINKS, body, tell=False)
        except StoreError as error:  # a home that cannot be written can be read
            _log.warning("That a process has the links was not logged: %s", error)

    @property
    def models(self) -> Registry:
        """Records and the Guest's partial models."""
        return self._shared.models

    @cached_property
    def accounts(self) -> Accounts:
        """Who is signed in, and in which roles."""
        from backend.services.accounts import Accounts

        return Accounts(self.home)

    @cached_property
    def operation(self) -> Operation:
        """Whether the home can do work; its backup."""
        from backend.services.operation import Operation

        return Operation(self._shared.workspace, self._auditor)

    @property
    def jobs(self) -> JobRegistry:
        """Jobs by user, those that outlive a page or the server."""
        return self._shared.jobs

    @cached_property
    def federations(self) -> Federations:
        """Federations of the home: add, split, list, warm up."""
        from backend.services.federations import Federations

        return Federations(self._shared.workspace)

    @cached_property
    def own_data(self) -> OwnData:
        """Federations made step by step from one's own table."""
        from backend.services.own_data import OwnData

        return OwnData(self._shared.workspace, self._auditor, self.federations)

    @cached_property
    def audit(self) -> AuditTrail:
        """The audit log: entries, verification, export, requests opened to an auditor."""
        return AuditTrail(self._shared.workspace, self._auditor)

    @cached_property
    def samples(self) -> Samples:
        """Records to be scored: of the Guest's table, typed in, uploaded."""
        from backend.services.samples import Samples

        return Samples(self._shared.workspace, self.models)

    @cached_property
    def screening(self) -> Screenings:
        """What features are worth before anything is trained."""
        from backend.services.screening import Screenings

        return Screenings(self._shared.workspace, self._auditor)

    @cached_property
    def training(self) -> Training:
        """Train models."""
        from backend.services.training import Training

        return Training(self._shared.workspace, self.models, self._auditor, self._sealing, self.lifecycle)

    @cached_property
    def _sealing(self) -> Sealing:
        from backend.services.sealing import Sealing

        return Sealing(self._shared.workspace, self.models, self._auditor, self.model_cards, self.compliance)

    @cached_property
    def sealed_models(self) -> SealedModels:
        """Trained models of which too many scores fit one path."""
        from backend.services.sealed_models import SealedModels

        return SealedModels(self._shared.workspace, self._auditor, self._sealing)

    @cached_property
    def model_import(self) -> ModelImport:
        """Register models that other libraries trained."""
        from backend.services.model_import import ModelImport

        return ModelImport(self._shared.workspace, self.models, self._auditor, self.model_cards, self.compliance)

    @cached_property
    def model_packs(self) -> ModelPacks:
        """Models that move from one home of the Guest to another."""
        from backend.services.model_packs import ModelPacks

        return ModelPacks(self._shared.workspace, self.models, self._auditor)

    @cached_property
    def retraining(self) -> Retraining:
        """Train a model again without some features."""
        from backend.services.retraining import Retraining

        return Retraining(
            self._shared.workspace,
            self.models,
            self._auditor,
            self.training,
            self.fairness,
            self.model_differences,
            self.reports,
        )

    @cached_property
    def scoring(self) -> Scoring:
        """Score people, and evaluate a model under encryption."""
        from backend.services.scoring import Scoring

        return Scoring(self._shared.workspace, self.models, self._auditor, self.compliance, self._shared.workers)

    @cached_property
    def streaming(self) -> Streaming:
        """Score tables of any length into a file."""
        from backend.services.streaming import Streaming

        return Streaming(self._shared.workspace, self.models, self.scoring)

    @cached_property
    def online(self) -> Online:
        """Models kept ready for programs that wait."""
        from backend.services.online import Online

        return Online(self._shared.workspace, self.models, self._auditor, self.compliance, self._shared.workers)

    @cached_property
    def reasons(self) -> ReasonsService:
        """Name what raised a score, draw notices, average contributions."""
        from backend.services.reasons import ReasonsService

        return ReasonsService(self._measurement, self.compliance, self.explanation, self.notice_details, self.verdicts)

    @cached_property
    def demonstration(self) -> Demonstration:
        """A score told to an audience, and how a simulated Host sees a synthetic person."""
        from backend.services.demonstration import Demonstration

        return Demonstration(
            self._shared.workspace,
            self.models,
            self.samples,
            self.scoring,
            self.reasons,
            self.protocol_comparison,
        )

    @cached_property
    def explanation(self) -> Explanation:
        """Importances, directions, dependence, interactions."""
        from backend.services.explanation import Explanation

        return Explanation(self._measurement)

    @cached_property
    def model_cards(self) -> ModelCards:
        """How good a model is, and on whom that was measured."""
        from backend.services.model_card import ModelCards

        return ModelCards(self._measurement, self._shared.cards)

    @cached_property
    def compliance(self) -> Compliance:
        """Findings of the rule packs, with the evidence that was measured."""
        from backend.services.compliance import Compliance

        return Compliance(self._shared.workspace, self.models, self._auditor)

    @cached_property
    def fairness(self) -> Fairness:
        """Outcomes by group, and proxies of protected attributes."""
        from backend.services.fairness import Fairness

        return Fairness(self._measurement, self.age_check)

    @cached_property
    def age_check(self) -> AgeChecks:
        """Whether the age of elderly applicants has a negative factor."""
        from backend.services.age_check import AgeChecks

        return AgeChecks(self._measurement)

    @cached_property
    def alternatives(self) -> Alternatives:
        """Less discriminatory models: searched for, chosen from."""
        from backend.services.alternatives import Alternatives

        return Alternatives(self._measurement, self.model_cards, self.compliance)

    @cached_property
    def model_differences(self) -> ModelDifferences:
        """How sure the difference between two models is."""
        from backend.services.model_difference import ModelDifferences

        return ModelDifferences(self._measurement)

    @cached_property
    def validation(self) -> ValidationService:
        """The suite of tests with a verdict each."""
        from backend.services.validation import ValidationService

        return ValidationService(self._measurement, self.compliance, self.model_differences)

    @cached_property
    def monitoring(self) -> Monitoring:
        """A later sheet against what the model was grown and tested on."""
        from backend.services.monitoring import Monitoring

        return Monitoring(self._measurement, self.scoring)

    @cached_property
    def leakage(self) -> Leakage:
        """Who saw what, and what a score gives away."""
        from backend.services.leakage import Leakage

        return Leakage(self._shared.workspace, self.models, self._auditor, self.samples)

    @cached_property
    def protocol_comparison(self) -> ProtocolComparison:
        """Fed-EINI compared with other ways of scoring."""
        from backend.services.protocol_comparison import ProtocolComparison

        return ProtocolComparison(self._shared.workspace, self.models, self._auditor, self._shared.workers)

    @cached_property
    def forest_serving(self) -> ForestServing:
        """Serve a forest while one of its workers is lost."""
        from backend.services.forest_serving import ForestServing

        return ForestServing(self._shared.workspace, self.models, self._auditor)

    @cached_property
    def attack_runs(self) -> AttackRuns:
        """The attack lab."""
        from backend.services.attack_runs import AttackRuns

        return AttackRuns()

    @cached_property
    def people(self) -> People:
        """What is kept about a person, and for how long: shown and forgotten."""
        from backend.services.people import People

        return People(self._shared.workspace, self.models, self._auditor)

    @cached_property
    def keys(self) -> Keys:
        """The Guest's keys: listed, backed up, restored, rotated."""
        from backend.services.keys import Keys

        return Keys(self._shared.workspace, self._auditor)

    @cached_property
    def reviews(self) -> ReviewService:
        """Decisions about findings."""
        from backend.services.reviews import ReviewService

        return ReviewService(self._shared.workspace, self.models, self._auditor, self.compliance)

    @cached_property
    def policies(self) -> PolicyService:
        """The policies that models decide by."""
        from backend.services.policies import PolicyService

        return PolicyService(self._shared.workspace, self.models, self._auditor)

    @cached_property
    def lifecycle(self) -> Lifecycle:
        """What models are called, and their way from draft to retirement."""
        from backend.services.lifecycle import Lifecycle

        return Lifecycle(self._shared.workspace, self.models, self._auditor, self.reviews, self.policies)

    @cached_property
    def verdicts(self) -> Verdicts:
        """What is true of a model, the worst first; two models, fact by fact."""
        from backend.services.verdicts import Verdicts

        return Verdicts(self._shared.workspace, self.models, self.compliance, self.explanation, self.model_cards)

    @cached_property
    def reports(self) -> Reports:
        """Reports on a model, statements about it, and two models compared."""
        from backend.services.reports import Reports

        return Reports(
            self._shared.workspace,
            self.models,
            self._auditor,
            self.audit,
            self.explanation,
            self.compliance,
            self.model_cards,
            self.report_details,
            self.dossiers,
            self.verdicts,
            self._shared.contents,
        )

    @cached_property
    def report_details(self) -> ReportDetails:
        """What the operator provides for a model's report."""
        from backend.services.report_details import ReportDetails

        return ReportDetails(self._shared.workspace, self.models, self._auditor)

    @cached_property
    def notice_details(self) -> NoticeDetails:
        """Whom notices name, and how they are reached."""
        from backend.services.notice_details import NoticeDetails

        return NoticeDetails(self._shared.workspace, self._auditor)

    @cached_property
    def dossiers(self) -> Dossiers:
        """What Hosts document and sign about their columns."""
        from backend.services.dossiers import Dossiers

        return Dossiers(self._shared.workspace, self._auditor)

    def host_dossier(self, federation: str, host: str) -> HostDossier:
        """A Host's side of its dossier; for the operator of that Host's home."""
        from backend.services.host_dossier import HostDossier

        return HostDossier(self._shared.workspace, federation, host)

    def host_operator(self, federation: str, host: str, *, on_page: bool = False) -> HostOperator:
        """A simulated Host as its operator sees it.

        Parameters
        ----------
        on_page : bool
            On a page of the dashboard: of synthetic people only.

        Raises
        ------
        SecurityError
            The actor is not the operator of the simulation, or the people to be shown are not synthetic.
        """
        from backend.services.host_operator import simulated_host

        if self._auditor.role != OPERATOR:
            raise SecurityError("host_view_for_operator", host=host, role=TITLES[self._auditor.role])
        about = self._shared.workspace.federation(federation)
        if about.link is not None:
            raise NotAvailable(host, Remark("its_console"))
        if on_page and not about.synthetic:
            raise SecurityError("host_view_of_real_people", host=host, federation=about.name)
        return simulated_host(self.home, about, host, self._auditor.actor)

    @cached_property
    def _measurement(self) -> Measurement:
        from backend.services.measurement import Measurement

        return Measurement(self._shared.workspace, self.models, self._auditor, self._shared.workers, self.compliance)
