"""The parameters of an OpBoost training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.errors import ParameterError
from backend.protocols.training.opboost.maps import RANGES as NOISE_RANGES
from backend.protocols.training.opboost.maps import Map, Noise
from backend.protocols.training.opboost.sampling import Mechanism
from backend.protocols.training.parameters import BOOSTING, CheckedParameters, Ranges
from backend.remark import Remark


# Not derived from the noise's terms: forms show a class's fields in their order, and terms are empty by default.
@dataclass(frozen=True)
class OpBoostParameters(CheckedParameters):
    """Parameters of an OpBoost model; nothing is encrypted in its training, so there is no cipher and no key.

    Attributes
    ----------
    trees, depth, learning_rate, reg_lambda, min_child_weight
        XGBoost's. ``trees`` counts rounds: one tree each, or one tree a class.
    seed : int
        Draws the 60/20/20 split; the noise is never seeded.
    early_stopping : int
        Stop after this many rounds without a smaller validation loss (of noisy ranks) and keep the best; 0 = off.
    map : {"global", "adj", "local"}
    mechanism : {"exponential", "laplace"}
    epsilon : float
        Privacy loss per step of distance. The smallest of the paper's values that keeps more than 90 % of the Host's contribution on
        the credit-card data (docs/opboost.md); 1 hides hardly anything: the ends of 128 levels differ by e^127.
    theta, alpha, levels
        See :class:`~backend.protocols.training.opboost.maps.Noise`.
    alignment : {"dh", "bloom"}
        How ids are compared without showing them (docs/alignment.md).
    score_bits : int
        Leaf weights are scored as multiples of 2**-score_bits.
    weights : str
        As for SecureBoost; they stay at the Guest, where the trees are grown.
    """

    ALGORITHM: ClassVar[str] = "opboost"
    RANGES: ClassVar[Ranges] = BOOSTING | NOISE_RANGES

    trees: int = 20
    depth: int = 3
    learning_rate: float = 0.3
    reg_lambda: float = 1.0
    min_child_weight: float = 1.0
    seed: int = 7
    early_stopping: int = 0
    map: Map = "global"
    mechanism: Mechanism = "exponential"
    epsilon: float = 0.32
    theta: int = 4
    alpha: float = 2.0
    levels: int = 128
    alignment: str = "dh"
    score_bits: int = 10
    weights: str = ""

    def problems(self) -> list[Remark]:
        """Return what is wrong with ranges, choices and settings of the noise."""
        problems = super().problems()
        try:
            _ = self.noise
        except ParameterError as error:
            # Its ranges are among those of this class.
            problems += [problem for problem in error.remarks if problem not in problems]
        return problems

    @property
    def noise(self) -> Noise:
        """How the Hosts desensitise."""
        return Noise(self.map, self.mechanism, self.epsilon, self.theta, self.alpha, self.levels)
