"""The Guest's keys in a simulation: one of a kind, whoever asks first."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from backend.data.demo import write_demo
from backend.protocols.simulation.simulator import FederationRuntime


@pytest.fixture
def runtimes(tmp_path):
    federation, made = write_demo(tmp_path, rows=200), []
    four = [
        FederationRuntime(
            federation, tmp_path / "parties", key_floor=512, pools=False, on_key=lambda *key: made.append(key)
        )
        for _ in range(4)
    ]
    yield four, made
    for runtime in four:
        runtime.close()


def test_first_scorings_at_once_end_with_one_key_which_is_announced_once(runtimes):
    four, made = runtimes
    together = Barrier(4)

    def first(runtime):
        together.wait()
        return runtime.keys.pair("paillier", 512).offer()

    with ThreadPoolExecutor(4) as pool:
        offers = set(pool.map(first, four))
    assert len(offers) == 1 and made == [("paillier", 512)]
