"""`host.toml`: how one Host runs at its own company. Holds no secret: those stand in files of their own or in the environment."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from backend.data.bounded_text import read_toml
from backend.data.csv_file import TableText
from backend.data.dictionary import Feature
from backend.data.dictionary_file import parse_dictionary
from backend.data.federation import MEASURES, Bits, Budget, Dither, Measure, Slug
from backend.data.label import Line, Prose
from backend.data.strict_model import StrictModel
from backend.data.table_file import Reading, read_table_file
from backend.data.validation import field_problems
from backend.errors import AmbiguousFile, FederationError, SecurityError
from backend.remark import Remark

MAX_FILE = 1 << 20  # bytes of a configuration or of a secret's file
WEB = r"^(https?://\S+)?$"  # an address of the web, or none
_PASSWORD = re.compile(r"//[^/@\s:]*:[^/@\s]+@")  # of a user in a URL
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]{1,253}):\d{1,5}")


def _address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError("a host and its port, e.g. link.bank.example:8443")
    return value


Address = Annotated[str, AfterValidator(_address)]
MaybeAddress = Annotated[str, AfterValidator(lambda value: value and _address(value))]  # empty = none
T = TypeVar("T", bound=BaseModel)


def _passwords(file: str, data: object, path: str = "") -> list[Remark]:
    """Return a problem for each URL that has a password in it, which is not repeated."""
    if isinstance(data, dict):
        return [remark for key, value in data.items() for remark in _passwords(file, value, f"{path}, {key}")]
    if isinstance(data, str) and _PASSWORD.search(data):
        return [Remark("password_in_url", {"where": f"{file}{path}"})]
    return []


class Source(StrictModel):
    """Where the Host's records are.

    Attributes
    ----------
    kind : {"csv", "parquet", "sql"}
    file : str
        Of CSV or Parquet, relative to host.toml.
    url, url_file : str
        Of SQL: a URL without a password, or a file whose first line is the URL.
    table : str
        Of SQL: table or view, with its schema and a point before it where it has one.
    id : str
        The column of ids.
    dictionary : str
        The features' meanings: CSV as in `init --dictionary`, or TOML with ``[[features]]`` as in a federation file.
    encoding : {"utf-16", "gbk", "latin-1"}
        Of CSV that is not UTF-8, as :data:`backend.data.table_file.ENCODINGS`; a dictionary in CSV is UTF-8 or the same.
    decimal : {"point", "comma"}
        What stands before the decimals of numbers in CSV; the other one may stand between thousands. Without it a point, and no thousands.
    """

    kind: Literal["csv", "parquet", "sql"] = "csv"
    file: Prose = ""
    encoding: Literal["", "utf-16", "gbk", "latin-1"] = ""
    decimal: Literal["", "point", "comma"] = ""
    url: Prose = ""
    url_file: Prose = ""
    table: Prose = ""
    id: Line
    dictionary: Line

    @model_validator(mode="after")
    def _complete(self) -> Source:
        if self.kind == "sql" and not (self.table and bool(self.url) != bool(self.url_file)):
            raise ValueError("a source of kind 'sql' with a table, and either a url or a url_file")
        if self.kind != "sql" and not self.file:
            raise ValueError(f"a source of kind '{self.kind}' with a file")
        return self


class LinkOptions(StrictModel):
    """How this side reaches the others; who listens stands in the agreement.

    Attributes
    ----------
    bind : str
        Where to listen, if the agreement says that this party does: host:port; empty = the agreement's port on every address.
    connect : dict of str to str
        Party → host:port to dial instead of the agreement's address (a relay at the company's edge, say).
    proxy : str
        URL of an HTTP proxy that supports CONNECT; empty = what ``https_proxy`` names.
    heartbeat : float
        Seconds between signs of life.
    """

    bind: Prose = ""
    connect: dict[Slug, Address] = Field(default_factory=dict)
    proxy: Annotated[str, StringConstraints(pattern=r"^(http://\S+)?$")] = ""
    heartbeat: Annotated[float, Field(ge=0.05, le=60)] = 20.0


class LaneBounds(StrictModel):
    """A lane's bounds: messages that wait, and threads that answer."""

    queue: Annotated[int, Field(ge=1, le=100_000)] = 64
    workers: Annotated[int, Field(ge=1, le=64)] = 1


class LaneOptions(StrictModel):
    """What is asked online, in bulk, and in training never waits for each other."""

    online: LaneBounds = LaneBounds(queue=256, workers=2)
    bulk: LaneBounds = LaneBounds(queue=64, workers=1)
    training: LaneBounds = LaneBounds(queue=64, workers=1)


class WorkerOptions(StrictModel):
    """Where a Host's long work runs: processes of its machine, or its own cluster.

    Attributes
    ----------
    backend, scheduler
        As of :class:`backend.crypto.workers.Workers`.
    jobs : int
        Tasks at a time; 0 = one a core of this machine.
    """

    backend: Literal["loky", "dask", "ray"] = "loky"
    jobs: Annotated[int, Field(ge=0, le=1024)] = 0
    scheduler: Annotated[str, StringConstraints(pattern=r"^([a-z]+://\S+)?$")] = ""

    @model_validator(mode="after")
    def _for_dask(self) -> Self:
        if self.scheduler and self.backend != "dask":
            raise ValueError('scheduler goes with backend = "dask"')
        return self


class HostLimits(StrictModel):
    """What this Host allows; the agreement may be stricter, never looser.

    Attributes
    ----------
    budget, budget_total, max_bits, dither, measures
        As in :class:`backend.data.federation.Party`; none = the default of a real Host.
    key_bits : int
        Shortest Paillier key.
    message_mib, memory_mib : int
        Longest message, and all messages together that are under way.
    """

    budget: Budget | None = None
    budget_total: Budget | None = None
    max_bits: Bits | None = None
    dither: Dither | None = None
    measures: tuple[Measure, ...] | None = None
    key_bits: Annotated[int, Field(ge=2048, le=8192)] = 2048
    message_mib: Annotated[int, Field(ge=1, le=1024)] = 1024
    memory_mib: Annotated[int, Field(ge=2, le=65_536)] = 2048

    @field_validator("measures")
    @classmethod
    def _known(cls, value: tuple[Measure, ...] | None) -> tuple[Measure, ...] | None:
        if value is not None and len(set(value)) != len(value):
            raise ValueError(f"each of {', '.join(MEASURES)} once")
        return value


class HostConfig(StrictModel):
    """One Host's `host.toml`; paths are relative to its folder.

    Attributes
    ----------
    party : str
        The Host's name in the agreement.
    agreement : str
        The agreement with its signatures.
    keys : str
        Folder that `glassleaf keys init` made.
    store, store_file : str
        URL of the Host's own database without a password, or a file whose first line is the URL; ``GLASSLEAF_STORE_URL`` comes before
        both. None of them = SQLite beside host.toml.
    ops : str
        Where metrics and health are shown: host:port, this machine by default; port 0 = any that is free; empty = nowhere.
    webhook, webhook_file : str
        Address (http, https) that gets a notice when a request waits for the operator, or a file whose first line is the address.
    folder : Path
        The file's.
    """

    party: Slug
    agreement: Line = "agreement.toml"
    keys: Line = "keys"
    store: Prose = ""
    store_file: Prose = ""
    ops: MaybeAddress = "127.0.0.1:9464"
    webhook: Annotated[str, StringConstraints(pattern=WEB)] = ""
    webhook_file: Prose = ""
    source: Source
    link: LinkOptions = LinkOptions()
    lanes: LaneOptions = LaneOptions()
    workers: WorkerOptions = WorkerOptions()
    limits: HostLimits = HostLimits()
    folder: Path = Field(default=Path(), exclude=True)

    def path(self, name: str) -> Path:
        """A file that the configuration names."""
        return self.folder / name

    def store_url(self) -> str:
        """Of the Host's database; raises SecurityError if the file of a secret can be read by others."""
        default = f"sqlite:///{(self.folder / f'{self.party}.db').resolve()}"
        return os.environ.get("GLASSLEAF_STORE_URL") or self._secret(self.store_file) or self.store or default

    def webhook_url(self) -> str:
        """Where notices for the operator go; empty if nowhere.

        Raises
        ------
        SecurityError
            The file of a secret can be read by others.
        FederationError
            It holds no address of the web.
        """
        url = self._secret(self.webhook_file) or self.webhook
        if not re.fullmatch(WEB, url):
            raise FederationError("webhook_not_web", file=self.webhook_file)
        return url

    def source_url(self) -> str:
        """Of the database with the Host's records; raises SecurityError if the file of a secret can be read by others."""
        return self._secret(self.source.url_file) or self.source.url

    def features(self) -> tuple[Feature, ...]:
        """The features that the Host discloses, in the dictionary's order.

        Raises
        ------
        FederationError
            The dictionary cannot be read, or has problems.
        """
        path = self.path(self.source.dictionary)
        if path.suffix != ".toml":
            return tuple(parse_dictionary(self._dictionary_text(path)).values())
        return read_form(path, _Dictionary).features

    def _dictionary_text(self, path: Path) -> TableText:
        """A dictionary in CSV: UTF-8, or in the encoding of the table."""
        try:
            return read_table_file(path)
        except AmbiguousFile:
            if not self.source.encoding:
                raise
        return read_table_file(path, how=Reading(encoding=self.source.encoding))

    def _secret(self, name: str) -> str:
        return read_secret(self.path(name)) if name else ""


class _Dictionary(StrictModel):
    features: tuple[Feature, ...] = Field(min_length=1)


def read_secret(path: Path) -> str:
    """The first line of a secret's file.

    Raises
    ------
    SecurityError
        It cannot be read, is empty, or others can read it.
    """
    try:
        with path.open("rb") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise SecurityError("secret_readable_by_others", file=str(path))
            lines = file.read(MAX_FILE).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SecurityError("secret_unreadable", file=str(path), reason=type(error).__name__) from None
    if not lines or not lines[0].strip():
        raise SecurityError("secret_empty", file=str(path))
    return lines[0].strip()


def read_form(path: Path, form: type[T]) -> T:
    """What a TOML file says in this form; raises FederationError with every problem, an unknown key among them."""
    data = read_toml(path, max_bytes=MAX_FILE)
    if problems := field_problems(path.name, form, data):
        raise FederationError(problems=problems)
    return form.model_validate(data)


def load_config(path: Path) -> HostConfig:
    """Read `host.toml`.

    Raises
    ------
    FederationError
        With every problem: an unknown key, a wrong value, a password in a URL.
    """
    data = read_toml(path, max_bytes=MAX_FILE)
    if problems := _passwords(path.name, data) or field_problems(path.name, HostConfig, data):
        raise FederationError(problems=problems)
    return HostConfig.model_validate({**data, "folder": path.parent})
