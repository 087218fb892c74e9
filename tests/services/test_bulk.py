"""Many samples at once: every engine and every kind of worker gives the plain model's integers."""

import time
from dataclasses import replace

import numpy as np
import pytest

from backend.crypto.workers import Workers
from backend.data.demo import write_demo
from backend.data.table import SampleSheet
from backend.errors import Cancelled, ParameterError
from backend.services import Glassleaf, ScoringRequest, SecureBoostParameters, TrainingRequest

KEY = 512
GROWN = SecureBoostParameters(trees=12, depth=3, cipher="none")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A demo of three parties with one model, and its folder."""
    folder = tmp_path_factory.mktemp("bulk")
    write_demo(folder / "demo", rows=400)
    door = Glassleaf(folder / "home", key_floor=KEY, pools=False)
    name = door.add_federation(folder / "demo").name
    door.start_training(TrainingRequest(name, GROWN)).get()
    door.close()
    return folder / "home"


@pytest.fixture
def shared(monkeypatch):
    """Worker processes are used for any number of samples."""
    monkeypatch.setattr("backend.crypto.paillier.scheme.WORTH_SHARING", 1)
    monkeypatch.setattr("backend.crypto.rlwe.scheme.WORTH_SHARING", 1)


def opened(home, workers=None):
    return Glassleaf(home, key_floor=KEY, pools=False, workers=workers or Workers())


def first(door, n):
    own = door._catalogue.room("demo").table.take(np.arange(n))
    return SampleSheet(own.ids, own, {}, {}, ())


def units(door, n, cipher):
    batch = door.start_scoring(ScoringRequest("latest", first(door, n), 0.5, cipher, KEY)).get()
    assert batch.cipher == cipher.removesuffix("-short")
    return [s.units for s in batch.scores], batch


@pytest.mark.parametrize("cipher", ["rlwe", "paillier-short"])
@pytest.mark.parametrize("n", [1, 7, 150])
def test_every_engine_gives_the_plain_integers_along_a_chain_of_two_hosts(home, n, cipher):
    door = opened(home)
    if cipher == "rlwe" or n < 150:
        assert units(door, n, cipher)[0] == units(door, n, "none")[0]
    door.close()


def test_a_batch_in_many_pieces_is_the_same_and_tells_how_far_it_is(home, monkeypatch):
    monkeypatch.setattr("backend.crypto.rlwe.layout.PIECE_BYTES", 1)  # one ciphertext a message
    door = opened(home)
    plain, _ = units(door, 300, "none")
    sent, batch = units(door, 300, "rlwe")
    door.close()
    assert sent == plain
    assert sum(m.kind == "MoreVectors" for m in batch.transcript) >= 2
    assert sum(m.kind == "EncryptedScores" for m in batch.transcript) == 1


@pytest.mark.usefixtures("shared")
def test_worker_processes_encrypt_what_this_process_would(home):
    plain, encrypted = (opened(home), opened(home, Workers(2)))
    expected = units(plain, 60, "none")[0]
    assert units(encrypted, 60, "paillier")[0] == expected
    assert units(encrypted, 60, "rlwe")[0] == expected
    plain.close()
    encrypted.close()


@pytest.mark.usefixtures("shared")
def test_a_dask_cluster_of_two_workers_gives_the_same_scores(home):
    distributed = pytest.importorskip("distributed", reason="Dask is an extra; it is not installed")
    door = opened(home)
    expected = units(door, 60, "none")[0]
    door.close()
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        door = opened(home, Workers(2, "dask", cluster.scheduler_address))
        assert units(door, 60, "paillier")[0] == expected
        assert units(door, 60, "rlwe")[0] == expected
        door.close()


@pytest.mark.usefixtures("shared")
def test_a_bulk_job_is_stopped_in_the_middle(home):
    door = opened(home, Workers(2))
    job = door.start_scoring(ScoringRequest("latest", first(door, 240), 0.5, "paillier", KEY))
    while not job.done:
        time.sleep(0.01)
    job.cancel()
    with pytest.raises(Cancelled):
        job.get()
    assert units(door, 2, "paillier")[0] == units(door, 2, "none")[0]  # and the next one works
    door.close()


@pytest.mark.parametrize(("cipher", "few", "many"), [("paillier", 10, 200), ("rlwe", 10, 100_000), ("none", 1, 10**9)])
def test_workers_are_called_for_large_batches_only(home, cipher, few, many):
    door = opened(home)
    model = door._compiled_half(door.model("latest")).guest
    key = door._catalogue.room("demo").key(cipher, KEY, model)
    door.close()
    assert not key.worth_sharing(few, 100)
    assert key.worth_sharing(many, 100) == (cipher != "none")


def test_nothing_is_trained_under_rlwe(home):
    with pytest.raises(ParameterError, match="choose one of paillier"):
        replace(GROWN, cipher="rlwe")


def test_a_scale_that_the_lattice_cannot_hold_is_refused_in_words(home):
    door = opened(home)
    record = door.start_training(TrainingRequest("demo", replace(GROWN, score_bits=24))).get()
    request = ScoringRequest(record.id, first(door, 1), 0.5, "rlwe", KEY)
    with pytest.raises(ParameterError, match="fewer score bits"):
        door.start_scoring(request).get()
    door.close()


def test_both_ways_to_align_give_the_same_model_and_say_how_many_records_met(home):
    door = opened(home)
    records = [
        door.start_training(TrainingRequest("demo", replace(GROWN, trees=1, alignment=method))).get()
        for method in ("dh", "bloom")
    ]
    parties = door.federation("demo").parties
    again = door.model(records[1].id)
    door.close()
    assert records[0].id == records[1].id
    for record, method in zip((records[0], again), ("dh", "bloom"), strict=True):
        alignment = record.alignment
        assert alignment.method == method and alignment.joint == sum(record.parts.values())
        assert set(alignment.records) == {p.name for p in parties} and alignment.records["bank"] == 400
        assert all(alignment.joint <= n <= 400 for n in alignment.held.values())
