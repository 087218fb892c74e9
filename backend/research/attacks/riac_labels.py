"""T1: labels under RIAC, read from ciphertexts alone. Plays a Host of the forest paper: knows the ciphertexts and the public modulus n.

A round turns a vector v of hidden integers below n_(i-1) into a_i·v - n_i·k (eq. 6). Let u be a short integer vector with u·c ≡ 0 mod n
for both parts c of some ciphertexts. Then u·v ≡ 0 mod n for the vectors before the last round, and since u·v is smaller than n, u·v = 0.
The same step leads down to what the first round left; its modulus is that of eq. 7, so u·x ≡ 0 mod n_0, and x being small, u·x = 0. So:
reduce the lattice of all u, keep the short ones, take the integer vectors orthogonal to them. Labels are the shortest vector there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import fmpq_mat, fmpz_mat
from gmpy2 import mpz

from backend.crypto.paillier.keys import KEY_BITS_FLOOR
from backend.research.attacks.keys import honest_keys, matches
from backend.research.attacks.result import AttackOutcome, count
from backend.research.riac import BITS, ROUNDS, RiacKey

BLOCK = 24  # ciphertexts in one lattice
KNOWN = 18  # of them with known plaintexts, in the second attack
BLOCKS = 5
RANK = 2 * ROUNDS - 1  # of the hidden vectors: x, and both parts before each round but the first
WEIGHT = 320  # bits: makes lattice vectors that are not orthogonal too long to be found
LARGE = 1 << 31  # plaintexts of the known-plaintext attack are below

Vectors = list[list[int]]


def run(seed: int, key_bits: int = KEY_BITS_FLOOR, blocks: int = BLOCKS) -> AttackOutcome:
    """Read 0/1 labels under RIAC, and the same labels under Paillier; each of the lattices reads :data:`BLOCK` labels."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, (blocks, BLOCK)).tolist()
    riac = RiacKey.generate()
    keys = honest_keys(key_bits)

    def under_riac() -> tuple[int, int]:
        labels_read = []
        for x in labels:
            labels_read.append(read_labels([*zip(*riac.encrypt(x), strict=True)], riac.modulus))
        return matches([bool(v) for row in labels_read for v in row], np.array(labels, dtype=bool))

    def under_paillier() -> tuple[int, int]:
        labels_read = []
        for x in labels:
            labels_read.append(read_labels([keys.guest.encrypt_numbers(x)], keys.host.key.n2))
        return matches([bool(v) for row in labels_read for v in row], np.array(labels, dtype=bool))

    plaintexts = [draw.integers(0, LARGE, BLOCK).tolist() for _ in range(blocks)]
    read = [read_more([*zip(*riac.encrypt(x), strict=True)], riac.modulus, x[:KNOWN]) for x in plaintexts]
    right = sum(
        a == b
        for read_block, x in zip(read, plaintexts, strict=True)
        for a, b in zip(read_block, x[KNOWN:], strict=True)
    )
    return AttackOutcome(
        count(under_riac),
        count(under_paillier),
        chance=0.5,
        setting={"riac_bits": BITS, "key_bits": key_bits, "labels": blocks * BLOCK, "known_pairs": KNOWN},
        rates={"known_plaintext": right / (blocks * (BLOCK - KNOWN))},
    )


def read_labels(parts: Sequence[Sequence[mpz]], modulus: mpz) -> list[int]:
    """The 0/1 plaintexts behind some ciphertexts; a guess where they cannot be read.

    Parameters
    ----------
    parts : sequence of sequences of mpz
        ``(2, n)`` for RIAC: c1 and c2; ``(1, n)`` for a cipher of one part.
    modulus : mpz
        Public.
    """
    shortest = hidden_lattice(parts, modulus)[0]
    sign = -1 if sum(shortest) < 0 else 1
    return [int(sign * v > 0) for v in shortest]


def read_more(parts: Sequence[Sequence[mpz]], modulus: mpz, known_plaintexts: Sequence[int]) -> list[int]:
    """Return the plaintexts that follow the `known_plaintexts`: the hidden lattice holds one vector that begins with these."""
    basis = hidden_lattice(parts, modulus)
    rank = len(basis)
    at_known = fmpq_mat(fmpz_mat([[row[j] for row in basis] for j in range(rank)]))
    share = at_known.solve(fmpq_mat(fmpz_mat([[x] for x in known_plaintexts[:rank]])))
    basis_after = fmpq_mat(fmpz_mat([[row[j] for row in basis] for j in range(len(known_plaintexts), len(basis[0]))]))
    return [int(v.p // v.q) for (v,) in (basis_after * share).tolist()]


def hidden_lattice(parts: Sequence[Sequence[mpz]], modulus: mpz) -> Vectors:
    """A reduced basis, ``(RANK, n)``, of the integer vectors that the ciphertexts are made of, the shortest first."""
    n = len(parts[0])
    columns = [[int(modulus * c) for c in part] for part in parts]
    multiples = []
    for i in range(len(parts)):
        for j in range(len(parts)):
            multiples.append(int(modulus * modulus) * (i == j))
    short = _without(columns, multiples)[: n - RANK]
    return _without([[v << WEIGHT for v in row] for row in short], [])


def _without(columns: Vectors, multiples: list[int]) -> Vectors:
    """Reduced basis of the integer vectors u, ``(n,)``, with u·column = 0 for all `columns`, up to the rows of `multiples`."""
    n = len(columns[0])
    width = len(columns)
    rows = []
    for i in range(n):
        rows.append([int(i == j) for j in range(n)] + [column[i] for column in columns])
    rows += [[0] * n + multiples[at : at + width] for at in range(0, len(multiples), width)]
    reduced: Vectors = [[int(v) for v in row] for row in fmpz_mat(rows).lll().tolist()]
    return [row[:n] for row in reduced if not any(row[n:])]
