"""The credit-card federation from training to report: a reader who has the PDF alone finds every answer a regulator asks for."""

import re
from types import SimpleNamespace

import pypdfium2
import pytest
from inside import workspace_of
from release_rule import EVERY_SCORE

from backend.data.credit_card import split_credit_card
from backend.i18n import brief
from backend.protocols.training.parameters import SecureBoostParameters
from backend.reports.sections.writer import figure, gain
from backend.results import told_by_scores
from backend.services import Glassleaf
from backend.services.age_check import AgeRequest
from backend.services.retraining import RetrainingRequest
from backend.services.training import TrainingRequest
from backend.store.accountant import Limits
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.trees.serialization import load_host

pytestmark = pytest.mark.slow

ROWS = 6000  # of 30,000
WITHOUT = ("SEX", "MARRIAGE")
REASON = "A prohibited basis; the model without it is taken."


@pytest.fixture(scope="module")
def walk(credit_card_csv, tmp_path_factory):
    """Everything a person would do before filing, on plaintext for speed; other tests show encryption gives the same."""
    home = tmp_path_factory.mktemp("walk")
    few = home / "few.csv"
    with credit_card_csv.open() as table:
        few.write_text("".join(line for line, _ in zip(table, range(ROWS + 1), strict=False)))
    split_credit_card(few, home / "cards")
    glassleaf = Glassleaf(home / "home", pools=False, actor="ana")
    name = glassleaf.federations.add(home / "cards").name
    for host in workspace_of(glassleaf).runtime(name)._simulated.hosts.values():
        host.accountant.limits = Limits(0, synthetic=True)  # both models are measured on the same people
    asked = SecureBoostParameters(trees=40, depth=4, cipher="none")
    before = glassleaf.training.start(TrainingRequest(name, asked, most_named=EVERY_SCORE)).get().id
    glassleaf.age_check.start(AgeRequest(before, "AGE", cipher="none")).get()
    pair = glassleaf.retraining.start(RetrainingRequest(before, WITHOUT, by=WITHOUT, cipher="none")).get()
    for finding in glassleaf.compliance.assess(before).findings:
        if finding.status == "prohibited":
            glassleaf.reviews.decide(before, finding.rule_id, finding.feature, "confirmed", REASON, "Rita")
    glassleaf.reports.sign_off(before, "Rita", "Not to be used; see the model that replaces it.")
    files = {form: glassleaf.reports.export(before, form) for form in ("json", "html", "pdf")}
    pages = pypdfium2.PdfDocument(files["pdf"])
    pdf = re.sub(r"\s", "", "".join(page.get_textpage().get_text_range() for page in pages))
    report = glassleaf.reports.check(files["json"]).report
    yield SimpleNamespace(
        glassleaf=glassleaf, home=home / "home", name=name, pair=pair, report=report, pdf=pdf, files=files
    )
    glassleaf.close()


def says(walk, *parts):
    """Whether the PDF holds all of them, however it breaks its lines."""
    missing = [part for part in parts if re.sub(r"\s", "", part) not in walk.pdf]
    assert not missing, f"the PDF does not say: {missing}"


def finding_on(walk, feature):
    """The one of the Equal Credit Opportunity Act; other laws flag some features, too."""
    [found] = [f for f in walk.report.content.assessment.findings if f.feature == feature and "1002." in f.citation.en]
    return found


def share(value):
    return f"{value:.2%}"


def points(value):
    """Percentage points with their sign."""
    return f"{100 * value:+.2f}".replace("-", "−")


@pytest.mark.parametrize("feature", WITHOUT)
def test_sex_and_marriage_are_named_as_prohibited_bases_used_at_the_host_with_their_share_of_gain(walk, feature):
    found = finding_on(walk, feature)
    importance = {row.feature: row for row in walk.glassleaf.explanation.importance(walk.pair.before.record.id)}[
        feature
    ]
    assert (found.status, found.party) == ("prohibited", "platform") and found.usage.splits == importance.splits > 0
    shown = 3 if importance.gain_share >= 0.01 else 4  # decimals: as pages show it
    assert found.usage.gain_share == round(importance.gain_share, shown)
    title = next(p.title.en for p in walk.report.content.parties if p.name == "platform")
    meaning = next(f.meaning for f in walk.report.content.features if f.name == feature)
    says(
        walk,
        f"{meaning.en} ({feature})",
        title,
        gain(found.usage.gain_share),
        found.citation.en,
        "(Prohibited)",
    )


def test_age_is_conditional_and_its_direction_for_elderly_applicants_is_told_with_figures(walk):
    found = finding_on(walk, "AGE")
    assert (found.status, found.check) == ("conditional", "elderly") and found.ages.n == 1200
    worst = max(found.ages.gaps, key=lambda gap: gap.worse)
    sure = {"negative": "score worse than class", "not_negative": "score no worse", "undecided": "It is not disclosed"}
    says(walk, sure[found.ages.verdict], f"Checked on {found.ages.n:,} people", "1002.6(b)(2)(ii)")
    says(walk, f"{points(worst.worse)} [{points(worst.low)}, {points(worst.high)}]")
    says(walk, *(share(gap.predicted) for gap in found.ages.gaps))


def test_disparity_by_sex_is_told_with_intervals_in_both_models(walk):
    [fairness] = [e for e in walk.report.content.fairness if e.feature == "SEX"]
    accepted = {m.about.en: m for m in fairness.measures if m.measure == "selection rate"}
    assert set(accepted) == {"male", "female"} and all(m.low < m.value < m.high for m in accepted.values())
    says(
        walk,
        *(f"{about} {share(m.value)} [{share(m.low)}, {share(m.high)}] n = {m.n:,}" for about, m in accepted.items()),
    )
    [pair] = walk.report.content.retrained
    gap = next(o for o in pair.outcomes if o.feature == "SEX" and o.before.measure == "selection rate, difference")
    says(walk, *(f"{points(m.value)} [{points(m.low)}, {points(m.high)}]" for m in (gap.before, gap.after)))


def test_the_retrained_model_stands_beside_it(walk):
    [pair] = walk.report.content.retrained
    assert set(pair.without) == set(WITHOUT) and pair.same_people
    figures = {f.name: f for f in pair.figures}
    assert {"auc", "ks"} <= set(figures)
    says(walk, *(figure(v) for f in figures.values() for v in (f.before, f.after)))
    says(walk, *(f"{s.before:,.0f}{s.after:,.0f}" for s in pair.structure))
    assert {g.name for g in pair.gain if g.after is None} == set(WITHOUT)
    says(walk, *(gain(g.after) for g in pair.gain if g.after is not None), "excluded")
    assert {leak.name for leak in pair.leak} >= {"score_bits", "named", "paths"}


def test_it_says_what_the_model_uses_from_whom_and_in_which_direction(walk):
    content = walk.report.content
    used = [f for f in content.features if f.usage.splits]
    says(walk, *(f"{brief(f.meaning.en)} ({f.name})" for f in used), *(gain(f.usage.gain_share) for f in used))
    says(walk, *(f"{p.used} of {p.features}" for p in content.parties), *(gain(p.gain_share) for p in content.parties))
    up = sum(f.learned == "up" for f in used)
    says(
        walk,
        f"whose higher value raises the prediction: {up};",
        *(f"{f.strength:+.2f}".replace("-", "−") for f in used if f.learned != "unordered"),
    )


def test_it_says_what_was_done_by_whom_and_why(walk):
    findings = walk.report.content.assessment.findings
    confirmed = sum(f.status == "prohibited" for f in findings)
    assert 2 <= confirmed < len(findings)
    done = f"Findings confirmed: {confirmed}; overridden with a reason: 0; not decided yet: {len(findings) - confirmed}"
    says(walk, done, "Confirmed by Rita", REASON)
    says(walk, "Not to be used; see the model that replaces it.", "Sign-offs that cover this content: 1")
    meanings = {f.name: f.meaning for f in walk.report.content.features}
    without = ", ".join(f"{meanings[name].en} ({name})" for name in walk.pair.without)
    says(walk, f"Retrained without {without} as model {walk.pair.after.record.id}")


def test_it_says_who_saw_what(walk):
    says(
        walk,
        "sums of gradients by bin of every Host feature, and on which side of each Host split every joint record falls",
    )
    counted = {(t.kind, t.sender): t for t in walk.report.content.training_traffic}
    assert {("Gradients", "guest"), ("BinSums", "platform"), ("SplitRows", "platform")} <= set(counted)
    says(walk, *(f"{t.bytes:,}" for t in counted.values()))
    told = walk.report.content.release
    says(walk, told_by_scores(told, told.score_bits).sentence())


def test_it_says_how_well_it_predicts_and_how_sure_that_is(walk):
    found = walk.report.content.performance
    assert (found.part, found.n) == ("test", 1200) and {f.name for f in found.figures} >= {"auc", "ks", "brier"}
    says(walk, *(f"{figure(f.value)}{figure(f.low)} – {figure(f.high)}" for f in found.figures))
    assert len(found.calibration) == 10 and sum(row.n for row in found.calibration) == found.n
    says(
        walk,
        *(
            f"{share(row.predicted)}{share(row.observed)}{share(row.low)}–{share(row.high)}{row.n:,}"
            for row in found.calibration
        ),
    )
    card = walk.glassleaf.model_cards.get(walk.pair.before.record.id).parts[0]
    assert {f.name: f.value for f in found.figures} == {f.name: pytest.approx(f.value, abs=1e-4) for f in card.figures}


def test_it_says_how_to_verify_it_and_the_three_forms_agree(walk):
    says(walk, walk.report.content_sha256, "glassleaf report --check FILE", "glassleaf audit verify")
    checked = {form: walk.glassleaf.reports.check(blob) for form, blob in walk.files.items()}
    assert {c.report.content_sha256 for c in checked.values()} == {walk.report.content_sha256}
    assert [c.drawn for c in checked.values()] == ["json", "yes", "yes"] and all(c.named_by for c in checked.values())


def test_no_threshold_of_the_host_is_in_any_form(walk):
    store = PartyStore(Database(walk.home / "parties" / walk.name / "platform"))
    rules = load_host(store.artefact(walk.pair.before.record.id)).rules.values()

    limits = {f"{r.threshold:g}" for r in rules if r.feature == "LIMIT_BAL" and r.threshold >= 1000}
    assert len(limits) > 5
    for text in (walk.files["json"].decode(), walk.files["html"].decode(), walk.pdf):
        assert not limits & numbers(text)
    assert limits & numbers(f"up to NT$ {int(min(limits)):,}")  # it would show


def numbers(text):
    """Whole numbers in a text, with or without commas; counts of bytes in the JSON may be anything."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", re.sub(r'"bytes":\d+', "", text))
    return set(re.findall(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w.,])", plain))
