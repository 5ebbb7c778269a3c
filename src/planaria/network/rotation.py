"""Another authority in the place of the one before, step by step, wherever a crash ends it.

The file of certificates says which authority there is; until it is replaced nothing has happened,
and from then on the key that belongs to its first certificate is found under whatever name.
"""

import secrets
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from planaria.core.errors import UsageError
from planaria.network.files import write_atomically
from planaria.network.identity import (
    AUTHORITY,
    AUTHORITY_KEY,
    FORMER,
    NEW_KEY,
    OLD_KEY,
    cluster_of,
    issued,
    load_authority,
    load_former,
    load_key,
    load_signer,
    mark_of,
    self_signed,
    write_key,
)


def rotate(directory: Path) -> None:
    """Make a new authority of the same cluster; the one before is trusted beside it."""
    before = load_authority(directory / AUTHORITY)
    if len(before) > 1:
        raise UsageError(
            f"{directory} is between two authorities: end that first with "
            f"`planaria keys rotate {directory} --finish`"
        )
    _, signer = load_signer(directory)
    key = Ed25519PrivateKey.generate()
    # Of another name than the one before, or TLS could not tell which of them signed.
    names = [
        x509.NameAttribute(NameOID.COMMON_NAME, cluster_of(before)),
        x509.NameAttribute(NameOID.SERIAL_NUMBER, secrets.token_hex(8)),
    ]
    signed = self_signed(key, names)
    write_key(directory / NEW_KEY, key)
    write_key(directory / OLD_KEY, signer)
    both = signed + (directory / AUTHORITY).read_bytes()
    write_atomically(directory / AUTHORITY, both, durable=True)
    (directory / NEW_KEY).replace(directory / AUTHORITY_KEY)


def finish_rotation(directory: Path) -> None:
    """Trust the newest authority alone; what was signed under those before still counts."""
    known = load_authority(directory / AUTHORITY)
    load_signer(directory)
    left = [it for it in (OLD_KEY, NEW_KEY) if (directory / it).exists()]
    if len(known) < 2 and not left:
        raise UsageError(f"{directory} has one authority: nothing is to be finished")
    former = dict.fromkeys([*load_former(directory), *known[1:]])  # a crash may have come before
    newest, *before = (it.public_bytes(serialization.Encoding.PEM) for it in (known[0], *former))
    if before:
        write_atomically(directory / FORMER, b"".join(before), durable=True)
    write_atomically(directory / AUTHORITY, newest, durable=True)
    for name in left:
        (directory / name).unlink()


def revoking_key(directory: Path, id: bytes) -> Ed25519PrivateKey:
    """The key that signs a revocation; between two authorities, that of who issued the certificate.

    All nodes that would let its holder in trust that one, whichever they trust beside it.
    """
    newest, key = load_signer(directory)
    marks = {it.authority for it in issued(directory) if it.id == id}
    older = len(load_authority(directory / AUTHORITY)) > 1 and (directory / OLD_KEY).exists()
    return load_key(directory / OLD_KEY) if older and marks - {mark_of(newest)} else key
