"""How to make, break and judge a supervised skip ring as printed, or with named amendments."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from planaria.core import node as core
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Command, Node
from planaria.core.overlay import Channel, Overlay, Violation
from planaria.core.state import State
from planaria.literal.skipring.amendments import ALL, E22, READINGS
from planaria.literal.skipring.messages import (
    Check,
    Flag,
    GetConfiguration,
    Introduce,
    IntroduceShortcut,
    Linearize,
    Ref,
    RemoveConnections,
    SetData,
    Subscribe,
    Unsubscribe,
)
from planaria.literal.skipring.reference import Stored, skip_ring
from planaria.literal.skipring.subscriber import Subscriber, SubscriberState
from planaria.literal.skipring.supervisor import Supervisor, SupervisorState

SUPERVISOR: NodeId = 0
TOPIC = "literal"


class LiteralSkipRing(Overlay):
    """Node 0 is the supervisor, nodes 1..n the subscribers, all with the same amendments."""

    name = "src/planaria/literal/skipring/overlay.py:LiteralSkipRing"

    def __init__(self, amendments: frozenset[str] = frozenset(), detection: float = 1.0) -> None:
        unknown = amendments - ALL - {E22} - READINGS
        if unknown:
            raise UsageError(f"no such errata: {', '.join(sorted(unknown))}")
        self.amendments = amendments
        self.detection = detection

    # Make

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A subscriber without a label, or the supervisor with an empty database."""
        if id == SUPERVISOR:
            return Supervisor(id, rng, self.amendments, self.detection)
        return Subscriber(id, rng, self.amendments, SUPERVISOR)

    def fresh(self, n: int, rng: Random) -> list[Node]:
        """An empty supervisor and `n` subscribers that join at once."""
        return [self.spawn(id, rng) for id in range(n + 1)]

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """SR(n), drawn from the reference; the labels go to the subscribers in random order."""
        nodes = self.fresh(n, rng)
        supervisor, *subscribers = nodes
        assert isinstance(supervisor, Supervisor)
        rng.shuffle(subscribers)
        places = skip_ring(n) if n else {}
        labels = sorted(places, key=lambda bits: (len(bits), bits))
        owner = {bits: node.id for bits, node in zip(labels, subscribers, strict=True)}
        supervisor.database = dict(owner)
        for bits, node in zip(labels, subscribers, strict=True):
            assert isinstance(node, Subscriber)
            _give(node, bits, places[bits], owner)
        return nodes

    # Break

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary variables; of the references only that they name subscribers is kept."""
        others = [id for id in ids if id != SUPERVISOR]
        if isinstance(node, Supervisor):
            count = rng.randrange(len(others) + 3)
            owners: list[NodeId | None] = [*others, None]
            node.database = {_any_label(rng, len(others)): rng.choice(owners) for _ in range(count)}
            node.next = rng.randrange(2 * len(others) + 1)
        elif isinstance(node, Subscriber):
            size = len(others)
            node.label = None if rng.random() < 0.2 else _any_label(rng, size)
            node.left, node.right, node.ring = (_any_ref(rng, others) for _ in range(3))
            node.shortcuts = {
                _any_label(rng, size): rng.choice(others) for _ in range(rng.randrange(4))
            }
            node.silence = {rng.choice(others): rng.randrange(6) for _ in range(2)}

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Any remote call with any arguments."""
        others = [id for id in ids if id != SUPERVISOR]
        ref = _any_ref(rng, others) or Ref(None, rng.choice(others))
        id = rng.choice(others)
        flag: Flag = rng.choice(("CYC", "LIN"))
        label = _any_label(rng, len(others))
        to_supervisor: list[Message] = [Subscribe(id), GetConfiguration(id, rng.choice(others))]
        to_subscriber: list[Message] = [
            Check(ref, label, flag),
            Linearize(ref),
            Introduce(ref, flag),
            RemoveConnections(id),
            IntroduceShortcut(ref),
            SetData(_any_ref(rng, others), label, _any_ref(rng, others)),
            SetData(None, None, None),
        ]
        if rng.random() < 0.2:
            return SUPERVISOR, rng.choice([*to_supervisor, Unsubscribe(id)])
        return rng.choice(others), rng.choice(to_subscriber)

    def leave(self, node: Node) -> Command | None:
        """Subscribers may leave."""
        return core.Unsubscribe(TOPIC) if isinstance(node, Subscriber) else None

    def may_crash(self, node: Node) -> bool:
        """The paper does not consider a failure of the supervisor."""
        return not isinstance(node, Supervisor)

    # Judge

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Where database, labels, left, right, ring and shortcuts are not exactly SR(n)."""
        subscribers = {id: it for id, it in states.items() if isinstance(it, SubscriberState)}
        members = {id for id, it in subscribers.items() if it.wants}
        supervisor = states[SUPERVISOR]
        assert isinstance(supervisor, SupervisorState)
        places = skip_ring(len(members)) if members else {}
        database = supervisor.database
        if set(database) != set(places):
            return [Violation("database", SUPERVISOR, f"has the labels {sorted(database)}")]
        if sorted(str(v) for v in database.values()) != sorted(str(id) for id in members):
            return [Violation("database", SUPERVISOR, f"has {database}, not {sorted(members)}")]
        owner = {bits: id for bits, id in database.items() if id is not None}
        label_of = {id: bits for bits, id in owner.items()}
        found = []
        for id, it in subscribers.items():
            found += _compare(id, it, label_of.get(id), places, owner)
        return found

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """Means since the start of the run, in intervals of the nodes that live."""
        subscribers = [it for it in states.values() if isinstance(it, SubscriberState)]
        supervisor = states[SUPERVISOR]
        assert isinstance(supervisor, SupervisorState)
        sent = sum(node.sent for node in subscribers)
        timeouts = sum(node.timeouts for node in subscribers)
        return {
            "nodes": len(subscribers),
            "messages_per_node": sent / max(1, timeouts),
            "requests_per_interval": supervisor.requests / max(1, supervisor.timeouts),
            "undefined": supervisor.undefined,
            "hung": sum(node.hung for node in subscribers),
        }


def _give(node: Subscriber, bits: str, place: Stored, owner: Mapping[str, NodeId]) -> None:
    node.label = bits
    node.left, node.right, node.ring = (
        None if other is None else Ref(other, owner[other])
        for other in (place.left, place.right, place.ring)
    )
    node.shortcuts = {other: owner[other] for other in sorted(place.shortcuts)}


def _compare(
    id: NodeId,
    it: SubscriberState,
    bits: str | None,
    places: Mapping[str, Stored],
    owner: Mapping[str, NodeId],
) -> list[Violation]:
    """What a subscriber stores against what the holder of `bits` (None: a leaver) must store."""
    place = Stored(None, None, None, frozenset()) if bits is None else places[bits]
    wanted: dict[str, Any] = {"label": bits}
    for name in ("left", "right", "ring"):
        other = getattr(place, name)
        wanted[name] = None if other is None else (other, owner[other])
    wanted["shortcuts"] = {other: owner[other] for other in place.shortcuts}
    return [
        Violation(name, id, f"is {getattr(it, name)}, should be {value}")
        for name, value in wanted.items()
        if getattr(it, name) != value
    ]


def _any_label(rng: Random, n: int) -> str:
    """Short and right, long, or outside the image of l ('' and '10' among them)."""
    kind = rng.random()
    if kind < 0.6:
        digits = f"{rng.randrange(2 * n + 2):b}"
        return digits[1:] + digits[0]
    if kind < 0.9:
        return "".join(rng.choice("01") for _ in range(39)) + "1"
    return rng.choice(["", "00", "10", "110"])


def _any_ref(rng: Random, ids: Sequence[NodeId]) -> Ref | None:
    if rng.random() < 0.3:
        return None
    return Ref(_any_label(rng, len(ids)), rng.choice(ids))
