"""Figures about a topic's ring as it is, and a picture of it."""

from collections import deque
from collections.abc import Mapping, Sequence
from html import escape
from math import cos, pi, sin
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.skipring.labels import CIRCLE, label_bits, position
from planaria.protocols.skipring.legitimacy import held_publications, parts_of
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.subscriber import SubscriberState

DIAMETER_SOURCES_MAX = 64  # breadth-first searches; beyond, the diameter is that of a sample
LABELLED_MAX = 64  # members whose labels fit round the circle
# Of levels 1, 2, ...; the first two are those of the paper's figure 1.
LEVEL_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#e377c2")

Edges = dict[NodeId, list[NodeId]]


Ring = Mapping[NodeId, SubscriberState]


def members(states: Mapping[NodeId, State], topic: str) -> dict[NodeId, SubscriberState]:
    """The live subscribers of a topic."""
    found = {}
    for id, peer in peers(states).items():
        if topic in peer.topics:
            found[id] = peer.topics[topic].subscriber
    return found


def peers(states: Mapping[NodeId, State]) -> dict[NodeId, PeerState]:
    """What is a peer, of nodes that may be more than that."""
    parts = [(id, part) for id, state in states.items() for part in parts_of(state)]
    return {id: part for id, part in parts if isinstance(part, PeerState)}


def beside(one: SubscriberState) -> list[NodeId]:
    """Its neighbours on the ring."""
    return [ref[1] for ref in (one.pred, one.succ) if ref is not None]


def neighbours(one: SubscriberState) -> list[NodeId]:
    """Whom it has an edge to, each once, ring neighbours first."""
    return list(dict.fromkeys([*beside(one), *one.shortcuts.values()]))


def edges(ring: Ring) -> Edges:
    """Who has whom for a neighbour, in both directions, live members only."""
    found: dict[NodeId, dict[NodeId, None]] = {id: {} for id in ring}
    for id, one in ring.items():
        for other in neighbours(one):
            if other in found and other != id:
                found[id][other] = None
                found[other][id] = None
    return {id: list(others) for id, others in found.items()}


def diameter(graph: Edges) -> int | None:
    """The longest of all shortest paths (from a sample of a large graph); None if disconnected."""
    sources = sorted(graph)
    step = max(1, len(sources) // DIAMETER_SOURCES_MAX)
    longest = 0
    for source in sources[::step]:
        distance = {source: 0}
        queue = deque([source])
        while queue:
            at = queue.popleft()
            for other in graph[at]:
                if other not in distance:
                    distance[other] = distance[at] + 1
                    queue.append(other)
        if len(distance) < len(graph):
            return None
        longest = max(longest, max(distance.values()))
    return longest


def shape(states: Mapping[NodeId, State], topic: str) -> dict[str, Any]:
    """Members, undirected edges, degrees, diameter, and publications held and missing."""
    ring = members(states, topic)
    graph = edges(ring)
    degrees = [len(others) for others in graph.values()]
    held = [held_publications(peer, topic) for id, peer in peers(states).items() if id in ring]
    everything = frozenset().union(*held)
    return {
        "members": len(ring),
        "edges": sum(degrees) // 2,
        "degree_mean": round(sum(degrees) / max(1, len(degrees)), 3),
        "degree_max": max(degrees, default=0),
        "diameter": diameter(graph),
        "publications": len(everything),
        "publications_missing": sum(len(everything) - len(mine) for mine in held),
    }


def draw(states: Mapping[NodeId, State], topic: str, size: int = 760) -> str:
    """The ring with its shortcuts as SVG: members at their positions, edges coloured by level."""
    ring = members(states, topic)
    centre, radius = size / 2, size * 0.38
    placed = {id: one for id, one in ring.items() if one.label is not None}

    def point(one: SubscriberState, out: float = 1.0) -> tuple[float, float]:
        angle = 2 * pi * position(one.label or 0) / CIRCLE - pi / 2
        return centre + out * radius * cos(angle), centre + out * radius * sin(angle)

    parts = [*_edge_lines(placed, point)]
    for id, one in sorted(placed.items(), key=lambda item: position(item[1].label or 0)):
        parts += _member(id, one, point, len(placed))
    absent = len(ring) - len(placed)
    note = f"{len(placed)} member{'s' * (len(placed) != 1)}" + (
        f", {absent} without a label" if absent else ""
    )
    title = f'<text x="{centre}" y="28" class="title">{escape(topic)}: {note}</text>'
    style = (
        "text{font:12px sans-serif;fill:#333;text-anchor:middle;dominant-baseline:central}"
        ".title{font-size:16px;font-weight:bold}.id{fill:#fff;font-weight:bold}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" '
        f'height="{size}"><style>{style}</style><rect width="100%" height="100%" fill="#fff"/>'
        f"{title}{''.join(parts)}{_legend(placed, size)}</svg>\n"
    )


def _edge_lines(placed: Ring, point: Any) -> list[str]:
    drawn: dict[tuple[NodeId, NodeId], str] = {}
    for id, one in sorted(placed.items()):
        ring = beside(one)
        for other in neighbours(one):
            if other not in placed or other == id:
                continue
            pair = (min(id, other), max(id, other))
            (x, y), (u, v) = point(one), point(placed[other])
            colour, width = ("#444", 2.2) if other in ring else (_colour(one, placed[other]), 1.4)
            drawn[pair] = (
                f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" '
                f'stroke="{colour}" stroke-width="{width}"/>'
            )
    return list(drawn.values())


def _level(one: SubscriberState, other: SubscriberState) -> int:
    return max(len(label_bits(one.label or 0)), len(label_bits(other.label or 0)))


def _colour(one: SubscriberState, other: SubscriberState) -> str:
    return LEVEL_COLOURS[(_level(one, other) - 1) % len(LEVEL_COLOURS)]


def _member(id: NodeId, one: SubscriberState, point: Any, count: int) -> list[str]:
    (x, y), (u, v) = point(one), point(one, 1.14)
    size = 13 if count <= LABELLED_MAX else 3
    fill = "#c0392b" if one.inquiry.due is not None else "#2c3e50"
    parts = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{fill}"/>']
    if count <= LABELLED_MAX:
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="id">{id}</text>')
        parts.append(f'<text x="{u:.1f}" y="{v:.1f}">{label_bits(one.label or 0)}</text>')
    return parts


def _legend(placed: Ring, size: int) -> str:
    levels: dict[int, str] = {}
    for one in placed.values():
        for other in neighbours(one):
            if other in placed and other not in beside(one):
                levels[_level(one, placed[other])] = _colour(one, placed[other])
    rows: Sequence[tuple[str, str]] = [
        ("ring", "#444"),
        *((f"shortcut, level {level}", levels[level]) for level in sorted(levels)),
    ]
    return "".join(
        f'<line x1="16" y1="{size - 18 * n - 16}" x2="44" y2="{size - 18 * n - 16}" '
        f'stroke="{colour}" stroke-width="2.5"/><text x="52" y="{size - 18 * n - 16}" '
        f'style="text-anchor:start">{name}</text>'
        for n, (name, colour) in enumerate(reversed(rows))
    )
