"""Graphs by name: `path:64`, `ring:64`, `star:9`, `complete:8`, `tree:20`, `grid:8x8`, `rgg:64`."""

from collections import deque
from collections.abc import Mapping
from math import cos, isqrt, pi, sin, sqrt
from random import Random

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId

NODES_MAX = 100_000  # more in one graph is a typing error: edges are found by looking at all pairs
NEIGHBOURS_MAX = 256  # as many as a node takes notice of
CONNECTED_TRIES_MAX = 200  # random geometric graphs of mean degree 4 and more are soon connected

Edge = tuple[NodeId, NodeId]
Point = tuple[float, float]


class Graph(Struct, frozen=True):
    """Nodes 0..n-1 with a place each, for pictures, and undirected edges, smaller end first."""

    places: tuple[Point, ...]
    edges: tuple[Edge, ...]

    @property
    def n(self) -> int:
        """How many nodes."""
        return len(self.places)

    def neighbours(self) -> dict[NodeId, list[NodeId]]:
        """Adjacency lists, in the order of ids."""
        found: dict[NodeId, list[NodeId]] = {id: [] for id in range(self.n)}
        for a, b in sorted(self.edges):
            found[a].append(b)
            found[b].append(a)
        return {id: sorted(peers) for id, peers in found.items()}


def parse_graph(text: str, n: int, rng: Random) -> Graph:
    """The graph called `text`; a name without a size takes `n` nodes."""
    name, *sizes = text.split(":")
    try:
        if name == "grid" and len(sizes) < 2:
            return grid(*_sides(sizes[0] if sizes else None, n))
        if name == "rgg":
            return rgg(*size_and_degree(sizes, n, 8.0), rng)
        size, _ = size_and_degree(sizes[:1], n, 0.0)
        if len(sizes) > 1 or (name in ("star", "complete") and size > NEIGHBOURS_MAX + 1):
            raise ValueError
        makers = {"path": path, "ring": ring, "star": star, "complete": complete}
        return tree(size, rng) if name == "tree" else makers[name](size)
    except (KeyError, ValueError):
        raise UsageError(
            f"graph {text!r}: write path:N, ring:N, star:N, complete:N, tree:N, grid:RxC, "
            f"rgg:N[:DEGREE], waypoint:N[:DEGREE] or trace:FILE; at most {NODES_MAX:,} nodes, and "
            f"{NEIGHBOURS_MAX} neighbours of one"
        ) from None


def size_and_degree(sizes: list[str], n: int, degree: float) -> tuple[int, float]:
    """What stands after the name of a graph, `N` or `N:DEGREE`; ValueError if it makes no sense."""
    size = int(sizes[0]) if sizes else n
    if len(sizes) == 2:
        degree = float(sizes[1])
        if not 0 < degree <= NEIGHBOURS_MAX:
            raise ValueError
    if len(sizes) > 2 or not 1 <= size <= NODES_MAX:
        raise ValueError
    return size, degree


def path(n: int) -> Graph:
    """0 - 1 - ... - n-1."""
    places = tuple((id / max(1, n - 1), 0.5) for id in range(n))
    return Graph(places, tuple((id, id + 1) for id in range(n - 1)))


def ring(n: int) -> Graph:
    """A path whose ends are joined."""
    closing = ((0, n - 1),) if n > 2 else ()
    return Graph(_circle(n), path(n).edges + closing)


def star(n: int) -> Graph:
    """Node 0 joined to all others."""
    return Graph(((0.5, 0.5), *_circle(n - 1)), tuple((0, id) for id in range(1, n)))


def complete(n: int) -> Graph:
    """Everybody joined to everybody."""
    return Graph(_circle(n), tuple((a, b) for a in range(n) for b in range(a + 1, n)))


def grid(rows: int, columns: int) -> Graph:
    """Each node joined to the next in its row and in its column."""
    places = tuple(
        ((x + 0.5) / columns, (y + 0.5) / rows) for y in range(rows) for x in range(columns)
    )
    across = [(i, i + 1) for i in range(rows * columns) if (i + 1) % columns]
    down = [(i, i + columns) for i in range((rows - 1) * columns)]
    return Graph(places, tuple(sorted(across + down)))


def tree(n: int, rng: Random) -> Graph:
    """Each node joined to one of those before it."""
    return Graph(_circle(n), tuple((rng.randrange(id), id) for id in range(1, n)))


def rgg(n: int, degree: float, rng: Random) -> Graph:
    """Points in the unit square joined up to a distance that gives the mean degree; connected."""
    reach = radio_range(n, degree)
    for _ in range(CONNECTED_TRIES_MAX):
        places = tuple((rng.random(), rng.random()) for _ in range(n))
        graph = Graph(places, in_range(places, reach))
        if len(component(graph.neighbours(), 0)) == n:
            return graph
    raise UsageError(f"no connected geometric graph of {n} nodes with mean degree {degree:g} found")


def radio_range(n: int, degree: float) -> float:
    """The distance at which `n` points in the unit square have `degree` neighbours on average."""
    return sqrt(degree / (pi * max(1, n - 1)))


def in_range(places: tuple[Point, ...], reach: float) -> tuple[Edge, ...]:
    """All pairs of places at most `reach` apart."""
    limit = reach * reach
    return tuple(
        (a, b)
        for a, (ax, ay) in enumerate(places)
        for b in range(a + 1, len(places))
        if (ax - places[b][0]) ** 2 + (ay - places[b][1]) ** 2 <= limit
    )


def component(neighbours: dict[NodeId, list[NodeId]], start: NodeId) -> list[NodeId]:
    """All nodes that can be reached from `start`, in the order of the search."""
    reached = {start: None}
    queue = [start]
    while queue:
        for peer in neighbours[queue.pop()]:
            if peer not in reached:
                reached[peer] = None
                queue.append(peer)
    return list(reached)


def diameter(neighbours: Mapping[NodeId, list[NodeId]]) -> int:
    """The longest of all shortest ways, as two searches in each part find it: exact on trees, on
    other graphs perhaps a little less."""
    adjacency, seen, longest = dict(neighbours), dict[NodeId, None](), 0
    for id in adjacency:
        if id not in seen:
            ways = _ways(adjacency, id)
            seen.update(dict.fromkeys(ways))
            longest = max(longest, *_ways(adjacency, list(ways)[-1]).values())
    return longest


def _ways(neighbours: dict[NodeId, list[NodeId]], start: NodeId) -> dict[NodeId, int]:
    """How far everybody is from `start`, the farthest last."""
    found = {start: 0}
    queue = deque([start])
    while queue:
        id = queue.popleft()
        for peer in neighbours[id]:
            if peer not in found:
                found[peer] = found[id] + 1
                queue.append(peer)
    return found


def parts(neighbours: Mapping[NodeId, list[NodeId]]) -> int:
    """How many parts the graph is in."""
    adjacency, seen, count = dict(neighbours), dict[NodeId, None](), 0
    for id in adjacency:
        if id not in seen:
            count += 1
            seen.update(dict.fromkeys(component(adjacency, id)))
    return count


def _circle(n: int) -> tuple[Point, ...]:
    angles = [2 * pi * id / max(1, n) for id in range(n)]
    return tuple((0.5 + 0.45 * cos(angle), 0.5 + 0.45 * sin(angle)) for angle in angles)


def _sides(text: str | None, n: int) -> tuple[int, int]:
    if text is None:
        rows = next(rows for rows in range(isqrt(n), 0, -1) if n % rows == 0)
        return rows, n // rows
    rows, columns = (int(side) for side in text.split("x"))
    if rows < 1 or columns < 1 or rows * columns > NODES_MAX:
        raise ValueError
    return rows, columns
