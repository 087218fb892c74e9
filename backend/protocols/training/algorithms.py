"""The training algorithms: each has its parameters and one function that grows a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backend.protocols.training import decision_tree, forest, secureboost
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.joint import Grown, Joint
from backend.protocols.training.opboost import grow as opboost
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.parameters import SecureBoostParameters

Parameters = SecureBoostParameters | ForestParameters | DecisionTreeParameters | OpBoostParameters
_GROW: dict[type[Parameters], Callable[[Joint, Any], Grown]] = {
    SecureBoostParameters: secureboost.grow,
    ForestParameters: forest.grow,
    DecisionTreeParameters: decision_tree.grow,
    OpBoostParameters: opboost.grow,
}
ALGORITHMS: dict[str, type[Parameters]] = {parameters.ALGORITHM: parameters for parameters in _GROW}


def grow(joint: Joint, parameters: Parameters) -> Grown:
    """Grow a model by the algorithm that the parameters belong to."""
    return _GROW[type(parameters)](joint, parameters)


def rounds(parameters: Parameters) -> int:
    """Largest number of progress reports: one per tree, or per round where a round grows a tree per class."""
    if isinstance(parameters, DecisionTreeParameters):
        return 1
    return parameters.trees
