"""A party's identity: its own small root, a leaf of 30 days for links, a key for signatures and one for sealing.

One trust domain a company (`spiffe://shop.example/glassleaf/host`); no authority is shared and no secret key travels. The root's key stands
in a folder of its own, which can be taken offline: it is needed to renew, not to run. A company's own PKI may write the same files.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import tomli_w
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from backend.crypto.signing import SigningKey
from backend.errors import ParameterError, SecurityError
from backend.ops.atomic_file import write_first, write_whole
from backend.remark import Remark
from backend.store.key_file import kept_key, read_key

Role = Literal["guest", "host"]
LEAF_DAYS = 30  # short enough that a stolen key is soon worth nothing
ROOT_DAYS = 3650
WARN_DAYS = 10  # before a leaf's end, both sides are told
CLOCK_TOLERANCE = timedelta(minutes=5)  # a leaf is valid that much earlier, for peers whose clocks are behind
MAX_CHAIN = 4  # certificates from a leaf to its root
LEAF = "leaf.pem"
ROOT = "root.pem"
ROOT_KEY = "root.key.pem"
SIGNING = "signing.key"
SEALING = "sealing.key"
_DOMAIN = re.compile(r"(?=.{1,120}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_SPIFFE = re.compile(r"spiffe://(?P<domain>[a-z0-9.-]{1,120})/(?P<path>[a-z0-9-]{1,31}(?:/[a-z0-9-]{1,31}){0,3})")


def spiffe_id(domain: str, role: Role) -> str:
    """The SPIFFE id of a party in its company's trust domain."""
    if not _DOMAIN.fullmatch(domain):
        raise ParameterError("not_a_domain", domain=domain[:120])
    return f"spiffe://{domain}/glassleaf/{role}"


def host_name(spiffe: str) -> str:
    """Return the DNS name of a SPIFFE id in a leaf, which the dialling side asks for: `host.glassleaf.shop.example`.

    Raises
    ------
    ParameterError
        The text is not a SPIFFE id.
    """
    match = _SPIFFE.fullmatch(spiffe)
    if match is None:
        raise ParameterError("not_a_spiffe_id", spiffe=spiffe[:200])
    return ".".join([*reversed(match["path"].split("/")), match["domain"]])


@dataclass(frozen=True)
class PartyKeys:
    """One party's keys, read from its folder; no secret shows in its `repr`.

    Attributes
    ----------
    chain : bytes
        The leaf's certificate and what lies between it and the root, PEM.
    bundle : bytes
        The root's certificate, PEM: what others check the leaf with.
    expires : datetime
        End of the leaf, UTC.
    """

    spiffe: str
    chain: bytes = field(repr=False)
    bundle: bytes = field(repr=False)
    expires: datetime
    signing: SigningKey = field(repr=False)
    key: bytes = field(repr=False)
    sealing: X25519PrivateKey = field(repr=False)

    @property
    def sealing_public(self) -> str:
        """What others seal for this party with, in hexadecimal."""
        return self.sealing.public_key().public_bytes_raw().hex()


def make_identity(folder: Path, domain: str, role: Role, root: Path | None = None) -> PartyKeys:
    """Make a party's keys once; `root` is the folder of the root's key, by default `folder`/root.

    If an earlier call stopped before it had written a leaf, its root is used. Two calls at once have the same root.

    Raises
    ------
    SecurityError
        The folder has keys already: they are never replaced.
    """
    spiffe = spiffe_id(domain, role)
    root = root or folder / "root"
    if (folder / LEAF).exists():
        raise SecurityError("party_keys_exist", file=str(folder / LEAF))
    if (folder / ROOT).exists() and not (root / ROOT_KEY).exists():
        raise SecurityError("party_keys_exist", file=str(folder / ROOT))
    write_first(root / ROOT_KEY, _private_pem(ec.generate_private_key(ec.SECP256R1())))
    root_key = load_pem_private_key(_private(root / ROOT_KEY), None)
    if isinstance(root_key, ec.EllipticCurvePrivateKey):
        write_first(folder / ROOT, _root_certificate(root_key, domain).public_bytes(Encoding.PEM))
    key, certificate = _root_of(folder, root)
    kept_key(folder / SIGNING, lambda: SigningKey.generate().to_numbers())
    kept_key(folder / SEALING, lambda: {"secret": X25519PrivateKey.generate().private_bytes_raw().hex()})
    return _issue(folder, key, certificate, spiffe, LEAF_DAYS)


def renew(folder: Path, root: Path | None = None, days: float = LEAF_DAYS) -> PartyKeys:
    """Write a leaf with a new key in place of the old one; links that run change to it by themselves.

    Raises
    ------
    SecurityError
        The root's key is not there, or belongs to another root.
    """
    spiffe = load_identity(folder).spiffe
    return _issue(folder, *_root_of(folder, root or folder / "root"), spiffe, days)


def _root_of(folder: Path, root: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """The root's key and certificate; raises SecurityError if they do not belong together."""
    key = load_pem_private_key(_private(root / ROOT_KEY), None)
    certificate = x509.load_pem_x509_certificate(_read(folder / ROOT))
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise SecurityError("root_key_differs", key=str(root / ROOT_KEY), root=str(folder / ROOT))
    return key, certificate


def load_identity(folder: Path) -> PartyKeys:
    """Read a party's present keys.

    Raises
    ------
    SecurityError
        A file is missing, can be read by other users or is damaged; or leaf and key do not belong together.
    """
    leaf = _private(folder / LEAF)
    bundle = _read(folder / ROOT)
    try:
        key = load_pem_private_key(leaf, None)
        chain = x509.load_pem_x509_certificates(leaf)
        sealing = X25519PrivateKey.from_private_bytes(bytes.fromhex((read_key(folder / SEALING) or {})["secret"]))
        numbers = read_key(folder / SIGNING)
    except (ValueError, KeyError, TypeError) as error:
        raise SecurityError("party_keys_damaged", folder=str(folder)) from error
    if key.public_key() != chain[0].public_key() or not isinstance(key, ec.EllipticCurvePrivateKey):
        raise SecurityError("leaf_key_differs", file=str(folder / LEAF))
    if numbers is None:
        raise SecurityError("signing_key_missing", folder=str(folder))
    return PartyKeys(
        spiffe=spiffe_of(chain[0]),
        chain=b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain),
        bundle=bundle,
        expires=chain[0].not_valid_after_utc,
        signing=SigningKey.from_numbers(numbers),
        key=_private_pem(key),
        sealing=sealing,
    )


def party_toml(identity: PartyKeys, name: str, title: str) -> str:
    """What a party hands out: its table of the agreement, all of it public."""
    table = {
        "name": name,
        "title": title,
        "role": identity.spiffe.rsplit("/", 1)[1],
        "spiffe": identity.spiffe,
        "bundle": identity.bundle.decode(),
        "signing": identity.signing.public,
        "sealing": identity.sealing_public,
        "address": "",
    }
    return tomli_w.dumps({"parties": [table]}, multiline_strings=True)


def spiffe_of(certificate: x509.Certificate) -> str:
    """The one SPIFFE id that a certificate names (X.509-SVID: exactly one URI); raises SecurityError otherwise."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        ids = names.get_values_for_type(x509.UniformResourceIdentifier)
    except (x509.ExtensionNotFound, ValueError):
        ids = []
    if len(ids) != 1 or not _SPIFFE.fullmatch(ids[0]):
        raise SecurityError("certificate_without_name")
    return ids[0]


def check_chain(chain: list[x509.Certificate], bundle: bytes, spiffe: str, now: datetime) -> None:
    """Raise SecurityError unless a leaf names `spiffe`, is valid now and leads to a root of `bundle`.

    TLS has checked the leaf against the roots of all parties; this is what keeps one party's root from vouching for another's name.
    """
    if not chain or spiffe_of(chain[0]) != spiffe:
        raise SecurityError("certificate_of_another", spiffe=spiffe)
    roots = x509.load_pem_x509_certificates(bundle)
    current = chain[0]
    for _ in range(MAX_CHAIN):
        if now < current.not_valid_before_utc:
            raise SecurityError("certificate_not_valid_yet", spiffe=spiffe)
        if now > current.not_valid_after_utc:
            raise SecurityError(
                "certificate_not_valid", spiffe=spiffe, validity=validity(current.not_valid_after_utc, now)
            )
        if any(_issued(current, root) for root in roots):
            return
        issuer = next((certificate for certificate in chain[1:] if _issued(current, certificate)), None)
        if issuer is None:
            break
        current = issuer
    raise SecurityError("certificate_of_another_root", spiffe=spiffe)


def validity(expires: datetime, now: datetime) -> Remark:
    """Return how long a certificate is valid: expired, expires soon, or valid until a day."""
    remaining = expires - now
    if remaining < timedelta():
        return Remark("certificate_expired", {"ago": -remaining})
    if remaining < timedelta(days=WARN_DAYS):
        return Remark("certificate_expires", {"left": remaining})
    return Remark("certificate_valid", {"day": expires.date()})


def is_ending(expires: datetime, now: datetime) -> bool:
    """Whether both sides are to be told that a leaf ends."""
    return expires - now < timedelta(days=WARN_DAYS)


def _issued(leaf: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        if not issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
        leaf.verify_directly_issued_by(issuer)
    except Exception:
        return False
    return True


def _root_certificate(key: ec.EllipticCurvePrivateKey, domain: str) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{domain[:40]} glassleaf root")])
    return (
        _builder(name, name, key.public_key(), ROOT_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"spiffe://{domain}")]), False)
        .sign(key, hashes.SHA256())
    )


def _issue(
    folder: Path, root: ec.EllipticCurvePrivateKey, above: x509.Certificate, spiffe: str, days: float
) -> PartyKeys:
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(spiffe), x509.DNSName(host_name(spiffe))])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "glassleaf")])
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    leaf = (
        _builder(subject, above.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(names, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key()), critical=False)
        .sign(root, hashes.SHA256())
    )
    # key and certificate in one file, so that nobody ever reads one without the other
    write_whole(folder / LEAF, _private_pem(key), leaf.public_bytes(Encoding.PEM))
    return load_identity(folder)


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + timedelta(days=days)) - CLOCK_TOLERANCE)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(sign: bool) -> x509.KeyUsage:
    """Of a leaf, which signs handshakes; or of a root, which signs certificates."""
    return x509.KeyUsage(
        digital_signature=sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=not sign,
        crl_sign=not sign,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _private(path: Path) -> bytes:
    """A secret's file; raises SecurityError if others can read it."""
    return _read(path, secret=True)


def _read(path: Path, *, secret: bool = False) -> bytes:
    try:
        with path.open("rb") as file:  # another may take its name meanwhile, and for a moment none
            if secret and os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise SecurityError("secret_readable_by_others", file=str(path))
            return file.read()
    except FileNotFoundError:
        raise SecurityError("party_keys_missing", file=str(path)) from None
    except OSError as error:
        raise SecurityError("party_keys_unreadable", file=str(path), reason=error.strerror or "-") from None


def fingerprint(pem: bytes) -> str:
    """SHA-256 of a root's public key, in hexadecimal: what two companies compare over the phone."""
    certificate = x509.load_pem_x509_certificate(pem)
    digest = hashes.Hash(hashes.SHA256())
    digest.update(certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    return digest.finalize().hex()
