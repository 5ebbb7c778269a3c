"""Messages, hops and load of one broadcast: arcs, flooding, and the paper's literal flooding.

    .venv/bin/python benchmarks/broadcast.py [--json] [--n 64 256 ...] [--origins 16]

Legitimate SR(n), one unit of time per hop. Sampled origins, the same for all three rules. The mean
of hops is over nodes and origins; 'hottest' is the node that sends most in one broadcast.
"""

import argparse
import json
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from planaria.core.node import Effect, Send
from planaria.literal.flooding import LiteralFlooding
from planaria.protocols.publications.broadcast import Broadcast, view
from planaria.protocols.publications.broadcast_messages import Arc, Flood
from planaria.protocols.publications.publication import Publication
from planaria.protocols.skipring.labels import predecessor, shortcut_labels, successor

SIZES = [64, 256, 1024, 4096, 16384]
Graph = dict[int, list[int]]
Handler = Callable[[int, Any], list[Effect]]


def skip_ring(n: int) -> Graph:
    graph = {}
    for x in range(n):
        beside = [y for y in (predecessor(x, n), successor(x, n)) if y != x]
        found = [*beside, *(far for y in beside for far in shortcut_labels(x, y))]
        graph[x] = list(dict.fromkeys(found))
    return graph


def by_broadcast(graph: Graph, origin: int, doubt: bool) -> tuple[list[Effect], Handler]:
    views = {x: view(x, x, [(y, y) for y in graph[x]], doubt) for x in graph}
    nodes = {x: Broadcast("t", x) for x in graph}

    def handle(target: int, message: Any) -> list[Effect]:
        node = nodes[target]
        if isinstance(message, Arc):
            return node.on_arc(views[target], message).effects
        assert isinstance(message, Flood)
        return node.on_flood(views[target], message).effects

    publication = Publication(origin, 0, 0, 0, 0, b"payload")
    return nodes[origin].publish(views[origin], publication), handle


def by_literal(graph: Graph, origin: int) -> tuple[list[Effect], Handler]:
    nodes = {x: LiteralFlooding(graph[x]) for x in graph}
    return nodes[origin].publish(b"payload"), lambda target, message: nodes[target].on_message(
        message
    )


RULES: dict[str, Callable[[Graph, int], tuple[list[Effect], Handler]]] = {
    "arc": lambda graph, origin: by_broadcast(graph, origin, doubt=False),
    "flood": lambda graph, origin: by_broadcast(graph, origin, doubt=True),
    "literal": by_literal,
}


def broadcast(graph: Graph, origin: int, rule: str) -> tuple[int, dict[int, int], int]:
    """Messages, hops per node, sends of the hottest node."""
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
    return sum(sends.values()), hops, max(sends.values())


def measure(n: int, origins: int) -> list[dict[str, Any]]:
    graph = skip_ring(n)
    sample = sorted(Random(n).sample(range(n), min(n, origins)))
    rows = []
    for rule in RULES:
        runs = [broadcast(graph, origin, rule) for origin in sample]
        rows.append(
            {
                "n": n,
                "rule": rule,
                "origins": len(sample),
                "reached": min(len(hops) for _, hops, _ in runs),
                "messages": max(messages for messages, _, _ in runs),
                "hops_max": max(max(hops.values()) for _, hops, _ in runs),
                "hops_mean": sum(sum(h.values()) for _, h, _ in runs) / len(runs) / max(1, n - 1),
                "hottest_max": max(hottest for _, _, hottest in runs),
                "hottest_mean": sum(hottest for _, _, hottest in runs) / len(runs),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--n", type=int, nargs="+", default=SIZES)
    parser.add_argument("--origins", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        print(
            "      n  rule     messages  per node  hops max  hops mean  hottest max  hottest mean"
        )
    rows = []
    for n in options.n:
        for row in measure(n, options.origins):
            rows.append(row)
            if not options.json:
                print(
                    f"{n:7}  {row['rule']:7}  {row['messages']:8}  {row['messages'] / n:8.2f}"
                    f"  {row['hops_max']:8}  {row['hops_mean']:9.2f}  {row['hottest_max']:11}"
                    f"  {row['hottest_mean']:12.1f}",
                    flush=True,
                )
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
