"""What a Host's operator does at the Host: decides on requests, sees models with its own splits, budgets, and answers about a person.

Runs where the Host's folder is, on that folder alone. Knows no label, no leaf weight and nothing else of a Guest's. Whatever is asked for
on a page the user is checked first: if the folder wants a sign-in, only an account in the role of an operator is let in
(docs/decisions/who-decides.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from backend import __version__
from backend.crypto.signing import SigningKey
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.data.table import PartyTable, read_table, records_version
from backend.errors import (
    GlassleafError,
    ModelError,
    NotAvailable,
    ParameterError,
    SecurityError,
    SignInError,
    StoreError,
)
from backend.i18n import Text
from backend.link.agreement import Agreement, load_agreement, named_share
from backend.link.config import HostConfig, load_config
from backend.protocols.approvals.messages import IMPORT, SCORING, TRAINING
from backend.protocols.group_sums.disclosure_bound import NAMED
from backend.protocols.group_sums.messages import AskGroupSums
from backend.protocols.host_half import host_half, is_current, load_half, rows_of, sampled_rows
from backend.protocols.host_state import HostModels
from backend.protocols.purposes.protocol import ADMITS
from backend.protocols.scoring.dither import DITHER as DITHER_WIDTH
from backend.protocols.scoring.dither import usual_dither
from backend.protocols.terms.approvals import OPERATOR, Approvals
from backend.protocols.terms.noise import HostNoise
from backend.protocols.terms.prices import book_approved, usual_max_bits
from backend.remark import Remark
from backend.services.accounts import Account, Accounts
from backend.services.cache import Cache
from backend.services.holdings import Holding, at_host
from backend.services.host_live import HostLive, ask_stop, read_live
from backend.services.pack_files import HomeKeys, Label, Passphrase, home_keys, packed, unpacked
from backend.services.reconciliation import exported
from backend.services.request_facts import (
    Counterparts,
    Fact,
    Proposal,
    ToldApart,
    facts_of,
    proposal_of,
    sealed_fact,
    told_apart,
)
from backend.services.roles import titles_of
from backend.store.accountant import (
    GROUPS,
    KINDS,
    QUERIES,
    QUERIES_SYNTHETIC,
    SOURCE,
    TABLE,
    Accountant,
    Answered,
    GivenOnDay,
    Limits,
    usual_limit,
)
from backend.store.approvals import GRANTED, WAITING, Approval
from backend.store.audit_log import Entry, Verdict
from backend.store.database import FILE, Database, party_database
from backend.store.host_rows import DITHER, approval_of, host_rows, write_host_rows
from backend.store.key_file import kept_key
from backend.store.model_rows import Rows
from backend.store.party_store import PartyStore
from backend.store.receipts import Receipt, Receipts
from backend.store.request_log import RequestLog
from backend.store.schema import LoggedRow
from backend.trees.ensemble import HostModel, SplitRule
from backend.trees.serialization import load_host, structure_hash

WEEK = 7  # days of what was given that are drawn
CONFIG = "host.toml"
DRAINING = "draining"
SIGNING = "signing.key"
TOLD_APART: Cache[ToldApart | None] = Cache(64)  # by folder and structure: neither the trees nor the folder change
RECORDS: Cache[int] = Cache(64)  # by folder: how many records
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class OwnSplit:
    """A split of the Host's own, with its threshold: for the Host's operator, never sent.

    Attributes
    ----------
    feature : Feature or None
        As the Host's dictionary has it; None if that is not here.
    """

    tree: int
    node: int
    name: str
    feature: Feature | None
    rule: SplitRule


@dataclass(frozen=True)
class Request:
    """A request as its operator sees it.

    Attributes
    ----------
    expired : bool
        A grant whose last day is over.
    used_today : int
        Of its volume, today.
    splits : tuple of OwnSplit
        Of the requested model; none of a training, or if the partial model is gone.
    limits : Limits
        What an answer costs: how many of them a person has.
    naming_share : float
        Share of a group's people whom one answer could name to a Guest that lies; 0 = no sums by group are asked for, or it is not limited.
    guest : Text
        Title of the company that asks.
    facts : tuple of Fact
        What its operator reads before deciding.
    proposal : Proposal
        Terms that the request needs.
    scores : Proposal or None
        Terms for scores with the model of a training; None if it is not a training.
    """

    approval: Approval
    expired: bool
    used_today: int
    splits: tuple[OwnSplit, ...]
    limits: Limits
    naming_share: float
    guest: Text
    facts: tuple[Fact, ...]
    proposal: Proposal
    scores: Proposal | None


@dataclass(frozen=True)
class HostedModel:
    """A model whose partial model this Host keeps.

    Attributes
    ----------
    structure : str
        The hash that answers and grants are counted for, under any name of the model; it stays with the Host.
    capacity : float
        What all answers about it can tell about one record here at most, bits.
    purposes : tuple of str
        For which it may be asked about today.
    agreed_name : str
        Its name in an agreement's list of models, for which no operator is asked.
    sealed : Remark or None
        That it is kept sealed, and up to which share of scores that fit one path; None if it is open.
    """

    id: str
    guest: str
    structure: str
    trees: int
    splits: tuple[OwnSplit, ...]
    capacity: float
    purposes: tuple[str, ...]
    agreed_name: str
    sealed: Remark | None


@dataclass(frozen=True)
class UnpackedHalf:
    """A half of a model that was stored from a pack.

    Attributes
    ----------
    approved : tuple of str
        Purposes for which approvals came along and hold.
    to_be_asked_again : int
        Approvals that another key had signed: the Guest asks, and this home's operator decides.
    """

    model: str
    guest: str
    approved: tuple[str, ...]
    to_be_asked_again: int


@dataclass(frozen=True)
class PersonBudget:
    """How often this Host has answered about a person within its window, and how much more it may.

    Attributes
    ----------
    told : float
        Upper bound of what they tell, bits.
    left : dict of str to int
        Kind of answer → how many more, over all Guests and models; -1 = no limit.
    """

    person: str
    answers: tuple[Answered, ...]
    told: float
    left: dict[str, int]
    limits: Limits


def operators(run: Callable[Concatenate[HostOperator, P], R]) -> Callable[Concatenate[HostOperator, P], R]:
    """Return a method that checks each time that the caller is the Host's operator, since a sign-in may have ended."""

    @wraps(run)
    def checked(self: HostOperator, /, *args: P.args, **options: P.kwargs) -> R:
        self.require()
        return run(self, *args, **options)

    return checked


class HostOperator:
    """One Host, for its operator.

    Parameters
    ----------
    name : str
        The Host's.
    folder : Path
        Of its keys.
    features : sequence of Feature
        Its dictionary; may be empty.
    limits : Limits
        Of its account.
    who : callable
        Returns the current operator, for the Host's own log; raises SignInError if the user is none.
    decides : bool
        Whether the operator is asked; a simulated Host's is not, unless its federation file says so.
    naming_share : float
        As of :class:`backend.protocols.terms.floors.Floors`.
    counterparts : Counterparts
        What is agreed with those who ask.
    read_records : callable, optional
        Reads the Host's records, to measure what a model's own splits tell apart; None if they are not here.
    limits_for : callable, optional
        Number of the Host's records → its limits with the default for bits, which follows from it; None = `limits` as they are.
    read_sampled : callable, optional
        Reads the Host's records, with their version and the width of its dither, for an auditor; None if they are not here.
    federation : str
        Of a simulated Host its federation, of another the SPIFFE id of its Guest: to whom its models belong.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        database: Database,
        features: Sequence[Feature],
        limits: Limits,
        who: Callable[[], str],
        decides: bool = True,
        naming_share: float = NAMED,
        counterparts: Counterparts = Counterparts(),  # noqa: B008 - it is frozen
        read_records: Callable[[], PartyTable] | None = None,
        limits_for: Callable[[int], Limits] | None = None,
        read_sampled: Callable[[], tuple[PartyTable, str, float]] | None = None,
        federation: str = "",
    ) -> None:
        self._read_sampled = read_sampled
        self._counterparts = counterparts
        self._read_records = read_records
        self.name = name
        self.require = who
        self.limits = limits
        self.decides = decides
        self._named = naming_share
        self._folder = folder
        self._database = database
        self.features = {feature.name: feature for feature in features}
        numbers, _ = kept_key(folder / SIGNING, lambda: SigningKey.generate().to_numbers())
        self._signing = SigningKey.from_numbers(numbers)
        self._federation = federation
        self._limits_for = limits_for
        self._approvals = Approvals(name, database, self._signing, charge=self._charge)
        self._account = Accountant(database, limits)
        self._store = PartyStore(database)

    def __repr__(self) -> str:
        return f"HostOperator({self.name})"

    def _charge(self, training: Approval) -> None:
        """Book what a training costs as it is approved; raises as :func:`backend.protocols.terms.prices.book_approved`."""
        if self._limits_for is None:
            limits = self.limits
        else:
            limits = self._limits_for(training.about["rows"])
        book_approved(Accountant(self._database, limits), training)

    @property
    @operators
    def max_bits(self) -> float:
        """Return what all answers within a window may tell about a person, bits; 0 = not limited, or the records cannot be read."""
        limits_for = self._limits_for
        records = self._records()
        if limits_for is None or records is None:
            return self.limits.bits
        return limits_for(records).bits

    def _records(self) -> int | None:
        """Return how many records the Host has, counted once a process; None if they cannot be read."""
        read = self._read_records
        if read is None:
            return None
        try:
            return RECORDS.get(self._folder, lambda: len(read().ids))
        except GlassleafError:  # the page is shown all the same
            return None

    @property
    @operators
    def title(self) -> Text:
        """Return what the Host is called, or its name."""
        return self._counterparts.title(self.name)

    @operators
    def title_of(self, party: str) -> Text:
        """Return what another party is called, or its name."""
        return self._counterparts.title(party)

    @operators
    def requests(self, *, waiting: bool = False) -> tuple[Request, ...]:
        """Return every request, or those that wait, newest first."""
        return tuple(
            self._request(approval)
            for approval in self._approvals.book.all()
            if not waiting or approval.state == WAITING
        )

    @operators
    def request(self, number: int) -> Request:
        """Return one request; raise ParameterError if no request has that number."""
        return self._request(self._approvals.book.get(number))

    def _request(self, approval: Approval) -> Request:
        book = self._approvals.book
        if approval.purpose == TRAINING:
            model = None
        else:
            model = self._model(approval)
        splits = () if model is None else self._splits(model)
        sums = any(AskGroupSums in kinds for purpose, kinds in ADMITS.items() if purpose == approval.purpose)
        if sums and not self.limits.synthetic:
            naming_share = self._named
        else:
            naming_share = 0.0
        split_names = [split.name for split in splits]
        today = book.today()
        scores = None
        if approval.purpose == TRAINING:
            scoring = Approval(approval.guest, SCORING, "", "", {})
            scores = proposal_of(scoring, self._counterparts, self.limits, today)
        return Request(
            approval=approval,
            expired=approval.expired(today),
            used_today=book.used(approval.number),
            splits=splits,
            limits=self.limits,
            naming_share=naming_share,
            guest=self._counterparts.title(approval.guest),
            facts=facts_of(
                approval,
                self._counterparts,
                self.features,
                split_names,
                self.limits,
                naming_share,
                self._told_apart(approval, model),
                self._records() or 0,
            ),
            proposal=proposal_of(approval, self._counterparts, self.limits, today),
            scores=scores,
        )

    def _told_apart(self, approval: Approval, model: HostModel | None) -> ToldApart | None:
        """Return what a model's own splits tell apart here, measured once a process; None if the records cannot be read."""
        read = self._read_records
        if model is None or read is None:
            return None
        try:
            return TOLD_APART.get((self._folder, approval.subject), lambda: told_apart(model, read()))
        except GlassleafError:  # the request is shown all the same
            return None

    @operators
    def approve(self, number: int, until: date, per_day: int, scores: tuple[date, int] | None = None) -> Request:
        """Allow a request up to a day and a volume; see :meth:`backend.protocols.terms.approvals.Approvals.approve`."""
        return self._request(self._approvals.approve(number, self.require(), until, per_day, scores))

    @operators
    def deny(self, number: int, because: str) -> Request:
        """Refuse a request that waits; the Guest reads why."""
        return self._request(self._approvals.deny(number, self.require(), because))

    @operators
    def withdraw(self, number: int, because: str) -> Request:
        """End a grant at once; the Guest reads why."""
        return self._request(self._approvals.withdraw(number, self.require(), because))

    @operators
    def models(self) -> tuple[HostedModel, ...]:
        """Return every model with a partial model here that can be read, by id."""
        today = self._approvals.book.today()
        granted = dict[str, list[str]]()
        for approval in self._approvals.book.all():
            if approval.state == GRANTED and not approval.expired(today):
                granted.setdefault(approval.subject, []).append(approval.purpose)
        halves = HostModels(self.name, self._store)
        out: list[HostedModel] = []
        for model_id in self._store.model_ids():
            model = self._stored(model_id)
            if model is not None:
                structure = structure_hash(model)
                purposes = tuple(sorted(set(granted.get(structure, ()))))
                splits = self._splits(model)
                about = model.guest, structure, len(model.skeletons), splits
                name = self._store.agreed_name(structure)
                found_sealed = halves.sealed(model_id)
                if found_sealed is None:
                    sealed = None
                else:
                    sealed = sealed_fact(found_sealed.most_named)
                out.append(HostedModel(model_id, *about, model.capacity, purposes, name, sealed))
        return tuple(out)

    def _model(self, approval: Approval) -> HostModel | None:
        """Return the half that a request is about: an import is not stored before it is allowed."""
        if approval.purpose == IMPORT:
            return load_host(str(approval.about["partial_model"]))
        return self._stored(approval.name)

    def _stored(self, model_id: str) -> HostModel | None:
        try:
            return load_host(self._store.artefact(model_id))
        except ModelError:
            return None

    def _splits(self, model: HostModel) -> tuple[OwnSplit, ...]:
        return tuple(
            OwnSplit(tree, node, rule.feature, self.features.get(rule.feature), rule)
            for (tree, node), rule in sorted(model.rules.items())
        )

    @operators
    def budget(self, person: str) -> PersonBudget:
        """Return how often it has answered about a person, and how much more it may."""
        _check_id(person)
        answers = tuple(self._account.about(person))
        remaining = dict[str, int]()
        for kind in KINDS:
            if kind not in (GROUPS, TABLE, SOURCE):
                limit = self.limits.of(kind)[1]
                n_answers = sum(answer.times for answer in answers if answer.kind == kind)
                if self.limits.counted:
                    remaining[kind] = max(0, limit - n_answers)
                else:
                    remaining[kind] = -1
        return PersonBudget(person, answers, self._account.given_away((person,))[person], remaining, self.limits)

    @operators
    def left(self, person: str) -> tuple[Holding, ...]:
        """Return what this Host's database holds and has answered about a person (GDPR Art. 15); looking is logged, without the id."""
        _check_id(person)
        holdings = tuple(at_host(self._database, self.name, person))
        self._note("person", {"person": self._store.pseudonym(person).strip()})
        return holdings

    @operators
    def answered(self) -> tuple[int, float]:
        """People answered about within the window, and the largest bound among them, bits."""
        return self._account.largest_given_away()

    @operators
    def given_by_day(self) -> tuple[GivenOnDay, ...]:
        """Return what was answered in the last seven days, by day, oldest first."""
        return self._account.given_by_day(WEEK)

    @operators
    def receipts(self) -> tuple[Receipt, ...]:
        """Return what it sent and took, conversation by conversation, newest first."""
        return tuple(receipt for receipt in Receipts(self._database).all() if receipt.party == self.name)

    @operators
    def entries(self) -> list[Entry]:
        """Return the Host's own log, oldest first."""
        return self._approvals.log.entries()

    @operators
    def verify_log(self) -> Verdict:
        """Check the chain of the Host's own log; nobody else keeps its heads."""
        return self._approvals.log.verify({})

    @operators
    def sample(self, others: Sequence[str] = ()) -> str:
        """Return this Host's half of its sample of answers, and of `others`, halves of other Hosts, for an auditor.

        It holds values of the people in the sample and this Host's partial models; that it was made is logged.

        Raises
        ------
        NotAvailable
            If the Host's records are not here.
        SecurityError
            If one of the others is no half.
        """
        if self._read_sampled is None:
            raise NotAvailable(self.name, Remark("its_records"))
        table, version, width = self._read_sampled()
        account = Accountant(self._database, self.limits, version)
        models = HostModels(self.name, self._store)

        def changed(row: LoggedRow) -> bool:
            return not is_current(account, models, row)

        rows = [row for text in others for row in rows_of(load_half(text))]
        sample_rows = sampled_rows(RequestLog(self._database), rows)
        half = host_half(self.name, sample_rows, models, table, HostNoise(width, self._store.secret), changed)
        self._note("sample", {"rows": len(half.rows), "sums": len(half.sums)})
        return half.dump()

    @operators
    def home_keys(self) -> HomeKeys:
        """Return the public keys of this Host's home, for one who packs a model for it, or unpacks one of it."""
        return home_keys(self._folder, self._signing)

    @operators
    def pack(self, model_id: str, key: Passphrase | str) -> bytes:
        """Return a pack of this Host's half of a model; what its operator allowed about it goes along, and ends here once it is stored.

        Parameters
        ----------
        key : Passphrase or str
            Or the public key of the home that is to open it, in hexadecimal.

        Raises
        ------
        ModelError
            If the half is not here.
        ParameterError
            If the passphrase is too short, or the key is none.
        NotAvailable
            If the Host's records are not here.
        """
        model = load_host(self._store.artefact(model_id))
        if not self.limits.synthetic:
            # Drawn now if no person was scored yet: both homes add the same dither to a person's score.
            self._store.secret(DITHER)
        with self._database.read() as session:
            rows = host_rows(session, model_id, structure_hash(model), model.guest)
        file = packed(self._label(model_id), self._records_version(), rows, self._signing, key)
        self._note("pack", {"model": model_id, "pack_sha256": sha256(file).hexdigest()})
        return file

    @operators
    def end_approvals(self, model_id: str, because: str) -> int:
        """Withdraw all that is allowed about a model that has moved to another home of this Host; returns how many approvals."""
        structure = structure_hash(load_host(self._store.artefact(model_id)))
        granted = []
        for candidate in self._approvals.book.all():
            if candidate.subject == structure and candidate.state == GRANTED:
                granted.append(candidate)
        for approval in granted:
            if approval.number is not None:
                self.withdraw(approval.number, because)
        return len(granted)

    @operators
    def unpack(self, file: bytes, passphrase: Passphrase | None = None, sender: str = "") -> UnpackedHalf:
        """Store a half from a pack of this Host; nothing is written unless all of it is.

        What was allowed holds here if this home signs with the key that allowed it; otherwise the Guest asks again.

        Raises
        ------
        ParameterError, SecurityError
            See :func:`backend.services.pack_files.unpacked`; or the half is here already, or dither follows from another secret here.
        """
        label, rows = unpacked(file, self._label(""), self._folder, passphrase, sender, self._records_version)
        model = _half_of(label, rows, self.name)
        approvals = rows["approvals"]
        granted = [
            row for row in approvals if row["state"] == GRANTED and self._approvals.is_own(approval_of(row), row)
        ]
        ended = [row for row in approvals if row["state"] not in (GRANTED, WAITING)]
        lost = sum(row["state"] == GRANTED for row in approvals) - len(granted)
        rows["approvals"] = [row for row in approvals if row in granted or row in ended]
        with self._database.write() as session:
            write_host_rows(session, rows, label.model, self._approvals.sign)
            body = {"model": label.model, "pack_sha256": sha256(file).hexdigest(), "sender": label.sender}
            self._note("unpack", body | {"approvals": len(granted), "to_be_asked_again": lost})
        return UnpackedHalf(label.model, model.guest, tuple(row["purpose"] for row in granted), lost)

    def _label(self, model_id: str) -> Label:
        return Label(
            version=__version__,
            role="host",
            federation=self._federation,
            party=self.name,
            model=model_id,
            sender=self._signing.public,
        )

    def _records_version(self) -> str:
        if self._read_sampled is None:
            raise NotAvailable(self.name, Remark("its_records"))
        return self._read_sampled()[1]

    @operators
    def export(self) -> str:
        """Return the log and all receipts as lines of JSON, for :mod:`backend.services.reconciliation`; exporting is logged, too."""
        self._note("export", {"what": "audit"})
        return exported(self.name, self._approvals.log.export(), Receipts(self._database))

    def _note(self, action: str, body: dict[str, Any]) -> None:
        self._approvals.log.add(action, body, self.require(), OPERATOR)

    def note_sign_in(self, way: str) -> None:
        """Log that the operator signed in, by `way` (the identity provider's name)."""
        self._note("sign-in", {"way": way})

    @property
    @operators
    def draining(self) -> bool:
        """Return whether it takes on nothing new."""
        return (self._folder / DRAINING).exists()

    @operators
    def drain(self, *, end: bool = False) -> bool:
        """Have the Host take on nothing new, over restarts, too; or `end` that. Returns whether that changed anything."""
        flag = self._folder / DRAINING
        changed = self.draining == end
        if changed:
            self._note("drain", {"ended": end})
            if end:
                flag.unlink(missing_ok=True)
            else:
                flag.touch()
        return changed

    @property
    @operators
    def live(self) -> HostLive | None:
        """Return links and open work of the process that answers; None if none runs, as for a simulated Host."""
        return read_live(self._folder)

    @operators
    def stop(self, id_: str) -> None:
        """Have the Host answer nothing more of work that runs; raises as :func:`backend.services.host_live.ask_stop`."""
        ask_stop(self._folder, id_)
        self._note("stop", {"name": id_[:12]})

    def close(self) -> None:
        """Release the database."""
        self._database.close()


def _half_of(label: Label, rows: Rows, host: str) -> HostModel:
    """Return the half in a pack; raises SecurityError if it is not this Host's."""
    try:
        texts = {row["model_id"]: row["text"] for row in rows["artefacts"]}
        model = load_host(texts[label.model])
    except (KeyError, TypeError, ValueError):
        raise SecurityError("pack_not_opened") from None
    if model.host != host:
        raise SecurityError("pack_not_opened")
    return model


def _check_id(person: str) -> None:
    if not person or person != person.strip():
        raise ParameterError("not_an_id", id=person[:80])


def own_host(folder: Path, actor: str, user: Mapping[str, Any] | None = None) -> HostOperator:
    """Return a Host at its own company.

    `folder` holds ``host.toml``. Without one it holds a Host's store and signing key, and has the Host's name.

    Parameters
    ----------
    folder : Path
        Or the ``host.toml`` in it, whatever it is called.
    actor : str
        The Host's operator for its log, if no sign-in is needed.
    user : mapping of str to object, optional
        On a page: what is known of the session's sign-in (:meth:`backend.services.accounts.Accounts.of_session`).
        None = in a shell: any user who can reach the folder.

    Raises
    ------
    SignInError
        The folder wants a sign-in, and `user` is no operator.
    FederationError
        ``host.toml`` cannot be used.
    StoreError
        There is neither.
    """
    folder, file = host_files(folder)

    def who() -> str:
        account = None if user is None else operator_of(folder, user)
        return account.actor if account else actor

    who()  # before anything of the Host's is read
    if file.exists():
        config = load_config(file)
        database = Database(config.store_url())
        signed = config.path(config.agreement)
        if signed.exists():
            agreement = load_agreement(signed)
        else:
            agreement = None
        if agreement is None:
            naming_share = NAMED
        else:
            naming_share = named_share(agreement)
        about = config.party, config.path(config.keys), database, config.features(), limits_of(config, agreement)
        counterparts = Counterparts.of_agreement(agreement)
        return HostOperator(
            *about,
            who,
            naming_share=naming_share,
            counterparts=counterparts,
            read_records=partial(_records_of, config),
            limits_for=partial(limits_of, config, agreement),
            read_sampled=partial(_sampled_of, config, agreement),
            federation="" if agreement is None else agreement.guest.spiffe,
        )
    if not (folder / FILE).exists():
        raise StoreError("no_host_folder", folder=folder.absolute(), config=CONFIG, store=FILE)
    return HostOperator(folder.resolve().name, folder, Database(folder), (), Limits(), who)


def _records_of(config: HostConfig) -> PartyTable:
    """Read the records of a Host at its own company."""
    from backend.services.host_service import read_source  # noqa: PLC0415 (extra link)

    return read_source(config)[0]


def _sampled_of(config: HostConfig, agreement: Agreement | None) -> tuple[PartyTable, str, float]:
    """Read the records of a Host at its own company, their version, and the width of its dither."""
    from backend.services.host_service import dither_of, read_source  # noqa: PLC0415 (extra link)

    if agreement is None:
        width = DITHER_WIDTH
    else:
        width = dither_of(config, agreement)
    return (*read_source(config), width)


def host_files(place: Path) -> tuple[Path, Path]:
    """Return a Host's folder and its ``host.toml``, of either of them."""
    if place.suffix == ".toml":
        return (place.parent, place)
    return (place, place / CONFIG)


def operator_of(folder: Path, user: Mapping[str, Any]) -> Account | None:
    """Return the account that operates a Host's console; None if no sign-in is needed.

    Raises
    ------
    SignInError
        See :meth:`backend.services.accounts.Accounts.of_session`; or the account is in other roles only.
    """
    account = Accounts(host_files(folder)[0]).of_session(user)
    if account is not None and OPERATOR not in account.roles:
        raise SignInError("console_for_operators", roles=titles_of(account.roles))
    return account


def limits_of(config: HostConfig, agreement: Agreement | None, records: int = 0) -> Limits:
    """Return what is answered about a person: what the Host allows, or what any purpose of the agreement does, if that is less.

    Parameters
    ----------
    records : int
        Of the Host; without them there is no default for bits.
    """
    synthetic = agreement is not None and agreement.synthetic
    host_budget = config.limits.budget
    if host_budget is None:  # no environment variable: nothing but the two files loosens what a real Host allows
        host_budget = QUERIES_SYNTHETIC if synthetic else QUERIES
    purposes = () if agreement is None else agreement.purposes
    budgets = [host_budget, *(purpose.floors.budget for purpose in purposes)]
    limited = [budget for budget in budgets if budget]
    bits = config.limits.max_bits
    if bits is None:
        if records and not synthetic:
            bits = usual_max_bits(len(config.features()), records)
        else:
            bits = 0.0
    return Limits(min(limited, default=0), config.limits.budget_total, bits, synthetic=synthetic)


def simulated_host(home: Path, federation: Federation, host: str, actor: str) -> HostOperator:
    """Return a simulated Host, for the operator of the simulation.

    Raises
    ------
    ParameterError
        The Host does not exist.
    """
    if host not in [party.name for party in federation.hosts]:
        host_names = [party.name for party in federation.hosts]
        raise ParameterError("unknown_host", name=host, federation=federation.name, known=tuple(host_names))
    party = federation.party(host)
    folder = home / "parties" / federation.name / host
    if party.budget is None:
        answers = usual_limit(federation.synthetic)
    else:
        answers = party.budget
    limits = Limits(answers, party.budget_total, party.max_bits or 0.0, synthetic=federation.synthetic)

    def limits_for(records: int) -> Limits:
        """Return the limits with the default for bits, as :class:`backend.protocols.simulation.simulator.SimulatedFederation` has it."""
        if party.max_bits is not None or federation.synthetic:
            return limits
        return replace(limits, bits=usual_max_bits(len(party.features), records))

    database = party_database(folder, federation.name, host)
    about = host, folder, database, party.features, limits
    naming_share = 0.0 if federation.synthetic else NAMED
    counterparts = Counterparts.of_federation(federation)
    asks = party.approval == "ask"
    read = partial(read_table, federation, host)

    def read_sampled() -> tuple[PartyTable, str, float]:
        if party.dither is None:
            width = usual_dither(federation.synthetic)
        else:
            width = party.dither
        content = sha256((federation.folder / party.file).read_bytes()).hexdigest()
        return read(), records_version(content, party.features), width

    return HostOperator(
        *about, lambda: actor, asks, naming_share, counterparts, read, limits_for, read_sampled, federation.name
    )
