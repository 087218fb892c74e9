"""A later sheet: each figure is that of plain arithmetic with every column in one hand, under encryption too; Hosts' accounts count it."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from measurement_contexts import KEY, TrainedDemo

from backend.cli.validation import STATUS
from backend.errors import ParameterError, SampleError
from backend.protocols.group_sums.grouping import MIN_GROUP, group
from backend.services.fairness import GROUPS
from backend.services.measurement import asked_by
from backend.services.monitoring import REFERENCE, MonitoringRequest, triggers
from backend.services.scoring import ScoringRequest
from backend.store.accountant import Limits

FEATURE = "gender"  # at telecom


def psi(before, after):
    """Plainly: sum of (q - p) ln(q / p), an empty bin counted as half a record."""
    total = 0.0
    for a, b in zip(before, after, strict=True):
        if a or b:
            p, q = max(a, 0.5) / sum(before), max(b, 0.5) / sum(after)
            total += (q - p) * np.log(q / p)
    return total


class MonitoredDemo(TrainedDemo):
    """A demo whose test records come as a later sheet, some columns moved."""

    def __init__(self, folder):
        super().__init__(folder)
        self.folder, self.ids = folder, list(self.measured.test_ids)[:200]
        federation = self.runtime.federation
        self.id, self.own = federation.guest.id, [f.name for f in federation.guest.features]
        self.label, self.moved = (
            federation.label,
            next(f.name for f in federation.guest.features if f.kind == "numeric"),
        )
        self.later = self.people.loc[self.ids, [*self.own, self.label.column]].copy()
        self.later[self.moved] = self.later[self.moved] * 3 + 5
        self.sheet = self.write(self.later)
        self.plain = self.run("none")
        self.encrypted = self.run("paillier")

    def write(self, later, name="later.csv"):
        later.to_csv(self.folder / name, index_label=self.id)
        return self.folder / name

    def read(self, sheet=None, **given):
        return self.glassleaf.monitoring.read(self.record.id, sheet or self.sheet, **given)

    def run(self, cipher="none", later=None, **given):
        asked = {"feature": FEATURE, "cutoff": 0.3} | given
        request = MonitoringRequest(self.record.id, later or self.read(), cipher=cipher, key_bits=KEY, **asked)
        return self.glassleaf.monitoring.start(request).get()

    def walked(self):
        """Margins of the later people from walking every tree, with weights that are not rounded."""
        everything = self.people.loc[self.ids].copy()
        everything[self.own] = self.later[self.own]
        return self.margins(everything)

    def scored(self):
        """Margin, probability and outcome of the later people, scored on plaintext by themselves."""
        request = ScoringRequest(self.record.id, self.read().sheet, cipher="none")
        batch = self.glassleaf.scoring.start(request, counted=False).get()
        y = self.later[self.label.column].astype(str) == self.label.positive
        margins = [one.margin for one in batch.scores]
        return pd.DataFrame({"margin": margins, "p": 1 / (1 + np.exp(-np.array(margins))), "y": y}, index=self.ids)

    def training(self):
        return [i for i, part in self.glassleaf.models.part_of(self.record).items() if part == "training"]

    def values(self, party, feature, ids):
        table = self.runtime.table if party == "bank" else self.runtime._simulated.hosts[party]._gate.table
        return table.columns[feature][[table.row_of[i] for i in ids]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    made = MonitoredDemo(tmp_path_factory.mktemp("monitoring"))
    yield made
    made.glassleaf.close()


def of(done, test):
    return next(t for t in done.tests if t.id == test)


def figures_of(done, test):
    return {one.figure.feature or one.figure.measure: one.figure for one in of(done, test).figures}


@pytest.mark.parametrize("test", [t.id for t in triggers().tests])
def test_under_encryption_every_figure_is_that_on_plaintext(demo, test):
    assert of(demo.encrypted, test) == of(demo.plain, test) and of(demo.plain, test).figures


def test_the_scores_shift_is_that_of_counts_in_tenths(demo):
    kept = demo.glassleaf.models.measured(demo.record, "scores")["test"].rows[0]["margins"]
    before, after = np.sort(np.ravel(kept)), demo.scored().margin
    assert np.abs(after - demo.walked()).max() < 0.1  # rounding of leaf weights
    cuts = np.unique([before[round(len(before) * k / 10)] for k in range(1, 10)])
    cuts = cuts[cuts > before[0]]
    counts = [np.bincount(np.searchsorted(cuts, x, side="right"), minlength=len(cuts) + 1) for x in (before, after)]
    assert figures_of(demo.encrypted, "score_shift")["psi"].value == pytest.approx(psi(*counts), abs=1e-9)


def test_the_guests_column_that_moved_is_the_worst_and_reaches_its_trigger(demo):
    column, after = demo.values("bank", demo.moved, demo.training()), demo.later[demo.moved].to_numpy(float)
    edges = np.quantile(column[~np.isnan(column)], np.arange(1, 10) / 10)
    rough = psi(*(np.bincount(np.searchsorted(edges, x[~np.isnan(x)]), minlength=10) for x in (column, after)))
    test = of(demo.encrypted, "guest_columns")
    worst = test.figures[0].figure
    assert (worst.feature, test.verdict) == (demo.moved, "fail") and worst.value == pytest.approx(rough, rel=0.2)
    assert {one.figure.feature for one in test.figures if one.verdict == "fail"} == {demo.moved}


def test_a_hosts_columns_are_compared_in_bins_of_both_parts_together(demo):
    found = figures_of(demo.encrypted, "host_columns")
    others = [i for i in demo.training() if i not in demo.ids and asked_by(i) == "monitoring"]
    order = [i for i in demo.runtime.table.ids if i in set(others)]
    drawn = [order[k] for k in np.random.default_rng(7).permutation(len(order))[:REFERENCE]]
    held = set.intersection(*(set(h._gate.table.ids) for h in demo.runtime._simulated.hosts.values()))
    assert len(found) >= 3 and FEATURE not in found
    for feature, figure in found.items():
        known = next(f for _, f in demo.runtime.federation.features() if f.name == feature)
        before, after = ([i for i in ids if i in held] for ids in (drawn, demo.ids))
        made = group(known, demo.values(figure.party, feature, [*before, *after]), 10)
        parts = np.split(made.index, [len(before)])
        counts = [np.bincount(part, minlength=len(made.groups)) for part in parts]
        assert figure.n == len(after) and figure.value == pytest.approx(psi(*counts), abs=1e-9)


def test_calibration_is_observed_against_predicted_by_tenth_and_brier(demo):
    people, done = demo.scored(), demo.encrypted
    assert done.brier == pytest.approx(((people.p - people.y) ** 2).mean()) and done.outcomes == len(people)
    base = people.y.mean()
    found = figures_of(done, "later_calibration")
    assert found["brier_skill"].value == pytest.approx(1 - done.brier / (base * (1 - base)))
    assert 8 <= len(done.tenths) <= 10 and all(row.n >= MIN_GROUP for row in done.tenths)
    ranked, begin = people.sort_values("p"), 0
    for row in done.tenths[:3]:  # until ties may have moved a boundary
        own = ranked.iloc[begin : begin + row.n]
        assert (row.predicted, row.observed) == (pytest.approx(own.p.mean()), pytest.approx(own.y.mean()))
        begin += row.n


def test_acceptance_by_a_hosts_feature_is_that_of_a_table_with_every_column(demo):
    people = demo.scored()
    held = [i for i in demo.ids if i in demo.runtime._simulated.hosts["telecom"]._gate.table.row_of]
    known = next(f for _, f in demo.runtime.federation.features() if f.name == FEATURE)
    made = group(known, demo.values("telecom", FEATURE, held), GROUPS)
    accepted = [(people.p.loc[held].to_numpy()[made.index == k] < 0.3).mean() for k in range(len(made.groups))]
    largest = int(np.argmax([g.n for g in made.groups]))
    wanted = {
        g.name: rate / accepted[largest]
        for g, rate in zip(made.groups, accepted, strict=True)
        if g != made.groups[largest]
    }
    test = of(demo.encrypted, "later_disparity")
    assert {one.figure.group: one.figure.value for one in test.figures} == pytest.approx(wanted)
    assert (("telecom", FEATURE)) in demo.encrypted.unexamined  # no second question about it


def test_a_run_is_kept_logged_and_reported_with_date_and_figures(demo):
    done = demo.run()
    assert demo.glassleaf.monitoring.last(demo.record.id) == done
    [*_, entry] = [e for e in demo.glassleaf.audit.entries("demo") if e.action == "monitoring"]
    assert entry.body["outcome"] == "done" and not set(demo.ids) & set(json.dumps(entry.body).split('"'))
    section = demo.glassleaf.reports.make(demo.record.id).content.monitoring
    assert (section.made, section.n, [t.id for t in section.tests]) == (done.made, 200, [t.id for t in done.tests])
    for language in ("en", "zh"):
        page = demo.glassleaf.reports.export(demo.record.id, "html", language).decode()
        assert done.made[:10] in page and section.tests[0].source.in_language(language) in page


def test_without_outcomes_or_feature_nothing_is_made_up(demo):
    later = demo.read(demo.write(demo.later[demo.own], "bare.csv"))
    done = demo.run(later=later, feature="")
    assert (done.outcomes, done.brier, done.tenths) == (0, None, ())
    assert of(done, "later_calibration").missing == "no_outcomes"
    assert of(done, "later_disparity").missing == "no_feature_named"
    assert done.verdict in STATUS


def test_outcomes_may_come_in_another_column_and_be_known_of_some(demo):
    later = demo.later.rename(columns={demo.label.column: "turned_out"})
    later["turned_out"] = later["turned_out"].astype(object)
    later.iloc[:50, later.columns.get_loc("turned_out")] = ""
    read = demo.read(demo.write(later, "renamed.csv"), label="turned_out")
    assert np.isnan(read.outcomes[:50]).all() and not np.isnan(read.outcomes[50:]).any()
    assert (read.outcomes[50:] == demo.scored().y.to_numpy()[50:]).all()


@pytest.mark.parametrize("label", ["nothing", "id", "feature", "cell"])
def test_a_column_that_holds_no_outcomes_is_refused(demo, label):
    later = demo.later.copy()
    name = {"id": demo.id, "feature": demo.own[0], "cell": demo.label.column}.get(label, label)
    if label == "cell":
        later[demo.label.column] = "maybe"
    with pytest.raises(SampleError, match=r"^[a-z.]+: |^[a-z.]+, |^'"):  # words, no list
        demo.read(demo.write(later, "wrong.csv"), label=name)


def test_few_people_and_an_unknown_feature_are_refused_before_anything_is_sent(demo):
    few = demo.read(demo.write(demo.later.head(MIN_GROUP - 1), "few.csv"))
    with pytest.raises(SampleError, match="needs 20"):
        demo.run(later=few)
    with pytest.raises(ParameterError, match="not a feature"):
        demo.run(feature="nothing")


def test_two_runs_that_differ_by_a_person_tell_nothing_of_that_person(demo, monkeypatch):
    later = datetime.now(UTC).date() + timedelta(days=40)  # what was asked before has left the account
    for host in demo.runtime._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1))
        monkeypatch.setattr(host.accountant, "_today", lambda: later)
    cutoff = float(demo.scored().p.median())
    first, second = (demo.read(demo.write(part, "part.csv")) for part in (demo.later[:100], demo.later[80:]))
    done = demo.run(later=first, cutoff=cutoff)
    assert (
        (done.n, done.failed) == (100, 0) and of(done, "host_columns").figures and of(done, "later_disparity").figures
    )
    # 20 of them were scored, so that 100 others are left: no person is in two answers
    done = demo.run(later=second, cutoff=cutoff)
    assert (done.n, done.failed) == (100, 20) and of(done, "later_disparity").figures
    assert of(done, "host_columns").missing == "refused"  # the training records beside them are the same people
    with pytest.raises(SampleError, match=r"0 people were scored; .* or more\. The budget is spent at"):
        demo.run(later=demo.read(demo.write(demo.later[:119], "one_less.csv")))


def test_a_sheet_with_one_person_more_gets_no_answer(demo, monkeypatch):
    later = datetime.now(UTC).date() + timedelta(days=80)  # as above
    for host in demo.runtime._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1))
        monkeypatch.setattr(host.accountant, "_today", lambda: later)
    cutoff = float(demo.scored().p.median())
    without, with_one = (demo.read(demo.write(demo.later[:n], "sheet.csv")) for n in (100, 101))
    assert of(demo.run(later=without, cutoff=cutoff), "later_disparity").figures
    # The difference of two answers would be what the one person has.
    with pytest.raises(SampleError, match=r"^1 person was scored; .* 20 or more"):
        demo.run(later=with_one, cutoff=cutoff)


def test_a_host_that_has_not_agreed_leaves_its_figures_out(demo, monkeypatch):
    monkeypatch.setattr(demo.runtime._simulated.hosts["telecom"], "_measures", ("proxies",))
    done = demo.run()
    assert {of(done, name).missing for name in ("later_disparity", "host_columns")} == {"refused"}
    assert of(done, "score_shift").figures and of(done, "guest_columns").figures
