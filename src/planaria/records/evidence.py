"""What proves who published a record: a certificate and a signature, at the end of its bytes.

    staged       the head that rows were staged with     (if the record settled with a batch)
    manifest     the manifest, a record, and its length  (if the record settled with a batch)
    certificate  whom an authority named, in DER, and its length
    signature    by the certificate's key

A record carries its certificate, so that whoever has it can judge it: nothing is asked for, held
aside meanwhile, or kept beside it. The signature is over what it is good for, the topic and a hash
of all that stands before it; without the topic a lying node could repeat a record elsewhere. Knows
nothing of keys: who signs and who verifies is handed in.
"""

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct as Layout
from typing import NamedTuple

SIGNATURE_BYTES = 64  # Ed25519
CERTIFICATE_BYTES_MAX = 1900  # of 365 to 540 that `planaria keys issue` makes
EVIDENCE_BYTES_MAX = 2048  # of a record that was not staged
STAGED_BYTES = 56  # a record's head

# What a signature is good for: that of something else is none.
PUBLISHED, STAGED, MANIFEST = b"planaria record\0", b"planaria stage\0", b"planaria manifest\0"

_LENGTH = Layout("<H")
_MANIFEST_LENGTH = Layout("<I")
_TAIL = _LENGTH.size + SIGNATURE_BYTES
_SIGNED = b"PR\2"

Sign = Callable[[bytes], bytes]  # the signature of some bytes
Sealer = Callable[[bytes], bytes]  # of a record without evidence makes one with it


class Evidence(NamedTuple):
    """Who is said to have signed what."""

    certificate: bytes
    signature: bytes
    hashed: bytes  # over all that stands before the signature

    def message(self, purpose: bytes, topic: str) -> bytes:
        """What the signature must be over to be good for that purpose on a topic."""
        return purpose + topic.encode() + b"\0" + self.hashed


def sealer(certificate: bytes, sign: Sign, purpose: bytes, topic: str) -> Sealer:
    """What adds evidence to records for a topic; Ed25519 is deterministic, so a retry is equal."""
    end = certificate + _LENGTH.pack(len(certificate))

    def signed(plain: bytes) -> bytes:
        body = _SIGNED + plain[len(_SIGNED) :] + end
        return body + sign(Evidence(certificate, b"", _hash(body)).message(purpose, topic))

    return signed


def evidence_of(data: bytes) -> Evidence:
    """The evidence at the end of a signed record's bytes."""
    size = _certificate_size(data)
    certificate = data[len(data) - _TAIL - size : len(data) - _TAIL]
    body = memoryview(data)[:-SIGNATURE_BYTES]
    return Evidence(certificate, data[-SIGNATURE_BYTES:], _hash(body))


def evidence_size(data: bytes, *, settled: bool) -> int:
    """How many bytes at the end of a signed record are evidence, if it is one."""
    size = _TAIL + _certificate_size(data)
    if settled:
        size += _MANIFEST_LENGTH.size
        at = len(data) - size
        size += int.from_bytes(data[max(0, at) : at + 4], "little") + STAGED_BYTES
    return size


def with_settled(rows: bytes, staged: bytes, manifest: bytes) -> bytes:
    """Rows that settle with the evidence of whoever staged them and signed the manifest."""
    size = _TAIL + _certificate_size(staged)
    length = _MANIFEST_LENGTH.pack(len(manifest))
    proof = staged[:STAGED_BYTES] + manifest + length + staged[len(staged) - size :]
    return _SIGNED + rows[len(_SIGNED) :] + proof


def settled_from(data: bytes, columns_end: int, mark: int) -> tuple[bytes, bytes]:
    """What a settled record, which ends with a mark of that size, says was staged, and by which
    manifest it settled."""
    size = _TAIL + _certificate_size(data)
    middle, end = data[columns_end : len(data) - size], data[len(data) - size :]
    staged = middle[:STAGED_BYTES] + data[STAGED_BYTES : columns_end - mark] + end
    return staged, middle[STAGED_BYTES : -_MANIFEST_LENGTH.size]


def _certificate_size(data: bytes) -> int:
    return int.from_bytes(data[-_TAIL:-SIGNATURE_BYTES], "little")


def _hash(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=32, person=b"planaria signed").digest()
