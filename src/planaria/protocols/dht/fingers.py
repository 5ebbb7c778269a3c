"""Fingers: shortcuts over the ring, each twice as far as the one before.

The finger of level 0 is the successor. The finger of level i + 1 is the level-i finger of my
level-i finger, so level i reaches 2^i hosts ahead however the keys are spread. Each level is
recomputed from the one below again and again, and level 0 is the ring's: so when the ring is right
the levels become right one after the other, whatever they were.
"""

from planaria.core.ids import NodeId, is_node_id
from planaria.core.node import Send
from planaria.core.state import State, Stateful
from planaria.protocols.dht.host_keys import HostKeys
from planaria.protocols.dht.messages import LEVELS_MAX, AskFinger, Finger


class FingersState(State):
    """The fingers by level, whose turn it is to be asked, and what was found sound last."""

    known: dict[int, int]
    turn: int
    sound: tuple[int | None, dict[int, int]]


class Fingers(Stateful):
    """One member's fingers, by level. A component: its owner passes messages and time on."""

    __slots__ = ("host_keys", "id", "known", "sound", "turn")

    state_type = FingersState

    def __init__(self, id: NodeId, host_keys: HostKeys) -> None:
        self.id, self.host_keys = id, host_keys
        self.known: dict[int, NodeId] = {}
        self.turn = 0
        # Repaired last: saves the work for an input that changed nothing, until the next timeout.
        self.sound: tuple[NodeId | None, dict[int, NodeId]] = (None, {})

    def ids(self) -> list[NodeId]:
        """All hosts pointed at, the nearest first."""
        return [id for id in self.known.values() if is_node_id(id)]

    def repair(self, successor: NodeId | None) -> None:
        """Level 0 is the successor; each further level lies beyond the one below, before me."""
        if (successor, self.known) == self.sound:
            return
        if successor is None:
            self.known = {}
            return
        key, distance = self.host_keys.key, self.host_keys.space.distance
        me, known = key(self.id), {0: successor}
        far = distance(me, key(successor))
        for level in sorted(self.known):
            id = self.known[level]
            if not 0 < level < LEVELS_MAX or not is_node_id(id):
                continue
            there = distance(me, key(id))
            if there > far:
                known[level], far = id, there
        self.known = known
        self.sound = (successor, dict(known))

    def distrust(self) -> None:
        """Time passes: repair anew, for what was found sound may have been corrupted since."""
        self.sound = (None, {})

    def forget(self, id: NodeId) -> None:
        """Point at `id` no more; the level below finds another."""
        self.known = {level: it for level, it in self.known.items() if it != id}

    def ask(self) -> list[Send]:
        """Ask one finger for its own of the same level, another one each time."""
        if not self.known:
            return []
        levels = list(self.known)
        self.turn = (self.turn + 1) % len(levels)
        return self._ask(levels[self.turn])

    def on_ask(self, message: AskFinger) -> list[Send]:
        """Say whom I point at on that level."""
        if message.sender == self.id:
            return []
        mine = self.known.get(message.level)
        if mine is not None and not is_node_id(mine):
            mine = None
        return [Send(message.sender, Finger(self.id, message.level, mine))]

    def on_finger(self, message: Finger) -> list[Send]:
        """Take the next level from the finger asked; if it is new, go on to the level after."""
        level, finger = message.level, message.finger
        if self.known.get(level) != message.sender:
            return []
        above = level + 1
        if finger is None or above >= LEVELS_MAX or not self._beyond(finger, message.sender):
            self.known = {at: id for at, id in self.known.items() if at <= level}
            return []
        if self.known.get(above) == finger:
            return []
        self.known[above] = finger
        return self._ask(above)

    def _ask(self, level: int) -> list[Send]:
        return [Send(self.known[level], AskFinger(self.id, level))]

    def _beyond(self, id: NodeId, other: NodeId) -> bool:
        """Is `id` farther than `other`, without having come round to me?"""
        key, distance = self.host_keys.key, self.host_keys.space.distance
        me = key(self.id)
        return distance(me, key(id)) > distance(me, key(other))
