"""The one door for app, pages and the command line: everything a user can do, as the Guest sees it."""

from __future__ import annotations

from backend.assurance.attacks.lab import Attack
from backend.assurance.attacks.result import AttackResult
from backend.assurance.attacks.result import works as attack_works
from backend.assurance.compliance import Basis, ComplianceReport, Duty, Evidence, Finding, KeptOut, Usage
from backend.assurance.dependence import Dependence, GroupMean, GroupMeans, Level
from backend.assurance.direction import LearnedDirection
from backend.assurance.elderly import AgeCheck
from backend.assurance.elderly import in_words as ages_in_words
from backend.assurance.fairness import Disparity, measure_in_words
from backend.assurance.frontier import FrontierPoint
from backend.assurance.importance import FeatureImportance
from backend.assurance.interpretation import MEASURES, Interaction, SteadyImportance
from backend.assurance.interpretation import Measure as ImportanceMeasure
from backend.assurance.leakage import LeakPoint, Reading
from backend.assurance.ledger import Line as LedgerLine
from backend.assurance.ledger import Row as LedgerRow
from backend.assurance.notice import FORMATS as NOTICE_FORMATS
from backend.assurance.performance import Calibration, Estimate, Performance, Separation, Spread, Stability
from backend.assurance.permutation import Permuted
from backend.assurance.report.document import Report
from backend.assurance.report.fields import SignOffLine
from backend.assurance.report.words import LANGUAGES, brief, catalogue
from backend.assurance.rule_pack import RulePack
from backend.auditing import ANALYST, OPERATOR, REGULATOR, ROLES
from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.data.federation import Federation, Party
from backend.data.label import Label
from backend.data.split import Division
from backend.data.table import SampleSheet
from backend.elderly import AgeRequest
from backend.evidence import DisparityRequest, Proxies, ProxyRequest
from backend.interpreting import MeansRequest, PermutationRequest
from backend.jobs import Job
from backend.model_card import CardRequest, ModelCard
from backend.protocols.alignment.exchange import Alignment
from backend.protocols.alignment.methods import METHODS
from backend.protocols.batches import BATCHES, PAIR, Lead, Point, leads
from backend.protocols.channel import TranscriptEntry
from backend.protocols.comparison import PROTOCOLS, Comparison, Row
from backend.protocols.grouping import Group
from backend.protocols.inference.learned import Learned
from backend.protocols.made_up import MADE_UP, SHAPE_LIMITS, Shape
from backend.protocols.network import Link
from backend.protocols.room import PoolLevel
from backend.protocols.training.algorithms import ALGORITHMS, Parameters
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.parameters import CIPHERS, KEY_SIZES, SecureBoostParameters, TreeProgress
from backend.reasoning import CohortImportance, CohortRequest, PersonReasons, Reason, Reasons, ReasonsRequest
from backend.reporting import FORMS, Checked
from backend.results import (
    NODE_BY_NODE_SAMPLES,
    RANKS,
    Compared,
    ComparisonRequest,
    Evaluation,
    ModelRecord,
    Score,
    ScoreBatch,
    ScoringRequest,
    Stage,
    TrainingRequest,
    usual_protocols,
)
from backend.retraining import RetrainingRequest
from backend.service.filing import Filing
from backend.service.models import DEMO
from backend.service.running import DEMO_PARAMETERS
from backend.serving import ServedBatch, ServingRequest, ServingTrial
from backend.side_by_side import Difference, Figure, FindingPair, OutcomePair, Shift, Side, SideBySide, Sizes
from backend.side_by_side import as_dict as side_by_side_json
from backend.store.audit_log import Entry, Verdict
from backend.store.reviews import Review, SignOff
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Rule, Split
from backend.trees.metrics import Metrics

__all__ = [
    "ALGORITHMS",
    "ANALYST",
    "BATCHES",
    "CIPHERS",
    "DEMO",
    "DEMO_PARAMETERS",
    "FORMS",
    "KEY_SIZES",
    "LANGUAGES",
    "MADE_UP",
    "MEASURES",
    "METHODS",
    "NODE_BY_NODE_SAMPLES",
    "NOTICE_FORMATS",
    "OPERATOR",
    "PAIR",
    "PROTOCOLS",
    "RANKS",
    "REGULATOR",
    "ROLES",
    "SHAPE_LIMITS",
    "AgeCheck",
    "AgeRequest",
    "Alignment",
    "Attack",
    "AttackResult",
    "Basis",
    "Calibration",
    "CardRequest",
    "Checked",
    "CohortImportance",
    "CohortRequest",
    "Compared",
    "Comparison",
    "ComparisonRequest",
    "ComplianceReport",
    "DecisionTreeParameters",
    "Dependence",
    "Difference",
    "Disparity",
    "DisparityRequest",
    "Division",
    "Duty",
    "Entry",
    "Estimate",
    "Evaluation",
    "Evidence",
    "ExpectedDirection",
    "Feature",
    "FeatureImportance",
    "Federation",
    "Figure",
    "Finding",
    "FindingPair",
    "ForestParameters",
    "FrontierPoint",
    "Glassleaf",
    "Group",
    "GroupMean",
    "GroupMeans",
    "GuestModel",
    "GuestTree",
    "ImportanceMeasure",
    "Interaction",
    "Job",
    "KeptOut",
    "Kind",
    "Label",
    "Lead",
    "Leaf",
    "LeakPoint",
    "Learned",
    "LearnedDirection",
    "LedgerLine",
    "LedgerRow",
    "Level",
    "Link",
    "MeansRequest",
    "Metrics",
    "ModelCard",
    "ModelRecord",
    "OpBoostParameters",
    "OutcomePair",
    "Parameters",
    "Party",
    "Performance",
    "PermutationRequest",
    "Permuted",
    "PersonReasons",
    "Point",
    "PoolLevel",
    "Proxies",
    "ProxyRequest",
    "Reading",
    "Reason",
    "Reasons",
    "ReasonsRequest",
    "Report",
    "RetrainingRequest",
    "Review",
    "Row",
    "Rule",
    "RulePack",
    "SampleSheet",
    "Score",
    "ScoreBatch",
    "ScoringRequest",
    "SecureBoostParameters",
    "Separation",
    "ServedBatch",
    "ServingRequest",
    "ServingTrial",
    "Shape",
    "Shift",
    "Side",
    "SideBySide",
    "SignOff",
    "SignOffLine",
    "Sizes",
    "Split",
    "Spread",
    "Stability",
    "Stage",
    "SteadyImportance",
    "TrainingRequest",
    "TranscriptEntry",
    "TreeProgress",
    "Usage",
    "Verdict",
    "ages_in_words",
    "attack_works",
    "brief",
    "catalogue",
    "leads",
    "measure_in_words",
    "side_by_side_json",
    "usual_protocols",
]  # fmt: skip


class Glassleaf(Filing):
    """The Guest's door.

    Parameters
    ----------
    home : Path, optional
        Where state lives; default ``GLASSLEAF_HOME``, else the platform's user data folder.
    key_floor : int
        Shortest key, bits; lower only in tests.
    pools : bool
        Whether obfuscators are made in the background.
    workers : Workers, optional
        Who encrypts bulk uploads; default one process a core of this machine.
    actor, role : str
        Who the audit log says it was; default the operating system's user, as operator. Nobody is authenticated here.
    """
