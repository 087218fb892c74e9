"""Every kind of job as a page starts it, at the size of the demo or larger, for what is measured of jobs by hand."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from backend.data.dictionary import Kind
from backend.data.table import SampleSheet
from backend.jobs import Job
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.age_check import AgeRequest
from backend.services.alternatives import AlternativesRequest
from backend.services.attack_runs import AttackRuns
from backend.services.explanation import MeansRequest, PermutationRequest
from backend.services.fairness import DisparityRequest, ProxyRequest
from backend.services.model_card import CardRequest
from backend.services.monitoring import MonitoringRequest
from backend.services.protocol_comparison import ComparisonRequest
from backend.services.reasons import CohortRequest, ReasonsRequest
from backend.services.retraining import RetrainingRequest
from backend.services.scoring import ScoringRequest
from backend.services.screening import ScreeningRequest
from backend.services.training import TrainingRequest
from backend.services.validation_run import ValidationRequest
from tests.release_rule import EVERY_SCORE

Start = Callable[[Glassleaf, str], Job[Any]]


def sheet(glassleaf: Glassleaf, people: int) -> SampleSheet:
    """People of the demo, over and over."""
    table = glassleaf._shared.workspace.runtime("demo").table
    own = table.take(np.arange(people) % len(table.ids))
    return SampleSheet(own.ids, own, {}, {}, ())


def score(people: int, cipher: Any) -> Start:
    def start(glassleaf: Glassleaf, model: str) -> Job[Any]:
        return glassleaf.scoring.start(ScoringRequest(model, sheet(glassleaf, people), cipher=cipher), counted=False)

    return start


def train(trees: int, cipher: Any) -> Start:
    def start(glassleaf: Glassleaf, model: str) -> Job[Any]:
        parameters = SecureBoostParameters(trees=trees, depth=3, learning_rate=0.3, cipher=cipher)
        return glassleaf.training.start(TrainingRequest("demo", parameters, most_named=EVERY_SCORE))

    return start


def forest(glassleaf: Glassleaf, model: str) -> Job[Any]:
    return glassleaf.training.start(TrainingRequest("demo", ForestParameters(trees=12), most_named=EVERY_SCORE))


def reasons(people: int, cipher: Any) -> Start:
    return lambda glassleaf, model: glassleaf.reasons.start(
        ReasonsRequest(model, sheet(glassleaf, people), cipher=cipher)
    )


def attack(name: str) -> Start:
    return lambda glassleaf, model: AttackRuns.start([name])


def brought(glassleaf: Glassleaf, model: str) -> Job[Any]:
    """A model that XGBoost trained on everybody's columns."""
    import xgboost  # noqa: PLC0415 - for this kind alone

    workspace = glassleaf._shared.workspace
    federation, joint = workspace.federation("demo"), None
    for party in federation.parties:
        own = pd.read_csv(Path(federation.folder) / party.file, dtype={party.id: str}).set_index(party.id)
        joint = own if joint is None else joint.join(own, how="inner")
    assert joint is not None
    kinds = {f.name: f.kind for _, f in federation.features()}
    names = [name for name in kinds if name in joint and kinds[name] is not Kind.CATEGORICAL]
    label = joint[federation.label.column].astype(str) == federation.label.positive
    booster = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 4, "nthread": 1},
        xgboost.DMatrix(joint[names].astype(float), label),
        60,
    )
    with tempfile.TemporaryDirectory() as folder:
        booster.save_model(Path(folder) / "model.json")
        data = (Path(folder) / "model.json").read_bytes()
    return glassleaf.model_import.start_upload("demo", "model.json", data, keep=True)


def monitored(glassleaf: Glassleaf, model: str) -> Job[Any]:
    federation = glassleaf._shared.workspace.federation("demo")
    lines = (Path(federation.folder) / federation.guest.file).read_bytes().splitlines(keepends=True)[:1001]
    later = glassleaf.monitoring.read(model, b"".join(lines), "later.csv")
    return glassleaf.monitoring.start(MonitoringRequest(model, later, "gender"))


def demo(glassleaf: Glassleaf, model: str) -> Job[Any]:
    """The demo in another home."""
    return Glassleaf(glassleaf.home / f"demo-{time.time_ns()}", pools=False).training.start_demo()


KINDS: dict[str, Start] = {
    "demo": demo,
    "one score under Paillier": score(1, "paillier"),
    "scores of 39 under Paillier": score(39, "paillier"),
    "scores of 100 under Paillier": score(100, "paillier"),
    "scores of 1,000 under Paillier": score(1000, "paillier"),
    "one score under RLWE": score(1, "rlwe"),
    "scores of 1,000 under RLWE": score(1000, "rlwe"),
    "scores of 3,000 under RLWE": score(3000, "rlwe"),
    "scores of 100,000 under RLWE": score(100_000, "rlwe"),
    "training under Paillier, 4 trees": train(4, "paillier"),
    "training under Paillier, 12 trees": train(12, "paillier"),
    "training under RLWE, 12 trees": train(12, "rlwe"),
    "training of a forest, 12 trees": forest,
    "reasons of 40 under RLWE": reasons(40, "rlwe"),
    "reasons of 5 under Paillier": reasons(5, "paillier"),
    "screening": lambda glassleaf, model: glassleaf.screening.start(
        ScreeningRequest(glassleaf.models.get(model).federation)
    ),
    "disparity": lambda glassleaf, model: glassleaf.fairness.start(DisparityRequest(model, "gender")),
    "proxies": lambda glassleaf, model: glassleaf.fairness.start(ProxyRequest(model, "gender")),
    "elderly ages": lambda glassleaf, model: glassleaf.fairness.start(AgeRequest(model, "age")),
    "alternatives": lambda glassleaf, model: glassleaf.alternatives.start(
        AlternativesRequest(model, "gender", without=(("gender",),), depths=(2,), lambdas=(2.0,))
    ),
    "retraining": lambda glassleaf, model: glassleaf.retraining.start(
        RetrainingRequest(model, ("gender",), ("gender",))
    ),
    "validation": lambda glassleaf, model: glassleaf.validation.start(ValidationRequest(model)),
    "monitoring": monitored,
    "permutation importance": lambda glassleaf, model: glassleaf.explanation.start_permutation(
        PermutationRequest(model)
    ),
    "mean contributions": lambda glassleaf, model: glassleaf.reasons.start_cohort(CohortRequest(model)),
    "means by decile": lambda glassleaf, model: glassleaf.explanation.start_means(MeansRequest(model, "gender")),
    "model card": lambda glassleaf, model: glassleaf.model_cards.start(CardRequest(model)),
    "leak meter": lambda glassleaf, model: glassleaf.leakage.start_curve(model),
    "privacy-utility trade-off": lambda glassleaf, model: glassleaf.leakage.start_tradeoff(model),
    "protocol comparison": lambda glassleaf, model: glassleaf.protocol_comparison.start(ComparisonRequest(model)),
    "import": brought,
    "report as PDF": lambda glassleaf, model: glassleaf.reports.start_file(model, "pdf", "en"),
    "credit cards fetched": lambda glassleaf, model: glassleaf.federations.start_credit_card(),
    **{f"attack {one.id}": attack(one.id) for one in AttackRuns.all()},
}
