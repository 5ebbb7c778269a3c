"""Who is who: an authority of Ed25519 keys, and certificates that name nodes and clients.

A node's id is a hash of its public key and of a nonce that the authority chose, so that nobody
chooses its own place in a ring. Protocols and traces use the id's first 63 bits, the handle;
nothing of security rests on it, and the authority issues no two certificates of one handle.
"""

import json
import os
import secrets
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID
from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.network.files import write_atomically

ID_BYTES = 16
NONCE_BYTES = 16
SECRET_BYTES = 32
ROLES = ("node", "client", "supervise", "admin")
AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
CLOCK_SLACK = timedelta(minutes=5)  # a certificate is good a little before it was made
OTHERS = 0o077  # what group and all others may do with a file
ROOT = 0
SCHEME = "planaria:"  # of the names that a certificate carries: planaria:id/…, planaria:role/…

CLUSTER = "planaria"  # the name of one that was given none

KEY, CERTIFICATE, AUTHORITY, SECRET = "key.pem", "certificate.pem", "authority.pem", "secret"
AUTHORITY_KEY, ISSUED = "authority-key.pem", "issued.jsonl"
# Beside it while there are two authorities: the key of the one before, and one that is to follow.
OLD_KEY, NEW_KEY = "authority-key-old.pem", "authority-key-new.pem"
FORMER = "former.pem"  # authorities that name nobody any more: what was signed under them counts

Authority = tuple[x509.Certificate, ...]  # one, or two while the newer takes the place of the older


class Identity(Struct, frozen=True):
    """Whom a certificate of our authority names."""

    name: str
    id: bytes
    roles: tuple[str, ...]
    expires: datetime

    @property
    def handle(self) -> NodeId:
        """The number by which protocols and traces know it."""
        return handle_of(self.id)


class Refused(UsageError):
    """A certificate that does not belong here; the message says what to do."""


# What a certificate that is none, or not of this cluster, makes the library raise.
UNREADABLE = (
    Refused, ValueError, TypeError, OverflowError, OSError, UnsupportedAlgorithm,
    x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType,
    x509.AttributeNotFound, x509.ExtensionNotFound, CryptographyDeprecationWarning,
)  # fmt: skip


def handle_of(id: bytes) -> NodeId:
    """The first 63 bits of an id."""
    return int.from_bytes(id[:8], "big") >> 1


def id_of(key: Ed25519PublicKey, nonce: bytes) -> bytes:
    """The id of who holds `key`, given the nonce that the authority chose for it."""
    return blake2b(key.public_bytes_raw() + nonce, digest_size=ID_BYTES).digest()


def found_cluster(directory: Path, name: str) -> None:
    """Make an authority in `directory`: its key, its certificate and the cluster's secret."""
    if (directory / AUTHORITY).exists():
        raise UsageError(f"{directory} has an authority already: issue from it, or name another")
    _checked_name(name)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (directory / AUTHORITY_KEY).exists():  # or a crash came before the certificate
        write_key(directory / AUTHORITY_KEY, Ed25519PrivateKey.generate())
    if not (directory / SECRET).exists():
        _write_secret(directory / SECRET, secrets.token_hex(SECRET_BYTES).encode())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    signed = self_signed(load_key(directory / AUTHORITY_KEY), names)
    write_atomically(directory / AUTHORITY, signed, durable=True)


def issue(
    directory: Path, name: str, roles: tuple[str, ...] = ("node",), days: int = CERTIFICATE_DAYS
) -> Path:
    """Make a key and a certificate for `name`; returns the directory that holds all it needs."""
    wrong = [role for role in roles if role not in ROLES]
    if wrong or not roles:
        raise UsageError(f"role {wrong[0] if wrong else ''!r}: one of {', '.join(ROLES)}")
    target = directory / _checked_name(name)
    if target.exists():
        raise UsageError(f"{target} exists: choose another name, or remove it to issue anew")
    authority, signer = load_signer(directory)
    key = Ed25519PrivateKey.generate()
    nonce = _fresh_nonce(key.public_key(), _handles(directory))
    id = id_of(key.public_key(), nonce)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    said = [f"id/{id.hex()}", f"nonce/{nonce.hex()}", *(f"role/{role}" for role in roles)]
    names = [x509.UniformResourceIdentifier(SCHEME + it) for it in said]
    builder = _builder(subject, authority.subject, key.public_key(), days).add_extension(
        x509.SubjectAlternativeName(names), critical=False
    )
    signed = builder.sign(signer, None)
    target.mkdir(mode=0o700)
    write_key(target / KEY, key)
    _write_secret(target / SECRET, (directory / SECRET).read_bytes())
    (target / CERTIFICATE).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (target / AUTHORITY).write_bytes((directory / AUTHORITY).read_bytes())
    if (directory / FORMER).exists():
        (target / FORMER).write_bytes((directory / FORMER).read_bytes())
    entry = {
        "name": name,
        "id": id.hex(),
        "roles": roles,
        "expires": str(signed.not_valid_after_utc),
        "authority": mark_of(authority),
    }
    with (directory / ISSUED).open("a") as log:
        log.write(json.dumps(entry) + "\n")
    return target


def identify(
    certificate: x509.Certificate, authority: Authority, now: datetime | None = None
) -> Identity:
    """Whom `certificate` names; raises `Refused` if `authority` did not say so, or it is over."""
    name = _common_name(certificate)
    if not any(_issued_by(certificate, one) for one in authority):
        cluster = cluster_of(authority)
        raise Refused(
            f"the certificate of {name!r} is not of cluster {cluster!r}: "
            f"issue one with `planaria keys issue` in that cluster's directory"
        )
    now = now or datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        until = certificate.not_valid_after_utc
        raise Refused(
            f"the certificate of {name!r} is good until {until:%Y-%m-%d %H:%M} UTC, and it is "
            f"{now:%Y-%m-%d %H:%M}: issue a new one, or set the clock right"
        )
    return _identity(certificate, name)


def cluster_of(authority: Authority) -> str:
    """The name of the cluster whose authority this is."""
    return _common_name(authority[0])


def load_authority(path: Path) -> Authority:
    """The certificates in a PEM file that are trusted, the newest first; raises UsageError."""
    try:
        return tuple(x509.load_pem_x509_certificates(path.read_bytes()))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{path} is no readable certificate: {reason}; `planaria keys issue` makes one"
        ) from None


def load_former(directory: Path) -> Authority:
    """The authorities that were trusted before; raises UsageError."""
    return load_authority(directory / FORMER) if (directory / FORMER).exists() else ()


def load_certificate(path: Path) -> x509.Certificate:
    """The certificate in a PEM file, or `UsageError` that names the file."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{path} is no readable certificate: {reason}; `planaria keys issue` makes one"
        ) from None


def load_secret(path: Path) -> bytes:
    """A file that is ours or root's and that nobody else may read or write, or `UsageError` that
    says how to mend it."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())  # of what is read, whatever the name stands for later
            if found.st_mode & OTHERS:
                raise UsageError(f"{path} can be read by others: chmod 600 {path}")
            if found.st_uid not in (os.geteuid(), ROOT):
                raise UsageError(
                    f"{path} belongs to user {found.st_uid}, who can replace it: "
                    f"chown {os.geteuid()} {path}"
                )
            return file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def load_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file that nobody else may read, or `UsageError`."""
    try:
        key = serialization.load_pem_private_key(load_secret(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{path} is no readable key: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{path} is no Ed25519 key: `planaria keys issue` makes one")
    return key


def write_key(path: Path, key: Ed25519PrivateKey) -> None:
    """Write a key to a file that its owner alone can read."""
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    _write_secret(path, pem)


def _issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def self_signed(key: Ed25519PrivateKey, names: list[x509.NameAttribute[str]]) -> bytes:
    """The certificate of an authority, in PEM."""
    subject = x509.Name(names)
    builder = _builder(subject, subject, key.public_key(), AUTHORITY_DAYS).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    return builder.sign(key, None).public_bytes(serialization.Encoding.PEM)


def _identity(certificate: x509.Certificate, name: str) -> Identity:
    key = certificate.public_key()
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        said = [
            it.removeprefix(SCHEME)
            for it in names.get_values_for_type(x509.UniformResourceIdentifier)
        ]
        pairs = [it.partition("/") for it in said]
        found = {kind: value for kind, _, value in pairs if kind != "role"}
        id, nonce = bytes.fromhex(found["id"]), bytes.fromhex(found["nonce"])
    except (x509.ExtensionNotFound, KeyError, ValueError):
        raise Refused(
            f"the certificate of {name!r} names no id: `planaria keys issue` makes one"
        ) from None
    if not isinstance(key, Ed25519PublicKey) or id_of(key, nonce) != id:
        raise Refused(f"the certificate of {name!r} names an id that is not its key's")
    roles = tuple(value for kind, _, value in pairs if kind == "role")
    return Identity(name, id, roles, certificate.not_valid_after_utc)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Ed25519PublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SLACK)
        .not_valid_after(now + timedelta(days=days))
    )


def _fresh_nonce(key: Ed25519PublicKey, taken: set[NodeId]) -> bytes:
    """A nonce with which the key's handle is nobody else's."""
    while True:
        nonce = secrets.token_bytes(NONCE_BYTES)
        if handle_of(id_of(key, nonce)) not in taken:
            return nonce


class Issued(NamedTuple):
    """A line of what was issued; `authority` by its mark, empty where none was written down."""

    name: str
    id: bytes
    authority: str


def issued(directory: Path) -> list[Issued]:
    """All that were issued, in this order; lines that are damaged are told, not skipped."""
    path = directory / ISSUED
    found: list[Issued] = []
    try:
        for line in path.read_text().splitlines() if path.exists() else []:
            entry = json.loads(line)
            said = (str(entry.get("name", "")), bytes.fromhex(entry["id"]))
            found.append(Issued(*said, str(entry.get("authority", ""))))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{path} is damaged: each line must be an object with an `id`") from None
    return found


def _handles(directory: Path) -> set[NodeId]:
    return {handle_of(it.id) for it in issued(directory)}


def load_signer(directory: Path) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    """The newest authority and its key; raises UsageError.

    Where a crash ended a change of authorities the key may have another name: it gets its own.
    """
    if not (directory / AUTHORITY).exists():
        raise UsageError(
            f"{directory} has no authority: run `planaria keys init {directory}` first"
        )
    newest = load_authority(directory / AUTHORITY)[0]
    for name in (AUTHORITY_KEY, NEW_KEY, OLD_KEY):
        key = load_key(directory / name) if (directory / name).exists() else None
        if key is not None and key.public_key() == newest.public_key():
            if name != AUTHORITY_KEY:
                write_key(directory / AUTHORITY_KEY, key)
            return newest, key
    raise UsageError(f"{directory / AUTHORITY_KEY} is not there, or not the key of {AUTHORITY}")


def mark_of(authority: x509.Certificate) -> str:
    """By what `issued.jsonl` says which authority issued something."""
    key = authority.public_key()
    assert isinstance(key, Ed25519PublicKey)
    return key.public_bytes_raw().hex()[:16]


def _checked_name(name: str) -> str:
    good = name and len(name) <= 64 and all(it.isalnum() or it in "-_." for it in name)
    if not good or name.startswith("."):
        raise UsageError(f"name {name!r}: up to 64 letters, digits, '-', '_' and '.'")
    return name


def _common_name(certificate: x509.Certificate) -> str:
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else "?"


def _write_secret(path: Path, data: bytes) -> None:
    """Write a file that never was readable by others; it is there whole or not at all."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    except BaseException:
        part.unlink()
        raise
