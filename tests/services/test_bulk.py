"""Many samples at once: every engine and every kind of worker gives the plain model's integers."""

import time
from dataclasses import replace

import numpy as np
import pytest
from inside import runtime_of

from backend.crypto.workers import Workers
from backend.data.demo import write_demo
from backend.data.table import SampleSheet
from backend.errors import Cancelled, ParameterError
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest

KEY = 512
GROWN = SecureBoostParameters(trees=12, depth=3, cipher="none")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A demo of three parties with one model, and its folder."""
    folder = tmp_path_factory.mktemp("bulk")
    write_demo(folder / "demo", rows=400)
    glassleaf = Glassleaf(folder / "home", key_floor=KEY, pools=False)
    name = glassleaf.federations.add(folder / "demo").name
    glassleaf.training.start(TrainingRequest(name, GROWN)).get()
    glassleaf.close()
    return folder / "home"


@pytest.fixture
def shared(monkeypatch):
    """Worker processes are used for any number of samples."""
    monkeypatch.setattr("backend.crypto.paillier.scheme.PARALLEL_MIN", 1)
    monkeypatch.setattr("backend.crypto.rlwe.scheme.PARALLEL_MIN", 1)


def opened(home, workers=None):
    return Glassleaf(home, key_floor=KEY, pools=False, workers=workers or Workers())


def first(glassleaf, n):
    own = runtime_of(glassleaf).table.take(np.arange(n))
    return SampleSheet(own.ids, own, {}, {}, ())


def units(glassleaf, n, cipher):
    batch = glassleaf.scoring.start(ScoringRequest("latest", first(glassleaf, n), 0.5, cipher, KEY)).get()
    assert batch.cipher == cipher.removesuffix("-short")
    return [s.units for s in batch.scores], batch


@pytest.mark.parametrize("cipher", ["rlwe", "paillier-short"])
@pytest.mark.parametrize("n", [1, 7, 150])
def test_every_engine_gives_the_plain_integers_along_a_chain_of_two_hosts(home, n, cipher):
    glassleaf = opened(home)
    if cipher == "rlwe" or n < 150:
        assert units(glassleaf, n, cipher)[0] == units(glassleaf, n, "none")[0]
    glassleaf.close()


def test_a_batch_in_many_pieces_is_the_same_and_tells_how_far_it_is(home, monkeypatch):
    monkeypatch.setattr("backend.crypto.rlwe.layout.PIECE_BYTES", 1)  # one ciphertext a message
    glassleaf = opened(home)
    plain, _ = units(glassleaf, 300, "none")
    sent, batch = units(glassleaf, 300, "rlwe")
    glassleaf.close()
    assert sent == plain
    assert sum(m.kind == "MoreVectors" for m in batch.transcript) >= 2
    assert sum(m.kind == "EncryptedScores" for m in batch.transcript) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_worker_processes_encrypt_what_this_process_would(home):
    plain, encrypted = (opened(home), opened(home, Workers(2)))
    expected = units(plain, 60, "none")[0]
    assert units(encrypted, 60, "paillier")[0] == expected
    assert units(encrypted, 60, "rlwe")[0] == expected
    plain.close()
    encrypted.close()


@pytest.mark.usefixtures("shared")
@pytest.mark.slow
def test_dask_clusters_at_both_parties_give_the_same_scores_and_the_same_trees(home, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask is an extra; it is not installed")
    for parallel_min in ("rlwe.public", "rlwe.bin_sums", "rlwe.sum_key", "paillier.bin_products"):
        monkeypatch.setattr(f"backend.crypto.{parallel_min}.PARALLEL_MIN", 1)
    went = set()

    class Watched(Workers):
        def map(self, function, *given):
            went.add((self.scheduler, function.__name__))
            return super().map(function, *given)

    glassleaf = opened(home)
    expected, name = units(glassleaf, 60, "none")[0], glassleaf.models.get("latest").federation
    plain = units(glassleaf, 300, "none")[0]
    glassleaf.close()
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as of_guest, distributed.LocalCluster(**options) as of_hosts:
        guest, hosts = (Watched(2, "dask", cluster.scheduler_address) for cluster in (of_guest, of_hosts))
        glassleaf = opened(home, guest)
        glassleaf._shared.workspace._workers = hosts
        assert units(glassleaf, 60, "paillier")[0] == expected
        assert units(glassleaf, 60, "rlwe")[0] == expected
        for cipher in ("rlwe", "paillier"):
            grown = replace(GROWN, cipher=cipher, key_bits=2048)
            record = glassleaf.training.start(TrainingRequest(name, grown)).get()
            assert glassleaf.models.get("latest").id == record.id and units(glassleaf, 300, "none")[0] == plain
        glassleaf.close()
        hosts.close()
    assert went >= {
        (guest.scheduler, "encrypt_task"),
        (hosts.scheduler, "folded_apart"),
        (hosts.scheduler, "replies_of"),
        (hosts.scheduler, "_sums_task"),
        (hosts.scheduler, "_pack_task"),
    }


@pytest.mark.usefixtures("shared")
def test_a_bulk_job_is_stopped_in_the_middle(home):
    glassleaf = opened(home, Workers(2))
    job = glassleaf.scoring.start(ScoringRequest("latest", first(glassleaf, 240), 0.5, "paillier", KEY))
    while not job.done:
        time.sleep(0.01)
    job.cancel()
    with pytest.raises(Cancelled):
        job.get()
    assert units(glassleaf, 2, "paillier")[0] == units(glassleaf, 2, "none")[0]  # and the next one works
    glassleaf.close()


@pytest.mark.parametrize(("cipher", "few", "many"), [("paillier", 10, 200), ("rlwe", 10, 100_000), ("none", 1, 10**9)])
def test_workers_are_called_for_large_batches_only(home, cipher, few, many):
    glassleaf = opened(home)
    model = glassleaf.models.compiled(glassleaf.models.get("latest")).guest
    key = runtime_of(glassleaf).keys.scoring(cipher, KEY, model)
    glassleaf.close()
    assert not key.should_parallelise(few, 100)
    assert key.should_parallelise(many, 100) == (cipher != "none")


def test_groups_are_not_summed_under_rlwe(home):
    glassleaf = opened(home)
    with pytest.raises(ParameterError, match="Choose paillier"):
        runtime_of(glassleaf).keys.pair("rlwe", KEY)
    glassleaf.close()


def test_a_scale_that_the_lattice_cannot_hold_is_refused_in_words(home):
    glassleaf = opened(home)
    record = glassleaf.training.start(TrainingRequest("demo", replace(GROWN, score_bits=24))).get()
    request = ScoringRequest(record.id, first(glassleaf, 1), 0.5, "rlwe", KEY)
    with pytest.raises(ParameterError, match="fewer score bits"):
        glassleaf.scoring.start(request).get()
    glassleaf.close()


def test_both_ways_to_align_give_the_same_model_and_say_how_many_records_met(home):
    glassleaf = opened(home)
    records = [
        glassleaf.training.start(TrainingRequest("demo", replace(GROWN, trees=1, alignment=method))).get()
        for method in ("dh", "bloom")
    ]
    parties = glassleaf.federations.get("demo").parties
    again = glassleaf.models.get(records[1].id)
    glassleaf.close()
    assert records[0].id == records[1].id
    for record, method in zip((records[0], again), ("dh", "bloom"), strict=True):
        alignment = record.alignment
        assert alignment.method == method and alignment.joint == sum(record.parts.values())
        assert set(alignment.records) == {p.name for p in parties} and alignment.records["bank"] == 400
        assert all(alignment.joint <= n <= 400 for n in alignment.held.values())
