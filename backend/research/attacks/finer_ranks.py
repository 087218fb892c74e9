"""H3: noisy ranks were approved for one setting of the noise, and another one is asked for. Plays a malicious Guest.

The operator reads ε; the map, the mechanism and the number of levels decide what that ε leaves of the order. A local map with many levels
keeps nearly all of it. A Host that takes these from the Guest's message exists only here; the defence is that all of them are approved,
so that any others are refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from backend.protocols.training.opboost.host_side import NoisyColumns
from backend.protocols.training.opboost.maps import Noise
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import HOST, PEOPLE, attack_setup

APPROVED = Noise("global", "laplace", 0.05, 4, 2.0, 16)
ASKED = replace(APPROVED, map="local", theta=2, levels=256)
PAIRS = 20_000


def run(seed: int, people: int = PEOPLE, pairs: int = PAIRS) -> AttackOutcome:
    """Say of pairs of people who has the larger value, feature by feature, from the ranks that the Host sends."""
    setup = attack_setup(people)
    draw = np.random.default_rng(seed)
    features = []
    for f in setup.federation.party(HOST).features:
        if setup.host.columns[f.name].dtype.kind == "f":
            features.append(f)
    n = len(setup.host.ids)
    drawn_pairs = draw.integers(n, size=(pairs, 2))
    noisy = NoisyColumns(setup.host, features, draw.bytes(32))

    def ordered(noise: Noise) -> tuple[int, int]:
        right = 0
        trials = 0
        for feature in features:
            values = setup.host.columns[feature.name].astype(np.float64)
            (column,) = noisy.of(feature.name, noise)
            correct, differing = _right(values, column.levels.astype(np.float64), drawn_pairs, draw)
            right += correct
            trials += differing
        return right, trials

    off = count(ordered, ASKED)
    on = count(ordered, APPROVED)  # what the Host sends if any other setting is refused
    return AttackOutcome(
        off,
        on,
        chance=on.rate,
        setting={"people": n, "features": len(features), "pairs": pairs, "levels": ASKED.levels},
        numbers={"epsilon": APPROVED.epsilon},
    )


def _right(
    values: NDArray[np.float64], levels: NDArray[np.float64], pairs: NDArray[np.int64], draw: np.random.Generator
) -> tuple[int, int]:
    """Return the number of pairs with different values that the levels order rightly (a coin decides ties), and of all such pairs."""
    first = pairs[:, 0]
    second = pairs[:, 1]
    truth = values[first] - values[second]
    level_difference = levels[first] - levels[second]
    tied = level_difference == 0
    level_difference[tied] = draw.choice((-1.0, 1.0), int(tied.sum()))
    differs = np.isfinite(truth) & (truth != 0)
    is_right = np.sign(truth) == np.sign(level_difference)
    return int(np.count_nonzero(differs & is_right)), int(np.count_nonzero(differs))
