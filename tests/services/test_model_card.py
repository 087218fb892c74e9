"""A model's card: from scores kept without ids, the figures the model is registered with; scored again where none are kept."""

import json
from dataclasses import replace

import numpy as np
import pytest
from measurement_contexts import TrainedDemo
from release_rule import EVERY_SCORE
from sqlalchemy import create_engine, text

from backend.errors import Cancelled, ParameterError
from backend.jobs import Job
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.services.explanation import MeansRequest, PermutationRequest
from backend.services.model_card import PARTS, CardRequest, make_card, measure_card, without_ids
from backend.services.training import TrainingRequest
from backend.trees.metrics import measure
from backend.trees.outputs import Outputs


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    made = TrainedDemo(tmp_path_factory.mktemp("card"))
    yield made
    made.glassleaf.close()


def test_the_card_has_the_registered_figures_on_all_three_parts(context):
    card = context.glassleaf.model_cards.get(context.record.id)
    assert [(p.part, p.n) for p in card.parts] == [
        (n, context.record.parts[n]) for n in ("test", "validation", "training")
    ]
    assert set(card.sources.values()) == {"training"}
    test = card.parts[0]
    for name in ("auc", "ks", "log_loss", "accuracy"):
        figure = test.figure(name)
        assert figure.value == pytest.approx(getattr(context.record.metrics, name)) and figure.low < figure.high
    assert [s.part for s in card.shifts] == ["test", "validation"] and all(s.psi < 0.5 for s in card.shifts)


def test_kept_scores_are_those_of_an_encrypted_scoring_and_carry_no_id(context):
    kept = context.glassleaf.models.measured(context.record, "scores")
    again = measure_card(context.measured, CardRequest(context.record.id, samples=10_000), Job(lambda job: {}, 0))
    assert again["test"].rows == kept["test"].rows
    folder = context.glassleaf.home.rglob("*.db")
    for file in folder:
        engine = create_engine(f"sqlite:///{file}")
        with engine.connect() as session:
            if "measurements" in {r[0] for r in session.execute(text("select name from sqlite_master"))}:
                bodies = [r[0] for r in session.execute(text("select body from measurements"))]
                assert not any(f'"{i}"' in body for body in bodies for i in context.runtime.table.ids[:200])
        engine.dispose()


def test_the_order_in_which_scores_are_kept_tells_nothing():
    draw = np.random.default_rng(0)
    labels, margins = draw.integers(0, 2, 50).astype(float), draw.normal(size=(50, 2)).round(1)
    order = draw.permutation(50)
    first, second = (
        without_ids(labels, margins, None, "training"),
        without_ids(labels[order], margins[order], None, "training"),
    )
    assert first == second
    kept = {tuple(row) for row in np.column_stack([first.rows[0]["labels"], first.rows[0]["margins"]]).tolist()}
    assert kept == {tuple(row) for row in np.column_stack([labels, margins]).tolist()}


def test_without_kept_scores_the_card_is_empty_until_test_records_are_scored_again(context):
    glassleaf, record = context.glassleaf, context.record
    kept = glassleaf.models.measured(record, "scores")
    bare = make_card(record, Outputs(), {})
    assert bare.parts == () and bare.shifts == ()
    card = glassleaf.model_cards.start(CardRequest(record.id, samples=120)).get()
    try:
        assert (card.parts[0].part, card.parts[0].n, card.sources["test"]) == ("test", 120, "scoring")
        assert card.sources["training"] == "training"
        assert glassleaf.audit.entries("demo")[-1].action == "scores"
    finally:
        glassleaf.model_cards.keep_scores(record, kept)


def test_scoring_again_can_be_stopped_and_an_empty_request_is_refused(context):
    job = Job(lambda job: measure_card(context.measured, CardRequest(context.record.id), job), 0)
    job.cancel()
    with pytest.raises(Cancelled):
        job.start().get()
    with pytest.raises(ParameterError, match="0 test records"):
        context.glassleaf.model_cards.start(CardRequest(context.record.id, samples=0)).get()


@pytest.mark.parametrize(
    "parameters",
    [
        ForestParameters(trees=5, depth=3, cipher="none"),
        ForestParameters(trees=5, depth=3, cipher="none", aggregation="median"),
        OpBoostParameters(trees=3, depth=2),
    ],
    ids=["forest", "median", "opboost"],
)
def test_every_way_of_growing_leaves_the_scores_its_metrics_are_made_of(context, parameters):
    record = context.glassleaf.training.start(TrainingRequest("demo", parameters, most_named=EVERY_SCORE)).get()
    card = context.glassleaf.model_cards.get(record.id)
    assert card.parts[0].part == "test" and card.parts[0].figure("auc").value == pytest.approx(record.metrics.auc)
    assert [p.part for p in card.parts] == [p for p in PARTS if p in card.sources]


def test_the_card_is_written_as_json(context):
    body = json.loads(json.dumps(context.glassleaf.model_cards.get(context.record.id).as_dict()))
    assert body["parts"][0]["source"] == "training" and "curve" not in body["model"]
    assert {f["name"] for f in body["parts"][0]["figures"]} == {"auc", "ks", "brier", "log_loss", "accuracy"}


@pytest.mark.parametrize(
    "outputs", [Outputs("number", link="identity"), Outputs("classes", ("a", "b", "c"), "softmax")]
)
def test_other_tasks_have_what_applies_to_them(context, outputs):
    draw = np.random.default_rng(0)
    margins = draw.normal(size=(90, outputs.count))
    labels = margins[:, 0] + draw.normal(size=90) if outputs.task == "number" else margins.argmax(axis=1).astype(float)
    card = make_card(
        replace(context.record, task=outputs.task),
        outputs,
        {
            "test": without_ids(labels, margins, None, "training"),
            "training": without_ids(labels, margins, None, "training"),
        },
    )
    known = measure(labels, margins, "test", outputs)
    test = card.parts[0]
    assert test.separation is None and card.shifts[0].psi == 0
    if outputs.task == "number":
        assert test.figure("rmse").value == pytest.approx(known.rmse) and test.spread and not test.confusion
    else:
        assert test.figure("accuracy").value == 1.0 and test.spread is None
        assert [sum(row) for row in test.confusion] == list(test.counts)


def test_worth_and_means_are_kept_and_logged(context):
    glassleaf, model_id = context.glassleaf, context.record.id
    assert glassleaf.explanation.permutation(model_id) == () and glassleaf.explanation.means(model_id) == {}
    worth = glassleaf.explanation.start_permutation(PermutationRequest(model_id, 60, 1, cipher="none")).get()
    means = glassleaf.explanation.start_means(MeansRequest(model_id, "gender", cipher="none")).get()
    assert glassleaf.explanation.permutation(model_id) == worth and glassleaf.explanation.means(model_id) == {
        "gender": means
    }
    assert [e.action for e in glassleaf.audit.entries("demo")[-2:]] == ["permutation", "means"]


def test_structure_alone_answers_the_other_questions(context):
    glassleaf, model_id = context.glassleaf, context.record.id
    shares = {r.feature: r.share for r in glassleaf.explanation.steady_importance(model_id)}
    assert shares == pytest.approx({r.feature: r.gain_share for r in glassleaf.explanation.importance(model_id)})
    assert {r.party for r in glassleaf.explanation.steady_importance(model_id, "splits", by_party=True)} == {
        "bank",
        "telecom",
        "platform",
    }
    assert (
        -1 <= glassleaf.explanation.agreement(model_id) <= 1
        and glassleaf.explanation.interactions(model_id)[0].gain > 0
    )
    used = next(
        s.feature
        for tree in glassleaf.models.guest_model(model_id).trees
        for s in tree.splits.values()
        if s.owner == "bank"
    )
    assert len(glassleaf.explanation.partial_dependence(model_id, used).levels) > 1
