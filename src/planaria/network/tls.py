"""TLS 1.3 with certificates at both ends; who is at the other end is read off its certificate."""

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import time

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from planaria.core.errors import UsageError
from planaria.network.identity import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    SECRET,
    Identity,
    Refused,
    cluster_of,
    identify,
    load_authority,
    load_certificate,
    load_former,
    load_key,
    load_secret,
)
from planaria.records.evidence import Sealer, sealer


class Credentials:
    """The key and certificate in one directory, as `planaria keys issue` made it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = load_authority(directory / AUTHORITY)
        self.former = load_former(directory)  # of them records and revocations still count
        self.cluster = cluster_of(self.authority)
        certificate = load_certificate(directory / CERTIFICATE)
        self.identity = identify(certificate, self.authority)
        self.der = certificate.public_bytes(serialization.Encoding.DER)
        self._key = load_key(directory / KEY)
        # By id, from which second on a certificate is revoked; whoever hears of that says so here.
        self.revoked_since: Callable[[bytes], int | None] = lambda _: None

    @property
    def secret(self) -> bytes:
        """The cluster's secret, the same for all that this authority named."""
        return load_secret(self.directory / SECRET)

    def context(self, *, server: bool) -> ssl.SSLContext:
        """What to give to a socket; both ends must show a certificate of the same authority."""
        purpose = ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT
        context = ssl.SSLContext(purpose)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # names are in the certificate, addresses change
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(self.directory / AUTHORITY)
        try:
            context.load_cert_chain(self.directory / CERTIFICATE, self.directory / KEY)
        except ssl.SSLError as error:
            raise UsageError(f"{self.directory}: key and certificate do not fit: {error}") from None
        return context

    def sign(self, data: bytes) -> bytes:
        """A signature by the key of this certificate."""
        return self._key.sign(data)

    def sealer(self, purpose: bytes, topic: str) -> Sealer:
        """What adds to records for a topic the evidence of who made them."""
        return sealer(self.der, self.sign, purpose, topic)

    def peer(self, connection: ssl.SSLObject) -> Identity:
        """Who is at the other end; raises `Refused` if it is nobody of this cluster."""
        shown = connection.getpeercert(binary_form=True)
        if shown is None:
            raise Refused("the other end showed no certificate: connect with --keys DIR")
        found = identify(x509.load_der_x509_certificate(shown), self.authority)
        self.check(found)
        return found

    def is_revoked(self, id: bytes) -> bool:
        """Is a certificate revoked by now?"""
        since = self.revoked_since(id)
        return since is not None and since <= time()

    def check(self, identity: Identity) -> None:
        """Raises `Refused` if somebody's certificate is revoked by now."""
        if self.is_revoked(identity.id):
            since = self.revoked_since(identity.id) or 0
            raise Refused(
                f"the certificate of {identity.name!r} is revoked since "
                f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S} UTC: issue a new one"
            )
