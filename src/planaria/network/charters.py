"""Who may lay down what a topic is like: charters signed by admins, voided by the authority.

A charter is judged at the time that it says it was signed: a certificate that expired since does
not undo it. A network without TLS has no authority; there a charter is good if its key signed it.
"""

from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from warnings import catch_warnings, simplefilter

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.utils import CryptographyDeprecationWarning
from msgspec import msgpack

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.network.identity import (
    CERTIFICATE,
    ID_BYTES,
    KEY,
    UNREADABLE,
    Authority,
    identify,
    load_certificate,
    load_secret,
)
from planaria.network.tls import Credentials
from planaria.protocols.skipring.charter import (
    SEALED_BYTES_MAX,
    VOID,
    Charter,
    Judge,
    Judged,
    Sealed,
    decode_sealed,
    encode_charter,
)

PURPOSE = (
    b"planaria charter\0"  # before what is signed: a signature of something else is no charter
)
AUTHORITY_SIGNED = b""  # in place of a certificate


def seal(charter: Charter, credentials: Credentials) -> bytes:
    """Sign a charter with an admin's key; raises UsageError if the certificate is no admin's."""
    if "admin" not in credentials.identity.roles:
        raise UsageError(
            f"the certificate of {credentials.identity.name!r} is no admin's: "
            "`planaria keys issue NAME --role admin --role client` makes one"
        )
    certificate = load_certificate(credentials.directory / CERTIFICATE)
    key = _private_key(load_secret(credentials.directory / KEY))
    return _sealed(charter, certificate.public_bytes(serialization.Encoding.DER), key)


def seal_locally(charter: Charter, key: Ed25519PrivateKey) -> bytes:
    """Sign a charter for a network without TLS."""
    return _sealed(charter, key.public_key().public_bytes_raw(), key)


def seal_void(charter: Charter, authority_key: bytes) -> bytes:
    """Sign, with the authority's key in PEM, that an admin's charters are void."""
    return _sealed(charter, AUTHORITY_SIGNED, _private_key(authority_key))


def local_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file that its owner alone can read, made if there is none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(made)
    return _private_key(load_secret(path))


def judge(authority: Authority | None) -> Judge:
    """What says of sealed bytes what they lay down in a cluster; None: it has no authority."""
    return _judge_key if authority is None else lambda data: _judge_certificate(data, authority)


def _judge_key(data: bytes) -> Judged | None:
    found = decode_sealed(data)
    if found is None or found[1].topic.startswith(VOID):
        return None
    sealed, charter = found
    try:
        key = Ed25519PublicKey.from_public_bytes(sealed.signer)
    except ValueError:
        return None
    id = blake2b(sealed.signer, digest_size=ID_BYTES).digest()
    return Judged(charter, id) if _signed(sealed, key) else None


def _judge_certificate(data: bytes, authority: Authority) -> Judged | None:
    found = decode_sealed(data)
    if found is None:
        return None
    sealed, charter = found
    if charter.topic.startswith(VOID):
        signers = [] if sealed.signer != AUTHORITY_SIGNED else [it.public_key() for it in authority]
        good = any(isinstance(it, Ed25519PublicKey) and _signed(sealed, it) for it in signers)
        return Judged(charter, b"") if good else None
    try:
        with catch_warnings():
            simplefilter("error", CryptographyDeprecationWarning)
            certificate = x509.load_der_x509_certificate(sealed.signer)
            admin = identify(certificate, authority, datetime.fromtimestamp(charter.time, UTC))
    except UNREADABLE:
        return None
    key = certificate.public_key()
    if "admin" not in admin.roles or not isinstance(key, Ed25519PublicKey):
        return None
    return Judged(charter, admin.id) if _signed(sealed, key) else None


def _sealed(charter: Charter, signer: bytes, key: Ed25519PrivateKey) -> bytes:
    body = encode_charter(charter)
    data = msgpack.encode(Sealed(body, signer, key.sign(PURPOSE + body)))
    if len(data) > SEALED_BYTES_MAX:
        raise CapacityExceeded(f"a charter of {len(data)} bytes: at most {SEALED_BYTES_MAX}")
    return data


def _signed(sealed: Sealed, key: Ed25519PublicKey) -> bool:
    try:
        key.verify(sealed.signature, PURPOSE + sealed.body)
    except InvalidSignature:
        return False
    return True


def _private_key(pem: bytes) -> Ed25519PrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError("charters are signed with Ed25519 keys: `planaria keys issue` makes one")
    return key
