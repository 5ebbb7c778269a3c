"""Who may lay down what a topic is like: charters signed by admins, voided by the authority.

A charter is judged at the time that it says it was signed: a certificate that expired since does
not undo it. A network without TLS has no authority; there a charter is good if its key signed it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from warnings import catch_warnings, simplefilter

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.utils import CryptographyDeprecationWarning
from msgspec import msgpack

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.network.identity import (
    ID_BYTES,
    UNREADABLE,
    Authority,
    identify,
    load_key,
    write_key,
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
    return _sealed(charter, credentials.der, credentials.sign)


def seal_locally(charter: Charter, key: Ed25519PrivateKey) -> bytes:
    """Sign a charter for a network without TLS."""
    return _sealed(charter, key.public_key().public_bytes_raw(), key.sign)


def seal_void(charter: Charter, authority_key: Ed25519PrivateKey) -> bytes:
    """Sign, with the authority's key, that an admin's charters are void."""
    return _sealed(charter, AUTHORITY_SIGNED, authority_key.sign)


def local_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file that its owner alone can read, made if there is none."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_key(path, Ed25519PrivateKey.generate())
    except OSError as error:
        raise UsageError(f"cannot make a key at {path}: {error.strerror or error}") from None
    return load_key(path)


def judge(authority: Authority | None, former: Authority = ()) -> Judge:
    """What says of sealed bytes what they lay down in a cluster; None: it has no authority.

    Of `former` authorities revocations count still, and nothing else.
    """
    if authority is None:
        return _judge_key
    return lambda data: _judge_certificate(data, authority, former)


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


def _judge_certificate(data: bytes, authority: Authority, former: Authority) -> Judged | None:
    found = decode_sealed(data)
    if found is None:
        return None
    sealed, charter = found
    if charter.topic.startswith(VOID):
        trusted = authority + former if sealed.signer == AUTHORITY_SIGNED else ()
        signers = [it.public_key() for it in trusted]
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


def _sealed(charter: Charter, signer: bytes, sign: Callable[[bytes], bytes]) -> bytes:
    body = encode_charter(charter)
    data = msgpack.encode(Sealed(body, signer, sign(PURPOSE + body)))
    if len(data) > SEALED_BYTES_MAX:
        raise CapacityExceeded(f"a charter of {len(data)} bytes: at most {SEALED_BYTES_MAX}")
    return data


def _signed(sealed: Sealed, key: Ed25519PublicKey) -> bool:
    try:
        key.verify(sealed.signature, PURPOSE + sealed.body)
    except InvalidSignature:
        return False
    return True
