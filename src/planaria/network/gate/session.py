"""One client at this node: what it has asked, what it follows, what it has not taken yet."""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from planaria.core.codec import Codec
from planaria.core.errors import CapacityExceeded, MalformedMessage, UsageError
from planaria.network.client.messages import (
    MESSAGES,
    ClientMessage,
    Failed,
    Position,
    Put,
    PutNew,
    Tail,
    Vectors,
)
from planaria.network.connection import Connection
from planaria.network.gate.turns import Turns
from planaria.records.record import Record, Stream

if TYPE_CHECKING:
    from planaria.network.gate.cursors import Tail as Followed

REQUESTS_MAX = 4096  # of one client, not answered yet
TAILS_MAX = 256  # of one client
POSITIONS_MAX = 1 << 20  # of one client, given before the tails that they belong to
PUT_BYTES_MAX = 32 << 20  # of one client, not yet held by as many members as it wants
PUBLISHED_MAX = 256  # streams of one client that its node counts; then the oldest is forgotten
CONTROL_BYTES = 4096  # an answer that is larger goes with the publications
OUT_OF_TURN = "what was published before it is to come first: publish it again after that"

CODEC = Codec(MESSAGES)
log = logging.getLogger("planaria.network")


class Elsewhere(UsageError):
    """This node cannot do it; another may."""


class Unsure(Elsewhere):
    """Nobody has said yet what is laid down: another node may know."""


class Session:
    """A client's connection. An answer that its link does not take waits, and counts as open."""

    obeys = True  # is it served where charters say?

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.tails: dict[int, Followed] = {}
        self.awaited: dict[int, Tail] = {}  # tails that wait to begin
        self._vectors: dict[int, dict[str, list[Position]]] = {}  # of tails to come
        self._positions = 0  # in them
        self.put_bytes = 0
        self.open = 0  # requests that are not answered, tails aside
        self.requests = 0  # since it connected
        self.published: dict[tuple[str, str, Stream], int] = {}  # by overlay and topic
        self.closed = False
        self._turns = Turns(monotonic)
        self._waiting: deque[tuple[ClientMessage, bytes]] = deque()

    @property
    def publisher(self) -> int:
        """In whose name this client publishes: its own, as the link knows it."""
        return self.connection.peer

    @property
    def name(self) -> str | None:
        """Who this client is by its certificate; None in a network without any."""
        identity = self.connection.identity
        return None if identity is None else identity.name

    def admit(self, request: int, size: int = 0) -> bool:
        """Take a request up, or refuse it with a line."""
        self.open += 1
        self.requests += 1
        if self.open > 2 * REQUESTS_MAX:
            self.connection.refuse(f"{self.open} requests unanswered: read the answers")
        elif self.open > REQUESTS_MAX:
            self.fail(request, "full", f"{REQUESTS_MAX} requests of one client: wait for answers")
        elif size and self.put_bytes and self.put_bytes + size > PUT_BYTES_MAX:
            self.fail(request, "full", f"{self.put_bytes} bytes of one client wait: slow down")
        else:
            return True
        return False

    def in_turn(self, message: Put | PutNew) -> bool:
        """Is it a publication's turn on its topic? If not, it is refused for now."""
        if self._turns.begin(message.request, (message.overlay, message.topic)):
            return True
        if self.admit(message.request):
            self.fail(message.request, "full", OUT_OF_TURN)
        return False

    def no_turn(self, message: Put | PutNew) -> None:
        """It goes into a ring, where numbers keep the order."""
        self._turns.forget(message.request, (message.overlay, message.topic))

    def check_turn(self, message: Put | PutNew) -> None:
        """Raise CapacityExceeded if meanwhile something was refused that comes before it."""
        if self._turns.waits(message.request, (message.overlay, message.topic)):
            raise CapacityExceeded(OUT_OF_TURN)

    def keep(self, part: Vectors) -> None:
        """Keep part of the vectors of a tail to come; raises UsageError if that is too much."""
        whole = self._vectors.setdefault(part.request, {})
        for topic, positions in part.vectors.items():
            whole.setdefault(topic, []).extend(positions)
        self._positions += count(part.vectors)
        if self._positions > POSITIONS_MAX or len(self._vectors) > TAILS_MAX:
            self._vectors, self._positions = {}, 0
            raise UsageError(f"more than {POSITIONS_MAX} positions: subscribe to fewer topics")

    def whole(self, tail: Tail) -> Tail:
        """A tail that is asked for now, with the vectors that came before it."""
        before = self._vectors.pop(tail.request, {})
        self._positions -= count(before)
        for topic, positions in tail.vectors.items():
            before.setdefault(topic, []).extend(positions)
        return replace(tail, vectors=before)

    def begins(self, tail: Tail) -> bool:
        """May a tail that waited begin? Not if it was stopped, or asked for anew, meanwhile."""
        if self.awaited.get(tail.request) is not tail:
            self.open -= 1
            return False
        del self.awaited[tail.request]
        return True

    def count(self, overlay: str, topic: str, record: Record) -> None:
        """What it published through this node is held, or on its way."""
        place = (overlay, topic, record.stream)
        self.published[place] = self.published.pop(place, 0) + record.count
        if len(self.published) > PUBLISHED_MAX:
            del self.published[next(iter(self.published))]

    def fail(self, request: int, code: str, reason: str) -> None:
        """Answer that it cannot be done."""
        self.answer(Failed(request, code, reason))

    def attempt(self, request: int, act: Callable[[], None]) -> None:
        """Do what a client asks, or tell it why that cannot be."""
        try:
            act()
        except Elsewhere as error:
            self.fail(request, "elsewhere", str(error))
        except UsageError as error:
            self.fail(request, "usage", str(error))
        except CapacityExceeded as error:
            self.fail(request, "full", str(error))

    def not_understood(self, body: bytes, error: MalformedMessage) -> None:
        """Answer even what this version does not understand, if only it names its request."""
        try:
            tag, request = msgpack.decode(body, type=list)[:2]
        except (MsgspecError, ValueError, RecursionError):
            self.connection.malformed += 1
            if self.connection.malformed == 1:  # or whoever likes could fill the log
                log.info("a client sent no message: %r", str(error))  # its words, in one line
            return
        if isinstance(request, int) and self.admit(request):
            self.fail(request, "usage", f"this node does not understand {tag!r}: {str(error)!r}")

    def answer(self, message: ClientMessage) -> None:
        """Answer a request; if the client takes nothing now, as soon as it does."""
        refused = isinstance(message, Failed) and message.code == "full"
        self._turns.end(message.request, refused=refused)
        if self.closed:
            return
        try:
            data = CODEC.encode(message)
        except CapacityExceeded as error:
            message = Failed(message.request, "usage", f"the answer is too large: {error}")
            data = CODEC.encode(message)
        except OverflowError:  # numbers that no record has: this node's memory is damaged
            message = Failed(message.request, "elsewhere", "this node mends itself: ask another")
            data = CODEC.encode(message)
        self._waiting.append((message, data))
        self.flush()

    def flush(self) -> None:
        """Send what waits, in order, as far as the link takes it."""
        while self._waiting:
            message, data = self._waiting[0]
            if not self.connection.send(data, message, bulk=len(data) > CONTROL_BYTES):
                return
            self._waiting.popleft()
            self.open -= 1

    def send(self, message: ClientMessage) -> bool:
        """Send part of a tail; False if the client is behind, or a fault made it no message."""
        if self.closed or self.connection.link.busy:
            return False
        try:
            data = CODEC.encode(message)
        except OverflowError:
            return False
        return self.connection.send(data, message, bulk=True)


def count(vectors: Mapping[str, Sequence[Position]]) -> int:
    """How many positions there are in vectors."""
    return sum(map(len, vectors.values()))
