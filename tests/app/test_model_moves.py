"""Moving a model on its card: a passphrase opens both buttons, a packed model is registered, and one that is none is refused in words."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.texts import Texts
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.pack_files import Passphrase
from backend.services.training import TrainingRequest
from tests.app.conftest import Opened, _fresh
from tests.app.reading_out import everything
from tests.homes import copied_home

pytestmark = pytest.mark.usefixtures("quick_scrypt")

T = Texts("en")
WORDS = "correct horse battery staple"


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    return _fresh(home, monkeypatch)


def typed(at: AppTest, words: str = WORDS) -> AppTest:
    at.text_input(key="moves_passphrase").set_value(words)
    return at.run()


def unpacked(at: AppTest, file: bytes) -> AppTest:
    at.file_uploader(key="moves_file").upload("model.pack", file, "application/octet-stream")
    typed(at)
    return at.button(key="moves_unpack").click().run()


def test_a_model_packed_elsewhere_is_registered_from_its_file(
    opened: Opened, home: Path, home_template: Path, tmp_path: Path
) -> None:
    other = copied_home(home_template, tmp_path / "other")
    (other / "demo" / "bank.csv").write_bytes((home / "demo" / "bank.csv").read_bytes())
    with Glassleaf(other, pools=False) as glassleaf:
        asked = TrainingRequest("demo", SecureBoostParameters(trees=2, depth=1, cipher="none"))
        record = glassleaf.training.start(asked).get()
        file = glassleaf.model_packs.pack(record.id, Passphrase(WORDS))
    at = unpacked(opened("model_card"), file)
    assert not at.exception
    assert any(T("moves.done", model=record.id) in found.value for found in at.success)
    again = unpacked(opened("model_card"), file)
    assert "is here already" in everything(again) and not again.success


def test_a_file_that_is_no_packed_model_is_refused_in_words(opened: Opened) -> None:
    at = unpacked(opened("model_card"), b"nothing")
    assert not at.exception and "no packed model" in everything(at)


def test_without_a_passphrase_nothing_can_be_packed(opened: Opened) -> None:
    at = typed(opened("model_card"), "short")
    assert T("moves.short", n=12) in everything(at)
    assert at.button(key="moves_unpack").disabled
