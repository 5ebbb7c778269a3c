"""A skip ring that only broadcasts, whose nodes can be damaged."""

from collections import deque
from random import Random

from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.protocols.skipring.arcs import Neighbour
from planaria.protocols.skipring.broadcast import Broadcast, View, view
from planaria.protocols.skipring.broadcast_messages import Arc, Flood, Nack
from planaria.protocols.skipring.labels import label_bits
from planaria.records.record import Draft, Record, decode, seal

BASE = 1000  # ids are not labels


def record(publisher: int = BASE, payload: bytes = b"news") -> Record:
    return seal((publisher, bytes(12)), 0, [Draft(payload)], time=0)


def publish(node: Broadcast, here: View, item: Record) -> list[Effect]:
    return node.publish(here, item)


def receive(node: Broadcast, here: View, message: Arc | Flood) -> list[Effect]:
    name = decode(message.record).key
    if isinstance(message, Arc):
        return node.on_arc(here, message, name)
    return node.on_flood(here, message, name)


class Cluster:
    """SR(n) from its definition, a queue, and nodes that can be damaged. Counts everything."""

    def __init__(self, n: int, seed: int = 0) -> None:
        self.random = Random(seed)
        self.n = n
        self.labels: dict[int, int | None] = {x + BASE: x for x in range(n)}
        self.tables: dict[int, list[Neighbour]] = {x + BASE: [] for x in range(n)}
        places = sorted(range(n), key=lambda x: label_bits(x).ljust(64, "0"))
        self.ring = {frozenset(p) for p in zip(places, places[1:] + places[:1], strict=True)}
        for k in range(1, max(1, (n - 1).bit_length()) + 1):
            level = [x for x in places if len(label_bits(x)) <= k]
            for a, b in zip(level, level[1:] + level[:1], strict=True):
                for x, y in ((a, b), (b, a)):
                    if x != y and (y, y + BASE) not in self.tables[x + BASE]:
                        self.tables[x + BASE].append((y, y + BASE))
        self.dead: set[int] = set()
        self.doubtful: set[int] = set()
        self.nodes = {id: Broadcast("t", id) for id in self.labels}
        self.delivered: dict[int, list[int]] = {}
        self.messages = 0

    def view(self, id: int) -> View:
        return view(self.labels[id], id, self.tables[id], id in self.doubtful)

    def live(self) -> list[int]:
        return [id for id in self.labels if id not in self.dead]

    def run(self, origin: int, *, shuffled: bool = False, messages_max: int = 10**6) -> None:
        """Publish at `origin` and go on until nothing is in flight."""
        item = record(origin)
        self.delivered = {origin: [0]}
        queue = deque([(origin, e) for e in publish(self.nodes[origin], self.view(origin), item)])
        while queue:
            if shuffled:
                queue.rotate(self.random.randrange(len(queue)))
            sender, effect = queue.popleft()
            assert isinstance(effect, Send)
            self.messages += 1
            assert self.messages <= messages_max, "does not end"
            queue.extend((id, e) for id, e in self.receive(sender, effect.target, effect.message))

    def receive(self, sender: int, target: int, message: Message) -> list[tuple[int, Effect]]:
        if target in self.dead or target not in self.nodes:
            effects = self.nodes[sender].link_down(self.view(sender), target)
            return [(sender, effect) for effect in effects]
        node, here = self.nodes[target], self.view(target)
        if isinstance(message, Nack):
            return [(target, effect) for effect in node.on_nack(here, message)]
        assert isinstance(message, Arc | Flood)
        self.delivered.setdefault(target, []).append(message.hops)
        return [(target, effect) for effect in receive(node, here, message)]

    def reach(self) -> float:
        return len(self.delivered) / len(self.live())
