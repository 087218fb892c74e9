"""What the scores of a model would give away is measured before it is registered, told with it, and may refuse it."""

import numpy as np
import pytest

from backend.errors import ParameterError
from backend.leaking import MOST_NAMED, finest, refuse_if_named, usual_bound
from backend.results import Release
from backend.service import Glassleaf, SampleSheet, ScoringRequest, SecureBoostParameters, TrainingRequest


@pytest.fixture
def door(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_DITHER", "0.0625")
    opened = Glassleaf(tmp_path, key_floor=512, pools=False)
    opened.prepare_demo()
    yield opened
    opened.close()


def test_a_model_is_measured_with_the_hosts_dither_and_remembers_it(door):
    record = door.model("latest")
    release = record.release
    assert release is not None and release.dither == 0.0625 == door.dither(record.id)
    assert [bits for bits, _ in release.unique] == [10, 8, 6] and release.people == 200
    assert release.named == release.unique[0][1] < 0.1 and release.paths > 2


def test_a_model_that_names_more_than_was_allowed_is_not_registered(door, monkeypatch):
    before = [record.id for record in door.models()]
    asked = SecureBoostParameters(trees=4, depth=3, cipher="none", score_bits=16)
    with pytest.raises(ParameterError, match="fit one path only among 2,000 records"):
        door.start_training(TrainingRequest("demo", asked, most_named=0.0)).get()
    assert [record.id for record in door.models()] == before
    assert door.start_training(TrainingRequest("demo", asked)).get().release.named > 0.0


def test_the_finest_resolution_that_fits_is_named():
    release = Release(0.0, ((16, 0.9), (10, 0.3), (8, 0.05), (6, 0.01)), 1.0, 100, 1000)
    assert [finest(release, most) for most in (1.0, 0.3, 0.1, 0.001)] == [16, 10, 8, None]
    refuse_if_named(release, 0.9)
    with pytest.raises(ParameterError, match="--score-bits 8"):
        refuse_if_named(release, 0.1)
    with pytest.raises(ParameterError, match="fewer trees"):
        refuse_if_named(release, 0.001)


def test_real_people_s_models_have_a_bound_where_there_is_company_to_be_had():
    many, few = (Release(0.0, ((10, 0.9),), 1.0, 100, records) for records in (1000, 999))
    assert usual_bound(many, synthetic=False) == MOST_NAMED < 1.0
    assert usual_bound(many, synthetic=True) == usual_bound(few, synthetic=False) == 1.0


def test_a_training_on_real_people_is_refused_by_the_usual_bound(door, monkeypatch):
    monkeypatch.setattr("backend.service.running.usual_bound", lambda release, synthetic: 0.0)
    asked = SecureBoostParameters(trees=4, depth=3, cipher="none", score_bits=16)
    with pytest.raises(ParameterError, match="It was not registered"):
        door.start_training(TrainingRequest("demo", asked)).get()


def test_scores_say_how_far_dither_may_have_moved_them_and_that_their_canaries_are_well(door):
    record = door.model("latest")
    table = door._catalogue.room("demo").table.take(np.arange(4))
    sheet = SampleSheet(table.ids, table, {}, {}, ())
    moved = door.start_scoring(ScoringRequest(record.id, sheet, key_bits=512)).get()
    plain = door.start_scoring(ScoringRequest(record.id, sheet, cipher="none"), counted=False).get()
    assert moved.dither == 2.0**-5 and plain.dither == 0.0
    assert moved.canaries == 4 and plain.canaries == 0
    differences = [a.margin - b.margin for a, b in zip(moved.scores, plain.scores, strict=True)]
    assert any(differences) and max(map(abs, differences)) <= moved.dither
    bare = ScoringRequest(record.id, sheet, key_bits=512, canaries=False)
    assert door.start_scoring(bare).get().canaries == 0


def test_the_frontier_marks_what_the_hosts_add(door):
    record = door.model("latest")
    points = door.start_frontier(record.id, people=100).get()
    found = {(point.score_bits, point.dither): point for point in points}
    assert found[10, 0.0625].unique < found[10, 0.0].unique and found[10, 0.0].people == 100
    assert [e.action for e in door.audit_entries("demo")][-1] == "leak-audit"
