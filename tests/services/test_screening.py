"""Features screened before there is a model: the encrypted figures are the plaintext's, and who may not is refused in words."""

import csv
import io
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from inside import runtime_of
from refused import raises

from backend.data.demo import write_demo
from backend.data.table import read_labels, read_table
from backend.errors import HostRefused, NotAgreed, ParameterError, WrongAnswer
from backend.evaluation.screening import information_value
from backend.protocols.group_sums import host as group_sums_host
from backend.protocols.group_sums.distinct import range_of
from backend.protocols.group_sums.grouping import Group, group
from backend.protocols.group_sums.messages import AskDistinct, GroupPairs
from backend.protocols.simulation import simulator
from backend.protocols.training.messages import ReportWrongAnswer
from backend.services import Glassleaf
from backend.services.screening import ScreeningRequest, csv_of
from backend.store.accountant import Limits
from backend.store.request_log import RequestLog

KEY = 512
ROWS = 800


def add_months(folder):
    """Give the Guest's file a month of each record, and the federation its name."""
    table = pd.read_csv(folder / "bank.csv", dtype=str)
    table["month"] = ["2026-01", "2026-02", "2026-03", "2026-04"] * (len(table) // 4)
    table.to_csv(folder / "bank.csv", index=False)
    file = folder / "federation.toml"
    file.write_text(file.read_text().replace("synthetic = true", 'synthetic = true\ntime = "month"', 1))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("screening")
    write_demo(folder / "demo", rows=ROWS)
    add_months(folder / "demo")
    every_request = partial(RequestLog, rate=1.0)
    with (
        mock.patch.object(simulator, "RequestLog", every_request),
        Glassleaf(folder, key_floor=KEY, pools=False) as glassleaf,
    ):
        glassleaf.federations.add(folder / "demo")
        yield glassleaf


@pytest.fixture
def glassleaf(home, monkeypatch):
    """Hosts that are asked about nothing yet; nothing is counted unless a test says so."""
    for host in runtime_of(home)._simulated.hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(0, synthetic=True))
        monkeypatch.setattr(host, "_measures", ("screening",))
    return home


def screened(glassleaf, **options):
    request = ScreeningRequest("demo", **{"cipher": "none", "key_bits": KEY, **options})
    return glassleaf.screening.start(request).get()


def counts_of(feature):
    return [(group.kind, group.name, group.n, group.positives) for group in feature.groups]


def in_one_hand(glassleaf, bins=10):
    """Every feature's groups with their outcomes, from all parties' tables side by side."""
    federation = runtime_of(glassleaf).federation
    tables = {party.name: read_table(federation, party.name) for party in federation.parties}
    own = tables[federation.guest.name]
    joint = [i for i in own.ids if all(i in table.row_of for table in tables.values())]
    labels = read_labels(federation)[[own.row_of[i] for i in joint]] > 0
    counts = {}
    for party, feature in federation.features():
        rows = [tables[party].row_of[i] for i in joint]
        column = tables[party].columns[feature.name][rows]
        grouped = group(feature, column, bins)
        found = []
        for k, one in enumerate(grouped.groups):
            found.append((one.kind, one.name, one.n, int(labels[grouped.index == k].sum())))
        if found:
            counts[party, feature.name] = found, column
    return counts


def test_under_encryption_every_bin_has_the_counts_of_the_plaintext(glassleaf):
    done = screened(glassleaf, cipher="paillier")
    oracle = in_one_hand(glassleaf)
    assert {(one.party, one.feature): counts_of(one) for one in done.features} == {
        key: found for key, (found, _) in oracle.items()
    }
    for one in done.features:
        counts, column = oracle[one.party, one.feature]
        outcomes = np.array([[n - positives, positives] for _, _, n, positives in counts])
        assert (one.iv, one.iv_chance) == information_value(outcomes)
        there = pd.Series(column).dropna().to_numpy()
        distinct = len(set(there.tolist()))
        assert one.fewest <= distinct <= (one.most or distinct)
        share = 1 - len(there) / len(column)
        assert one.missing <= share + 1e-9 and share <= one.missing_most + 1e-9
    left_out = {(one.party, one.feature) for one in done.left_out}
    assert left_out == {(p, f.name) for p, f in runtime_of(glassleaf).federation.features()} - set(oracle)
    assert all(one.adds is not None for one in done.features if one.party != "bank") and done.bands > 1
    assert [one.iv for one in done.features] == sorted((one.iv for one in done.features), reverse=True)
    assert glassleaf.screening.last("demo") == done


def test_drift_is_measured_between_two_dates_and_is_that_of_the_plaintext(glassleaf):
    done = screened(glassleaf, before="2026-02", since="2026-03")
    federation = runtime_of(glassleaf).federation
    own = pd.read_csv(federation.folder / "bank.csv", dtype={"id": str}).set_index("id")
    assert sum(done.periods) < done.records, "those of February are in neither"
    one = next(feature for feature in done.features if feature.feature == "late_payments_12m")
    column = own["late_payments_12m"]
    joint = [i for i in own.index if all(i in read_table(federation, host.name).row_of for host in federation.hosts)]
    feature = next(f for f in federation.guest.features if f.name == "late_payments_12m")
    grouped = group(feature, column[joint].to_numpy(dtype=float), 10)
    early, late = own["month"][joint] < "2026-02", own["month"][joint] >= "2026-03"
    counts = [np.bincount(grouped.index[flags.to_numpy()], minlength=len(grouped.groups)) for flags in (early, late)]
    shares = [np.maximum(count, 0.5) / count.sum() for count in counts]
    assert one.psi == pytest.approx(float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum()))
    assert all(feature.psi is not None for feature in done.features)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"before": "2026-02", "since": "2026"}, "screening_dates"),
        ({"before": "2026-03", "since": "2026-02"}, "screening_dates"),
        ({"before": "2020-01", "since": "2026-02"}, "screening_rare_period"),
        ({"bins": 1}, "groups_out_of_range"),
        ({"records": 10}, "too_few_records_asked"),
    ],
)
def test_what_cannot_be_screened_is_refused_in_words(glassleaf, options, code):
    with raises(ParameterError, code):
        screened(glassleaf, **options)


def test_dates_without_a_time_column_are_refused_in_words(glassleaf, monkeypatch):
    monkeypatch.setattr(runtime_of(glassleaf), "times", lambda: None)
    with raises(ParameterError, "screening_without_time"):
        screened(glassleaf, before="2026-02", since="2026-02")


def test_a_host_that_has_not_agreed_to_screening_is_not_asked(glassleaf, monkeypatch):
    host = runtime_of(glassleaf)._simulated.hosts["telecom"]
    monkeypatch.setattr(host, "_measures", ("disparity",))
    with pytest.raises(NotAgreed):
        screened(glassleaf)


def test_a_host_that_raises_its_features_worth_is_found_out(glassleaf, monkeypatch):
    """It adds to one group's sums what it takes from another's: sizes and totals hold, as it would be under encryption."""
    honest = group_sums_host.sums_by

    def lying(groups, message, grouped):
        answer = honest(groups, message, grouped)
        sums = np.frombuffer(answer.sums[0], dtype="<i8").copy()
        half = len(sums) // 2
        sums[half] += 1
        sums[half + 1] -= 1
        return replace(answer, sums=(sums.tobytes(), *answer.sums[1:]))

    # patched: a Host that runs another program
    monkeypatch.setattr(group_sums_host, "sums_by", lying)
    reported = []
    for host in runtime_of(glassleaf)._simulated.hosts.values():
        # patched: what each Host is told
        monkeypatch.setitem(host._handlers, ReportWrongAnswer, lambda sender, report: reported.append(report.why.code))
    with raises(WrongAnswer, "group_sums_do_not_add_up"):
        screened(glassleaf)
    deadline = time.monotonic() + 20
    while not reported and time.monotonic() < deadline:
        time.sleep(0.05)
    assert reported == ["group_sums_do_not_add_up"]


def test_a_host_that_calls_a_numbers_bins_codes_is_named(glassleaf, monkeypatch):
    honest = group_sums_host.group

    def as_codes(feature, column, most, least):
        made = honest(feature, column, most, least)
        if feature.name != "tenure_months":
            return made
        return replace(made, groups=tuple(replace(one, kind="code") for one in made.groups))

    # patched: a Host that runs another program
    monkeypatch.setattr(group_sums_host, "group", as_codes)
    with raises(WrongAnswer, "groups_not_as_asked", host="telecom", feature="tenure_months"):
        screened(glassleaf, records=150, bins=2)


def of_feature(done, name):
    return next(one for one in done.features if one.feature == name)


def differences(glassleaf):
    return Counter((one.why.code, one.parties) for one in glassleaf.audit.re_perform("demo").differences)


def test_a_host_that_turns_its_bins_round_is_believed_and_found_by_an_auditor(glassleaf, monkeypatch):
    honest = group_sums_host.group

    def turned(feature, column, most, least):
        made = honest(feature, column, most, least)
        if feature.name != "tenure_months":
            return made
        sizes = [one.n for one in made.groups][::-1]
        groups = tuple(Group("bin", str(number), n) for number, n in enumerate(sizes, 1))
        return replace(made, groups=groups, index=len(groups) - 1 - made.index)

    assert of_feature(screened(glassleaf, records=400, bins=4), "tenure_months").direction == "falls"
    before = differences(glassleaf)
    with monkeypatch.context() as patch:
        # patched: a Host that lies in an answer of its own
        patch.setattr(group_sums_host, "group", turned)
        assert of_feature(screened(glassleaf, records=400, bins=4), "tenure_months").direction == "rises"
    assert differences(glassleaf) - before == {("groups_differ", ("telecom",)): 1}


def test_a_host_that_draws_two_groups_apart_is_believed_and_found_by_an_auditor(glassleaf, monkeypatch):
    """It adds their difference to one and takes it from the other: every mark stays in proportion, so that the secret one agrees, too."""
    honest = group_sums_host.sums_by

    def drawn_apart(groups, message, grouped):
        answer = honest(groups, message, grouped)
        if message.features != ("basket_mix",):
            return answer
        sizes = [n for _, _, n in answer.groups[0]]
        assert sizes[0] == sizes[1]
        blobs = []
        for blob in answer.sums:
            # Either half of the pairs, by group.
            sums = np.frombuffer(blob, dtype="<i8").reshape(2, len(sizes))
            difference = sums[:, :1] - sums[:, 1:]
            blobs.append((sums + difference * [1, -1]).tobytes())
        return replace(answer, sums=tuple(blobs))

    truth = of_feature(screened(glassleaf, records=300, bins=2), "basket_mix")
    before = differences(glassleaf)
    with monkeypatch.context() as patch:
        # patched: a Host that lies in an answer of its own
        patch.setattr(group_sums_host, "sums_by", drawn_apart)
        lie = of_feature(screened(glassleaf, records=300, bins=2), "basket_mix")
    assert lie.iv > 5 * truth.iv and (truth.worth, lie.worth) == ("nothing", "suspicious")
    assert differences(glassleaf) - before == {("group_sums_differ", ("bank", "platform")): 1}


def test_a_host_that_counts_books_what_was_foretold_answers_the_same_again_and_no_other_people(glassleaf, monkeypatch):
    hosts = runtime_of(glassleaf)._simulated.hosts
    for host in hosts.values():
        monkeypatch.setattr(host.accountant, "limits", Limits(1))
    first = screened(glassleaf, records=400)
    told = {name: host.accountant.largest_given_away()[1] for name, host in hosts.items()}
    assert told == pytest.approx(first.bits)
    price = glassleaf.screening.price("demo")
    assert all(told[name] <= price[name] + 1e-9 for name in told)
    second = screened(glassleaf, records=400)
    of_hosts = [one for one in second.features if one.party != "bank"]
    assert all(one.measured for one in of_hosts)
    assert [counts_of(one) for one in second.features] == [counts_of(one) for one in first.features]
    others = screened(glassleaf, records=500)
    assert {one.party for one in others.features} == {"bank"}
    refused = [one.reason.code for one in others.left_out if one.party != "bank"]
    assert refused and set(refused) <= {"host_refused", "screened_too_few_groups"}
    assert {name: host.accountant.largest_given_away()[1] for name, host in hosts.items()} == pytest.approx(told)


def test_distinct_values_are_asked_about_under_this_purpose_alone(glassleaf):
    runtime = runtime_of(glassleaf)
    for host in runtime._simulated.hosts.values():
        host._measures = ("screening", "disparity")
    session = runtime.open_session(("telecom",), purpose="disparity")
    try:
        session.send("telecom", AskDistinct(session.name, b"", "gender"))
        with raises(HostRefused, "kind_not_agreed"):
            session.expect(GroupPairs)
    finally:
        session.close()


def test_places_of_distinct_values_have_no_gaps():
    ends = [range_of(place) for place in range(7)]
    assert [fewest for fewest, _ in ends[1:]] == [most + 1 for _, most in ends[:-1]] and ends[-1][1] is None


def test_a_file_of_a_screening_has_a_row_a_feature(glassleaf):
    done = screened(glassleaf)
    rows = list(csv.DictReader(io.StringIO(csv_of(done).decode("utf-8-sig"))))
    assert [row["feature"] for row in rows] == [one.feature for one in done.features]
    assert [float(row["iv"]) for row in rows] == [one.iv for one in done.features]


def test_the_log_says_that_it_was_screened_and_what_was_booked(glassleaf):
    done = screened(glassleaf)
    entry = glassleaf.audit.entries("demo")[-1]
    assert (entry.action, entry.body["outcome"], entry.body["records"]) == ("screen", "done", done.records)
    assert entry.body["bits"] == done.bits and "iv" not in str(entry.body)
