"""Checked parameter sets for the RLWE cipher (BGV in SEAL), each with its proven noise bound. Knows no key.

In BGV c0 + c1·s = m + t·E mod q for a message m mod t: E is the noise, and what is said of noise here is said of E. A product with a
plaintext reveals that plaintext through E to the key owner, so the last Host floods E (docs/decisions/encryption.md works it out).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import prod

from backend.crypto.rlwe import seal
from backend.errors import ParameterError, SecurityError

BGV = 3  # SEAL's number for the scheme; TenSEAL has no name for it
ERROR_BITS = FRESH_ERROR = 21  # largest error coefficient: the difference of two sums of 21 bits, as SEAL draws it
ZERO_NOISE = 18  # times N: most noise of an Enc(0) that its maker cannot see, see short_enough
MARGIN_BITS = 40  # a flooded reply is within 2^-40 of one whose noise says nothing, all coefficients together
SPECIAL_BITS = 22  # of the prime that only the public key has

# of the sets for numbers longer than a slot: N and how many primes q has; and the bits that the primes t may have
RESIDUE_RINGS = ((8192, 3), (16384, 4), (16384, 5), (16384, 6))
RESIDUE_BITS = range(27, 44, 2)
MAX_RESIDUES = 8
MAX_TOGETHER = 8  # people of a group whose numbers share a message
# of the sets for inner products: N and how many primes q has, and bits of t, which has to differ from the primes of q
PRODUCT_RINGS = ((8192, 2), (8192, 3))
PRODUCT_BITS = range(24, 60)


@dataclass(frozen=True)
class RlweParameters:
    """One parameter set.

    Attributes
    ----------
    degree : int
        N: ring degree and number of slots.
    data_bits : tuple of int
        Bits of the primes whose product is q.
    special_bits : int
        Bits of the prime that only the public key has: SEAL sets one aside for key switching, which is not used here.
    plain_modulus : int
        t: prime, 1 mod 2N.
    """

    name: str
    degree: int
    data_bits: tuple[int, ...]
    special_bits: int
    plain_modulus: int

    @property
    def limit(self) -> int:
        """Largest absolute sum."""
        return (self.plain_modulus - 1) // 2

    @cached_property
    def moduli(self) -> tuple[int, ...]:
        """The primes of q, then the special one."""
        primes = seal.CoeffModulus.Create(self.degree, [*self.data_bits, self.special_bits])
        return tuple(int(prime.value()) for prime in primes)

    @cached_property
    def max_noise(self) -> int:
        """Largest noise that is decrypted correctly after the switch to the first prime alone."""
        first, *others = self.moduli[:-1]
        rounding = 2 * self.plain_modulus * (self.degree + 1)
        return int(prod(others) * (first - 2 * rounding) // (2 * self.plain_modulus)) - 1

    @cached_property
    def flood_range(self) -> tuple[int, int]:
        """R < 2^63 and L: a reply is flooded with uniform integers from a range of R·2^(32·L), as wide as correct decryption allows."""
        max_reply_noise = 2 * self.max_noise // ((self.degree << MARGIN_BITS) + 2)
        span = 2 * (self.max_noise - max_reply_noise)
        limbs = max(0, -(-(span.bit_length() - 63) // 32))
        return span >> (32 * limbs), limbs

    @cached_property
    def flood(self) -> int:
        """F: they are from -F to F - 1."""
        top, limbs = self.flood_range
        return top << (32 * limbs) >> 1

    @cached_property
    def noise_allowed(self) -> int:
        """Most noise V that a reply may have before it is flooded: N·V/2F ≤ 2^-40."""
        return 2 * self.flood // (self.degree << MARGIN_BITS)

    def noise(self, hosts: int, ciphertexts: int) -> int:
        """Upper bound on the noise of a reply before it is flooded, in the worst case.

        Parameters
        ----------
        hosts : int
            Each multiplies every ciphertext by a plaintext with coefficients of at most t/2.
        ciphertexts : int
            How many the Guest sent; the reply adds all of them up.
        """
        n = self.degree
        t = self.plain_modulus
        fresh = t // 2 + FRESH_ERROR * t
        zero = t * zero_noise(n)
        total = ciphertexts * fresh
        for index in range(hosts):
            total = total * n * (t // 2) + zero * (1 if index + 1 == hosts else ciphertexts)
        return total // t + 2  # rounded up; one more for the mask


def short_enough(degree: int, nonzero: int, absolute: int) -> bool:
    """Whether an Enc(0) under the public key keeps to :func:`zero_noise`; of ten billion draws, not one is expected that does not.

    Its noise is e·v + e₀ + e₁·s for the key's error e and its ternary secret s.

    Parameters
    ----------
    nonzero : int
        Coefficients of v that are not 0.
    absolute : int
        Σ|e₁|.
    """
    return FRESH_ERROR * nonzero + absolute <= ZERO_NOISE * degree


def zero_noise(degree: int) -> int:
    """Upper bound on the noise of an Enc(0) under the public key."""
    return ZERO_NOISE * degree + FRESH_ERROR


PARAMETERS = {
    p.name: p
    for p in (  # cheapest first; figures for hosts and entries are in docs/decisions/encryption.md
        RlweParameters("n8192-q120-t557057", 8192, (60, 60), 22, 557057),
        RlweParameters("n8192-q180-t33538049", 8192, (60, 60, 60), 22, 33538049),
        RlweParameters("n8192-q180-t163841", 8192, (60, 60, 60), 22, 163841),
        RlweParameters("n16384-q240-t8257537", 16384, (60, 60, 60, 60), 22, 8257537),
        RlweParameters("n16384-q300-t33292289", 16384, (60, 60, 60, 60, 60), 22, 33292289),
    )
}


@cache
def residue_sets(degree: int, primes: int, bits: int) -> tuple[RlweParameters, ...]:
    """Sets that differ in t alone, for numbers that are held as residues.

    Parameters
    ----------
    degree : int
        N.
    primes : int
        Of 60 bits each, whose product is q.
    bits : int
        Of t.

    Returns
    -------
    tuple of RlweParameters
        :data:`MAX_RESIDUES` of them, t ascending from the smallest prime that SEAL finds from 2^bits down.
    """
    moduli = [int(t.value()) for t in seal.PlainModulus.Batching(degree, [bits] * MAX_RESIDUES)]
    return tuple(
        RlweParameters(f"n{degree}-q{60 * primes}-t{t}", degree, (60,) * primes, SPECIAL_BITS, t) for t in moduli
    )


@cache
def _all_named() -> dict[str, RlweParameters]:
    """Every set that a key may have."""
    kinds = (RESIDUE_RINGS, RESIDUE_BITS), (PRODUCT_RINGS, PRODUCT_BITS)
    residues = (
        p
        for rings, widths in kinds
        for degree, primes in rings
        for b in widths
        for p in residue_sets(degree, primes, b)
    )
    return PARAMETERS | {p.name: p for p in residues}


def parameters_named(name: str) -> RlweParameters:
    """The set of that name; raises SecurityError if there is none."""
    if name not in _all_named():
        raise SecurityError("unknown_parameters", parameters=name[:40], known=tuple(PARAMETERS))
    return _all_named()[name]


def parameters_for(hosts: int, entries: int, largest: int = 0) -> RlweParameters:
    """The cheapest set whose noise bound holds.

    Parameters
    ----------
    hosts : int
        In the chain.
    entries : int
        That the Guest encrypts per sample.
    largest : int, optional
        Largest absolute sum that must fit.

    Raises
    ------
    ParameterError
        No set holds that much.
    """
    for parameters in PARAMETERS.values():
        if parameters.noise(hosts, entries) <= parameters.noise_allowed and largest <= parameters.limit:
            return parameters
    raise ParameterError(
        "no_parameters_for_scores",
        entries=entries,
        hosts_count=hosts,
        largest=largest,
        most=max(p.limit for p in PARAMETERS.values()),
    )


@dataclass(frozen=True)
class Load:
    """Weighted sums that are to be worked out under residues; all of it follows from a model and a request.

    Attributes
    ----------
    hosts : int
        In the chain, each of which multiplies.
    rows : int
        The numbers of one person that become one sum.
    features : int
        The number of sums.
    people : int
        The number of people whose sums are added up before they are decrypted.
    span : int
        The number of integers in the range of what is decrypted.
    guest_features : int
        0 = numbers are stored in slots. Else they are stored in coefficients, as rows of that many features of the Guest and a base of
        all others (:mod:`backend.crypto.rlwe.inner_products`).
    factor_bits : int
        For numbers in coefficients: the Host's factors are at most 2^factor_bits in absolute value.
    """

    hosts: int
    rows: int
    features: int
    people: int
    span: int
    guest_features: int = 0
    factor_bits: int = 0

    def ciphertexts(self, degree: int, people: int = 1) -> int:
        """Return the number of ciphertexts of a message about `people` people, under one key."""
        rows = people * self.rows
        rows_a_ciphertext = degree // (self.guest_features or self.features)
        count = -(-rows // rows_a_ciphertext)
        if self.guest_features:  # the base has its own ciphertexts
            count += -(-rows // degree)
        return count

    def together(self, degree: int) -> int:
        """Return the number of people that share a message, so that fewest ciphertexts are half empty."""
        return min(range(1, min(self.people, MAX_TOGETHER) + 1), key=lambda n: (self.ciphertexts(degree, n) / n, n))

    def sent(self, degree: int) -> int:
        """Return the number of ciphertexts about all people, under one key."""
        together = self.together(degree)
        full_messages, remaining_people = divmod(self.people, together)
        total = full_messages * self.ciphertexts(degree, together)
        if remaining_people:
            total += self.ciphertexts(degree, remaining_people)
        return total


def residues_for(load: Load) -> tuple[RlweParameters, ...]:
    """Return the sets with the fewest bytes on the wire, of those whose noise bound holds and whose primes t together cover the span.

    Raises ParameterError if no sets are large enough.
    """
    candidates: list[tuple[int, tuple[RlweParameters, ...]]] = []
    for degree, primes in RESIDUE_RINGS:
        for bits in RESIDUE_BITS if load.features <= degree else ():
            sets = residue_sets(degree, primes, bits)
            sent = load.sent(degree)
            count = next(
                (k for k in range(1, MAX_RESIDUES + 1) if prod(p.plain_modulus for p in sets[:k]) >= load.span), 0
            )
            if count and all(p.noise(load.hosts, sent) <= p.noise_allowed for p in sets[:count]):
                keys = load.hosts * (primes + 1)
                replies = 2
                numbers = keys + sent * primes * (2 * load.hosts - 1) + replies
                candidates.append((count * degree * numbers, sets[:count]))
    if not candidates:
        raise ParameterError(
            "no_parameters_for_reasons",
            rows=load.rows,
            features=load.features,
            hosts_count=load.hosts,
            people=load.people,
        )
    return min(candidates, key=lambda candidate: candidate[0])[1]
