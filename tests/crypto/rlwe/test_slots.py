"""The slots' transform against SEAL's encoder, and against evaluation in plain integers."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tenseal.sealapi as seal
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.rlwe.parameters import PARAMETERS, residue_sets
from backend.crypto.rlwe.ring import ring
from backend.crypto.rlwe.slots import LARGEST, SlotTransform

ALL = [*PARAMETERS.values(), residue_sets(8192, 3, 27)[0], residue_sets(8192, 3, 43)[0]]


def by_seal(of, slots):
    plain = seal.Plaintext()
    of.encoder.encode([int(v) % of.parameters.plain_modulus for v in slots], plain)
    return [int(plain[i]) if i < plain.coeff_count() else 0 for i in range(of.parameters.degree)]


@pytest.mark.parametrize("parameters", ALL, ids=lambda p: p.name)
@pytest.mark.parametrize("draw", ["low", "high", "random", "one", "none"])
def test_coefficients_are_those_of_seal(parameters, draw):
    of, n, limit = ring(parameters.name), parameters.degree, parameters.limit
    some = {
        "low": np.full(n, -limit),
        "high": np.where(np.arange(n) % 3 > 0, limit, -limit),
        "random": np.random.default_rng(n).integers(-limit, limit + 1, n),
        "one": np.array([0, 0, 1]),
        "none": np.zeros(0, dtype=np.int64),
    }[draw]
    found = of.encode(some)
    assert np.abs(found).max() <= limit and (found % parameters.plain_modulus).tolist() == by_seal(of, some)


@given(st.lists(st.integers(-(1 << 49), 1 << 49), min_size=1, max_size=64), st.integers(0, 1 << 32))
@settings(max_examples=25, deadline=None)
def test_slots_of_any_size_are_taken_modulo_t(numbers, seed):
    parameters = PARAMETERS["n8192-q180-t33538049"]
    slots = np.random.default_rng(seed).choice(np.array(numbers, dtype=np.int64), parameters.degree)
    assert (ring(parameters.name).encode(slots) % parameters.plain_modulus).tolist() == by_seal(
        ring(parameters.name), slots
    )


@pytest.mark.parametrize(("degree", "t"), [(4, 17), (8, 97), (64, 33538049), (32, 33538049)])
def test_slots_are_values_at_the_odd_powers_of_the_least_root(degree, t):
    assert t < LARGEST
    slots = np.random.default_rng(degree).integers(0, t, degree)
    coefficients = SlotTransform(degree, t).coefficients(slots)
    root = next(r for r in range(2, t) if pow(r, degree, t) == t - 1)
    powers = [pow(3, i, 2 * degree) for i in range(degree // 2)]
    powers += [2 * degree - power for power in powers]
    values = [sum(int(c) * pow(root, p * j, t) for j, c in enumerate(coefficients)) % t for p in powers]
    assert values == slots.tolist()


ON_ONE_THREAD = """
import time
import numpy as np
from backend.crypto.rlwe.slots import SlotTransform
transforms = [SlotTransform(8192, t) for t in (557057, 33538049)]  # one digit, and two
time.sleep(0.3)  # threads that a matrix library starts when it is imported look for work at first
others = time.process_time() - time.thread_time()
for _ in range(100):
    for transform in transforms:
        transform.coefficients(np.ones(8192, dtype=np.int64))
print((time.process_time() - time.thread_time() - others) / time.thread_time())
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: no library starts threads")
def test_a_transform_keeps_one_thread_busy_whatever_the_matrix_library_may_use():
    done = subprocess.run(
        [sys.executable, "-c", ON_ONE_THREAD],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 0.05  # of the time; 0.9 where all threads multiply
