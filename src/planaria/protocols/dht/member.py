"""One member of the DHT: the sorted ring of hashed ids, fingers over it, lookups through them.

The three properties that the tree needs (paper 3, section 3) hold when the ring is right: keysets
are intervals, every key has one owner, and an owner knows its keyset from its predecessor.

Labels are hashes of ids, so no label of anybody is ever believed: it is computed.
"""

from collections.abc import Callable, Sequence

from planaria.core.ids import NodeId, is_node_id
from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.core.state import State, Stateful
from planaria.protocols.dht.fingers import Fingers, FingersState
from planaria.protocols.dht.host_keys import HostKeys, HostKeysState
from planaria.protocols.dht.keys import Keyset, KeySpace
from planaria.protocols.dht.lookups import NONCES, Lookups, LookupsState, patience
from planaria.protocols.dht.messages import (
    HEIRS_MAX,
    HOPS_MAX,
    AskFinger,
    Departed,
    DhtMessage,
    Find,
    Finger,
    Found,
)
from planaria.protocols.ring.messages import Check, Introduce, Ref, Remove, RingMessage
from planaria.protocols.ring.sorted_ring import SortedRing, SortedRingState

GROUP = "$SYS/dht"  # the sorted ring of all hosts: no topic, beside whose rings it is, is called so
CALL_PERIOD = 16  # timeouts between calls to a contact: they join rings that know nothing of
# each other, which only a long partition or a fault makes
TIMES = 1 << 32  # timeouts are counted up to here, then from 0 again
HEIRS_AGE_MAX = 8  # timeouts for which a leaver vouches for those that were beside it


class Located(Effect, frozen=True, gc=False):
    """A lookup ended: `owner` owns `key` and all keys after its `predecessor`."""

    key: int
    owner: NodeId
    predecessor: NodeId
    hops: int


class Unlocated(Effect, frozen=True, gc=False):
    """A lookup was given up: no answer came, however often the question was asked."""

    key: int


class DhtMemberState(State):
    """The ring, the fingers over it, the lookups, and what a leaver still says."""

    ring: SortedRingState
    fingers: FingersState
    lookups: LookupsState
    host_keys: HostKeysState
    leaving: bool
    heirs: tuple[int, ...]
    time: int


class DhtMember(Stateful):
    """A host's part of the DHT. A component: its owner passes messages, time and losses on."""

    __slots__ = (
        "contacts",
        "fingers",
        "heirs",
        "host_keys",
        "id",
        "leaving",
        "lookups",
        "ring",
        "space",
        "time",
    )

    state_type = DhtMemberState

    def __init__(self, id: NodeId, space: KeySpace, contacts: Sequence[NodeId] = ()) -> None:
        self.id, self.space = id, space
        self.contacts = tuple(contact for contact in contacts if contact != id)
        self.ring = SortedRing(GROUP, id, space.label(space.key(id)))
        self.host_keys = HostKeys(space)
        self.fingers = Fingers(id, self.host_keys)
        self.lookups = Lookups(space.size)
        self.leaving = False
        self.heirs: tuple[NodeId, ...] = ()
        self.time = 0

    @property
    def predecessor(self) -> NodeId | None:
        """The host before me on the ring; None if I know of none."""
        return predecessor_in(self)

    @property
    def successor(self) -> NodeId | None:
        """The host after me on the ring; None if I know of none."""
        return successor_in(self)

    @property
    def keyset(self) -> Keyset | None:
        """The keys that I own (property 3); None while I do not know where they begin."""
        return keyset_in(self, self.id, self.host_keys.keyset)

    # Inputs

    def on_timeout(self) -> list[Effect]:
        """Time passes: mind the ring, one finger, the lookups, and now and then a contact."""
        self.time = (self.time + 1) % TIMES
        if self.leaving:
            if self.time >= HEIRS_AGE_MAX:
                self.heirs = ()
            return []
        self.host_keys.on_timeout(self.time)
        self.fingers.distrust()
        self.repair()
        ref, handed = self.host_keys.ref, self.ring.handed
        self.ring.handed = {id: ref(id)[0] for id in handed if is_node_id(id)}
        effects: list[Effect] = [*self.ring.on_timeout(self._shortcuts())]
        self.fingers.repair(self.successor)
        effects += self.fingers.ask()
        alone = not self.ring.neighbours()
        if self.contacts and (alone or self.time % CALL_PERIOD == 0):
            me = Introduce(GROUP, self.host_keys.ref(self.id), False, 0)
            place = self.time if alone else self.time // CALL_PERIOD
            effects.append(Send(self.contacts[place % len(self.contacts)], me))
        repeated, lost = self.lookups.age(patience(len(self.fingers.known)))
        for key, nonce in repeated:
            effects += self._find(Find(self.id, self.space.label(key), nonce, 0))
        return effects + [Unlocated(key) for key in lost]

    def on_message(self, message: Message, sender: NodeId | None) -> list[Effect]:
        """Take any message of the DHT, however false; nobody speaks for another."""
        if self.leaving:
            return self._refuse(message)
        self.repair()
        if speaker(message) not in (None, sender):
            return []
        match message:
            case RingMessage(group=group):
                return self._sort(message) if group == GROUP else []
            case Find():
                return self._find(message)
            case Found():
                return self._found(message)
            case AskFinger():
                return [*self.fingers.on_ask(message)]
            case Finger():
                return [*self.fingers.on_finger(message)]
            case Departed():
                return self._departed(message)
        return []

    def on_link_down(self, peer: NodeId) -> list[Effect]:
        """A send to `peer` failed: do without it, and ask again what may have been lost with it."""
        self.repair()
        if peer not in self.fingers.ids() and peer not in [it[1] for it in self.ring.neighbours()]:
            return []
        self.fingers.forget(peer)
        effects: list[Effect] = [*self.ring.miss([peer], self._shortcuts())]
        self.fingers.repair(self.successor)
        for key, asked in list(self.lookups.pending.items()):
            if 0 <= asked.nonce < NONCES and 0 <= key < self.space.size:
                effects += self._find(Find(self.id, self.space.label(key), asked.nonce, 0))
        return effects

    def lookup(self, key: int) -> list[Effect]:
        """Ask who owns `key`; `Located` or `Unlocated` comes at once or later."""
        nonce = self.lookups.begin(key % self.space.size)
        if nonce is None:
            return []
        self.repair()
        return self._find(Find(self.id, self.space.label(key % self.space.size), nonce, 0))

    def leave(self) -> list[Effect]:
        """Be no member any more: both neighbours are told of each other."""
        self.repair()
        beside = dict.fromkeys(id for id in (self.predecessor, self.successor) if id is not None)
        informed = [*dict.fromkeys([*beside, *self.fingers.ids()])]
        self.leaving, self.heirs, self.time = True, tuple(beside), 0
        self.ring = SortedRing(GROUP, self.id, self.host_keys.ref(self.id)[0])
        self.fingers.known = {}
        self.lookups.pending = {}
        return [Send(id, Departed(self.id, self.heirs)) for id in informed]

    def repair(self) -> None:
        """Put my own variables right: every label is what the id says, every finger in order."""
        ring, ref = self.ring, self.host_keys.ref
        ring.label = ref(self.id)[0]
        if ring.left is not None:
            ring.left = ref(ring.left[1]) if is_node_id(ring.left[1]) else None
        if ring.right is not None:
            ring.right = ref(ring.right[1]) if is_node_id(ring.right[1]) else None
        if ring.ring is not None:
            ring.ring = ref(ring.ring[1]) if is_node_id(ring.ring[1]) else None
        self.fingers.repair(self.successor)

    # Rules

    def _sort(self, message: RingMessage) -> list[Effect]:
        """Let the ring take a message of its own; fingers begin at the successor that it finds."""
        sends = self.ring.on_message(self._truthful(message), self._shortcuts())
        self.fingers.repair(self.successor)
        return [*sends]

    def _find(self, message: Find) -> list[Effect]:
        """Answer for my own keys; hand other questions to whom I know nearest before the key."""
        key = int.from_bytes(message.key, "big")
        if key >= self.space.size:
            return []
        mine, hops = self.keyset, message.hops
        if mine is not None and self.space.holds(mine, key):
            before = self.predecessor
            owner = self.id if before is None else before
            found = Found(message.key, message.nonce, self.id, owner, hops)
            if message.asker == self.id:
                return self._found(found)
            return [Send(message.asker, found)]
        towards = self.next_hop(key)
        if towards is None or hops >= HOPS_MAX:
            return []
        return [Send(towards, Find(message.asker, message.key, message.nonce, hops + 1))]

    def next_hop(self, key: int) -> NodeId | None:
        """Of all hosts I know the last one before `key`; my successor if it comes after."""
        return next_hop_in(self, self.id, key, self.host_keys.key, self.space)

    def _found(self, message: Found) -> list[Effect]:
        """An answer to a question of mine, if it can be true."""
        key = int.from_bytes(message.key, "big")
        keyset = self.host_keys.keyset(message.owner, message.predecessor)
        if not self.space.holds(keyset, key) or not self.lookups.end(key, message.nonce):
            return []
        return [Located(key, message.owner, message.predecessor, message.hops)]

    def _departed(self, message: Departed) -> list[Effect]:
        """Forget a leaver, learn those it leaves."""
        self.fingers.forget(message.sender)
        self.ring.forget(message.sender)
        self.ring.lost.pop(message.sender, None)
        heirs = [id for id in message.heirs if id not in (message.sender, self.id)]
        refs, shortcuts = [self.host_keys.ref(id) for id in heirs], self._shortcuts()
        sends = [send for ref in refs for send in self.ring.learn(ref, shortcuts)]
        self.fingers.repair(self.successor)
        return [*sends]

    def _refuse(self, message: Message) -> list[Effect]:
        """I have left: whoever takes me for a member is told so."""
        asker: NodeId | None = None
        match message:
            case Check(sender=(_, id)) | Introduce(ref=(_, id)):
                asker = id
            case AskFinger(sender=id) | Finger(sender=id) | Find(asker=id):
                asker = id
        if asker is None or asker == self.id:
            return []
        heirs = tuple(id for id in self.heirs if is_node_id(id))
        return [Send(asker, Departed(self.id, heirs[:HEIRS_MAX]))]

    def _truthful(self, message: RingMessage) -> RingMessage:
        """The message with labels as they are, not as they are said to be."""
        match message:
            case Check(_, (_, id), _, cyclic):
                return Check(GROUP, self.host_keys.ref(id), self.ring.label, cyclic)
            case Introduce(_, (_, id), cyclic, hops):
                return Introduce(GROUP, self.host_keys.ref(id), cyclic, hops)
        return message

    def _shortcuts(self) -> list[Ref]:
        ref = self.host_keys.ref
        return [ref(id) for id in self.fingers.ids()]


Member = DhtMember | DhtMemberState
KeyOf = Callable[[NodeId], int]


def pointed_at(member: Member) -> list[NodeId]:
    """The hosts beside a member on the ring, as far as it knows them."""
    ring = member.ring
    return [ref[1] for ref in (ring.left, ring.right, ring.ring) if ref is not None]


def predecessor_in(member: Member) -> NodeId | None:
    """The host before a member, over the closing edge of the ring if it is the first."""
    ring = member.ring
    before = ring.left or (ring.ring if ring.right else None)
    return None if before is None else before[1]


def successor_in(member: Member) -> NodeId | None:
    """The host after a member, over the closing edge of the ring if it is the last."""
    ring = member.ring
    after = ring.right or (ring.ring if ring.left else None)
    return None if after is None else after[1]


def keyset_in(
    member: Member, id: NodeId, keyset: Callable[[NodeId, NodeId], Keyset]
) -> Keyset | None:
    """The keys that member `id` owns; None while it does not know where they begin."""
    if member.leaving:
        return None
    before = predecessor_in(member)
    if before is None:
        return None if pointed_at(member) else keyset(id, id)
    return keyset(id, before)


def next_hop_in(
    member: Member, id: NodeId, key: int, key_of: KeyOf, space: KeySpace
) -> NodeId | None:
    """Of all hosts that member `id` knows the last one before `key`; else its successor."""
    me = key_of(id)
    best, far = successor_in(member), -1
    goal = space.distance(me, key)
    for other in (*filter(is_node_id, member.fingers.known.values()), *pointed_at(member)):
        there = space.distance(me, key_of(other))
        if far < there < goal:
            best, far = other, there
    return best


def speaker(message: Message) -> NodeId | None:
    """In whose name a message of the DHT speaks: it counts only if it comes from there."""
    match message:
        case Check(sender=(_, id)) | Introduce(ref=(_, id), hops=0) | Remove(id=id):
            return id
        case AskFinger(sender=id) | Finger(sender=id) | Departed(sender=id):
            return id
    return None


def is_for_dht(message: Message) -> bool:
    """Is this a message of the DHT, or of the ring that it stands on?"""
    return isinstance(message, DhtMessage) or (
        isinstance(message, RingMessage) and message.group == GROUP
    )
