"""Where nodes are, and which of them supervise: soft state, signed by whom it is about.

A contact is renewed by its node and forgotten when it is not. How old it is travels with it, so
that nodes which pass a dead one's contact round do not keep it alive, whatever their clocks say.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from time import monotonic

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import MsgspecError, Struct, msgpack, structs

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.network.identity import ID_BYTES, UNREADABLE, Authority, Refused, handle_of, identify
from planaria.network.tls import Credentials

CONTACTS_MAX = 1 << 16  # then the one not heard of for longest is forgotten
SUPERVISORS_MAX = 64  # of one cluster, those with the smallest handles: all nodes ask all of them
ASKED_MAX = 256  # nodes in one question
ADDRESSES_MAX = 8  # of one node
ADDRESS_LENGTH_MAX = 300  # a name of 253 characters and a port
CERTIFICATE_BYTES_MAX = 4096
SERIAL_MAX = 1 << 62
GARBAGE = (MsgspecError, ValueError, RecursionError)  # what decoding it raises
AGE_MAX = 3600  # seconds without renewal, after which a contact is forgotten


class Contact(Struct, frozen=True, array_like=True):
    """How to reach a node; a higher serial takes the place of a lower one.

    `signature` is by the key of `certificate`, over all that comes before the two.
    """

    id: bytes
    addresses: tuple[str, ...]
    serial: int
    supervises: bool = False
    certificate: bytes = b""
    signature: bytes = b""
    age: int = 0  # seconds since its node made it, as far as those who passed it on can tell

    @property
    def handle(self) -> NodeId:
        """The number by which protocols know the node."""
        return handle_of(self.id)

    @property
    def sound(self) -> bool:
        """Could this be a contact at all?"""
        known = len(self.id) == ID_BYTES and 0 < len(self.addresses) <= ADDRESSES_MAX
        small = len(self.certificate) <= CERTIFICATE_BYTES_MAX and len(self.signature) <= 64
        timely = 0 <= self.serial <= SERIAL_MAX and 0 <= self.age <= AGE_MAX
        return known and small and timely and all(map(_is_address, self.addresses))

    @property
    def signed(self) -> bytes:
        """The bytes that the signature is over."""
        said = ("planaria contact", self.id, self.addresses, self.serial, self.supervises)
        return msgpack.encode(said)

    def sign(self, credentials: Credentials) -> "Contact":
        """The same contact with its node's certificate and signature."""
        certificate, signature = credentials.der, credentials.sign(self.signed)
        return structs.replace(self, certificate=certificate, signature=signature)


class Known(Struct):
    """A contact that was believed, when it was made by our clock, and when its node's name ends."""

    contact: Contact
    made: float
    until: datetime | None


class Contacts:
    """The contacts that one node knows.

    With an `authority` only what is signed by a key that it has certified is believed, and only of
    one with the role `supervise` that it supervises.
    """

    def __init__(
        self,
        authority: Authority | None = None,
        clock: Callable[[], float] = monotonic,
        revoked: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        """`revoked`: is the certificate of this id no good any more?"""
        self._revoked = revoked
        self.authority, self.clock = authority, clock
        self.forged = 0  # contacts that were refused
        self._known: dict[NodeId, Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Contact]:
        """All of them, the one heard of last at the end."""
        return (self._aged(one) for one in self._known.values() if not self._is_revoked(one))

    def learn(self, contact: Contact) -> bool:
        """Keep a sound contact unless a newer one is known; True if it is new."""
        known = self._known.get(contact.handle)
        if known is not None and contact.serial <= known.contact.serial:
            return False
        try:
            until = self.check(contact)
        except Refused:
            self.forged += 1
            return False
        self._known.pop(contact.handle, None)
        self._known[contact.handle] = Known(contact, self.clock() - contact.age, until)
        if len(self._known) > CONTACTS_MAX:
            del self._known[next(iter(self._known))]
        return True

    def check(self, contact: Contact) -> datetime | None:
        """Until when a contact may be believed, by its certificate; raises Refused if not now."""
        if not contact.sound:
            raise Refused("no contact: id, addresses, serial or age are out of range")
        if self.authority is None:
            return None
        try:
            certificate = x509.load_der_x509_certificate(contact.certificate)
            identity = identify(certificate, self.authority)
            key = certificate.public_key()
            assert isinstance(key, Ed25519PublicKey)  # `identify` refuses others
            key.verify(contact.signature, contact.signed)
        except (*UNREADABLE, InvalidSignature):
            raise Refused("a contact that its node has not signed") from None
        if self._revoked(contact.id):
            raise Refused(f"a contact by {identity.name!r}, which is revoked")
        if identity.id != contact.id or "node" not in identity.roles:
            raise Refused(f"a contact by {identity.name!r}, which is not that node")
        if contact.supervises and "supervise" not in identity.roles:
            raise Refused(f"a contact by {identity.name!r}, which may not supervise")
        return identity.expires

    def get(self, node: NodeId) -> Contact | None:
        """How to reach a node, if that is known; one that was revoked since is known no more."""
        known = self._known.get(node)
        return None if known is None or self._is_revoked(known) else self._aged(known)

    def newer(self, contact: Contact) -> Contact | None:
        """What is known of the same node, if that is newer."""
        known = self.get(contact.handle)
        return known if known is not None and known.serial > contact.serial else None

    def supervisors(self) -> list[Contact]:
        """The contacts of those that supervise, by their handles."""
        found = [it for it in self._known.values() if it.contact.supervises]
        found = [it for it in found if not self._is_revoked(it)]
        found.sort(key=lambda one: one.contact.handle)
        return [self._aged(one) for one in found[:SUPERVISORS_MAX]]

    def expire(self) -> None:
        """Forget what was not renewed for too long, and what its certificate no longer covers."""
        oldest, now = self.clock() - AGE_MAX, datetime.now(UTC)
        self._known = {
            node: one
            for node, one in self._known.items()
            if one.made >= oldest and (one.until is None or one.until >= now)
            if not self._is_revoked(one)
        }

    def question(self, nodes: Iterable[NodeId]) -> bytes:
        """The body of a frame that asks for these nodes."""
        return msgpack.encode(list(nodes)[:ASKED_MAX])

    def answer(self, question: bytes) -> bytes | None:
        """The contacts of those that are known here; None if there are none, or it is garbage."""
        try:
            nodes = msgpack.decode(question, type=list[NodeId])[:ASKED_MAX]
        except GARBAGE:
            return None
        found = [contact for node in nodes if (contact := self.get(node)) is not None]
        return to_wire(found) if found else None

    def _is_revoked(self, known: Known) -> bool:
        return self._revoked(known.contact.id)

    def _aged(self, known: Known) -> Contact:
        age = min(max(0, int(self.clock() - known.made)), AGE_MAX)
        return structs.replace(known.contact, age=age)


def to_wire(contacts: Iterable[Contact]) -> bytes:
    """The body of a frame that tells these contacts."""
    return msgpack.encode(list(contacts)[:ASKED_MAX])


def from_wire(body: bytes) -> list[Contact]:
    """The contacts that somebody tells; none if it is garbage."""
    try:
        return msgpack.decode(body, type=list[Contact])[:ASKED_MAX]
    except GARBAGE:
        return []


def _is_address(text: str) -> bool:
    try:
        parse_address(text)
    except UsageError:
        return False
    return True


def parse_address(text: str, default_port: int = 7400) -> tuple[str, int]:
    """Host and port of `HOST[:PORT]` or `[IPV6]:PORT`; raises `UsageError` that shows the form."""
    host, port = text, ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        good = bool(bracket) and (not rest or rest.startswith(":"))
        port = rest[1:]
    else:
        good = text.count(":") <= 1
        host, _, port = text.partition(":")
    good = good and _is_host(host) and (not port or (port.isascii() and port.isdigit()))
    good = good and len(text) <= ADDRESS_LENGTH_MAX
    number = int(port or default_port) if good else -1
    if not 0 <= number < 65536:
        raise UsageError(f"address {text!r}: write HOST:PORT, such as 127.0.0.1:7400 or [::1]:7400")
    return host, number


def _is_host(text: str) -> bool:
    """Can it be looked up? A name that cannot would raise where it is dialled."""
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return bool(text) and "\0" not in text


def format_address(host: str, port: int) -> str:
    """The form that `parse_address` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_unspecified(host: str) -> bool:
    """Does it stand for all addresses of a machine, so that nobody can dial it?"""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
