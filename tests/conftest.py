"""Small keys made once, the shared real data where it is there, and the shell as its user has it."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from homes import copied_home, made_once
from hypothesis import settings

from backend.cli import main
from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.data.demo import write_demo
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.training import TrainingRequest
from backend.store import database

Run = Callable[..., tuple[int, str, str]]
SHARED = Path(__file__).resolve().parents[2] / "shared"

# The same examples in every run, so that a red test is the change's; HYPOTHESIS_PROFILE=explore draws new ones. No verdict depends on time.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No test pulls the plug: what is written need not be on the disk before the test goes on."""
    set_up = database._set_up_sqlite

    def without_waiting(connection: Any, record: object) -> None:
        set_up(connection, record)
        connection.execute("PRAGMA synchronous = OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_set_up_sqlite", without_waiting)
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session")
def secret_key() -> PaillierSecretKey:
    """512 bits: for arithmetic, not for secrets."""
    return PaillierSecretKey.generate(512, floor=512)


@pytest.fixture
def key_side(secret_key: PaillierSecretKey) -> PaillierKeySide:
    return PaillierKeySide(secret_key)


@pytest.fixture
def public_side(secret_key: PaillierSecretKey) -> PaillierPublicSide:
    return PaillierPublicSide(secret_key.public)


@pytest.fixture(scope="module")
def quick_scrypt() -> Iterator[None]:
    """A guess at a passphrase costs next to nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("backend.store.key_backup.N", 1 << 10)
        yield


@pytest.fixture(scope="session")
def shared_vectors() -> Path:
    folder = SHARED / "vectors"
    if not folder.is_dir():
        pytest.skip("the public Paillier vectors lie beside the project in ../shared/vectors; they are not here")
    return folder


@pytest.fixture(scope="session")
def credit_card_csv() -> Path:
    file = SHARED / "data" / "uci_credit_card.csv"
    if not file.is_file():
        pytest.skip("the credit-card data lies beside the project in ../shared/data; it is not here")
    return file


@pytest.fixture(scope="session")
def bank_csv() -> Path:
    """Bank marketing: 4,521 people, ``;`` between cells, no ids; the label ``y`` is yes or no."""
    file = SHARED / "data" / "bank.csv"
    if not file.is_file():
        pytest.skip("the bank marketing data lies beside the project in ../shared/data; it is not here")
    return file


@pytest.fixture(scope="session")
def car_csv() -> Path:
    """Car evaluation: 1,728 cars, columns A to F, no ids; the label ``G`` has four classes."""
    file = SHARED / "data" / "car.csv"
    if not file.is_file():
        pytest.skip("the car evaluation data lies beside the project in ../shared/data; it is not here")
    return file


@pytest.fixture(scope="session")
def demo_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the demo was prepared; only to be copied."""

    def make(draft: Path) -> None:
        with Glassleaf(draft, pools=False) as glassleaf:
            glassleaf.training.prepare_demo()

    return made_once(tmp_path_factory.getbasetemp(), "demo-template", make)


@pytest.fixture(scope="session")
def home_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the demo's three parties and one model; only to be copied."""

    def make(draft: Path) -> None:
        write_demo(draft / "demo", rows=600)
        with Glassleaf(draft, pools=False) as glassleaf:
            glassleaf.federations.add(draft / "demo")
            asked = TrainingRequest("demo", SecureBoostParameters(trees=3, depth=2, cipher="none"))
            glassleaf.training.start(asked).get()

    return made_once(tmp_path_factory.getbasetemp(), "home-template", make)


@pytest.fixture(scope="session")
def demo_home(demo_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Each call gives a home of its own in which the demo is prepared."""
    return lambda: copied_home(demo_template, tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture(scope="module")
def home(home_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module's own home with the demo's three parties and one model."""
    return copied_home(home_template, tmp_path_factory.mktemp("home") / "home")


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command in that home; returns (exit status, standard output, standard error)."""
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["backend", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out = capsys.readouterr()
        return int(end.value.code or 0), out.out, out.err

    return call
