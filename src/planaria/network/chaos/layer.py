"""Between connections and their host: every frame of another node passes here, under the rules.

The frames of clients pass untouched, or nobody could end a fault. Frames are whole and decrypted
here, on links that exist and on those still to come.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from msgspec import MsgspecError, msgpack

from planaria.core.ids import NodeId
from planaria.network.chaos.rules import MESSAGES, Reorder, Rule
from planaria.network.connection import NODE, Connection, Handler, Hello
from planaria.network.frames import Kind
from planaria.network.identity import handle_of
from planaria.network.link import Task

REMEMBERED_MAX = 1000  # messages kept to be replayed: enough to be stale, few enough to be free
REMEMBERED_BYTES_MAX = 1 << 16  # of each; larger ones are not kept

Action = Callable[[], None]


class Layer:
    """The rules in force at one node, and the messages that it was last sent."""

    def __init__(self) -> None:
        self.rules: dict[int, Rule] = {}
        self.past: deque[tuple[NodeId, bytes]] = deque(maxlen=REMEMBERED_MAX)
        self._number = 0
        self._holding: dict[Interposed, None] = {}

    def connect(self, handler: Handler, *, dialled: bool) -> Connection:
        """A connection whose frames pass here."""
        return Interposed(self, handler, dialled=dialled)

    def begin(self, rule: Rule) -> int:
        """Put a rule in force; returns its number."""
        self._number += 1
        self.rules[self._number] = rule
        return self._number

    def end(self, number: int) -> int:
        """End a rule; returns how many frames it was felt by. What it held goes on."""
        rule = self.rules.pop(number, None)
        holding, self._holding = self._holding, {}
        for connection in holding:
            connection.release()
        return 0 if rule is None else rule.affected

    def holds(self, sender: NodeId, kind: int) -> bool:
        """Is a frame to be kept until a rule ends?"""
        holding = [rule for rule in self.rules.values() if rule.holds(sender, kind)]
        for rule in holding:
            rule.affected += 1
        return bool(holding)

    def deaf_to(self, sender: NodeId) -> bool:
        """Is not even a sign of life heard of this node?"""
        return any(rule.holds(sender, Kind.BEAT) for rule in self.rules.values())

    def keep(self, connection: "Interposed") -> None:
        """A connection holds frames."""
        self._holding[connection] = None

    def remember(self, sender: NodeId, kind: int, body: bytes) -> None:
        """Keep a message to replay it."""
        if kind in MESSAGES and len(body) <= REMEMBERED_BYTES_MAX:
            self.past.append((sender, body))


class Interposed(Connection):
    """A connection whose frames pass the layer."""

    def __init__(self, layer: Layer, handler: Handler, *, dialled: bool) -> None:
        super().__init__(handler, dialled=dialled)
        self._layer = layer
        self._sender: NodeId | None = None  # the node at the other end, from its hello on
        self._held: deque[tuple[int, bytes]] = deque()
        self._waiting: deque[Action] = deque()  # delayed frames that keep their order
        self._last = 0.0  # when the last of them comes

    def data_received(self, data: bytes) -> None:
        """Who is cut off is not heard either."""
        heard = self.heard
        super().data_received(data)
        if self._sender is not None and self._layer.deaf_to(self._sender):
            self.heard = heard

    def release(self) -> None:
        """Handle what was held, unless another rule holds it."""
        held, self._held = self._held, deque()
        for kind, body in held:
            if not self.reason:
                self._frame(kind, body)

    def _frame(self, kind: int, body: bytes) -> None:
        if self._sender is None and kind == Kind.HELLO:
            self._sender = _node_of(body)
        sender, layer = self._sender, self._layer
        if sender is not None:
            layer.remember(sender, kind, body)
        if sender is None or not (layer.rules or self._held or self._waiting):
            super()._frame(kind, body)
        elif layer.holds(sender, kind) or self._behind(kind):
            self._held.append((kind, body))
            layer.keep(self)
        else:
            self._treat(sender, kind, body)

    def _behind(self, kind: int) -> bool:
        """Does a frame wait behind others? Nothing comes before the hello, no message overtakes."""
        return bool(self._held) and (kind in MESSAGES or self.theirs is None)

    def _treat(self, sender: NodeId, kind: int, body: bytes) -> None:
        """Apply all rules; copies after the first are no frames of the link."""
        copies, overtaken = [0.0], False
        for rule in self._layer.rules.values():
            before = copies
            copies = rule.apply(sender, kind, copies)
            body = rule.body(kind, body)
            overtaken = overtaken or (isinstance(rule, Reorder) and copies != before)
        if kind not in MESSAGES:
            self._in_turn(copies[0] if copies else 0.0, partial(super()._frame, kind, body))
            return
        task = self.link.begin(kind, len(body))  # counted in the order of arrival
        if not copies:
            self.finish(task)
        elif overtaken:
            self._later(copies[0], partial(self._process, body, task))
        else:
            self._in_turn(copies[0], partial(self._process, body, task))
        for more in copies[1:]:
            self._later(more, partial(self._process, body, Task(kind == Kind.BULK, 0)))

    def _process(self, body: bytes, task: Task) -> None:
        if self.theirs is not None:
            self.handler.received(self, body, task)

    def _in_turn(self, seconds: float, action: Action) -> None:
        """Do it then, after all that waits for its turn."""
        if seconds <= 0 and not self._waiting:
            action()
            return
        due = max(self._loop.time() + seconds, self._last)
        self._waiting.append(action)
        self._last = due
        self._loop.call_at(due, self._next)

    def _next(self) -> None:
        """Timers may come in any order; what waits does not."""
        action = self._waiting.popleft()
        if not self.reason:
            action()

    def _later(self, seconds: float, action: Action) -> None:
        self._loop.call_later(seconds, self._if_open, action)

    def _if_open(self, action: Action) -> None:
        if not self.reason:
            action()


def _node_of(body: bytes) -> NodeId | None:
    """The node that says hello; None: it is a client, or nothing of the kind."""
    try:
        hello = msgpack.decode(body, type=Hello)
    except MsgspecError:
        return None
    return handle_of(hello.id) if hello.role == NODE else None
