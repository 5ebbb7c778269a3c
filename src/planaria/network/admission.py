"""Which records count on a network with keys: those that their publishers signed, and might.

A function of the record, which carries its certificate, and of charters and revocations, which are
signed and replicated. All is judged at the record's own time, and nothing at this node's: members
that were away or have another clock come to hold the same.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from time import time
from typing import TYPE_CHECKING, NamedTuple
from warnings import catch_warnings, simplefilter

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.utils import CryptographyDeprecationWarning

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.topics import ancestors
from planaria.network.identity import UNREADABLE, Authority, handle_of, identify
from planaria.network.tls import Credentials
from planaria.protocols.publications.admission import EVERYTHING, Admission, Times
from planaria.protocols.skipring.charter import ANYBODY, NODES, Term
from planaria.records.evidence import (
    CERTIFICATE_BYTES_MAX,
    MANIFEST,
    PUBLISHED,
    STAGED,
    evidence_of,
)
from planaria.records.manifest import STAGE_MARK, Manifest, read_manifest, settled_by
from planaria.records.record import BATCH, Record

if TYPE_CHECKING:  # all of the ring, which clients do without
    from planaria.protocols.skipring.charters import Charters

CERTIFICATES_MAX = 1 << 12  # looked at and remembered; then all are looked at anew
MANIFESTS_MAX = 1 << 8  # of which it is remembered that they are signed


class Named(NamedTuple):
    """Whom a certificate names, with which key, and at which seconds it is good."""

    name: str
    id: bytes
    handle: NodeId
    key: Ed25519PublicKey
    is_node: bool
    since: int
    before: int

    def is_meant(self, who: str) -> bool:
        """Is this one of those whom a term names?"""
        return who in (self.name, ANYBODY) or (who == NODES and self.is_node)


class Admissions:
    """Judges records at one node; called with a topic, gives what judges those of it.

    Without credentials, as on a network without keys, all are admitted.
    """

    def __init__(self, credentials: Credentials | None) -> None:
        self._credentials = credentials
        # Of an authority that was replaced, what was published under it stays published.
        self._trusted = () if credentials is None else credentials.authority + credentials.former
        self._charters: Charters | None = None
        self._certificates: dict[bytes, Named | None] = {}
        self._manifests: dict[bytes, None] = {}

    def __call__(self, topic: str) -> Admission:
        """What judges the records of a topic."""
        keys = self._credentials
        return EVERYTHING if keys is None else SignedAdmission(topic, self, keys)

    def obey(self, charters: "Charters") -> None:
        """Judge by what this node has heard: records, and whoever wants to connect."""
        self._charters = charters
        if self._credentials is not None:
            self._credentials.revoked_since = charters.revoked_since

    def edition(self, topics: Sequence[str]) -> object:
        """Changes with revocations, and with who might publish when on the first of `topics`."""
        return None if self._charters is None else (self._charters.revocations, self.terms(topics))

    def terms(self, topics: Sequence[str]) -> tuple[Term, ...]:
        """Who might publish when, by the first of these topics whose charter says so."""
        found = () if self._charters is None else map(self._charters.best, topics)
        return next((it.terms for it in found if it is not None and it.terms), ())

    def times(self, named: Named, terms: Sequence[Term]) -> Times:
        """At which seconds somebody may publish; without terms, while its certificate is good."""
        revoked = None if self._charters is None else self._charters.revoked_since(named.id)
        before = named.before if revoked is None else min(named.before, revoked)
        if not terms:
            return [(named.since, before)]
        mine = [(since, until) for who, since, until in terms if named.is_meant(who)]
        cut = [(max(since, named.since), min(until, before)) for since, until in mine]
        return [(since, until) for since, until in cut if since < until]

    def reaches(self, named: Named, stream: bytes, end: int) -> bool:
        """Does a stream of somebody count so far? A revocation may say how far each does."""
        ends = self.ends(named)
        return ends is None or end <= ends.get(stream, 0)

    def ends(self, named: Named) -> Mapping[bytes, int] | None:
        """How far each stream of somebody counts, by its incarnation; None: wholly."""
        found = None if self._charters is None else self._charters.revocation(named.id)
        return None if found is None or found.ends is None else dict(found.ends)

    def named(self, certificate: bytes) -> Named | None:
        """Whom a certificate names; remembered for a while."""
        if certificate not in self._certificates:
            if len(self._certificates) >= CERTIFICATES_MAX:
                self._certificates.clear()
            self._certificates[certificate] = read_certificate(certificate, self._trusted)
        return self._certificates[certificate]

    def signer(self, record: Record, purpose: bytes, topic: str) -> Named | None:
        """Whose signature proves that a record is its publisher's, good for that purpose."""
        if not record.signed:
            return None
        found = evidence_of(record.data)
        named = self.named(found.certificate)
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
            return self.named(evidence_of(record.data).certificate)
        named = self.signer(record, MANIFEST, "")
        if named is not None:
            if len(self._manifests) >= MANIFESTS_MAX:
                self._manifests.clear()
            self._manifests[record.key] = None
        return named


class SignedAdmission(Admission):
    """Judges the records of one topic."""

    judges = True

    def __init__(self, topic: str, admissions: Admissions, credentials: Credentials) -> None:
        self._topic, self._all, self._certificate = topic, admissions, credentials.der
        self._topics = (topic, *ancestors(topic))
        self.sealer = credentials.sealer(PUBLISHED, topic)

    @property
    def edition(self) -> object:
        """Changes with revocations, and with who might publish when."""
        return self._all.edition(self._topics)

    def stamp(self, present: int) -> int:
        """The second by this node's clock, since neighbours could move the median of theirs.

        Raises UsageError if this node may not publish then.
        """
        now, own = int(time()), self._all.named(self._certificate)
        if own is None or not self._may(own, now):
            why = "by its charter, a revocation or the clock"
            raise UsageError(f"this node may not publish on {self._topic!r}: {why}")
        return now

    def admits(self, record: Record) -> bool:
        """Did its publisher sign it for this topic, and might it at that time?"""
        named = self._publisher(record)
        return named is not None and self._may(named, record.time) and self._counts(named, record)

    def admits_staged(self, record: Record) -> bool:
        """Did its publisher sign these rows for this topic, or this manifest?"""
        if record.incarnation[:1] == STAGE_MARK:
            named = self._all.signer(record, STAGED, self._topic)
        else:
            manifest = read_manifest(record)
            named = None if manifest is None else self._all.manifest_signer(manifest)
        return named is not None and self._may(named, record.time) and self._counts(named, record)

    def times(self, record: Record) -> Times:
        """At which seconds its publisher may publish here; at none, if it did not sign this."""
        named = self._publisher(record)
        return [] if named is None else self._all.times(named, self._all.terms(self._topics))

    def ends(self, record: Record) -> Mapping[bytes, int] | None:
        """How far each stream of its publisher counts; None: wholly."""
        named = self._publisher(record)
        return None if named is None else self._all.ends(named)

    def _counts(self, named: Named, record: Record) -> bool:
        return self._all.reaches(named, record.incarnation, record.end)

    def _may(self, named: Named, second: int) -> bool:
        times = self._all.times(named, self._all.terms(self._topics))
        return any(since <= second < before for since, before in times)

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
    known = (found.name, found.id, handle_of(found.id), key, "node" in found.roles)
    return Named(*known, *seconds)


def _second(moment: datetime) -> int:
    return max(0, int(moment.timestamp()))
