"""One client at this node: what it has asked, what it follows, what it has not taken yet."""

from collections import deque
from typing import TYPE_CHECKING

from planaria.core.codec import Codec
from planaria.core.errors import CapacityExceeded
from planaria.network.client.messages import MESSAGES, ClientMessage, Failed
from planaria.network.connection import Connection

if TYPE_CHECKING:
    from planaria.network.gate.tails import Tail

REQUESTS_MAX = 4096  # of one client, not answered yet
TAILS_MAX = 256  # of one client
PUT_BYTES_MAX = 32 << 20  # of one client, not yet held by as many members as it wants
CONTROL_BYTES = 4096  # an answer that is larger goes with the publications

CODEC = Codec(MESSAGES)


class Session:
    """A client's connection. An answer that its link does not take waits, and counts as open."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.tails: dict[int, Tail] = {}
        self.put_bytes = 0
        self.open = 0  # requests that are not answered, tails aside
        self.closed = False
        self._waiting: deque[tuple[ClientMessage, bytes]] = deque()

    @property
    def publisher(self) -> int:
        """In whose name this client publishes: its own, as the link knows it."""
        return self.connection.peer

    def admit(self, request: int, size: int = 0) -> bool:
        """Take a request up, or refuse it with a line."""
        self.open += 1
        if self.open > 2 * REQUESTS_MAX:
            self.connection.refuse(f"{self.open} requests unanswered: read the answers")
        elif self.open > REQUESTS_MAX:
            self.fail(request, "full", f"{REQUESTS_MAX} requests of one client: wait for answers")
        elif size and self.put_bytes and self.put_bytes + size > PUT_BYTES_MAX:
            self.fail(request, "full", f"{self.put_bytes} bytes of one client wait: slow down")
        else:
            return True
        return False

    def fail(self, request: int, code: str, reason: str) -> None:
        """Answer that it cannot be done."""
        self.answer(Failed(request, code, reason))

    def answer(self, message: ClientMessage) -> None:
        """Answer a request; if the client takes nothing now, as soon as it does."""
        if self.closed:
            return
        try:
            data = CODEC.encode(message)
        except CapacityExceeded as error:
            message = Failed(message.request, "usage", f"the answer is too large: {error}")
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
        """Send part of a tail; False if the client is behind."""
        if self.closed or self.connection.link.busy:
            return False
        return self.connection.send(CODEC.encode(message), message, bulk=True)
