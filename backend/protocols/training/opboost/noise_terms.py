"""What a Guest says about the noise of a training on ranks, as it stands in messages: nothing of it is checked yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NoiseTerms:
    """How values are to be desensitised (:class:`backend.protocols.training.opboost.maps.Noise`); empty and 0 = they are not."""

    map: str = ""
    mechanism: str = ""
    epsilon: float = 0.0
    theta: int = 0
    alpha: float = 0.0
    levels: int = 0

    @property
    def noise_terms(self) -> tuple[str, str, float, int, float, int]:
        """Return them alone, so that those of two messages can be compared."""
        return self.map, self.mechanism, self.epsilon, self.theta, self.alpha, self.levels
