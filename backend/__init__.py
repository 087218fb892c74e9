"""Glassleaf's backend: the parties, their protocols and the services that pages and the command line use.

What a library user imports from here is loaded when it is asked for.
"""

from importlib import import_module
from typing import Any

__version__ = "0.18.0"

WHERE = {
    "Glassleaf": "services",
    "SecureBoostParameters": "services.training",
    "TrainingRequest": "services.training",
    "ScoringRequest": "services.scoring",
    "ReasonsRequest": "services.reasons",
    "DisparityRequest": "services.fairness",
    "RetrainingRequest": "services.retraining",
    "ModelRecord": "results",
    "ScoreBatch": "results",
    "GlassleafError": "errors",
    "export": "trees.importers.sklearn_file",
}
"""Name → module of this package."""


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{WHERE[name]}"), name)
