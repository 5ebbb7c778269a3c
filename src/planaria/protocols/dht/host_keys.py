"""The keys of hosts, hashed once in a few timeouts: a hash costs more than looking it up.

No key of anybody is ever believed, it is computed from the id; and what was computed is forgotten
again and again, for a fault may change what is remembered.
"""

from planaria.core.ids import NodeId
from planaria.core.state import State, Stateful
from planaria.protocols.dht.keys import Keyset, KeySpace

RENEWAL_PERIOD = 4  # timeouts after which keys are computed anew
KNOWN_MAX = 1 << 12  # keys remembered, 0.5 MB: more than a host hears of in that time


class HostKeysState(State):
    """What was computed since the last renewal, by host: its key, and the label that says it."""

    keys: dict[int, int]
    labels: dict[int, bytes]


class HostKeys(Stateful):
    """What one member remembers of where hosts sit."""

    __slots__ = ("keys", "labels", "space")

    state_type = HostKeysState

    def __init__(self, space: KeySpace) -> None:
        self.space = space
        self.keys: dict[NodeId, int] = {}
        self.labels: dict[NodeId, bytes] = {}

    def on_timeout(self, time: int) -> None:
        """Time passes: now and then compute every key anew."""
        if time % RENEWAL_PERIOD == 0:
            self.keys, self.labels = {}, {}

    def key(self, id: NodeId) -> int:
        """The key at which host `id` sits."""
        found = self.keys.get(id)
        if found is None:
            if len(self.keys) >= KNOWN_MAX:
                self.keys = {}
            found = self.keys[id] = self.space.key(id)
        return found

    def ref(self, id: NodeId) -> tuple[bytes, NodeId]:
        """Host `id` as a member of the sorted ring: its label, and itself."""
        label = self.labels.get(id)
        if label is None:
            if len(self.labels) >= KNOWN_MAX:
                self.labels = {}
            label = self.labels[id] = self.space.label(self.key(id) % self.space.size)
        return label, id

    def keyset(self, owner: NodeId, predecessor: NodeId) -> Keyset:
        """The keys of `owner` behind `predecessor`; a host behind itself owns all."""
        return self.key(predecessor) % self.space.size, self.key(owner) % self.space.size
