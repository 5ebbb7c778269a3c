"""Where nodes are: soft state that is learned from hellos and asked of whoever mentions a node."""

from collections.abc import Iterable, Iterator

from msgspec import MsgspecError, Struct, msgpack

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.network.identity import ID_BYTES, handle_of

CONTACTS_MAX = 1 << 16  # then the one not heard of for longest is forgotten
ASKED_MAX = 256  # nodes in one question
ADDRESSES_MAX = 8  # of one node
ADDRESS_LENGTH_MAX = 300  # a name of 253 characters and a port
SERIAL_MAX = 1 << 62


class Contact(Struct, frozen=True, array_like=True):
    """How to reach a node; a higher serial takes the place of a lower one."""

    id: bytes
    addresses: tuple[str, ...]
    serial: int

    @property
    def sound(self) -> bool:
        """Could this be a contact at all?"""
        known = len(self.id) == ID_BYTES and 0 < len(self.addresses) <= ADDRESSES_MAX
        short = all(len(address) <= ADDRESS_LENGTH_MAX for address in self.addresses)
        return known and short and 0 <= self.serial <= SERIAL_MAX


class Contacts:
    """The contacts that one node knows."""

    def __init__(self) -> None:
        self._known: dict[NodeId, Contact] = {}

    def learn(self, contact: Contact) -> bool:
        """Keep a sound contact unless a newer one is known; True if it is new."""
        if not contact.sound:
            return False
        handle = handle_of(contact.id)
        known = self._known.pop(handle, None)
        best = contact if known is None or contact.serial > known.serial else known
        self._known[handle] = best
        if len(self._known) > CONTACTS_MAX:
            del self._known[next(iter(self._known))]
        return best is not known

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Contact]:
        """All of them, the one heard of last at the end."""
        return iter(self._known.values())

    def get(self, node: NodeId) -> Contact | None:
        """How to reach a node, if that is known."""
        return self._known.get(node)

    def question(self, nodes: Iterable[NodeId]) -> bytes:
        """The body of a frame that asks for these nodes."""
        return msgpack.encode(list(nodes)[:ASKED_MAX])

    def answer(self, question: bytes) -> bytes | None:
        """The contacts of those that are known here; None if there are none, or it is garbage."""
        try:
            nodes = msgpack.decode(question, type=list[NodeId])[:ASKED_MAX]
        except MsgspecError:
            return None
        found = [self._known[node] for node in nodes if node in self._known]
        return msgpack.encode(found) if found else None

    def learn_all(self, answer: bytes) -> list[NodeId]:
        """Take an answer; returns the nodes that can be reached by it."""
        try:
            contacts = msgpack.decode(answer, type=list[Contact])[:ASKED_MAX]
        except MsgspecError:
            return []
        for contact in contacts:
            self.learn(contact)
        return [handle_of(contact.id) for contact in contacts if contact.sound]


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
    good = good and bool(host) and (not port or (port.isascii() and port.isdigit()))
    number = int(port or default_port) if good else -1
    if not 0 <= number < 65536:
        raise UsageError(f"address {text!r}: write HOST:PORT, such as 127.0.0.1:7400 or [::1]:7400")
    return host, number


def format_address(host: str, port: int) -> str:
    """The form that `parse_address` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
