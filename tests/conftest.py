"""Small keys made once, the shared real data where it is there, and the shell as its user has it.

What takes long to import is imported where it is used: the process that only hands tests out to others needs none of it.
"""

from __future__ import annotations

import functools
import gc
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from homes import copied_home, made_once

if TYPE_CHECKING:
    from backend.compliance.concepts import Sign
    from backend.compliance.phrases import FeatureTexts
    from backend.crypto.paillier.keys import PaillierSecretKey
    from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
    from backend.data.dictionary import Feature
    from backend.data.label import Label
    from backend.data.party_file import PartyFile

Run = Callable[..., tuple[int, str, str]]
SHARED = Path(__file__).resolve().parents[2] / "shared"
_descriptions: tuple[dict[tuple[str, bool], FeatureTexts], dict[int, dict[str, Sign]]] = {}, {}


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """What failed is counted by each worker for itself: the controller was asked of every test, a byte at a time, in case a worker died."""
    if hasattr(config, "workerinput") and hasattr(config, "failures_db"):
        config.failures_db._get = lambda *asked: 0
        config.failures_db._set = lambda *told: None


def pytest_collection() -> None:
    """Before tests are imported: nothing of that is garbage, and their examples are the same in every run."""
    from hypothesis import settings

    gc.disable()
    # A red test is the change's; HYPOTHESIS_PROFILE=explore draws new examples, and twice as many. No verdict depends on time.
    settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
    settings.register_profile("explore", print_blob=True, deadline=None)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_collection_finish() -> None:
    """What was imported is not walked again and again in search of garbage: that took a tenth of all tests' time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No test pulls the plug: what is written need not be on the disk before the test goes on."""
    from backend.store import database

    set_up = database._set_up_sqlite

    def without_waiting(connection: Any, record: object) -> None:
        set_up(connection, record)
        connection.execute("PRAGMA synchronous = OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_set_up_sqlite", without_waiting)
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _statements_are_compiled_once() -> Iterator[None]:
    """What SQLite is asked is compiled once for all databases, of which tests open thousands, and not once for each."""
    from sqlalchemy import create_engine

    from backend.store import database

    first = create_engine("sqlite://")

    def compiled_once(url: str, **options: Any) -> Any:
        engine = create_engine(url, **options)
        if engine.dialect.name == "sqlite":
            engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
        return engine

    first.connect().close()  # what a dialect learns of its first connection
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "create_engine", compiled_once)
        yield
    first.dispose()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a database that was just made."""
    from backend.store.database import FILE, Database

    folder = tmp_path_factory.mktemp("database")
    Database(folder).close()
    return (folder / FILE).read_bytes()


@pytest.fixture(scope="module", autouse=True)
def _databases_are_copies(request: pytest.FixtureRequest, empty_database: bytes) -> Iterator[None]:
    """Wherever a new database is wanted, it is a copy of one that was made; tests of the store make their own."""
    from backend.store.database import FILE, Database

    settle = Database._settle

    def settled(self: Database) -> None:
        if self._shared:
            connection = self._engine.raw_connection()
            connection.driver_connection.deserialize(empty_database)
            connection.close()
        elif self.folder is not None and not (self.folder / FILE).exists():
            # somebody else may open it first, and a folder that cannot be written is told of below
            with suppress(OSError), NamedTemporaryFile(dir=self.folder) as draft:
                draft.write(empty_database)
                draft.flush()
                Path(draft.name).chmod(0o644)
                os.link(draft.name, self.folder / FILE)
        settle(self)

    with pytest.MonkeyPatch.context() as patch:
        if "store" not in request.path.parts:
            # patched: parties open their databases wherever they need them, and a copy takes 3 ms where making one takes 50
            patch.setattr(Database, "_settle", settled)
        yield


@pytest.fixture(scope="session", autouse=True)
def _tables_are_read_once() -> Iterator[None]:
    """A party's file that was read and checked is known by its bytes: homes of tests are copies of each other."""
    from backend.data import federation, party_file, table

    read, known = party_file.read_party_file, dict[tuple[object, ...], party_file.PartyFile]()

    def reading(
        path: Path, id_column: str | None, features: Sequence[Feature], label: Label | None = None
    ) -> PartyFile:
        try:
            key = sha256(path.read_bytes()).digest(), path.name, id_column, repr(features), repr(label)
        except (OSError, ValueError):
            return read(path, id_column, features, label)
        if key not in known:
            known[key] = read(path, id_column, features, label)
        columns = {name: column.copy() for name, column in known[key].columns.items()}
        return replace(known[key], columns=columns, labels=known[key].labels.copy())

    with pytest.MonkeyPatch.context() as patch:
        for module in (federation, table):
            patch.setattr(module, "read_party_file", reading)
        yield


@pytest.fixture(scope="module", autouse=True)
def _descriptions_are_read_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Signs of what the law looks for are sought once in a description, which homes of tests share; tests of that seek them each time."""
    from backend.compliance import assessment

    texts_of, signs_of = assessment.texts_of, assessment.signs_of
    texts, signs = _descriptions  # whose texts stay, so that each has an id of its own

    def texts_once(feature: Feature) -> FeatureTexts:
        key = assessment.description_of(feature), feature.described
        if key not in texts:
            texts[key] = texts_of(feature)
        return texts[key]

    def signs_once(asked: FeatureTexts) -> dict[str, Sign]:
        if id(asked) not in signs:
            signs[id(asked)] = signs_of(asked)
        return signs[id(asked)]

    with pytest.MonkeyPatch.context() as patch:
        if "compliance" not in request.path.parts:
            patch.setattr(assessment, "texts_of", texts_once)
            patch.setattr(assessment, "signs_of", signs_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _commands_are_built_once() -> Iterator[None]:
    """The tree of commands is built once for all commands that tests run in this process."""
    from typer import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "get_command", functools.cache(main.get_command))
        yield


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_done_apart(request: pytest.FixtureRequest) -> Iterator[None]:
    """What has a process of its own, as a PDF has, is done in this one, which takes a tenth of the time; `tests/jobs` has the process."""
    from backend.jobs import apart

    def here(asked: bytes) -> tuple[bool, Any]:
        function, task = pickle.loads(asked)  # noqa: S301 - our own
        try:
            return False, pickle.loads(pickle.dumps(function(*task)))  # noqa: S301 - likewise
        except Exception as error:  # raised again by whoever asked
            return True, error

    with pytest.MonkeyPatch.context() as patch:
        if "jobs" not in request.path.parts:
            patch.setattr(apart, "_answer", here)
        yield


@pytest.fixture(scope="module", autouse=True)
def _memory_is_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing is given back to the machine, which has garbage looked for after every report and long job; `tests/jobs` gives it back."""
    from backend.jobs import memory

    with pytest.MonkeyPatch.context() as patch:
        if "jobs" not in request.path.parts:
            patch.setattr(memory, "gc", SimpleNamespace(collect=lambda: 0))
            patch.setattr(memory, "sys", SimpleNamespace(platform="none"))
        yield


@pytest.fixture(scope="session")
def secret_key() -> PaillierSecretKey:
    """512 bits: for arithmetic, not for secrets."""
    from backend.crypto.paillier.keys import PaillierSecretKey

    return PaillierSecretKey.generate(512, floor=512)


@pytest.fixture
def key_side(secret_key: PaillierSecretKey) -> PaillierKeySide:
    from backend.crypto.paillier.scheme import PaillierKeySide

    return PaillierKeySide(secret_key)


@pytest.fixture
def public_side(secret_key: PaillierSecretKey) -> PaillierPublicSide:
    from backend.crypto.paillier.scheme import PaillierPublicSide

    return PaillierPublicSide(secret_key.public)


@pytest.fixture(scope="module")
def quick_scrypt() -> Iterator[None]:
    """A guess at a passphrase costs next to nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("backend.store.key_backup.N", 1 << 10)
        yield


@pytest.fixture(scope="module")
def quick_group() -> Iterator[None]:
    """Alignments cost next to nothing."""
    from light_group import light_group

    with light_group():
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
    from light_group import light_group

    from backend.services import Glassleaf

    def make(draft: Path) -> None:
        with light_group(), Glassleaf(draft, pools=False) as glassleaf:
            glassleaf.training.prepare_demo()

    return made_once(tmp_path_factory.getbasetemp(), "demo-template", make)


@pytest.fixture(scope="session")
def home_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the demo's three parties and one model; only to be copied."""
    from light_group import light_group

    from backend.data.demo import write_demo
    from backend.protocols.training.parameters import SecureBoostParameters
    from backend.services import Glassleaf
    from backend.services.training import TrainingRequest

    def make(draft: Path) -> None:
        write_demo(draft / "demo", rows=600)
        with light_group(), Glassleaf(draft, pools=False) as glassleaf:
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
    from backend.cli import main

    monkeypatch.setenv("GLASSLEAF_HOME", str(home))

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["backend", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out = capsys.readouterr()
        return int(end.value.code or 0), out.out, out.err

    return call
