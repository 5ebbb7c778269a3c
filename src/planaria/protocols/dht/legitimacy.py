"""Which invariants of the DHT fail, and where: judged by sorting the members, nothing else."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.overlay import Channel, Violation
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.member import (
    DhtMemberState,
    is_for_dht,
    pointed_at,
)
from planaria.protocols.dht.messages import Departed, Finger, Found
from planaria.protocols.ring.messages import Check, Introduce, Remove
from planaria.protocols.ring.sorted_ring import SILENCE_MAX


class RightRing:
    """The one legitimate DHT of a list of members."""

    def __init__(self, ids: Sequence[NodeId], space: KeySpace) -> None:
        self.places = sorted((space.place(id) % space.size, id) for id in ids)
        self.line = [id for _, id in self.places]
        self.keys = {id: place for place, id in self.places}
        self.labels = {id: space.label(place) for place, id in self.places}
        self.position = {id: position for position, id in enumerate(self.line)}

    def ahead(self, id: NodeId, steps: int) -> NodeId:
        """The member `steps` after member `id`."""
        return self.line[(self.position[id] + steps) % len(self.line)]

    def beside(self, id: NodeId) -> tuple[NodeId | None, NodeId | None, NodeId | None]:
        """Left, right and the other end, of a line that is closed to a ring at its ends."""
        at, last = self.position[id], len(self.line) - 1
        left = self.line[at - 1] if at else None
        right = self.line[at + 1] if at < last else None
        return left, right, self.line[last - at] if last and at in (0, last) else None

    def owner(self, key: int) -> NodeId:
        """The first member whose place is not below `key`; over the end, the very first."""
        above = [id for place, id in self.places if place >= key]
        return (above or self.line)[0]

    def fingers(self, id: NodeId) -> dict[int, NodeId]:
        """The members 1, 2, 4, 8, ... steps ahead, as long as that is not all the way round."""
        n, fingers, level = len(self.line), {}, 0
        while 2**level < n:
            fingers[level] = self.ahead(id, 2**level)
            level += 1
        return fingers


@lru_cache(maxsize=4)  # members change rarely, and are judged at every interval's end
def right_ring(ids: tuple[NodeId, ...], space: KeySpace) -> RightRing:
    """The legitimate DHT of these members."""
    return RightRing(ids, space)


def violations(
    members: Mapping[NodeId, DhtMemberState], channel: Channel, space: KeySpace
) -> list[Violation]:
    """Every invariant that fails; `members` are all hosts, also those that have left."""
    found: list[Violation] = []
    right = right_ring(tuple(id for id in sorted(members) if not members[id].leaving), space)
    for id, member in members.items():
        found += _left(id, member) if member.leaving else _present(id, member, right)
    for target, message in channel:
        if target in right.position:
            wrong = false_content(message, right)
            if wrong:
                found.append(Violation("channel", target, f"{wrong}: {message}"))
    return found


def _left(id: NodeId, member: DhtMemberState) -> list[Violation]:
    if pointed_at(member) or member.fingers.known:
        return [Violation("departure", id, "has left and still points at hosts")]
    return []


def _present(id: NodeId, member: DhtMemberState, right: RightRing) -> list[Violation]:
    found = []
    # By name, not only by who is before and after: of two hosts each is both for the other, and
    # one that has it on the wrong side lets go of it at its next input.
    places = right.beside(id)
    ring = member.ring
    believed = tuple(None if it is None else it[1] for it in (ring.left, ring.right, ring.ring))
    if believed != places:
        found.append(Violation("ring", id, f"left, right, ring {believed}, should be {places}"))
    fingers = right.fingers(id)
    if member.fingers.known != fingers:
        found.append(Violation("fingers", id, f"{member.fingers.known}, should be {fingers}"))
    # Half of the silence that is allowed: only so no message that takes as long as a hop may take
    # (`HOP_MAX`) comes too late.
    silent = {other: member.ring.silence.get(other, 0) for other in pointed_at(member)}
    if any(not 0 <= it <= SILENCE_MAX // 2 for it in silent.values()):
        found.append(Violation("silence", id, f"about to drop one of {silent}"))
    handed = [other for other in member.ring.handed if other not in right.position]
    if handed:
        found.append(Violation("handed", id, f"remembers {sorted(handed)}, which are no members"))
    keys, labels = member.host_keys.keys, member.host_keys.labels
    false = [other for other, it in keys.items() if right.keys.get(other, it) != it]
    false += [other for other, it in labels.items() if right.labels.get(other, it) != it]
    if false:
        found.append(Violation("place", id, f"does not know where {sorted(false)} sit"))
    return found


def false_content(message: Message, right: RightRing) -> str:
    """What is false in a message of the DHT in flight; empty if nothing is."""
    if not is_for_dht(message):
        return ""
    named: list[NodeId] = []
    match message:
        case Check():
            named = [message.sender[1]]
        case Introduce():
            named = [message.ref[1]]
        case Remove() if message.id in right.position:
            return "removes a member"
        case Departed():
            named = list(message.heirs)
            if message.sender in right.position:
                return "a message claims that a member has left"
        case Finger() if message.sender in right.position:
            if message.finger != right.fingers(message.sender).get(message.level):
                return "a false finger"
        case Found():
            key = int.from_bytes(message.key, "big")
            if message.owner not in right.position or right.owner(key) != message.owner:
                return "a false owner"
            if right.ahead(message.owner, -1) != message.predecessor:
                return "a false keyset"
    return "names no member" if any(id not in right.position for id in named) else ""
