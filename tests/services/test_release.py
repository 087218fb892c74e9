"""What the scores of a model would give away is measured before it is registered, told with it, and may refuse it."""

from dataclasses import replace

import numpy as np
import pytest
from homes import copied_home
from inside import runtime_of
from release_rule import EVERY_SCORE

from backend.data.table import SampleSheet
from backend.errors import ParameterError, ReleaseRefused
from backend.privacy.foretold import foretell
from backend.protocols.scoring.dither import DITHER
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import ReleaseCheck, told_by_scores
from backend.services import Glassleaf
from backend.services.leakage import (
    LEAF_PEOPLE,
    MAX_IDENTIFYING,
    exception_of,
    finest,
    kept_to_the_rule,
    refuse_if_identifying,
    usual_bound,
)
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.store.accountant import COHORT, GROUPS, REASONS, SCORE
from backend.trees.ensemble import Leaf


@pytest.fixture(scope="module")
def measured_with_dither(tmp_path_factory):
    """A home in which the demo's model was measured with the Hosts' dither; only to be copied."""
    home = tmp_path_factory.mktemp("dither") / "home"
    with pytest.MonkeyPatch.context() as patch, Glassleaf(home, pools=False) as glassleaf:
        patch.setenv("GLASSLEAF_DITHER", "0.0625")
        glassleaf.training.prepare_demo()
    return home


@pytest.fixture
def small(home_template, tmp_path):
    """The services on a home of 600 people."""
    with Glassleaf(copied_home(home_template, tmp_path / "small"), key_floor=512, pools=False) as opened:
        yield opened


@pytest.fixture
def glassleaf(measured_with_dither, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_DITHER", "0.0625")
    opened = Glassleaf(copied_home(measured_with_dither, tmp_path / "home"), key_floor=512, pools=False)
    yield opened
    opened.close()


def test_a_model_is_measured_with_the_hosts_dither_and_remembers_it(glassleaf):
    record = glassleaf.models.get("latest")
    release = record.release
    assert release is not None and release.dither == 0.0625 == glassleaf.models.dither(record.id)
    assert [bits for bits, _ in release.unique] == [10, 8, 6] and release.people == 200
    assert release.named == release.unique[0][1] < 0.1 and release.paths > 2
    assert release.without_dither > release.named


def test_the_demos_hosts_add_the_dither_of_real_ones_and_its_model_keeps_the_rule_of_real_people(demo_home):
    with Glassleaf(demo_home(), key_floor=512, pools=False) as demo:
        release = demo.models.get("latest").release
        assert release.dither == DITHER and release.measurable
        assert release.named <= MAX_IDENTIFYING < release.without_dither


def test_a_visitor_of_the_demo_plays_with_one_person_as_often_as_a_day_has_minutes_for(demo_home):
    with Glassleaf(demo_home(), key_floor=512, pools=False) as demo:
        runtime = runtime_of(demo)
        for host in runtime.hosts:
            limits = runtime.operator.account(host).limits
            # Real Hosts give one answer in 28 days; their dither and terms are the demo's, their budget is not.
            assert limits.synthetic and limits.bits == 0.0
            assert all(limits.of(kind) == (1000, 1000) for kind in (SCORE, REASONS, COHORT, GROUPS))
        record = demo.models.get("latest")
        sheet = demo.samples.of_person(record.id, demo.samples.table(record.id).index[0])
        margins = set()
        for _ in range(20):
            batch = demo.scoring.start(ScoringRequest(record.id, sheet, cipher="none")).get()
            assert batch.scores[0].status == "ok" and batch.dither > 0
            margins.add(batch.scores[0].margin)
        assert len(margins) == 1  # who asks again learns nothing of the dither


def test_without_dither_there_is_nothing_to_tell_apart(small, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_DITHER", "0")
    asked = SecureBoostParameters(trees=3, depth=2, cipher="none")
    release = small.training.start(TrainingRequest("demo", asked)).get().release
    assert (release.dither, release.without_dither) == (0.0, None)


@pytest.mark.slow
def test_a_forest_s_shares_get_a_quarter_of_the_width(glassleaf):
    record = glassleaf.training.start(
        TrainingRequest("demo", ForestParameters(trees=4, depth=3, cipher="none"), most_named=EVERY_SCORE)
    ).get()
    assert record.release.dither == glassleaf.models.dither(record.id) == 0.0625 / 4
    sheet = glassleaf.samples.of_person(record.id, glassleaf.samples.table(record.id).index[0])
    moved = glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher="none")).get()
    assert moved.dither == 0.0625 / 8  # either way


@pytest.mark.slow
def test_a_model_that_names_more_than_was_allowed_is_not_registered(glassleaf, monkeypatch):
    before = [record.id for record in glassleaf.models.all()]
    asked = SecureBoostParameters(trees=4, depth=3, cipher="none", score_bits=16)
    with pytest.raises(ParameterError, match="fit one path only among 2,000 records"):
        glassleaf.training.start(TrainingRequest("demo", asked, most_named=0.0)).get()
    assert [record.id for record in glassleaf.models.all()] == before
    assert glassleaf.training.start(TrainingRequest("demo", asked, most_named=EVERY_SCORE)).get().release.named > 0.0


@pytest.mark.slow
def test_a_coarser_scale_is_taken_where_it_may_be_and_the_record_and_the_log_say_so(glassleaf):
    asked = SecureBoostParameters(trees=4, depth=3, cipher="none", score_bits=16)
    fine = glassleaf.training.start(TrainingRequest("demo", asked, most_named=EVERY_SCORE)).get()
    shares = [share for _, share in fine.release.unique]
    assert shares[0] > shares[-1] and fine.release.asked_bits is None
    most = shares[-1]
    job = glassleaf.training.start(TrainingRequest("demo", asked, most_named=most, coarser=True))
    record = job.get()
    expected = finest(fine.release, most)
    assert record.score_bits == expected < 16 and record.release.asked_bits == 16 and record.release.named <= most
    assert record.parameters["score_bits"] == expected and glassleaf.models.get(record.id).release.asked_bits == 16
    assert len(job.points) == 4  # the curve of the model that stayed
    entry = [e for e in glassleaf.audit.entries("demo") if e.action == "train"][-1]
    assert (entry.body["score_bits"], entry.body["score_bits_asked"]) == (expected, 16)


def test_a_scale_that_names_few_enough_is_kept_and_no_coarser_one_taken(small, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_DITHER", "0.0625")
    asked = SecureBoostParameters(trees=4, depth=3, cipher="none", score_bits=16)
    record = small.training.start(TrainingRequest("demo", asked, most_named=EVERY_SCORE, coarser=True)).get()
    assert record.score_bits == 16 and record.release.asked_bits is None


def test_where_no_scale_is_coarse_enough_the_model_is_refused_all_the_same(small, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_DITHER", "0")
    before = [record.id for record in small.models.all()]
    asked = SecureBoostParameters(trees=1, depth=4, cipher="none", score_bits=16)  # of one tree every leaf names itself
    job = small.training.start(TrainingRequest("demo", asked, most_named=0.0, coarser=True)).wait(120)
    assert isinstance(job.failure, ReleaseRefused) and job.failure.bits is None and job.state == "failed"
    assert [record.id for record in small.models.all()] == before


def test_the_finest_resolution_that_fits_is_named():
    release = ReleaseCheck(0.0, ((16, 0.9), (10, 0.3), (8, 0.05), (6, 0.01)), 1.0, 100, 1000)
    assert [finest(release, most) for most in (1.0, 0.3, 0.1, 0.001)] == [16, 10, 8, None]
    refuse_if_identifying(release, 0.9, 5)
    with pytest.raises(ParameterError, match="to 8 bits"):
        refuse_if_identifying(release, 0.1, 5)
    with pytest.raises(ReleaseRefused) as refused:
        refuse_if_identifying(release, 0.001, 5)
    assert refused.value.code == "too_many_named"
    assert "wider dither" in str(refused.value) and "more trees" in str(refused.value)
    assert (refused.value.named, refused.value.bound, refused.value.bits) == (0.9, 0.001, None)


@pytest.mark.slow
def test_one_tree_that_names_its_leaves_is_refused_with_what_would_pass(glassleaf):
    tree = DecisionTreeParameters(depth=3, cipher="none", alignment="dh")
    with pytest.raises(ReleaseRefused) as refused:
        glassleaf.training.start(TrainingRequest("demo", tree, most_named=0.05)).get()
    assert refused.value.named > 0.5 and "shallower" not in str(refused.value)
    advice = DecisionTreeParameters(depth=3, cipher="none", alignment="dh", min_samples_leaf=LEAF_PEOPLE)
    assert f"--min-samples-leaf {LEAF_PEOPLE} --most-named 1" in str(refused.value)
    record = glassleaf.training.start(TrainingRequest("demo", advice, most_named=EVERY_SCORE)).get()
    nodes = glassleaf.models.guest_model(record.id).trees[0].nodes
    assert min(node.cover for node in nodes if isinstance(node, Leaf)) >= LEAF_PEOPLE
    assert "--algorithm forest" in str(refused.value)
    forest = ForestParameters(trees=20, depth=4, cipher="none")
    assert glassleaf.training.start(TrainingRequest("demo", forest, most_named=0.05)).get().release.named <= 0.05


def test_every_model_has_a_bound_if_there_are_enough_records_to_measure_it():
    many, few = (ReleaseCheck(0.0, ((10, 0.9),), 1.0, 100, records) for records in (1000, 999))
    assert many.measurable and usual_bound(many) == MAX_IDENTIFYING == 0.05
    assert not few.measurable and usual_bound(few) == 1.0


def test_one_sentence_says_what_scores_tell_and_few_records_are_never_fine():
    many, few = (ReleaseCheck(0.0625, ((10, 0.02),), 9.0, 200, records) for records in (2000, 999))
    assert "2.0% of 200 scores (of 10 bits" in told_by_scores(many, 10).sentence()
    assert (
        told_by_scores(few, 10).code == "scores_not_measurable"
        and told_by_scores(None, 10).code == "scores_not_measured"
    )


@pytest.mark.slow
def test_a_training_on_synthetic_people_is_refused_by_the_usual_bound(glassleaf):
    asked = SecureBoostParameters(trees=3, depth=2, cipher="none", score_bits=16)
    with pytest.raises(ParameterError, match="It is kept sealed"):
        glassleaf.training.start(TrainingRequest("demo", asked)).get()


def test_scores_say_how_far_dither_may_have_moved_them_and_that_their_canaries_are_well(glassleaf):
    record = glassleaf.models.get("latest")
    table = runtime_of(glassleaf).table.take(np.arange(4))
    sheet = SampleSheet(table.ids, table, {}, {}, ())
    moved = glassleaf.scoring.start(ScoringRequest(record.id, sheet, key_bits=512)).get()
    plain = glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher="none"), counted=False).get()
    assert moved.dither == 2.0**-5 and plain.dither == 0.0
    assert moved.canaries == 4 and plain.canaries == 0
    differences = [a.margin - b.margin for a, b in zip(moved.scores, plain.scores, strict=True)]
    assert any(differences) and max(map(abs, differences)) <= moved.dither
    bare = ScoringRequest(record.id, sheet, key_bits=512, canaries=False)
    assert glassleaf.scoring.start(bare).get().canaries == 0


def test_the_frontier_marks_what_the_hosts_add(glassleaf):
    record = glassleaf.models.get("latest")
    points = glassleaf.leakage.start_tradeoff(record.id, people=100).get()
    found = {(point.score_bits, point.dither): point for point in points}
    assert found[10, 0.0625].unique < found[10, 0.0].unique and found[10, 0.0].people == 100
    assert [e.action for e in glassleaf.audit.entries("demo")][-1] == "leak-audit"


def test_more_trees_and_wider_dither_are_foretold_to_hide_paths_and_one_tree_and_classes_to_show_them():
    ranges = [foretell(3000, trees, 3, DITHER) for trees in (3, 10, 20, 40)]
    for ends in ([one.low for one in ranges], [one.high for one in ranges]):
        assert ends == sorted(ends, reverse=True)
    assert all(one.low < one.high for one in ranges)
    assert foretell(3000, 10, 3, 4 * DITHER).high < ranges[1].high
    assert foretell(3000, 10, 3, 0.0).high == 1.0 == foretell(3000, 1, 3, DITHER).high
    assert foretell(3000, 40, 3, DITHER, outputs=4).low >= 0.5


def test_the_share_is_foretold_before_a_training_and_not_measurable_among_few_records(small):
    asked = TrainingRequest("demo", SecureBoostParameters(trees=4, depth=3))
    assert small.training.foretell(asked).code == "scores_will_not_be_measurable"
    assert small.training.foretell(replace(asked, hosts=())) is None


def test_the_rule_holds_for_a_model_that_somebody_brings(small):
    record = small.models.get("latest")
    release = ReleaseCheck(0.0625, ((10, 0.2),), 1.0, 200, 2000)
    brought = replace(record, release=release)
    with pytest.raises(ReleaseRefused):
        kept_to_the_rule(brought, None)
    allowed = kept_to_the_rule(brought, 0.5)
    assert allowed.release.most_named == 0.5 == exception_of(allowed) and allowed.named_share == (0.2, 0.5)
    few = replace(brought, release=replace(release, records=999))
    assert kept_to_the_rule(few, None).named_share == (-1.0, -1.0) and exception_of(few) is None
