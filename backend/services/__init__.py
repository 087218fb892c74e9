"""What app, pages and the command line reach the backend through: everything a user can do, as the Guest sees it."""

from __future__ import annotations

from backend.attacks.lab import Attack
from backend.attacks.result import AttackResult
from backend.attacks.result import works as attack_works
from backend.compliance.assessment import ComplianceReport, Duty, Finding, KeptOut, Usage
from backend.compliance.rule_pack import RulePack
from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.data.federation import Federation, Party
from backend.data.label import Label
from backend.data.split import Division
from backend.data.table import SampleSheet
from backend.evaluation.performance import Calibration, Estimate, Performance, Separation, Spread, Stability
from backend.explain.dependence import Dependence, GroupMean, GroupMeans, Level
from backend.explain.direction import LearnedDirection
from backend.explain.importance import FeatureImportance
from backend.explain.permutation import Permuted
from backend.explain.stability import MEASURES, Interaction, SteadyImportance
from backend.explain.stability import Measure as ImportanceMeasure
from backend.fairness.age_discrimination import AgeCheck
from backend.fairness.age_discrimination import in_words as ages_in_words
from backend.fairness.disparity import Disparity, measure_in_words
from backend.fairness.evidence import Basis, Evidence
from backend.i18n import LANGUAGES, brief, catalogue
from backend.jobs import Job
from backend.privacy.disclosure import DisclosedField as LedgerLine
from backend.privacy.disclosure import PartyDisclosure as LedgerRow
from backend.privacy.leakage import LeakPoint, LeakReading
from backend.privacy.tradeoff import FrontierPoint
from backend.protocols.alignment.exchange import Alignment
from backend.protocols.alignment.methods import METHODS
from backend.protocols.baselines.batch_sizes import BATCHES, PAIR, Lead, Point, leads
from backend.protocols.baselines.comparison import PROTOCOLS, Comparison, ProtocolResult
from backend.protocols.baselines.disclosure import Learned
from backend.protocols.group_sums.grouping import Group
from backend.protocols.simulation.simulator import PoolLevel
from backend.protocols.simulation.synthetic_model import SHAPE_LIMITS, SYNTHETIC, Shape
from backend.protocols.training.algorithms import ALGORITHMS, Parameters
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.parameters import CIPHERS, KEY_SIZES, SecureBoostParameters, TreeProgress
from backend.protocols.transport.channel import TranscriptEntry
from backend.protocols.transport.simulated_latency import Link
from backend.reports.adverse_action_notice import FORMATS as NOTICE_FORMATS
from backend.reports.document import Report
from backend.reports.files import FORMS, Checked
from backend.reports.model_comparison import (
    Difference,
    Figure,
    FindingPair,
    OutcomePair,
    Shift,
    Side,
    SideBySide,
    Sizes,
)
from backend.reports.model_comparison import as_dict as side_by_side_json
from backend.reports.schema import SignOffLine
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
from backend.services.age_check import AgeRequest
from backend.services.audit import ANALYST, OPERATOR, REGULATOR, ROLES
from backend.services.explanation import MeansRequest, PermutationRequest
from backend.services.fairness import DisparityRequest, Proxies, ProxyRequest
from backend.services.filing import Filing
from backend.services.forest_serving import ServedBatch, ServingRequest, ServingTrial
from backend.services.model_card import CardRequest, ModelCard
from backend.services.reasons import CohortImportance, CohortRequest, PersonReasons, Reason, Reasons, ReasonsRequest
from backend.services.registry import DEMO
from backend.services.retraining import RetrainingRequest
from backend.services.running import DEMO_PARAMETERS
from backend.store.audit_log import Entry, Verdict
from backend.store.reviews import Review, SignOff
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split, SplitRule
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
    "SYNTHETIC",
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
    "LeakReading",
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
    "ProtocolResult",
    "Proxies",
    "ProxyRequest",
    "Reason",
    "Reasons",
    "ReasonsRequest",
    "Report",
    "RetrainingRequest",
    "Review",
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
    "SplitRule",
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
    """The Guest's glassleaf.

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
