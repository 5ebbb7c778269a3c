"""One publication through a legitimate skip ring: by arcs, by flooding, by the printed text."""

from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from planaria.core.node import Effect, Send
from planaria.literal.flooding import LiteralFlooding
from planaria.protocols.skipring.broadcast import Broadcast, view
from planaria.protocols.skipring.broadcast_messages import Arc, Flood
from planaria.protocols.skipring.labels import predecessor, shortcut_labels, successor
from planaria.records.record import INCARNATION_BYTES, Draft, seal

Graph = dict[int, list[int]]
Handler = Callable[[int, Any], list[Effect]]


class Spread(Struct, frozen=True):
    """What one broadcast cost, with one unit of time per hop."""

    messages: int
    hops: dict[int, int]  # of each node that was reached
    hottest: int  # messages of the node that sent most


def skip_ring(n: int) -> Graph:
    """SR(n) as its members compute it."""
    graph = {}
    for x in range(n):
        beside = [y for y in (predecessor(x, n), successor(x, n)) if y != x]
        found = [*beside, *(far for y in beside for far in shortcut_labels(x, y))]
        graph[x] = list(dict.fromkeys(found))
    return graph


def _by_broadcast(graph: Graph, origin: int, *, doubt: bool) -> tuple[list[Effect], Handler]:
    views = {x: view(x, x, [(y, y) for y in graph[x]], doubt) for x in graph}
    nodes = {x: Broadcast("t", x) for x in graph}

    def handle(target: int, message: Any) -> list[Effect]:
        node = nodes[target]
        if isinstance(message, Arc):
            return node.on_arc(views[target], message, name)
        assert isinstance(message, Flood)
        return node.on_flood(views[target], message, name)

    record = seal((origin, bytes(INCARNATION_BYTES)), 0, [Draft(b"payload")], time=0)
    name = record.key
    return nodes[origin].publish(views[origin], record), handle


def _by_literal(graph: Graph, origin: int) -> tuple[list[Effect], Handler]:
    nodes = {x: LiteralFlooding(graph[x]) for x in graph}
    return nodes[origin].publish(b"payload"), lambda target, message: nodes[target].on_message(
        message
    )


RULES: dict[str, Callable[[Graph, int], tuple[list[Effect], Handler]]] = {
    "arc": lambda graph, origin: _by_broadcast(graph, origin, doubt=False),
    "flood": lambda graph, origin: _by_broadcast(graph, origin, doubt=True),
    "literal": _by_literal,
}


def broadcast(graph: Graph, origin: int, rule: str) -> Spread:
    """Let `origin` publish, and run until nobody has anything left to send."""
    first, handle = RULES[rule](graph, origin)
    queue = deque([(origin, first)])
    hops, sends = {origin: 0}, dict.fromkeys(graph, 0)
    while queue:
        sender, effects = queue.popleft()
        for effect in effects:
            assert isinstance(effect, Send)
            sends[sender] += 1
            hops.setdefault(effect.target, hops[sender] + 1)
            queue.append((effect.target, handle(effect.target, effect.message)))
    return Spread(sum(sends.values()), hops, max(sends.values()))
