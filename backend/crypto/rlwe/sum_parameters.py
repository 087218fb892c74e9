"""Parameter sets for sums by bin, and what noise their replies may have. Knows no key.

The same noise E as in :mod:`backend.crypto.rlwe.parameters`, with other bounds: a Host multiplies by polynomials of few ones, once, and
replies stay at all primes of q (docs/decisions/training.md).
"""

from __future__ import annotations

from functools import cache
from math import prod

from backend.crypto.fixedpoint import GRADIENT_BITS, MAX_ROWS
from backend.crypto.rlwe import seal
from backend.crypto.rlwe.parameters import FRESH_ERROR, MARGIN_BITS, SPECIAL_BITS, RlweParameters, zero_noise
from backend.errors import ParameterError

DEGREE = 8192
PRIMES = (2, 3)  # of 60 bits, whose product is q
SUM_BITS = range(GRADIENT_BITS + 4, GRADIENT_BITS + 26)  # of t
TOP = 1 << 63  # largest R: it is drawn from one word
LOW_BITS = 64  # of a flood; what is above them is drawn uniformly from a range


@cache
def sum_set(primes: int, bits: int) -> RlweParameters:
    """The set whose t is the largest prime of so many bits that SEAL finds."""
    t = int(seal.PlainModulus.Batching(DEGREE, bits).value())
    return RlweParameters(f"n{DEGREE}-q{60 * primes}-t{t}", DEGREE, (60,) * primes, SPECIAL_BITS, t)


@cache
def sum_sets() -> dict[str, RlweParameters]:
    """Every set of this kind, by name."""
    return {p.name: p for primes in PRIMES for p in (sum_set(primes, bits) for bits in SUM_BITS)}


def max_noise(parameters: RlweParameters) -> int:
    """Largest noise that is decrypted correctly: t·(E + 1/2) < q/2."""
    return prod(parameters.moduli[:-1]) // (2 * parameters.plain_modulus) - 1


def flood_range(parameters: RlweParameters, n_shown: int = 0) -> int:
    """Return R: a uniform integer from a range of R·2^64 is added to a reply's noise, coefficient by coefficient.

    Parameters
    ----------
    n_shown : int
        The number of a reply's coefficients that are not uniform modulo q; 0 = all N.
    """
    largest = max_noise(parameters)
    max_reply_noise = (2 * largest) // (((n_shown or parameters.degree) << MARGIN_BITS) + 2)
    span = max(0, 2 * (largest - max_reply_noise))
    return min(span >> LOW_BITS, TOP)


def noise_allowed(parameters: RlweParameters, n_shown: int = 0) -> int:
    """Return the most noise V that a reply may have before it is flooded: n·V / (R·2^64) ≤ 2^-40, n = `n_shown`, or N if that is 0."""
    return (flood_range(parameters, n_shown) << LOW_BITS) // ((n_shown or parameters.degree) << MARGIN_BITS)


def sum_noise(parameters: RlweParameters, ones: int) -> int:
    """Upper bound on the noise of a reply before it is flooded, in the worst case.

    Parameters
    ----------
    ones : int
        Ones in the 0/1 polynomials of all blocks, or absolute values of other coefficients added up: each adds one coefficient of a
        fresh ciphertext.
    """
    fresh = parameters.plain_modulus // 2 + FRESH_ERROR * parameters.plain_modulus
    # rounded up; one more for the masked coefficients
    return ones * fresh // parameters.plain_modulus + zero_noise(parameters.degree) + 2


def features_a_reply(parameters: RlweParameters, rows: int) -> int:
    """How many features a reply over so many rows may have bins of; 0 = not one."""
    count = 0
    if sum_noise(parameters, rows) <= noise_allowed(parameters):
        spare = noise_allowed(parameters) - sum_noise(parameters, 0)
        count = 2 * spare // ((2 * FRESH_ERROR + 1) * max(1, rows))
    return int(count)


def sum_parameters(rows: int) -> RlweParameters:
    """The cheapest set that holds sums of so many gradients.

    Raises ParameterError if there are more than :data:`~backend.crypto.fixedpoint.MAX_ROWS` rows.
    """
    for primes in PRIMES:
        for bits in SUM_BITS:
            parameters = sum_set(primes, bits)
            if rows << GRADIENT_BITS <= parameters.limit:
                if features_a_reply(parameters, rows):
                    return parameters
                break
    raise ParameterError("no_parameters_for_gradients", rows=rows, most=MAX_ROWS)
