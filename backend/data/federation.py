"""The federation file: who takes part, which file each party holds, what the label is and what every feature means.

Knows the parties and their dictionaries; values stay in the parties' files (see `table`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, TypeVar, get_args

import tomli_w
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationError

from backend.data.bounded_text import read_toml
from backend.data.csv_file import shown
from backend.data.dictionary import Feature
from backend.data.label import Label, Line, Paragraphs, Prose, Title
from backend.data.party_file import read_party_file
from backend.data.strict_model import FieldError, StrictModel
from backend.data.validation import SLUG_FORM, field_problems
from backend.errors import FederationError
from backend.i18n import Text
from backend.remark import Remark

FILE_NAME = "federation.toml"
MAX_PROBLEMS = 20  # listed in one error; the rest is counted

Part = TypeVar("Part", bound=BaseModel)
Measure = Literal[
    "screening",
    "disparity",
    "proxies",
    "age",
    "curves",
    "comparisons",
    "shuffles",
    "validation",
    "alternatives",
    "leaks",
    "card",
    "serving",
]
MEASURES: tuple[Measure, ...] = get_args(Measure)  # what a Host may agree to have measured
Place = Literal[
    "us", "us_california", "us_colorado", "eu", "uk", "china", "singapore", "canada", "india", "hong_kong", "korea"
]
PLACES: tuple[Place, ...] = get_args(Place)  # where people live; a part of a place begins with its name
Product = Literal["card", "loan", "mortgage", "insurance", "hiring"]
PRODUCTS: tuple[Product, ...] = get_args(Product)
MAX_QUERIES = 1_000_000  # per person and model, the largest budget
MAX_BITS = 1_000_000  # the largest limit of what answers may tell about a person
MAX_DITHER = 0.25  # width on the margin


def _number(largest: float, code: str, kinds: type[float] | tuple[type[float], ...] = (int, float)) -> BeforeValidator:
    """Return the check of a number from 0 to `largest`; `code` says what was expected."""

    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value <= largest:
            raise FieldError(code, limit=largest)
        return value

    return BeforeValidator(check)


Budget = Annotated[int, _number(MAX_QUERIES, "expected_budget", int)]
Bits = Annotated[float, _number(MAX_BITS, "expected_bits")]
Dither = Annotated[float, _number(MAX_DITHER, "expected_dither")]
Slug = Annotated[str, StringConstraints(pattern=SLUG_FORM)]


class Party(StrictModel):
    """One party: its file, its id column and the features it discloses.

    Attributes
    ----------
    name : str
        Short name for commands and messages: a small letter, then small letters, digits or underscores, at most 31.
    title, about : Text
        For people to read.
    file : str
        CSV file, relative to the federation file's folder and inside it; empty of a Host at its own company.
    id : str
        The column that holds the ids.
    budget : int, optional
        Hosts only: how often a person may be scored with a model in four weeks; 0 = not limited, none = the default.
    budget_total : int, optional
        Hosts only: the same over all Guests and models; 0 = not limited, none = `budget`.
    max_bits : float, optional
        Hosts only: upper bound of what all answers of four weeks together may tell about a person, bits; 0 or none = no limit.
    address : Text
    phone : str
        As a notice states them: where the creditor is reached, or a consumer reporting agency.
    supervisor : Text
        Guests only. In English name and address of the agency that supervises the creditor under the Equal Credit Opportunity Act, in
        Chinese of the department that is responsible for the protection of personal information in China: neither translates the other.
    reporting_agency : bool
        Hosts only: whether it is a consumer reporting agency (15 USC 1681a(f)), which a notice says in other words.
    dither : float, optional
        Hosts only: range of the dither that is added to each score, on the margin; 0 = no dither, none = the default.
    measures : tuple of str, optional
        Hosts only: the purposes of measuring that it agrees to; empty = none, None = the default: all in a simulation, none at a real Host.
    approval : {"ask", "none"}, optional
        Hosts only: whether trainings and models wait for its operator; None = the default: not in a simulation, at a real Host they do.
    """

    name: Slug
    title: Title
    about: Paragraphs = Text()
    file: Prose = ""
    id: Line
    budget: Budget | None = None
    budget_total: Budget | None = None
    max_bits: Bits | None = None
    dither: Dither | None = None
    address: Paragraphs = Text()
    phone: Prose = ""
    supervisor: Paragraphs = Text()
    reporting_agency: bool = False
    measures: tuple[Measure, ...] | None = None
    approval: Literal["ask", "none"] | None = None
    features: tuple[Feature, ...] = ()


class GuestLink(StrictModel):
    """Where the Guest has what it takes to reach Hosts at their own companies; paths are relative to the federation file's folder.

    Attributes
    ----------
    agreement : str
        The signed agreement; its signatures are in a file next to it.
    keys : str
        Folder of the Guest's link keys.
    bind : str
        host:port to listen at; empty = the agreement's port on every address.
    """

    agreement: Line = "agreement.toml"
    keys: Line = "keys"
    bind: Prose = ""


class Federation(StrictModel):
    """One Guest, its Hosts and the label.

    Attributes
    ----------
    name : str
        See `Party.name`.
    synthetic : bool
        Whether the data are synthetic.
    time : str
        Column of the Guest's file with each record's day, month or year (ISO 8601): models are tested on the latest ones. Empty = none.
    places : tuple of str
        Where the people live: law of other places is not applied. Empty = law of every place.
    product : str
        What the models are for: law of other products is not applied. Empty = law of every product.
    link : GuestLink, optional
        Set if Hosts run at their own companies: their tables are there, and this file has what they disclose. None = simulated.
    folder : Path
        The file's folder; never written into it.
    """

    name: Slug
    title: Title
    about: Paragraphs = Text()
    synthetic: bool = False
    time: Prose = ""
    places: tuple[Place, ...] = ()
    product: Product | Literal[""] = ""
    label: Label
    guest: Party
    hosts: tuple[Party, ...] = ()
    link: GuestLink | None = None
    folder: Path = Field(default=Path(), exclude=True)

    @property
    def parties(self) -> tuple[Party, ...]:
        """Return the Guest, then the Hosts in their order."""
        return (self.guest, *self.hosts)

    @property
    def here(self) -> tuple[Party, ...]:
        """Return the parties whose tables are here: all of a simulation, otherwise the Guest."""
        return self.parties if self.link is None else (self.guest,)

    def party(self, name: str) -> Party:
        """Return a party by its name; raise `FederationError` if it is missing."""
        for party in self.parties:
            if party.name == name:
                return party
        names = tuple(party.name for party in self.parties)
        raise FederationError("unknown_party", federation=self.name, party=shown(name), parties=names)

    def features(self) -> tuple[tuple[str, Feature], ...]:
        """Return every feature with its owner's name, the Guest's first, then the Hosts' in their order."""
        return tuple((party.name, feature) for party in self.parties for feature in party.features)


def load_federation(path: Path, *, check_tables: bool = True) -> Federation:
    """Read and check a federation file and the parties' tables.

    Parameters
    ----------
    path : Path
        The TOML file, or the folder that holds ``federation.toml``.
    check_tables : bool
        False reads the TOML alone, for a federation that was checked before.

    Raises
    ------
    FederationError
        With every problem found (`MAX_PROBLEMS` and a count of the rest): file, field, found, expected, what to do.
    """
    file = path / FILE_NAME if path.is_dir() else path
    data = read_toml(file)
    problems = field_problems(file.name, Federation, data)
    if "folder" in data:
        problems.append(Remark("folder_is_no_key", {"file": file.name}))
    label = _readable(Label, data.get("label"))
    guest = _readable(Party, data.get("guest"))
    raw_hosts = data.get("hosts", [])
    if isinstance(raw_hosts, list):
        hosts = [host for raw in raw_hosts if (host := _readable(Party, raw))]
    else:
        hosts = []
    parties = [party for party in (guest, *hosts) if party]
    if raw_hosts == []:
        problems.append(Remark("no_hosts", {"file": file.name}))
    linked = "link" in data
    problems += _party_problems(file.name, parties, linked)
    problems += _name_problems(file.name, parties, label)
    problems += _time_problems(file.name, guest, label, data.get("time", ""))
    if check_tables:
        problems += _table_problems(file, parties[:1] if linked and guest else parties, guest, label)
    if problems:
        raise FederationError(problems=capped(problems))
    return Federation.model_validate(data | {"folder": file.parent})


def write_federation(federation: Federation, folder: Path) -> Path:
    """Write ``federation.toml`` into `folder` (made if missing) and return its path; no party's file is touched."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE_NAME
    data = federation.model_dump(mode="json")
    if federation.label.task == "binary":
        del data["label"]["task"]
    for party in (data["guest"], *data["hosts"]):
        if not party["reporting_agency"]:
            del party["reporting_agency"]
    file.write_text(tomli_w.dumps(_without_blanks(data)), encoding="utf-8")
    return file


def capped(problems: Sequence[Remark]) -> list[Remark]:
    """Return the first `MAX_PROBLEMS` problems and a count of the rest."""
    n_more = len(problems) - MAX_PROBLEMS
    if n_more <= 0:
        return list(problems)
    return [*problems[:MAX_PROBLEMS], Remark("more_problems", {"rest": n_more})]


def _without_blanks(value: Any) -> Any:
    """Omit empty texts, lists, tables and None, which are the defaults; an empty list of `measures` is a Host that agrees to nothing."""
    if isinstance(value, dict):
        filled = {
            key: item
            for key, item in value.items()
            if item not in ("", [], {}, None) or (key, item) == ("measures", [])
        }
        return {key: _without_blanks(item) for key, item in filled.items()}
    if isinstance(value, list):
        return [_without_blanks(item) for item in value]
    return value


def _readable(model: type[Part], data: object) -> Part | None:
    """Return a part of the file if it is valid on its own, so that all problems are found at once."""
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


def _party_problems(file: str, parties: Sequence[Party], linked: bool) -> list[Remark]:
    problems = []
    for party in parties:
        where = {"file": file, "party": party.name}
        if not party.features:
            problems.append(Remark("party_without_features", where))
        if not party.file and not (linked and party is not parties[0]):
            problems.append(Remark("party_without_table", where))
        if _leads_out(party.file):
            problems.append(Remark("table_outside_folder", {**where, "table": shown(party.file)}))
    return problems


def _leads_out(file: str) -> bool:
    """Return whether a path is absolute, climbs with ``..`` or holds control characters."""
    path = PureWindowsPath(file)  # reads both kinds of slashes and drive letters
    return bool(path.drive or path.root or ".." in path.parts or not file.isprintable())


def _name_problems(file: str, parties: Sequence[Party], label: Label | None) -> list[Remark]:
    problems = []
    for name, count in Counter(party.name for party in parties).items():
        if count > 1:
            problems.append(Remark("party_name_repeated", {"file": file, "party": shown(name), "count": count}))
    holders: dict[str, list[str]] = {}
    for party in parties:
        for feature in party.features:
            holders.setdefault(feature.name, []).append(party.name)
            if feature.name == party.id or (label and party is parties[0] and feature.name == label.column):
                if feature.name == party.id:
                    role = "id_column"
                else:
                    role = "label_column"
                values = {"file": file, "party": party.name, "feature": shown(feature.name), "role": Remark(role)}
                problems.append(Remark("feature_has_other_role", values))
    for name, holder in holders.items():
        parties_of = tuple(dict.fromkeys(holder))
        if len(parties_of) > 1:
            values = {"file": file, "feature": shown(name), "parties": parties_of}
            problems.append(Remark("feature_at_two_parties", values))
        elif len(holder) > 1:
            values = {"file": file, "feature": shown(name), "party": holder[0]}
            problems.append(Remark("feature_twice_at_party", values))
    return problems


def _time_problems(file: str, guest: Party | None, label: Label | None, time: object) -> list[Remark]:
    """Return a time column that is something else already; what is in it is checked when it is read."""
    if not isinstance(time, str) or not time or guest is None:
        return []
    roles = {guest.id: "id_column"}
    if label:
        roles[label.column] = "label_column"
    for feature in guest.features:
        roles[feature.name] = "feature_column"
    if time not in roles:
        return []
    return [Remark("time_has_other_role", {"file": file, "time": shown(time), "role": Remark(roles[time])})]


def _table_problems(file: Path, parties: Sequence[Party], guest: Party | None, label: Label | None) -> list[Remark]:
    problems: list[Remark] = []
    ids: dict[str, frozenset[str]] = {}
    for party in parties:
        path = file.parent / party.file
        if _leads_out(party.file):
            continue
        # resolve() raises if links go in a circle
        if not Path(os.path.realpath(path)).is_relative_to(file.parent.resolve()):
            values = {"file": file.name, "party": party.name, "table": shown(party.file)}
            problems.append(Remark("table_linked_outside", values))
            continue
        read = read_party_file(path, party.id, party.features, label if party is guest else None)
        problems += read.problems
        if read.ids:
            ids[party.name] = frozenset(read.ids)
    if guest and guest.name in ids:
        for party in parties:
            if party is not guest and party.name in ids and not ids[party.name] & ids[guest.name]:
                values = {"file": party.file, "name": shown(party.id), "guest_file": guest.file}
                problems.append(Remark("no_common_ids", values))
    return problems
