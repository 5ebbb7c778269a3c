"""Small protocols with which the tests of the simulator see what it does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Deliver,
    Effects,
    Node,
    Publish,
    Published,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.simulator.engine import Entry
from planaria.simulator.worlds.registry import find_kind

ROOT = Path(__file__).resolve().parent.parent
SORTED = "examples/sorted_list.py:SortedListOverlay"


def sorted_list() -> Overlay:
    """The example overlay, loaded as the command line loads it."""
    return find_kind(str(ROOT / SORTED)).make()


def ask(node: Node, command: Command) -> Effects:
    """What `node` does for its application; a refusal is an answer too."""
    try:
        return node.on_command(command)
    except (UsageError, CapacityExceeded):
        return ()


class Note(Message, frozen=True, tag="toys.note"):
    """Carries a number."""

    number: int


class Letter(Message, frozen=True, tag="toys.letter"):
    """Carries a number too, under another tag."""

    number: int


class ProbeState(State):
    """What a probe remembers over a restart."""

    heard: list[int]
    timeouts: int
    leaving: bool


class Probe(Node):
    """Remembers its inputs; says what it is told to say at each timeout, and answers commands."""

    state_type = ProbeState
    reads_clock = True

    def __init__(self, id: NodeId, says: Sequence[Send] = ()) -> None:
        super().__init__(id)
        self.says = list(says)
        self.heard: list[int] = []
        self.timeouts = 0
        self.leaving = False
        self.commands: list[Command] = []

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        assert isinstance(message, Note | Letter)
        self.heard.append(message.number)
        return []

    def on_timeout(self) -> Effects:
        self.timeouts += 1
        return self.says

    def on_command(self, command: Command) -> Effects:
        if isinstance(command, Subscribe) and command.where is not None:
            raise UsageError("a probe knows no conditions: subscribe to a topic")
        self.commands.append(command)
        if isinstance(command, Unsubscribe):
            self.leaving = True
        if isinstance(command, Publish):
            id = command.payload
            return [Published(command.topic, id), Deliver.one(command.topic, id, command.payload)]
        return []


class ProbeOverlay(Overlay):
    """`n` probes, each saying its number to the next; always legitimate."""

    name = "toys:ProbeOverlay"

    def spawn(self, id: NodeId, rng: Random) -> Node:
        return Probe(id, [Send(0, Note(id))])

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        return [Probe(id, [Send((id + 1) % n, Note(id))]) for id in range(n)]

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        assert isinstance(node, Probe)
        node.timeouts = rng.randrange(10**6)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        return rng.choice(ids), Note(10_000 + rng.randrange(1000))

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        return []

    def leave(self, node: Node) -> Command | None:
        return Unsubscribe("news") if node.id else None

    def publication(self, id: NodeId, number: int) -> Command | None:
        return Publish("news", b"%d" % number)


class Log:
    """Keeps everything that is shown to it."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, NodeId, Entry, object]] = []

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        self.rows.append((tick, kind, node, entry, effect))

    def ticks(self, kind: str, node: NodeId | None = None) -> list[int]:
        """When `kind` happened, at `node` or anywhere."""
        return [row[0] for row in self.rows if row[1] == kind and node in (None, row[2])]

    def travels(self) -> dict[int, int]:
        """How long each message took, by its number; of copies the last."""
        sent = {row[3].number: row[0] for row in self.rows if row[1] == "send"}
        return {
            row[3].number: row[0] - sent[row[3].number] for row in self.rows if row[1] == "deliver"
        }

    def plain(self) -> list[tuple[Any, ...]]:
        """All rows in a form that can be compared between runs."""
        return [
            (tick, kind, node, repr(entry), repr(effect))
            for tick, kind, node, entry, effect in self.rows
        ]
