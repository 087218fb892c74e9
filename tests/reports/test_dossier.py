"""A Host's dossier: signed over everything in it, refused where it was changed, and coarse enough to say nothing of one person."""

import json
import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import text

from backend.data.column_counts import reference_of
from backend.data.dictionary import Feature, Kind
from backend.data.table import read_table
from backend.errors import ParameterError, SecurityError
from backend.evaluation.column_summary import OTHER_CODES, SHARE_STEP, bands, coarse, drift, summary
from backend.i18n import LANGUAGES, Catalogue
from backend.protocols.group_sums.grouping import MIN_GROUP
from backend.reports.dossier import answers_of, fits, read
from backend.reports.render.html_form import to_html
from backend.services import Glassleaf
from backend.services.host_dossier import DAYS_BETWEEN

AMOUNT = Feature(name="amount", meaning="Amount")
CODED = Feature(name="kind", meaning="Kind", kind=Kind.CATEGORICAL, categories={"a": "A", "b": "B", "c": "C"})
FILLED = '[all]\nsource = "Billing"\nlawful_basis = "Consent"\nrefresh = "monthly"\nowner = "Data office"\n'
DAY = date(2026, 11, 22)


def coded(**counts):
    return np.array([code for code, n in counts.items() for _ in range(n)], dtype=object)


def test_shares_are_in_steps_and_add_up_about():
    found = bands(AMOUNT, np.arange(1000.0))
    assert [name for name, _ in found] == ["1", "2", "3", "4", "5"]
    assert all(abs(share / SHARE_STEP - round(share / SHARE_STEP)) < 1e-9 for _, share in found)
    assert coarse(0.024) == 0.0 and coarse(0.026) == 0.05 and coarse(0.999) == 1.0


def test_no_band_stands_for_few_people_and_no_rare_or_undisclosed_code_is_named():
    rng = np.random.default_rng(7)
    for n in (1, 25, 41, 60, 200, 5000):
        values = rng.lognormal(0, 2, n)
        low, high = np.quantile(values, [0.05, 0.95])
        places = np.searchsorted(np.linspace(low, high, 6)[1:-1], values, side="right") + 1
        for name, _ in bands(AMOUNT, values):
            first, last = (int(x) for x in (name.split("–")[0], name.split("–")[-1]))
            assert ((places >= first) & (places <= last)).sum() >= MIN_GROUP
    # 3 with the rarest of the others
    assert [name for name, _ in bands(CODED, coded(a=100, b=50, c=3))] == ["a", OTHER_CODES]
    assert [name for name, _ in bands(CODED, coded(a=100, b=50, secret=30))] == ["a", "b", OTHER_CODES]
    assert bands(CODED, coded(a=100, b=3)) == () and bands(CODED, coded(secret=100)) == ()


def test_one_person_more_changes_nothing_nearly_always():
    rng = np.random.default_rng(7)
    changed = 0
    for _ in range(200):
        values = rng.normal(size=2000)
        changed += summary(AMOUNT, values) != summary(AMOUNT, values[:-1])
    assert changed <= 12  # a share that stood at the edge of a step; docs/decisions/data.md


def test_bands_do_not_depend_on_where_the_values_lie():
    values = np.random.default_rng(7).lognormal(0, 1, 500)
    assert bands(AMOUNT, values) == bands(AMOUNT, 771_300_000 + 16 * values)


def test_drift_is_in_words_and_chance_is_no_drift():
    rng = np.random.default_rng(7)
    reference = reference_of(AMOUNT, rng.normal(size=1000))
    assert drift(AMOUNT, rng.normal(size=1000), reference) == "still"
    assert drift(AMOUNT, rng.normal(0.4, 1, size=1000), reference) == "moved"
    assert drift(AMOUNT, rng.normal(3, 1, size=1000), reference) == "moved far"
    assert drift(AMOUNT, rng.normal(size=1000), None) == "not measured"
    codes = reference_of(CODED, coded(a=500, b=500))
    assert (
        drift(CODED, coded(a=500, b=500), codes) == "still" and drift(CODED, coded(c=900, a=100), codes) == "moved far"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FILLED.replace("Consent", ""), "lawful_basis are empty"),
        (FILLED + '[columns.nothing]\nsource = "x"\n', "no column nothing"),
        (FILLED + "[columns.gender]\nsource = 3\n", "columns|gender"),
        (FILLED + "[other]\n", "the tables \\[all\\]"),
        ("[all", "not TOML"),
    ],
)
def test_a_form_with_a_gap_or_a_stranger_is_refused(glassleaf, text, words):
    with pytest.raises(ParameterError, match=words):
        answers_of(text, glassleaf.federations.get("demo").party("telecom"))


@pytest.fixture(scope="module")
def host(glassleaf):
    return glassleaf.host_dossier("demo", "telecom")


@pytest.fixture(scope="module")
def signed(host):
    host.sign(FILLED + '[columns.gender]\nsource = "Contract"\n', today=DAY)
    return host.signed()


def test_a_form_keeps_what_was_signed(host, signed):
    assert 'source = "Contract"' in host.template() and host.template().count('"Billing"') == 1


def test_a_signed_dossier_holds_every_column_and_no_value(glassleaf, signed):
    federation = glassleaf.federations.get("demo")
    dossier = read(signed, federation)
    assert [c.name for c in dossier.columns] == [f.name for f in federation.party("telecom").features]
    assert {c.source for c in dossier.columns} == {"Billing", "Contract"}
    body = json.loads(signed)["dossier"]["columns"]
    numbers = {x for c in body for x in (c["missing"], *(share for _, share in c["bands"]))}
    assert all(abs(x / SHARE_STEP - round(x / SHARE_STEP)) < 1e-9 for x in numbers)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("Contract", "Register", SecurityError),
        ('"missing":0.0', '"missing":0.5', SecurityError),
        ('"federation":"demo"', '"federation":"other"', ParameterError),
        ('"day":"2026-11-22"', '"day":"2026-11-23"', SecurityError),
        ('"version":1', '"version":2', ParameterError),
    ],
)
def test_a_dossier_that_was_changed_is_refused(glassleaf, signed, old, new, error):
    assert old in signed
    with pytest.raises(error):
        glassleaf.dossiers.take("demo", signed.replace(old, new))
    assert glassleaf.dossiers.of("demo") == () or "Register" not in glassleaf.dossiers.of("demo")[0].model_dump_json()


def test_records_that_changed_are_not_signed_twice_within_four_weeks(glassleaf, host, signed):
    file = glassleaf.federations.get("demo").folder / glassleaf.federations.get("demo").party("telecom").file
    before = file.read_text()
    try:
        file.write_text(before.rstrip("\n").rsplit("\n", 1)[0] + "\n")  # one person has left
        with pytest.raises(ParameterError, match="who joined or left"):
            host.sign(FILLED, today=DAY + timedelta(days=DAYS_BETWEEN - 1))
        later = host.sign(FILLED, today=DAY + timedelta(days=DAYS_BETWEEN)).dossier
        assert {c.drift for c in later.columns} == {"still"}
    finally:
        file.write_text(before)


def test_drift_counts_from_the_records_of_each_models_own_training(demo_home):
    with Glassleaf(demo_home(), pools=False) as glassleaf:
        own, federation = glassleaf.host_dossier("demo", "telecom"), glassleaf.federations.get("demo")
        party = federation.party("telecom")
        moved, still = next(f for f in party.features if f.kind is Kind.NUMERIC), party.features[-1]
        table, store = read_table(federation, "telecom"), own._store()

        def counted(times):
            return {
                f.name: reference_of(f, table.columns[f.name] * (times if f is moved else 1)) for f in (moved, still)
            }

        with store._database.write() as session:
            session.execute(text("delete from artefacts where model_id like '%.day' or model_id like '%.columns'"))
        days = [DAY - timedelta(days=back) for back in (90, 30)]
        store.put_training("older", days[0], json.dumps(counted(10)))  # then its values were ten times as large
        store.put_training("newer", days[1], json.dumps(counted(1)))
        store.put_training("older", days[1], json.dumps(counted(1)))  # kept again under the same name: the first stays
        store.put_training("uncounted", days[1], "")  # by an earlier version
        signed = own.sign(FILLED, today=DAY).dossier
        found = {model: signed.since(model) for model in ("older", "newer", "uncounted", "after")}
        assert [found[m].reference for m in found] == [*(day.isoformat() for day in days), "", ""]
        drifts = {m: {c.name: c.drift for c in d.columns} for m, d in found.items()}
        assert [drifts[m][moved.name] for m in found] == ["moved far", "still", "not measured", "not measured"]
        assert drifts["older"][still.name] == "still"
        assert fits("demo", signed) and not fits("demo", found["older"])  # what is signed is the whole
        body = signed.model_dump_json()
        assert "cuts" not in body and "counts" not in body


def test_a_training_leaves_its_day_and_counts_at_the_host(glassleaf):
    store, record = glassleaf.host_dossier("demo", "telecom")._store(), glassleaf.models.all()[0]
    day, columns = store.trainings_counted()[record.id]
    assert day == datetime.now(UTC).date().isoformat()
    names = {f.name for f in glassleaf.federations.get("demo").party("telecom").features}
    assert set(json.loads(columns)) == names


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_report_says_incomplete_until_a_host_has_signed_and_shows_what_it_signed(glassleaf, signed, language):
    record, words = glassleaf.models.all()[0], Catalogue(language)
    federation = glassleaf.federations.get("demo")
    lacking = {h.name: words("dossier.incomplete", host=words.text(h.title)) for h in federation.hosts}
    if language == "en":
        assert glassleaf.dossiers.of("demo") == ()
        page = to_html(glassleaf.reports.make(record.id), language)
        assert all(line in page for line in lacking.values())
    glassleaf.dossiers.take("demo", signed)
    made = glassleaf.reports.make(record.id)
    page = to_html(made, language)
    assert lacking["telecom"] not in page and lacking["platform"] in page
    assert words("dossier.signed", key=made.content.dossiers[0].public_key) in page
    shown = re.sub(r"\s*<[^>]+>\s*", "|", page)
    assert (
        shown.count("|Contract|") == shown.count("|Billing|") == 1
    )  # columns of which the Host writes the same stand together


def test_another_key_than_the_first_is_refused(glassleaf, signed):
    glassleaf.dossiers.take("demo", signed)
    other = glassleaf.host_dossier("demo", "platform").public_key()
    with pytest.raises(SecurityError, match="another key"):
        glassleaf.dossiers.take("demo", signed, other)
