"""One process in several overlays: a node made of nodes, one for each of them.

A message goes to the part whose overlay it belongs to, time to all parts that are awake, and what
the driver senses to whomever it concerns. A part sleeps, and costs nothing, until an application
or another node needs it. Parts share nothing: what a fault does to one it does to no other.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import field

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    NOTHING,
    Busy,
    Clock,
    Command,
    Effect,
    Effects,
    Leave,
    LinkDown,
    LinkUp,
    Node,
    Persist,
    Publish,
    PublishMany,
    Ready,
    Restarted,
    Send,
)
from planaria.core.state import State


class InOverlay(Command, frozen=True, gc=False):
    """Give this command to the node's part in an overlay, and to no other part."""

    overlay: str
    command: Command


class Wake(Command, frozen=True, gc=False):
    """Take part in an overlay from now on, whether or not anybody asks for it."""

    overlay: str


class Around(Command, frozen=True, gc=False):
    """These nodes can be asked by whoever wants to join, as far as the driver knows."""

    ids: tuple[NodeId, ...]


class FromOverlay(Effect, frozen=True, gc=False):
    """What the part in an overlay tells the local application."""

    overlay: str
    effect: Effect


class Part:
    """A node's part in one overlay, and what it is to be told. Subclasses know their overlay."""

    overlay: str

    def __init__(self, node: Node, messages: Iterable[type[Message]]) -> None:
        self.node, self.messages = node, frozenset(messages)
        self.awake = False

    def claims(self, message: Message) -> bool:
        """Is a message of one of its classes for this overlay? Two may share a class."""
        return True

    def admits(self, message: Message, sender: NodeId | None) -> bool:
        """May `sender` say this? Most nodes judge that themselves."""
        return True

    def links_to(self, peer: NodeId) -> bool:
        """Is a link of the driver's one of this overlay's?"""
        return True

    def greets(self, peer: NodeId) -> Effects:
        """What it says to the other end of a new link of its overlay."""
        return NOTHING

    def acquaint(self, ids: tuple[NodeId, ...]) -> None:
        """These nodes can be asked."""

    def heard(self, message: Message) -> None:
        """A message of another node comes to its node now."""

    def said(self, message: Message) -> None:
        """A message of its node goes to another one now."""


class CompositeState(State):
    """The snapshot of each part that is awake, by its overlay; the main one's under `main`."""

    parts: dict[str, bytes] = field(default_factory=dict)


class Composite(Node):
    """`main` is always awake and gets all commands that are not for another part."""

    __slots__ = ("_owners", "links", "main", "parts")
    state_type = CompositeState
    reads_clock = True

    def __init__(self, main: Node, parts: Mapping[str, Part], others: Iterable[type[Message]] = ()):
        """`others` are messages of overlays in which this node takes no part: it ignores them."""
        super().__init__(main.id)
        self.main, self.parts = main, dict(parts)
        self.links: dict[NodeId, None] = {}
        self._owners: dict[type[Message], Part | None] = dict.fromkeys(others)
        for part in self.parts.values():
            self._owners |= dict.fromkeys(part.messages, part)

    def awake(self) -> list[Part]:
        """The parts that take part."""
        return [part for part in self.parts.values() if part.awake]

    def wake(self, overlay: str) -> Effects:
        """Take part in an overlay from now on, as far as there are links for it.

        Raises UsageError if this node has no part in it.
        """
        part = self.parts.get(overlay)
        if part is None:
            raise UsageError(f"this node takes no part in {overlay}: ask another (--overlay)")
        if part.awake:
            return NOTHING
        part.awake = True
        effects: list[Effect] = []
        for peer in [it for it in self.links if part.links_to(it)]:
            effects += _met(part, peer)
        return effects

    # Inputs

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Hand a message to the part that it is for, which wakes it."""
        kind = type(message)
        if kind not in self._owners:
            return self.main.on_message(message, sender)
        part = self._owners[kind]
        if part is None:
            return NOTHING
        if not part.claims(message):
            return self.main.on_message(message, sender)
        if not part.admits(message, sender):
            return NOTHING
        woken = self.wake(part.overlay)
        part.heard(message)
        return [*woken, *_from_part(part, part.node.on_message(message, sender))]

    def on_timeout(self) -> Effects:
        """Time passed, for all that are awake."""
        effects = [*self.main.on_timeout()]
        for part in self.awake():
            effects += _from_part(part, part.node.on_timeout())
        return effects

    def on_command(self, command: Command) -> Effects:
        """What the application asks is for one part, what the driver senses for all."""
        match command:
            case PublishMany() | Publish():
                return self.main.on_command(command)
            case InOverlay(overlay, inner):
                woken = self.wake(overlay)
                part = self.parts[overlay]
                if isinstance(inner, LinkUp):
                    return [*woken, *_met(part, inner.peer)]
                return [*woken, *_from_part(part, part.node.on_command(inner))]
            case Wake(overlay):
                return self.wake(overlay)
            case Around(ids):
                for part in self.parts.values():
                    part.acquaint(tuple(id for id in ids if id != self.id))
                return NOTHING
            case LinkUp(peer):
                self.links[peer] = None
                met = [_met(part, peer) for part in self.awake() if part.links_to(peer)]
                return [*self.main.on_command(command), *(it for some in met for it in some)]
            case LinkDown():
                return self._lost(command)
            case Busy() | Ready() | Leave() | Restarted():
                return self._all(command)
            case Clock():
                return self._all(command, lambda part: part.node.reads_clock)
        return self.main.on_command(command)

    def _all(self, command: Command, concerns: Callable[[Part], bool] = lambda _: True) -> Effects:
        effects = [*self.main.on_command(command)]
        for part in self.awake():
            if concerns(part):
                effects += _from_part(part, part.node.on_command(command))
        return effects

    def _lost(self, command: LinkDown) -> Effects:
        """Tell each part what of its own may not have arrived."""
        peer = command.peer
        self.links.pop(peer, None)
        lost: dict[Part | None, list[Message]] = {}
        for message in command.unacknowledged:
            part = self._owners.get(type(message))
            mine = part if part is not None and part.claims(message) else None
            lost.setdefault(mine, []).append(message)
        effects = [*self.main.on_command(LinkDown(peer, tuple(lost.get(None, ()))))]
        for part in self.awake():
            its = LinkDown(peer, tuple(lost.get(part, ())))
            effects += _from_part(part, part.node.on_command(its))
        return effects

    # State

    def state(self) -> CompositeState:
        """The snapshots of the parts."""
        parts = {part.overlay: part.node.snapshot() for part in self.awake()}
        return CompositeState({"main": self.main.snapshot(), **parts})

    def load(self, state: State) -> None:
        """Take the snapshots of the parts that this node has; others stay as they are."""
        assert isinstance(state, CompositeState)
        if "main" in state.parts:
            self.main.restore(state.parts["main"])
        for name, part in self.parts.items():
            part.awake = name in state.parts
            if part.awake:
                part.node.restore(state.parts[name])


def _met(part: Part, peer: NodeId) -> Effects:
    """A part has a new link."""
    return _from_part(part, [*part.node.on_command(LinkUp(peer)), *part.greets(peer)])


def _from_part(part: Part, effects: Effects) -> Effects:
    """A part's effects: what is for the application says from which overlay it comes."""
    for it in effects:
        if isinstance(it, Send):
            part.said(it.message)
    return [
        it if isinstance(it, Send | Persist) else FromOverlay(part.overlay, it) for it in effects
    ]
