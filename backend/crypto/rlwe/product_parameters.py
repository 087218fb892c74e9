"""Parameter sets for inner products, and which keys a request for reasons takes. Knows no key.

The noise is that of sums by bin (:mod:`backend.crypto.rlwe.sum_parameters`): a Host multiplies once, by polynomials of small coefficients.
Only what a reply shows has to be flooded, since all else in it is uniform modulo q (docs/decisions/reasons.md).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from backend.crypto.rlwe.parameters import (
    MAX_RESIDUES,
    PRODUCT_BITS,
    PRODUCT_RINGS,
    Load,
    RlweParameters,
    residue_sets,
    residues_for,
)
from backend.crypto.rlwe.sum_parameters import noise_allowed, sum_noise
from backend.errors import ParameterError


def product_noise(parameters: RlweParameters, load: Load) -> int:
    """Upper bound on the noise of a reply before it is flooded: every factor adds that many times a coefficient of a fresh ciphertext."""
    return sum_noise(parameters, (load.people * load.rows) << load.factor_bits)


@lru_cache(maxsize=64)
def keys_for(load: Load) -> tuple[RlweParameters, ...]:
    """Return the sets of a request's keys with the fewest bytes on the wire; raises ParameterError if no sets are large enough."""
    if not load.guest_features:
        return residues_for(load)
    candidates: list[tuple[int, int, tuple[RlweParameters, ...]]] = []
    for degree, primes in PRODUCT_RINGS:
        for bits in PRODUCT_BITS:
            sets = residue_sets(degree, primes, bits)
            count = next(
                (k for k in range(1, MAX_RESIDUES + 1) if prod(p.plain_modulus for p in sets[:k]) >= load.span), 0
            )
            if count and all(product_noise(p, load) <= noise_allowed(p, load.guest_features) for p in sets[:count]):
                candidates.append((count * primes, count, sets[:count]))
    if not candidates:
        raise ParameterError("no_parameters_for_products", rows=load.rows, people=load.people)
    return min(candidates, key=lambda candidate: candidate[:2])[2]
