"""Draws one layer of mobile: who is linked to whom, which end is higher, who may speak now."""

from collections.abc import Mapping, Sequence

import numpy as np

from planaria.core.ids import NodeId
from planaria.protocols.mobile.legitimacy import LayerJudge
from planaria.protocols.mobile.node import MobileState
from planaria.protocols.mobile.overlay import members
from planaria.web.pictures.picture import (
    DOWN,
    GOLDEN,
    LINK,
    SINK,
    Named,
    Pair,
    Picture,
    Place,
    circle_places,
    listed,
    on_circle,
    row_places,
)

LAID_OUT_MAX = 300  # nodes; of more a page shows a circle: each step costs the square
FIRST, AGAIN = 200, 15  # steps of a layout from nothing, and from where it was
LONG = 10_000  # a height that a fault made, too long to stand beside a name
EDGE = 0.92  # how far from the middle a picture reaches


def mobile_picture(
    ids: Sequence[NodeId],
    nodes: Mapping[NodeId, MobileState],
    named: Named,
    chosen: str = "",
    places: Mapping[NodeId, Place] | None = None,
    before: Mapping[NodeId, Place] | None = None,
) -> Picture:
    """Arrows lead to the end whose turn comes first; thin lines are in reach and no link yet.

    `places` are where nodes are. Live nodes do not know: these are drawn near where they were
    `before`.
    """
    topics = sorted({topic for it in nodes.values() for topic in it.layers})
    topic = chosen if chosen in topics else topics[0] if topics else ""
    layers = members(nodes, topic)
    found = Picture(wide=True)
    for id, node in nodes.items():
        for peer in node.reach:
            if peer in nodes:
                found.join(id, peer, LINK)
    higher: dict[NodeId, list[NodeId]] = {id: [] for id in layers}
    lower: dict[NodeId, list[NodeId]] = {id: [] for id in layers}
    for high, low in LayerJudge().directions(layers):
        found.join(high, low, DOWN)
        higher[low].append(high)
        lower[high].append(low)
    lowest = min((it.orientation.height for it in layers.values()), default=0)
    for id, layer in layers.items():
        above = layer.orientation.height - lowest
        found.marks[id] = f"+{above:,}" if above < LONG else f"+{above:.0e}".replace("e+0", "e")
        if higher[id] and not lower[id]:
            found.roles[id] = SINK
        found.figures[id] = {
            "height": f"{layer.orientation.height:,}",
            "turns": f"{layer.turns:,}",
            "waits for": listed(map(named, lower[id])) if lower[id] else "nobody: it is its turn",
            "before": listed(map(named, higher[id])),
        }
    found.places = {id: it for id, it in (places or {}).items() if id in ids}
    if not found.places:
        found.places = laid_out([*nodes], [*found.lines], before or {})
    found.places |= row_places([id for id in ids if id not in found.places])
    return found


def laid_out(
    ids: Sequence[NodeId], pairs: Sequence[Pair], before: Mapping[NodeId, Place]
) -> dict[NodeId, Place]:
    """Linked nodes near each other, all apart; not far from where they were before."""
    if len(ids) > LAID_OUT_MAX:
        return circle_places(ids)
    if len(ids) < 2:
        return dict.fromkeys(ids, (0.0, 0.0))
    spread = [
        on_circle(k * GOLDEN / 6.2832, ((k + 0.5) / len(ids)) ** 0.5) for k in range(len(ids))
    ]
    spots = np.array([before.get(id, spread[k]) for k, id in enumerate(ids)], dtype=float)
    spots += np.array(spread) * 1e-3  # two in one place must get apart
    numbers = {id: at for at, id in enumerate(ids)}
    ends = np.array([(numbers[a], numbers[b]) for a, b in pairs], dtype=int).reshape(-1, 2)
    steps = AGAIN if all(id in before for id in ids) else FIRST
    ideal = 1.2 / len(ids) ** 0.5
    for step in range(steps):
        moved = _push(spots, ends, ideal)
        far = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-9)
        spots += moved / far * np.minimum(far, 0.1 * (1 - step / steps))
    low, high = spots.min(axis=0), spots.max(axis=0)
    spots = ((spots - low) / np.maximum(high - low, 1e-6) * 2 - 1) * EDGE
    return {
        id: (round(float(x), 4), round(float(y), 4)) for id, (x, y) in zip(ids, spots, strict=True)
    }


def _push(spots: np.ndarray, ends: np.ndarray, ideal: float) -> np.ndarray:
    """Where each node is pushed: away from all others, and towards those it is linked to."""
    apart = spots[:, None, :] - spots[None, :, :]
    square = np.maximum((apart**2).sum(axis=2, keepdims=True), 1e-6)
    moved: np.ndarray = (apart * ideal**2 / square).sum(axis=1)
    pull = spots[ends[:, 0]] - spots[ends[:, 1]]
    pull *= np.linalg.norm(pull, axis=1, keepdims=True) / ideal
    np.add.at(moved, ends[:, 0], -pull)
    np.add.at(moved, ends[:, 1], pull)
    return moved
