"""Reasons through the service: names of the plain SHAP values' largest, notices, blockers, budgets, the audit log."""

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from confirmed_reasons import check_reasons, is_confirmed
from lines import decide_at
from measurement_contexts import KEY, TrainedDemo
from release_rule import EVERY_SCORE

from backend.compliance.assessment import ELDERLY
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.fairness.age_discrimination import AgeCheck, AgeGap, verdict_of
from backend.i18n import NO_MEANING, Catalogue, Text
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.forest import ForestParameters
from backend.remark import Remark
from backend.services.notices import notice_of
from backend.services.reasons import CohortRequest, ReasonsRequest, methods
from backend.services.scoring import Rules, ScoringRequest
from backend.services.training import TrainingRequest
from backend.trees.backgrounds import Background, score_bands
from backend.trees.serialization import load_host
from backend.trees.shap import shap_values


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    made = TrainedDemo(tmp_path_factory.mktemp("reasons"))
    yield made
    made.glassleaf.close()


@pytest.fixture(scope="module")
def plain(context):
    """By group compared with: SHAP values of all test records, a column a feature, all parties' data in one hand."""
    model, people = context.measured.model, context.people.loc[context.measured.test_ids]
    rules, columns = together(context, context.record, people)
    found = {}
    for against in methods(model):
        names, values = shap_values(model, rules, columns, len(people), Background.of(model, against, 0.5))
        found[against] = pd.DataFrame(values, index=people.index, columns=names)
    return found


def together(context, record, people):
    """All parties' rules of a model, and their columns of some people."""
    model = context.glassleaf.models.guest_model(record.id)
    rules, columns = dict(model.rules), {}
    for host in record.hosts:
        rules |= load_host(context.runtime._simulated.hosts[host]._partial_models._store.artefact(record.id)).rules
    for _, feature in model.dictionary:
        values = people[feature.name]
        if feature.kind == "categorical":
            texts = [None if pd.isna(v) else str(int(v)) if isinstance(v, float) else str(v) for v in values]
            columns[feature.name] = np.array(texts, dtype=object)
        else:
            columns[feature.name] = values.astype(float).to_numpy()
    return rules, columns


@pytest.mark.parametrize(
    "parameters",
    [None, ForestParameters(trees=2, depth=2, cipher="none"), DecisionTreeParameters(depth=2, cipher="none")],
)
def test_training_counts_its_records_by_leaf_and_score_as_a_walk_with_all_columns_does(context, parameters):
    models = context.glassleaf.models
    record = context.record
    if parameters is not None:
        record = context.glassleaf.training.start(TrainingRequest("demo", parameters, most_named=EVERY_SCORE)).get()
    model = models.guest_model(record.id)
    people = context.people.loc[[i for i, part in models.part_of(record).items() if part == "training"]]
    rules, columns = together(context, record, people)
    units, leaves = np.full(len(people), np.rint(model.base_scores[0] * 2**model.score_bits)), []
    for t, tree in enumerate(model.trees):
        nodes = np.zeros(len(people), dtype=int)
        for i, split in tree.splits.items():  # parents come before their children
            nodes = np.where(
                nodes == i, np.where(rules[t, i].goes_left(columns[split.feature]), split.left, split.right), nodes
            )
        units += np.rint(np.array([tree.nodes[i].weight for i in nodes]) * 2**model.score_bits)
        leaves.append(nodes)
    found = model.bands
    assert found.total == len(people) and len(found.counts) == len(model.trees)
    for tree, nodes, counts in zip(model.trees, leaves, found.counts, strict=True):
        assert [sum(leaf) for leaf in counts] == [int((nodes == i).sum()) for i in tree.leaves]
    if parameters is None:  # forests round their sums, not their leaves
        assert found == score_bands(model.trees, leaves, units.astype(np.int64))


@pytest.fixture(scope="module")
def declined(context):
    """Ids of test records by probability, highest first."""
    return context.probabilities().sort_values(ascending=False).index


def ask(context, ids, cutoff=0.5, **kwargs):
    forgotten(context, ids)
    decide_at(context.glassleaf, cutoff, context.record.id)
    table = context.runtime.table
    sheet = context.glassleaf.samples.of_person(context.record.id, ids[0])
    if len(ids) > 1:
        own = table.take(np.array([table.row_of[i] for i in ids]))
        sheet = type(sheet)(tuple(ids), own, {}, {}, ())
    return context.glassleaf.reasons.start(ReasonsRequest(context.record.id, sheet, key_bits=KEY, **kwargs)).get()


def forgotten(context, ids):
    """Have the Guest forget its scores of some people, so that they are scored again."""
    for one in ids:
        context.glassleaf.reasons._measurement.workspace.decisions("demo").forget(one)


def plain_walks(context, sides=()):
    """Whether a feature may be a reason of a person: the side asked about is confirmed, or none is asked about."""
    known = context.glassleaf.reasons._known_of_features(context.record)
    sides = {feature: reason.asked for feature, reason in known.items()} | dict(sides)
    parts = context.glassleaf.models.part_of(context.record)
    training = context.people.loc[[i for i, part in parts.items() if part == "training"]]
    rules, _ = together(context, context.record, training.iloc[:1])

    def confirmed(person, feature):
        side = sides[feature]
        row = context.people.loc[[person]]
        return not side or is_confirmed(context.measured.model, rules, training, row, feature, side)

    return confirmed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cipher", "against"), [("paillier", "all"), ("paillier", "covers"), ("rlwe", "approved"), ("rlwe", "covers")]
)
def test_names_are_those_of_the_largest_plain_shap_values_that_plain_walks_confirm(
    context, plain, declined, cipher, against
):
    plain = plain[against]
    confirmed = plain_walks(context)
    ids = list(declined[:2]) + list(declined[-1:])
    found = ask(context, ids, cipher=cipher, against="" if against == "all" else against)
    assert (found.against, found.compared > 0) == (against, against != "covers")
    assert found.cipher == cipher and found.key_bits == {"paillier": KEY, "rlwe": 8192}[cipher]
    for person in found.people:
        values = plain.loc[person.score.id]
        possible = [feature for feature in values.index if confirmed(person.score.id, feature)]
        wanted = values[possible][values[possible] > 1e-3].nlargest(4)
        assert {r.feature for r in person.reasons} == set(wanted.index)  # no two of the demo's share the form's words
        assert [r.feature for r in person.reasons] == sorted(r.feature for r in person.reasons)
        total = person.score.base + person.score.guest_part + person.score.hosts_part
        assert total == pytest.approx(person.score.margin)
        if against == "covers":
            assert values.sum() == pytest.approx(person.score.margin - person.score.base, abs=0.02)
    parties = {r.party for person in found.people for r in person.reasons}
    assert "bank" in parties and len(parties) > 1
    assert found.features == len(plain.columns) and (found.ciphertexts > 10) == (cipher == "paillier")


def test_somebody_of_whom_a_host_has_no_record_is_given_no_reason_of_missing_values_which_have_no_side(
    context, declined
):
    of_guest, of_hosts = context.people.index, [f.name for party, f in context.offered if party != "bank"]
    lacking = context.people[of_hosts].isna().all(axis=1)
    stranger = of_guest[lacking][0]
    people = ask(context, [declined[0], stranger], cipher="paillier").people
    assert all(reason.party == "bank" or not reason.side for reason in people[1].reasons)
    assert any(reason.party != "bank" for reason in people[0].reasons)


def test_every_reason_that_states_a_side_is_confirmed_by_plain_arithmetic(context, declined):
    people = context.people
    training = people.loc[
        [i for i, part in context.glassleaf.models.part_of(context.record).items() if part == "training"]
    ]
    rules, _ = together(context, context.record, people.iloc[:1])
    lines = 0
    for person in ask(context, list(declined[:8]), cipher="paillier").people:
        row = people.loc[[person.score.id]]
        sided, sideless = check_reasons(context.measured.model, rules, training, row, person)
        assert sided + sideless <= 4
        lines += sided
    assert lines >= 12


def test_reasons_of_a_scoring_that_was_made_need_no_second_one(context, declined):
    sheet = context.glassleaf.samples.of_person(context.record.id, declined[0])
    batch = context.glassleaf.scoring.start(ScoringRequest(context.record.id, sheet, 0.5, "none", KEY)).get()
    found = ask(context, [declined[0]], scored=batch)
    assert found.people[0].score == batch.scores[0]
    assert not {"DecisionVectors", "EncryptedScores"} & {m.kind for m in found.transcript}
    with pytest.raises(ParameterError, match="another file"):
        ask(context, [declined[1]], scored=batch)


@pytest.mark.slow
def test_a_notice_says_the_reasons_in_words_and_a_prohibited_one_blocks_it(context, declined):
    found = ask(context, list(declined[:6]), cutoff=0.0)
    blocked = [p for p in found.people if p.blocked]
    free = [p for p in found.people if not p.blocked and p.reasons]
    assert blocked and free
    text = context.glassleaf.reasons.notice(found, free[0].score.id, "en", "txt").decode()
    for reason in free[0].reasons:
        assert context.measured.model.feature(reason.feature).reason[reason.side or "either"].en in text
    assert Catalogue("en")("notice.action") in " ".join(text.split()) and "Equal Credit Opportunity Act" in text
    chinese = context.glassleaf.reasons.notice(found, free[0].score.id, "zh", "html").decode()
    stated = free[0].reasons[0]
    assert context.measured.model.feature(stated.feature).reason[stated.side or "either"].zh in chinese
    assert context.glassleaf.reasons.notice(found, free[0].score.id, "en", "pdf")[:5] == b"%PDF-"
    stopped = context.glassleaf.reasons.notice(found, blocked[0].score.id, "en", "txt").decode()
    why = next(r.blockers[0] for r in blocked[0].reasons if r.blockers).in_words(Catalogue("en"))
    assert Catalogue("en")("notice.blocked") in " ".join(stopped.split())
    assert why in stopped and Catalogue("en")("notice.reasons") not in stopped


def checked(context, worse, low, high):
    """As if elderly ages had been measured."""
    gaps = (AgeGap(1, 0.3, worse, low, high),)
    found = AgeCheck("bank", "age", 500, 0.3, gaps, verdict_of(gaps))
    keep = context.glassleaf.fairness._measurement.keep
    keep(context.record, ELDERLY, "age", [asdict(found)])


@pytest.mark.slow
def test_an_age_is_no_reason_before_elderly_people_are_shown_to_fare_no_worse(context, plain):
    plain = plain["all"]
    # A feature that is blocked has no side; once it is free, its side has to be confirmed.
    [learned] = [one for one in context.glassleaf.explanation.directions(context.record.id) if one.feature == "age"]
    confirmed = plain_walks(context, {"age": "below" if learned.strength < 0 else "above"})
    largest = {}
    for i in plain.index[plain["age"] > 0]:
        possible = [feature for feature in plain.columns if confirmed(i, feature)]
        largest[i] = set(plain.loc[i, possible].nlargest(4).index)
    person = next(i for i, names in largest.items() if "age" in names and not names & {"gender", "marital_status"})

    def of_age():
        [reason] = [r for r in ask(context, [person], cutoff=0.0).people[0].reasons if r.feature == "age"]
        return [blocker.why for blocker in reason.blockers]

    assert of_age() == ["open"]
    for figures, why in (
        ((0.1, 0.05, 0.15), ["negative"]),
        ((0.0, -0.05, 0.05), ["undecided"]),
        ((-0.1, -0.15, -0.05), []),
    ):
        checked(context, *figures)
        assert of_age() == why


@pytest.mark.slow
def test_an_overridden_finding_blocks_no_more(context, declined):
    found = ask(context, list(declined[:6]), cutoff=0.0)
    person = next(p for p in found.people if p.blocked)
    for reason in person.reasons:
        for finding in context.glassleaf.compliance.assess(context.record.id).findings:
            if finding.feature == reason.feature and (finding.status == "prohibited" or finding.check):
                context.glassleaf.reviews.decide(
                    context.record.id,
                    finding.rule_id,
                    finding.feature,
                    "overridden",
                    "measured for a test only",
                    "a tester",
                )
    assert not ask(context, [person.score.id], cutoff=0.0).people[0].blocked


def test_nobody_who_was_not_declined_gets_a_notice(context, declined):
    found = ask(context, [declined[-1]], cutoff=0.99)
    with pytest.raises(ParameterError, match="was not declined"):
        context.glassleaf.reasons.notice(found, declined[-1], "en", "txt")
    with pytest.raises(ParameterError, match="Request them first"):
        context.glassleaf.reasons.notice(found, declined[0], "en", "txt")


@pytest.mark.slow
@pytest.mark.parametrize("cipher", ["paillier", "rlwe"])
def test_mean_contributions_over_a_group_are_the_plain_ones(context, plain, cipher):
    plain = plain["covers"]
    ids = tuple(plain.index[:60])
    asked = CohortRequest(context.record.id, ids, cipher=cipher, key_bits=KEY)
    found = context.glassleaf.reasons.start_cohort(asked).get()
    for row in found:
        assert (
            row.people == 60
            and row.cipher == cipher
            and abs(row.mean - plain.loc[list(ids), row.feature].mean()) <= row.error_bound + 1e-12
        )
    with pytest.raises(ParameterError, match="50 or more"):
        context.glassleaf.reasons.start_cohort(CohortRequest(context.record.id, ids[:49], key_bits=KEY)).get()


def test_the_audit_log_counts_reasons_and_notices_and_names_nobody(context, declined):
    found = ask(context, [declined[0]], cutoff=0.0)
    context.glassleaf.reasons.notice(found, declined[0], "en", "txt")
    entries = context.glassleaf.audit.entries("demo")
    reasons, notice = entries[-2], entries[-1]
    assert (reasons.action, notice.action) == ("reasons", "notice")
    assert reasons.body["rows"] == 1 and reasons.body["outcome"] == "done" and len(notice.body["sha256"]) == 64
    assert declined[0] not in str(reasons.body) + str(notice.body)
    with pytest.raises(ParameterError, match="paillier"):
        ask(context, [declined[0]], cipher="none")
    assert context.glassleaf.audit.entries("demo")[-1].body["outcome"] == "ParameterError"


def test_where_nobody_was_scored_there_is_nothing_to_explain(context, declined):
    sheet = context.glassleaf.samples.of_person(context.record.id, declined[0])
    batch = context.glassleaf.scoring.start(ScoringRequest(context.record.id, sheet, 0.5, "none", KEY)).get()
    failed = replace(batch, scores=(replace(batch.scores[0], status="failed", problems=(Remark("moments"),)),))
    with pytest.raises(ParameterError, match="nothing to explain: less than a minute"):
        ask(context, [declined[0]], scored=failed)


def test_a_feature_without_a_meaning_is_no_reason_that_a_notice_states(context, declined):
    model = context.measured.model
    bare = replace(
        model,
        dictionary=tuple(
            (p, f.model_copy(update={"meaning": Text(f"{f.name} {NO_MEANING}")})) for p, f in model.dictionary
        ),
    )
    person = next(p for p in ask(context, list(declined[:4]), cutoff=0.0).people if p.reasons)
    federation, standing = context.runtime.federation, context.glassleaf.lifecycle.standing(context.record.id)
    assert notice_of(person, model, federation, standing, "2026-11-22").lines
    with pytest.raises(ParameterError, match=f"'{person.reasons[0].feature}'.* has no meaning"):
        notice_of(person, bare, federation, standing, "2026-11-22")
    context.glassleaf.reasons.check_notice(context.record.id, "en")
    context.glassleaf.reasons.check_notice(context.record.id, "zh")


@pytest.fixture
def scored(context, declined):
    """A person who was scored and declined by the line of 0.3, and the sheet."""
    person = declined[3]
    forgotten(context, [person])
    decide_at(context.glassleaf, 0.3, context.record.id)
    sheet = context.glassleaf.samples.of_person(context.record.id, person)
    asked = ScoringRequest(context.record.id, sheet, None, "none", KEY)
    return person, sheet, context.glassleaf.scoring.start(asked).get()


def scores_of(context, person):
    """How often each Host has answered with a score of a person."""
    counts = {}
    for host in context.record.hosts:
        account = context.runtime.operator.account(host)
        counts[host] = sum(one.times for one in account.about(person) if one.kind == "score")
    return counts


def test_reasons_for_a_score_need_no_second_one_and_state_the_decision_that_was_made(context, scored):
    person, sheet, batch = scored
    before = scores_of(context, person)
    decide_at(context.glassleaf, 0.9, context.record.id)  # another line since
    found = context.glassleaf.reasons.start(ReasonsRequest(context.record.id, sheet, key_bits=KEY)).get()
    assert scores_of(context, person) == before and found.decided
    said, score = found.people[0].score, batch.scores[0]
    assert (said.decision, said.policy, said.band) == ("decline", score.policy, score.band)
    assert (said.units, said.margin, said.guest_part, said.hosts_part, said.remarks) == (
        score.units,
        score.margin,
        score.guest_part,
        score.hosts_part,
        score.remarks,
    )
    entry = context.glassleaf.audit.entries("demo")[-1]
    assert (entry.action, entry.body["decided"]) == ("reasons", found.decided)


def test_other_values_an_older_score_or_a_forgotten_person_are_scored_again(context, scored):
    person, sheet, _ = scored
    reasons = context.glassleaf.reasons
    assert reasons.scored_before(context.record.id, sheet) is not None
    columns = sheet.guest.columns
    for name in Rules.of(reasons._measurement.workspace, context.glassleaf.models, context.record).seen_values.names:
        other = columns[name] + 1.0 if columns[name].dtype != object else np.array(["another"], dtype=object)
        changed = replace(sheet, guest=replace(sheet.guest, columns={**columns, name: other}))
        assert reasons.scored_before(context.record.id, changed) is None, name
    later = datetime.now(UTC) + timedelta(days=30, minutes=1)
    stored = context.glassleaf.reasons._measurement.workspace.decisions("demo")
    assert stored.of(context.record.id, [person]) and not stored.of(context.record.id, [person], later)
    forgotten(context, [person])
    assert reasons.scored_before(context.record.id, sheet) is None


def test_reasons_for_a_score_of_another_version_of_the_record_are_refused_and_not_booked(context, scored):
    person, sheet, _ = scored
    host = context.measured.compiled.guest.folding.steps[0].host
    party = context.runtime._simulated.hosts[host]
    table = party._gate.table
    used = sorted(party._partial_models.get(context.record.id).features)
    columns = {name: np.array(table.columns[name]) for name in table.columns}
    name = next(feature for feature in used if columns[feature].dtype == float)
    columns[name][table.row_of[person]] = 771.5
    object.__setattr__(party._gate, "table", PartyTable(table.party, table.ids, columns))
    booked = len(context.runtime.operator.account(host).about(person))
    try:
        found = context.glassleaf.reasons.start(ReasonsRequest(context.record.id, sheet, key_bits=KEY)).get()
        assert [problem.code for problem in found.people[0].problems] == ["record_changed_since_score"]
        assert len(context.runtime.operator.account(host).about(person)) == booked
    finally:
        object.__setattr__(party._gate, "table", table)
    found = context.glassleaf.reasons.start(ReasonsRequest(context.record.id, sheet, key_bits=KEY)).get()
    assert not found.people[0].problems
