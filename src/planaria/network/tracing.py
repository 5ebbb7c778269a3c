"""What a live node hears, says and does for a while, in the columns of a simulator's trace.

A traced node stands before the node itself, so that nothing is paid while nobody looks. A message
is numbered by a hash of its bytes and its two ends: the rows of both ends carry the same number.
"""

import asyncio
from collections.abc import Iterator
from hashlib import blake2b
from time import time_ns
from typing import Any

from msgspec import json

from planaria.core.codec import to_wire
from planaria.core.errors import CapacityExceeded, PlanariaError
from planaria.core.ids import NodeId
from planaria.core.message import Message, tag_of, topic_of
from planaria.core.node import Command, Effects, LinkDown, Node, Send
from planaria.core.state import State
from planaria.core.trace import Row
from planaria.network.host import Host

ROWS_MAX = 100_000  # of one trace: about 20 MB; then the rest is left out, and said to be
SECONDS_MAX = 60.0
TIMEOUT_CAUSE = 0  # of what no message led to


class Traced(Node):
    """Stands before `node` and notes what passes."""

    __slots__ = ("left_out", "node", "rows")

    def __init__(self, node: Node) -> None:
        super().__init__(node.id)
        self.node = node
        self.rows: list[Row] = []
        self.left_out = 0

    @property
    def reads_clock(self) -> bool:  # type: ignore[override]
        """As the node itself."""
        return self.node.reads_clock

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """A message was handled, and these are its consequences."""
        effects = self.node.on_message(message, sender)
        number, size = numbered(message, sender, self.id)
        tag, topic = tag_of(message), topic_of(message)
        self._note("deliver", sender, self.id, tag, number, TIMEOUT_CAUSE, size, topic)
        return self._consequences(effects, number)

    def on_timeout(self) -> Effects:
        """Time passed."""
        self._note("timeout", None, None, None, None, TIMEOUT_CAUSE, None)
        return self._consequences(self.node.on_timeout(), TIMEOUT_CAUSE)

    def on_command(self, command: Command) -> Effects:
        """The application asked, or the driver reported something."""
        name = type(command).__name__
        try:
            effects = self.node.on_command(command)
        except PlanariaError:
            self._note("refuse", None, None, name, None, TIMEOUT_CAUSE, None)
            raise
        self._note("command", None, None, name, None, TIMEOUT_CAUSE, None)
        if isinstance(command, LinkDown):
            for message in command.unacknowledged:
                number, size = numbered(message, self.id, command.peer)
                tag, topic = tag_of(message), topic_of(message)
                self._note("drop", self.id, command.peer, tag, number, TIMEOUT_CAUSE, size, topic)
        return self._consequences(effects, TIMEOUT_CAUSE)

    def fault(self, words: str) -> None:
        """Somebody breaks the node on purpose."""
        self._note("fault", None, None, words, None, TIMEOUT_CAUSE, None)

    def state(self) -> State:
        """That of the node itself."""
        return self.node.state()

    def _consequences(self, effects: Effects, cause: int) -> Effects:
        for effect in effects:
            if isinstance(effect, Send):
                number, size = numbered(effect.message, self.id, effect.target)
                tag, topic = tag_of(effect.message), topic_of(effect.message)
                self._note("send", self.id, effect.target, tag, number, cause, size, topic)
            else:
                self._note("effect", None, None, type(effect).__name__, None, cause, None)
        return effects

    def _note(self, kind: str, *rest: Any) -> None:
        if len(self.rows) >= ROWS_MAX:
            self.left_out += 1
        else:
            self.rows.append(Row(time_ns() // 1_000_000, self.id, kind, *rest))


def numbered(message: Message, source: NodeId | None, target: NodeId) -> tuple[int, int | None]:
    """The number of a message, the same at both of its ends, and its size on the wire."""
    try:
        data = to_wire(message)
    except CapacityExceeded:
        return 0, None
    ends = f"{source}:{target}:".encode()
    digest = blake2b(ends + data, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1, len(data)


async def trace(host: Host, seconds: float) -> Traced:
    """Trace a node for a while; raises CapacityExceeded if somebody else does."""
    if isinstance(host.node, Traced):
        raise CapacityExceeded("somebody traces this node already: try again later")
    node = host.node
    traced = host.node = Traced(node)
    try:
        await asyncio.sleep(seconds)
    finally:
        host.node = node
    return traced


def lines(traced: Traced) -> Iterator[bytes]:
    """A line of JSON for each row; a last one says how many were left out, if any were."""
    for row in traced.rows:
        yield json.encode(row._asdict()) + b"\n"
    if traced.left_out:
        yield json.encode({"left_out": traced.left_out}) + b"\n"
