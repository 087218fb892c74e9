"""What companies have agreed to: one file that every party signs. Its hash stands in every frame; a Host answers nothing beyond it.

The file is TOML (`agreement.toml`). What is signed is its canonical JSON without the signatures, as a JWS in general JSON serialisation
(RFC 7515 §7.2.1); the Ed25519 signature of each party (RFC 9864) is a table at the end of the file, so that one file goes round.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from cryptography import x509
from pydantic import Field, StringConstraints, field_validator, model_validator

from backend.data.bounded_text import parse_toml, read_bounded
from backend.data.dictionary import Feature
from backend.data.federation import Slug
from backend.data.label import Line, Prose, Title
from backend.data.strict_model import FieldError, StrictModel
from backend.errors import FederationError, ParameterError, SecurityError
from backend.link.config import MAX_FILE, MaybeAddress, read_form
from backend.link.identity import Role, host_name
from backend.link.kinds import ALWAYS, all_kinds, kinds_of
from backend.ops.atomic_file import write_whole
from backend.protocols.group_sums.disclosure_bound import NAMED
from backend.protocols.group_sums.messages import AskGroupSums
from backend.protocols.terms.floors import Floors

if TYPE_CHECKING:
    from backend.link.identity import PartyKeys

ALGORITHM = "Ed25519"
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
MaybeHash = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]
Hours = Annotated[str, StringConstraints(pattern=r"^(([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d)?$")]
Base64 = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,2000}$")]
SIGNATURES = "[[signatures]]"  # how each signature begins in the file
NOTE = "# What follows is written by `glassleaf agreement sign`."


class Signature(StrictModel):
    """One party's signature, as a JWS has it: header and signature in base64url."""

    protected: Base64
    signature: Base64


class AgreedParty(StrictModel):
    """One party, all of it public: what `glassleaf keys show` prints for others.

    Attributes
    ----------
    role : {"guest", "host"}
    spiffe : str
        Whom its certificates name.
    bundle : str
        Its root's certificates, PEM; nobody else's root vouches for it.
    signing, sealing : str
        Public keys, Ed25519 and X25519, in hexadecimal.
    address : str
        host:port where it listens; empty = it dials out.
    """

    name: Slug
    title: Title
    role: Role
    spiffe: str
    bundle: str
    signing: Hash
    sealing: Hash
    address: MaybeAddress = ""

    @field_validator("spiffe")
    @classmethod
    def _is_spiffe(cls, value: str) -> str:
        try:
            host_name(value)
        except ParameterError as error:
            raise FieldError("expected_spiffe") from error
        return value

    @field_validator("bundle")
    @classmethod
    def _is_pem(cls, value: str) -> str:
        try:
            x509.load_pem_x509_certificates(value.encode())
        except ValueError as error:
            raise FieldError("expected_pem") from error
        return value


class PurposeFloors(StrictModel):
    """What a Host insists on for a purpose; its own configuration may be stricter.

    Attributes
    ----------
    key_bits : int
        Shortest Paillier key.
    budget : int
        Answers about a person in 28 days at most; 0 = not limited.
    dither : float
        Narrowest dither, width on the margin.
    group_size : int
        Fewest people in a group.
    named : float
        Share of a group's people whom sums could name at most to a Guest that marks people as it likes.
    """

    key_bits: Annotated[int, Field(ge=2048, le=8192)] = 3072
    budget: Annotated[int, Field(ge=0, le=1_000_000)] = 1
    dither: Annotated[float, Field(ge=0, le=0.25)] = 0.0625
    group_size: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    named: Annotated[float, Field(ge=0.01, le=NAMED)] = NAMED


class Purpose(StrictModel):
    """What may be asked, and why.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of message; how conversations open and end need not be named.
    dictionaries : dict of str to str
        Host → hash of the dictionary of what it discloses (:func:`dictionary_hash`).
    models : "ask" or tuple of str
        The Host's operator is asked for each model, or those that need no asking, as each Host names them (``glassleaf host models list``).
    sums : {"free", "ask"}
        Whether sums by group wait for the Host's operator and use a volume, as scores do; of any purpose that allows them "ask" counts.
    rows_per_day : int
        0 = not limited.
    hours : str
        ``08:00-18:00``, UTC; empty = at any time.
    retention_days : int
        How long the Guest keeps what it was answered.
    valid_until : date
        The last day, UTC.
    """

    name: Slug
    title: Title
    legal_basis: Title
    kinds: tuple[str, ...] = Field(min_length=1)
    dictionaries: dict[Slug, Hash]
    floors: PurposeFloors = PurposeFloors()
    models: Literal["ask"] | tuple[Hash, ...] = "ask"
    sums: Literal["free", "ask"] = "free"
    rows_per_day: Annotated[int, Field(ge=0)] = 0
    hours: Hours = ""
    retention_days: Annotated[int, Field(ge=1, le=36_500)]
    valid_until: date

    @field_validator("kinds")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(value) - all_kinds()):
            raise FieldError("expected_kinds", unknown=tuple(unknown))
        return value

    def is_open(self, now: datetime) -> bool:
        """Whether it may be asked at a moment: neither over nor outside its hours."""
        if now.astimezone(UTC).date() > self.valid_until:
            return False
        if not self.hours:
            return True
        start, end = (time.fromisoformat(part) for part in self.hours.split("-"))
        clock = now.astimezone(UTC).time()
        if start < end:
            return start <= clock < end
        return clock >= start or clock < end


class Agreement(StrictModel):
    """All of it.

    Attributes
    ----------
    valid_from, valid_until : date
        First and last day, UTC.
    previous : str
        Hash of the agreement that this one amends; empty = it is the first.
    auditor : str
        The auditor's public key, Ed25519 in hexadecimal; empty = there is none.
    synthetic : bool
        Whether all people are made up and need no protection; no other key, number or variable says so.
    parties : tuple of AgreedParty
        One Guest, and at least one Host.
    signatures : tuple of Signature
        Over all of it but them.
    """

    format: Literal[1] = 1
    title: Line
    valid_from: date
    valid_until: date
    previous: MaybeHash = ""
    auditor: MaybeHash = ""
    note: Prose = ""
    synthetic: bool = False
    parties: tuple[AgreedParty, ...] = Field(min_length=2, max_length=64)
    purposes: tuple[Purpose, ...] = Field(min_length=1, max_length=64)
    signatures: tuple[Signature, ...] = Field((), max_length=64, exclude=True)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for what in ("name", "spiffe", "signing", "sealing"):
            values = [getattr(party, what) for party in self.parties]
            if len(set(values)) != len(values):
                raise FieldError("expected_parties_apart", what=what)
        if [party.role for party in self.parties].count("guest") != 1:
            raise FieldError("expected_one_guest")
        if len({purpose.name for purpose in self.purposes}) != len(self.purposes):
            raise FieldError("expected_purposes_apart")
        hosts = {party.name for party in self.hosts}
        for purpose in self.purposes:
            if set(purpose.dictionaries) - hosts:
                raise FieldError("expected_dictionaries_of_hosts", purpose=purpose.name)
        for host in self.hosts:
            if not host.address and not self.guest.address:
                raise FieldError("expected_listener", host=host.name)
        return self

    @property
    def guest(self) -> AgreedParty:
        """The party that asks."""
        return next(party for party in self.parties if party.role == "guest")

    @property
    def hosts(self) -> tuple[AgreedParty, ...]:
        """The parties that answer."""
        return tuple(party for party in self.parties if party.role == "host")

    def party(self, name: str) -> AgreedParty:
        """Return the party of a name; raises SecurityError if the agreement has no such party."""
        for party in self.parties:
            if party.name == name:
                return party
        raise SecurityError("not_a_party", party=name)

    def party_of(self, spiffe: str) -> AgreedParty:
        """Return the party of a SPIFFE id; raises SecurityError if the agreement has no such party."""
        for party in self.parties:
            if party.spiffe == spiffe:
                return party
        raise SecurityError("not_a_party", party=spiffe)

    def allowed(self, now: datetime) -> frozenset[str]:
        """Kinds of message that any purpose allows at a moment, and how conversations open and end."""
        of_purposes = (kind for purpose in self.purposes if purpose.is_open(now) for kind in purpose.kinds)
        return frozenset(of_purposes) | frozenset(kinds_of(ALWAYS))

    @property
    def canonical(self) -> bytes:
        """What is signed: JSON without spaces, names sorted, ASCII only."""
        document = self.model_dump(mode="json")
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal."""
        return hashlib.sha256(self.canonical).hexdigest()


def floors_of(agreement: Agreement) -> Floors:
    """Return what a Host insists on under an agreement: the strictest of its purposes."""
    group_size = max(purpose.floors.group_size for purpose in agreement.purposes)
    return Floors(agreement.synthetic, group_size, named_share(agreement))


def named_share(agreement: Agreement) -> float:
    """The smallest share of a group's people that any purpose lets sums name."""
    return min(purpose.floors.named for purpose in agreement.purposes)


def asks_for_sums(agreement: Agreement) -> bool:
    """Return whether a purpose allows sums by group only after Hosts' operators have agreed."""
    return any(purpose.sums == "ask" and AskGroupSums.__name__ in purpose.kinds for purpose in agreement.purposes)


def dictionary_hash(features: Sequence[Feature]) -> str:
    """Return the SHA-256 over the features that a Host discloses; their order does not matter."""
    documents = [feature.model_dump(mode="json") for feature in features]
    documents.sort(key=lambda document: str(document["name"]))
    text = json.dumps(documents, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def load_agreement(path: Path) -> Agreement:
    """Read agreement.toml; raises FederationError with every problem, an unknown key among them."""
    return read_form(path, Agreement)


def sign(path: Path, identity: PartyKeys, amends: Path | None = None) -> tuple[str, ...]:
    """Add a party's signature at the end of the file, and return the names of those who have signed.

    Signatures over another text than the file has now are left out.

    Parameters
    ----------
    path : Path
        agreement.toml.
    amends : Path, optional
        The previous agreement, which has to be the one that this agreement names.

    Raises
    ------
    SecurityError
        The identity belongs to no party, its keys are not those of the agreement, the amendment does not name the previous agreement,
        or other text follows the signatures in the file.
    """
    agreement = load_agreement(path)
    party = agreement.party_of(identity.spiffe)
    same = party.signing == identity.signing.public and party.sealing == identity.sealing_public
    if not same or party.bundle.strip() != identity.bundle.decode().strip():
        raise SecurityError("agreement_keys_differ", party=party.name)
    check_amends(agreement, load_agreement(amends) if amends else None)
    signatures = []
    for signature in agreement.signatures:
        signer = signer_of(agreement, signature)
        if signer and signer != party.name:
            signatures.append(signature)
    signatures.append(_signature(agreement, identity))
    text = _signed_text(path, agreement, signatures)
    write_whole(path, text.encode())
    return signers(path)


def _signed_text(path: Path, agreement: Agreement, signatures: Sequence[Signature]) -> str:
    """Return the file's text up to its signatures, then `signatures`; raises SecurityError if other terms follow the file's signatures."""
    text = read_bounded(path, max_bytes=MAX_FILE).decode()
    body = text.partition(f"\n{SIGNATURES}")[0].rstrip().removesuffix(NOTE).rstrip()
    tables = []
    for signature in signatures:
        fields = f'protected = "{signature.protected}"\nsignature = "{signature.signature}"\n'
        tables.append(f"{SIGNATURES}\n{fields}")
    signed = "\n\n".join([body, NOTE, *tables])
    try:
        read_again = Agreement.model_validate(parse_toml(path.name, signed.encode()))
        is_same = read_again.hash == agreement.hash
    except (FederationError, ValueError):
        is_same = False
    if not is_same:
        raise SecurityError("signatures_not_last", file=path.name)
    return signed


def check_amends(agreement: Agreement, previous: Agreement | None) -> None:
    """Raise SecurityError unless an agreement names the previous one, or is the first."""
    if previous is None and agreement.previous:
        raise SecurityError("amends_not_named")
    if previous is not None and previous.hash != agreement.previous:
        raise SecurityError("amends_another", expected=agreement.previous, got=previous.hash)


def add_signatures(path: Path, agreement: Agreement, signatures: Sequence[Signature]) -> None:
    """Write signatures at the end of an agreement's file, unless the file has them or holds another agreement by now.

    Raises
    ------
    FederationError, SecurityError, OSError
        The file cannot be read or written, or other text follows the signatures in it.
    """
    on_file = load_agreement(path)
    if on_file.hash != agreement.hash:
        return
    by_signer = _valid_signatures(agreement, on_file.signatures)
    n_on_file = len(by_signer)
    for signer, signature in _valid_signatures(agreement, signatures).items():
        by_signer.setdefault(signer, signature)
    if len(by_signer) > n_on_file:
        text = _signed_text(path, agreement, list(by_signer.values()))
        write_whole(path, text.encode())


def _valid_signatures(agreement: Agreement, signatures: Sequence[Signature]) -> dict[str, Signature]:
    """Return the signatures that hold, by the party that made each."""
    by_signer = {}
    for signature in signatures:
        signer = signer_of(agreement, signature)
        if signer:
            by_signer[signer] = signature
    return by_signer


def signers(path: Path) -> tuple[str, ...]:
    """Return the parties that have signed the present agreement.toml, in the order of its parties."""
    agreement = load_agreement(path)
    signed = {signer_of(agreement, signature) for signature in agreement.signatures}
    return tuple(party.name for party in agreement.parties if party.name in signed)


def load_in_force(path: Path, party: str, now: datetime) -> Agreement:
    """Return the agreement that binds `party` at the time `now`.

    Raises
    ------
    SecurityError
        A party has not signed the present text, or the agreement is not valid at that time.
    """
    agreement = load_signed(path, party, now)
    signed = signers(path)
    missing = tuple(agreed_party.name for agreed_party in agreement.parties if agreed_party.name not in signed)
    if missing:
        raise SecurityError("agreement_not_signed", parties=missing)
    return agreement


def load_signed(path: Path, party: str, now: datetime) -> Agreement:
    """The agreement that `party` has signed; others may have to sign it yet, and nothing is asked or answered before they have.

    Raises
    ------
    SecurityError
        The party has not signed it as it stands, or it is not valid at that moment.
    """
    agreement = load_agreement(path)
    if agreement.party(party).name not in signers(path):
        raise SecurityError("agreement_not_signed_here", party=party)
    check_valid(agreement, now)
    return agreement


def check_valid(agreement: Agreement, now: datetime) -> None:
    """Raise SecurityError if an agreement is not valid at a moment."""
    today = now.astimezone(UTC).date()
    if today < agreement.valid_from:
        raise SecurityError("agreement_not_valid_yet", day=agreement.valid_from)
    if today > agreement.valid_until:
        raise SecurityError("agreement_ended", day=agreement.valid_until)


def days_left(agreement: Agreement, now: datetime) -> int:
    """Whole days until the agreement ends; negative afterwards."""
    return (agreement.valid_until + timedelta(days=1) - now.astimezone(UTC).date()).days - 1


def _payload(agreement: Agreement) -> str:
    from joserfc.util import urlsafe_b64encode  # noqa: PLC0415 - extra link

    return urlsafe_b64encode(agreement.canonical).decode()


def _signature(agreement: Agreement, identity: PartyKeys) -> Signature:
    from joserfc import jws  # noqa: PLC0415

    header = {"alg": ALGORITHM, "kid": identity.spiffe}
    key = _key(identity.signing.public, identity.signing.to_numbers()["secret"])
    signed: Any = jws.serialize_json([{"protected": header}], agreement.canonical, key, algorithms=[ALGORITHM])
    return Signature.model_validate(signed["signatures"][0])


def signer_of(agreement: Agreement, signature: Signature) -> str:
    """Return the party that made a signature over the present agreement; empty if no party did."""
    from joserfc import jws  # noqa: PLC0415
    from joserfc.errors import JoseError  # noqa: PLC0415

    for party in agreement.parties:
        value: Any = {"payload": _payload(agreement), **signature.model_dump()}
        try:
            verified: Any = jws.deserialize_json(value, _key(party.signing), algorithms=[ALGORITHM])
        except (JoseError, ValueError, TypeError, KeyError, AttributeError):
            continue
        if verified.headers().get("kid") == party.spiffe:
            return party.name
    return ""


def _key(public: str, secret: str = "") -> Any:
    from joserfc.jwk import OKPKey  # noqa: PLC0415
    from joserfc.util import urlsafe_b64encode  # noqa: PLC0415

    numbers: Any = {"kty": "OKP", "crv": "Ed25519", "x": urlsafe_b64encode(bytes.fromhex(public)).decode()}
    return OKPKey.import_key(numbers | ({"d": urlsafe_b64encode(bytes.fromhex(secret)).decode()} if secret else {}))
