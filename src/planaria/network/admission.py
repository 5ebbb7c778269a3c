"""Which records count on a network with keys: those that their publishers signed, and might.

A function of the record, which carries its certificate, and of charters and revocations, which are
signed and replicated. All is judged at the record's own time, and nothing at this node's: members
that were away or have another clock come to hold the same.
"""

from datetime import datetime
from time import time
from typing import NamedTuple
from warnings import catch_warnings, simplefilter

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.utils import CryptographyDeprecationWarning

from planaria.core.ids import NodeId
from planaria.network.identity import UNREADABLE, Authority, handle_of, identify
from planaria.network.tls import Credentials
from planaria.protocols.publications.admission import EVERYTHING, Admission, Times
from planaria.protocols.skipring.charters import Charters
from planaria.records.evidence import (
    CERTIFICATE_BYTES_MAX,
    MANIFEST,
    PUBLISHED,
    STAGED,
    Sealer,
    evidence_of,
)
from planaria.records.manifest import STAGE_MARK, Manifest, read_manifest, settled_by
from planaria.records.record import BATCH, Record

CERTIFICATES_MAX = 1 << 12  # looked at and remembered; then all are looked at anew
MANIFESTS_MAX = 1 << 8  # of which it is remembered that they are signed


class Named(NamedTuple):
    """Whom a certificate names, with which key, and at which seconds it is good."""

    name: str
    id: bytes
    handle: NodeId
    key: Ed25519PublicKey
    since: int
    before: int


class Admissions:
    """Judges records at one node; called with a topic, gives what judges those of it.

    Without credentials, as on a network without keys, all are admitted.
    """

    def __init__(self, credentials: Credentials | None) -> None:
        self._credentials = credentials
        # Of an authority that was replaced, what was published under it stays published.
        self._trusted = () if credentials is None else credentials.authority + credentials.former
        self.charters: Charters | None = None  # from the node's start on
        self._certificates: dict[bytes, Named | None] = {}
        self._manifests: dict[bytes, None] = {}

    def __call__(self, topic: str) -> Admission:
        """What judges the records of a topic."""
        if self._credentials is None:
            return EVERYTHING
        return SignedAdmission(topic, self, self._credentials.sealer(PUBLISHED, topic))

    def signer(self, record: Record, purpose: bytes, topic: str) -> Named | None:
        """Whose signature proves that a record is its publisher's, good for that purpose."""
        if not record.signed or record.columns & BATCH:
            return None
        found = evidence_of(record.data)
        named = self._named(found.certificate)
        if named is None or named.handle != record.publisher:
            return None
        try:
            named.key.verify(found.signature, found.message(purpose, topic))
        except InvalidSignature:
            return None
        return named

    def manifest_signer(self, manifest: Manifest) -> Named | None:
        """Whose signature proves that a manifest is its publisher's; it names its topics itself."""
        record = manifest.record
        if record.key in self._manifests:
            return self._named(evidence_of(record.data).certificate)
        named = self.signer(record, MANIFEST, "")
        if named is not None:
            if len(self._manifests) >= MANIFESTS_MAX:
                self._manifests.clear()
            self._manifests[record.key] = None
        return named

    def obey(self, charters: Charters) -> None:
        """Judge by what this node has heard: records, and whoever wants to connect."""
        self.charters = charters
        if self._credentials is not None:
            self._credentials.revoked_since = charters.revoked_since

    def revoked_since(self, id: bytes) -> int | None:
        """From which second on a certificate is revoked."""
        return None if self.charters is None else self.charters.revoked_since(id)

    def times(self, named: Named) -> Times:
        """At which seconds somebody may publish, as far as its certificate goes."""
        revoked = self.revoked_since(named.id)
        before = named.before if revoked is None else min(named.before, revoked)
        return [(named.since, before)]

    def _named(self, certificate: bytes) -> Named | None:
        if certificate not in self._certificates:
            if len(self._certificates) >= CERTIFICATES_MAX:
                self._certificates.clear()
            self._certificates[certificate] = read_certificate(certificate, self._trusted)
        return self._certificates[certificate]


class SignedAdmission(Admission):
    """Judges the records of one topic."""

    judges = True

    def __init__(self, topic: str, admissions: Admissions, sealer: Sealer) -> None:
        self._topic, self._all, self.sealer = topic, admissions, sealer

    @property
    def edition(self) -> object:
        """Changes with revocations."""
        charters = self._all.charters
        return None if charters is None else charters.revocations

    def stamp(self, present: int) -> int:
        """The second by this node's clock: neighbours cannot move it to where its certificate is
        not good."""
        return int(time())

    def admits(self, record: Record) -> bool:
        """Did its publisher sign it for this topic, and might it at that time?"""
        named = self._publisher(record)
        return named is not None and _within(self._all.times(named), record.time)

    def admits_staged(self, record: Record) -> bool:
        """Did its publisher sign these rows for this topic, or this manifest?"""
        if record.incarnation[:1] == STAGE_MARK:
            named = self._all.signer(record, STAGED, self._topic)
        else:
            manifest = read_manifest(record)
            named = None if manifest is None else self._all.manifest_signer(manifest)
        return named is not None and _within(self._all.times(named), record.time)

    def times(self, record: Record) -> Times:
        """At which seconds its publisher may publish here; at none, if it did not sign this."""
        named = self._publisher(record)
        return [] if named is None else self._all.times(named)

    def _publisher(self, record: Record) -> Named | None:
        if not record.columns & BATCH:
            return self._all.signer(record, PUBLISHED, self._topic)
        found = settled_by(record, self._topic)
        if found is None or self._all.manifest_signer(found[1]) is None:
            return None
        return self._all.signer(found[0], STAGED, self._topic)


def read_certificate(data: bytes, authority: Authority) -> Named | None:
    """Whom a certificate of the cluster names, whether or not it is still good; None: nobody."""
    if len(data) > CERTIFICATE_BYTES_MAX:
        return None
    try:
        with catch_warnings():
            simplefilter("error", CryptographyDeprecationWarning)
            certificate = x509.load_der_x509_certificate(data)
            since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
            found = identify(certificate, authority, since)
    except UNREADABLE:
        return None
    key = certificate.public_key()
    if not isinstance(key, Ed25519PublicKey):
        return None
    seconds = (_second(since), _second(until) + 1)
    return Named(found.name, found.id, handle_of(found.id), key, *seconds)


def _within(times: Times, second: int) -> bool:
    return any(since <= second < before for since, before in times)


def _second(moment: datetime) -> int:
    return max(0, int(moment.timestamp()))
