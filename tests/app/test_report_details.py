"""What the operator fills in and what a Host has signed: on the pages Report and Features, kept and refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.texts import Texts
from backend.services import Glassleaf
from tests.app.conftest import Opened, _fresh
from tests.app.reading_out import everything, says

T = Texts("en")
FILLED = '[all]\nsource = "Billing system"\nlawful_basis = "Consent"\nrefresh = "monthly"\nowner = "Data office"\n'


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    return _fresh(home, monkeypatch)


def test_what_is_filled_in_is_kept_and_no_longer_asked_for(opened: Opened) -> None:
    at = opened("report")
    assert T("details.state", n=23) in everything(at)
    at.text_area(key="details_intended_use").set_value("Small loans.")
    at.text_area(key="details_lineage_bank").set_value("Core banking.")
    next(b for b in at.button if b.label == T("details.save")).click().run()
    assert not at.exception and at.success[0].value == T("details.saved")
    assert T("details.state", n=22) in everything(at)
    assert at.text_area(key="details_intended_use").value == "Small loans."


def test_a_file_that_is_no_details_is_refused_in_words(opened: Opened) -> None:
    at = opened("report")
    at.get_by_key("report_details_file").upload("details.toml", b"[use]\npurpose = 'x'\n", "application/toml").run()
    at.button(key="report_details_take").click().run()
    assert not at.exception and "purpose" in at.warning[0].value


def test_a_dossier_that_a_host_signed_is_taken_in_and_a_changed_one_is_not(opened: Opened, home: Path) -> None:
    with Glassleaf(home, pools=False) as glassleaf:
        host = glassleaf.host_dossier("demo", "telecom")
        host.sign(FILLED)
        signed = host.signed()
    at = opened("features")
    assert not at.exception and len([c for c in at.caption if says(c.value, "dossier.incomplete")]) == 2
    for text, taken in ((signed.replace("Billing", "Filling"), False), (signed, True)):
        at.get_by_key("dossier_file").upload("dossier.json", text.encode(), "application/json").run()
        at.button(key="dossier_take").click().run()
        assert not at.exception and bool(at.success) is taken
    assert "Billing system" in everything(at) and "Filling" not in everything(at)
