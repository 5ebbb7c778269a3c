"""The DHT as an overlay of its own: how to make, break and judge a network of `DhtNode`."""

from collections.abc import Mapping, Sequence
from math import ceil, log2, sqrt
from random import Random
from typing import Any

from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import Command, Leave, Node
from planaria.core.overlay import Channel, Overlay, Start, Violation
from planaria.core.state import State
from planaria.protocols.dht.arbitrary import corrupt_member, forge_message, wind
from planaria.protocols.dht.host_keys import RENEWAL_PERIOD, HostKeys
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.legitimacy import RightRing, violations
from planaria.protocols.dht.member import (
    CALL_PERIOD,
    DhtMember,
    DhtMemberState,
    keyset_in,
    next_hop_in,
    speaker,
)
from planaria.protocols.dht.messages import MESSAGES as DHT_MESSAGES
from planaria.protocols.dht.node import DhtNode, DhtNodeState, Lookup
from planaria.protocols.ring.messages import MESSAGES as RING_MESSAGES
from planaria.protocols.ring.sorted_ring import SILENCE_MAX

CONTACTS = (0, 1, 2)  # whom a newcomer asks, and whom members call now and then
SAMPLE = 200  # lookups walked for the figures


class DhtOverlay(Overlay):
    """A distributed hash table that sorts itself: 160-bit keys, owners found in log N hops."""

    name = "dht"
    messages = (*RING_MESSAGES, *DHT_MESSAGES)
    calm = SILENCE_MAX + 2  # a neighbour found late may still be dropped for its silence before
    delay_max = SILENCE_MAX / 2  # there and back within the silence that shows a neighbour gone

    def __init__(self, space: KeySpace | None = None) -> None:
        self.space = space or KeySpace()

    def spawn(self, id: NodeId, rng: Random) -> DhtNode:
        """A newcomer knows the contacts."""
        return DhtNode(id, self.space, CONTACTS)

    def legitimate(self, n: int, rng: Random) -> list[Node]:
        """Everybody beside whom sorting puts there."""
        nodes = [self.spawn(id, rng) for id in range(n)]
        give_places([node.dht for node in nodes], self.space)
        return [*nodes]

    def start(self, name: str, n: int, rng: Random, protocol: Random) -> Start:
        """The first state called `name`; one in four corrupt ones is a ring that winds."""
        found = super().start(name, n, rng, protocol)
        if name == "corrupt" and rng.random() < 0.25:
            wind([node.dht for node in found.nodes if isinstance(node, DhtNode)], rng)
        return found

    def corrupt(self, node: Node, ids: Sequence[NodeId], rng: Random) -> None:
        """Arbitrary neighbours, fingers, counters and lookups."""
        assert isinstance(node, DhtNode)
        if not node.dht.leaving:
            corrupt_member(node.dht, ids, rng)

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """An arbitrary message to anybody."""
        return rng.choice(ids), forge_message(ids, self.space, rng)

    def speaker(self, message: Message) -> NodeId | None:
        """In whose name a message speaks, whoever sent it."""
        return speaker(message)

    def violations(self, states: Mapping[NodeId, State], channel: Channel) -> list[Violation]:
        """Compare with the sorted list of members."""
        return violations(_members(states), channel, self.space)

    def may_crash(self, node: Node) -> bool:
        """All but one contact: who joins after all contacts died has nobody to ask."""
        return node.id != CONTACTS[0]

    def leave(self, node: Node) -> Command | None:
        """Any member but that contact may leave."""
        assert isinstance(node, DhtNode)
        return None if node.dht.leaving or node.id == CONTACTS[0] else Leave()

    def publication(self, id: NodeId, number: int) -> Command | None:
        """Look a key up: what an application of the DHT does."""
        return Lookup(stable_hash("publication", number) % self.space.size)

    def bound(self, n: int, delay: float) -> int:
        """Intervals to heal in if no message takes longer than `delay`; see `healing_bound`."""
        return healing_bound(n, delay)

    def metrics(self, states: Mapping[NodeId, State]) -> dict[str, Any]:
        """How many hosts, fingers and hops."""
        members = {id: it for id, it in _members(states).items() if not it.leaving}
        hops = walk_lookups(members, self.space)
        return {
            "hosts": len(members),
            "finger_levels_max": max((len(it.fingers.known) for it in members.values()), default=0),
            "lookup_hops_mean": sum(hops) / max(1, len(hops)),
            "lookup_hops_max": max(hops, default=0),
        }


def healing_bound(n: int, delay: float) -> int:
    """Intervals after the last fault within which `n` hosts are a legitimate DHT.

    Keys computed anew; two neighbours in a row that only silence shows to be gone; a call to each
    contact, for rings that know nothing of each other; a question and its answer for each level of
    fingers; and what sorting takes, which with fingers as shortcuts grows like the square root of
    `n` (all at once from nothing: 12, 27, 50 intervals for 16, 64, 256 hosts).
    """
    dropped = 2 * (SILENCE_MAX + 1)
    called = CALL_PERIOD * len(CONTACTS)
    levels = ceil(log2(max(2, n))) + 2
    return ceil(RENEWAL_PERIOD + dropped + called + levels * 2 * (delay + 1) + 4 * sqrt(n))


def give_places(members: Sequence[DhtMember], space: KeySpace) -> None:
    """Make `members` a legitimate DHT."""
    right = RightRing([member.id for member in members], space)
    last = len(right.line) - 1
    for member in members:
        position = right.position[member.id]

        def ref(steps: int, member: DhtMember = member) -> tuple[bytes, NodeId]:
            id = right.ahead(member.id, steps)
            return space.label(space.key(id)), id

        if last:
            member.ring.left = ref(-1) if position else None
            member.ring.right = ref(1) if position < last else None
            member.ring.ring = ref(-1) if not position else ref(1) if position == last else None
            member.fingers.known = right.fingers(member.id)


def walk_lookups(members: Mapping[NodeId, DhtMemberState], space: KeySpace) -> list[int]:
    """The hops of some lookups over the present tables."""
    hops = []
    ids = sorted(members)
    keys = HostKeys(space)
    for number in range(SAMPLE if len(ids) > 1 else 0):
        key = stable_hash("walk", number) % space.size
        here, count = ids[number % len(ids)], 0
        while not _owns(members[here], here, key, keys):
            towards = next_hop_in(members[here], here, key, keys.key, space)
            if towards is None or towards not in members or count > len(ids):
                break
            here, count = towards, count + 1
        hops.append(count)
    return hops


def _owns(member: DhtMemberState, id: NodeId, key: int, keys: HostKeys) -> bool:
    mine = keyset_in(member, id, keys.keyset)
    return mine is not None and keys.space.holds(mine, key)


def _members(states: Mapping[NodeId, State]) -> dict[NodeId, DhtMemberState]:
    return {id: state.dht for id, state in states.items() if isinstance(state, DhtNodeState)}
