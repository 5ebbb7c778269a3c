"""Where nodes are: standing graphs, random waypoint, recorded traces. Pure functions of a seed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from random import Random

from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.simulator.worlds.graphs import Graph, Point, component, in_range

SECONDS_MAX = 100_000  # of motion that is ever computed
WALKERS_MAX = 1000  # who is in range is found by looking at all pairs, every second
STANDSTILL_MAX = 1000  # seconds to look for a connected standstill


class Motion(ABC):
    """Where everybody is at every whole second, and who is then in range of whom."""

    until = -1  # the second after which nobody moves

    @abstractmethod
    def place(self, id: NodeId, second: int) -> Point:
        """The place of `id`."""

    @abstractmethod
    def reaches(self, a: NodeId, b: NodeId, second: int) -> bool:
        """Are two nodes in range of each other?"""

    def near(self, id: NodeId, others: Mapping[NodeId, object], second: int) -> list[NodeId]:
        """Who of `others` is in range of `id`."""
        return [other for other in others if other != id and self.reaches(id, other, second)]

    @abstractmethod
    def join(self, id: NodeId, others: Sequence[NodeId]) -> None:
        """A newcomer appears somewhere."""


class Standing(Motion):
    """A graph that does not move."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.places = dict(enumerate(graph.places))
        self.edges = {id: dict.fromkeys(peers) for id, peers in graph.neighbours().items()}
        self.seed = seed

    def place(self, id: NodeId, second: int) -> Point:
        """Always the same."""
        return self.places[id]

    def reaches(self, a: NodeId, b: NodeId, second: int) -> bool:
        """An edge of the graph."""
        return b in self.edges.get(a, {})

    def near(self, id: NodeId, others: Mapping[NodeId, object], second: int) -> list[NodeId]:
        """The neighbours in the graph."""
        return [peer for peer in self.edges.get(id, {}) if peer in others]

    def join(self, id: NodeId, others: Sequence[NodeId]) -> None:
        """In range of two others, so that neither becomes a critical point."""
        rng = stream(self.seed, "join", id)
        points = sorted(rng.sample(sorted(others), min(2, len(others))))
        self.edges[id] = dict.fromkeys(points)
        for point in points:
            self.edges[point][id] = None
        self.places[id] = (rng.random(), rng.random())


class Radio(Motion):
    """Points in the unit square, in range up to a distance."""

    reach: float

    def join(self, id: NodeId, others: Sequence[NodeId]) -> None:
        """Where its own motion says."""

    def reaches(self, a: NodeId, b: NodeId, second: int) -> bool:
        """Close enough?"""
        (ax, ay), (bx, by) = self.place(a, second), self.place(b, second)
        return a != b and (ax - bx) ** 2 + (ay - by) ** 2 <= self.reach**2


class Waypoint(Radio):
    """Random waypoint: to a random place at a random speed, wait, again; then stand still.

    The standstill is at the first second from `moving` on at which the first `n` are connected.
    """

    def __init__(self, n: int, reach: float, seed: int, moving: int) -> None:
        self.reach, self.seed = reach, seed
        self.walks: dict[NodeId, list[Point]] = {}
        self.walkers: dict[NodeId, Random] = {}
        self.targets: dict[NodeId, tuple[Point, float, int]] = {}
        self.until = SECONDS_MAX
        for second in range(moving, moving + STANDSTILL_MAX):
            places = tuple(self.place(id, second) for id in range(n))
            graph = Graph(places, in_range(places, reach))
            if len(component(graph.neighbours(), 0)) == n:
                self.until = second
                return
        raise UsageError(f"{n} nodes with range {reach:.2g} are never connected: raise the degree")

    def place(self, id: NodeId, second: int) -> Point:
        """Walk on as far as needed, second by second."""
        walk = self.walks.setdefault(id, [])
        while len(walk) <= min(second, self.until):
            walk.append(self._step(id, walk))
        return walk[min(second, self.until)]

    def _step(self, id: NodeId, walk: list[Point]) -> Point:
        rng = self.walkers.setdefault(id, stream(self.seed, "waypoint", id))
        if not walk:
            return rng.random(), rng.random()
        x, y = walk[-1]
        if id not in self.targets:
            there = (rng.random(), rng.random())
            self.targets[id] = (there, rng.uniform(0.01, 0.05), rng.randrange(5))
        (tx, ty), speed, pause = self.targets[id]
        distance = ((tx - x) ** 2 + (ty - y) ** 2) ** 0.5
        if distance > speed:
            return x + (tx - x) * speed / distance, y + (ty - y) * speed / distance
        if pause:
            self.targets[id] = ((tx, ty), speed, pause - 1)
        else:
            del self.targets[id]
        return tx, ty


class Trace(Radio):
    """Recorded places, `id,second,x,y` per line, straight lines between them, in the unit square.

    The first line may give the range: `range,0.25`.
    """

    def __init__(self, text: str, source: str = "trace") -> None:
        self.reach = 0.25
        self.points: dict[NodeId, list[tuple[int, Point]]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            fields = line.split("#", 1)[0].strip().split(",")
            try:
                if fields[0].strip() == "range":
                    self.reach = _between(0, float(fields[1]), 2)
                elif fields != [""]:
                    second = int(_between(0, int(fields[1]), SECONDS_MAX))
                    x, y = (_between(0, float(field), 1) for field in fields[2:])
                    self.points.setdefault(int(fields[0]), []).append((second, (x, y)))
            except (ValueError, IndexError):
                raise UsageError(
                    f"{source}, line {number}: write id,second,x,y with x and y from 0 to 1 and at "
                    f"most {SECONDS_MAX:,} seconds, or range,DISTANCE"
                ) from None
        if sorted(self.points) != list(range(len(self.points))) or not self.points:
            raise UsageError(f"{source}: nodes must be numbered 0, 1, 2, ...")
        for track in self.points.values():
            track.sort()
        self.until = max(track[-1][0] for track in self.points.values())

    def place(self, id: NodeId, second: int) -> Point:
        """On the line between the two records around `second`; before and after, at the ends."""
        track = self.points.get(id) or [(0, (0.5, 0.5))]
        later = next((index for index, (at, _) in enumerate(track) if at >= second), len(track))
        if later in (0, len(track)):
            return track[min(later, len(track) - 1)][1]
        (t0, (x0, y0)), (t1, (x1, y1)) = track[later - 1], track[later]
        share = (second - t0) / (t1 - t0)
        return x0 + share * (x1 - x0), y0 + share * (y1 - y0)


def _between(low: float, value: float, high: float) -> float:
    if not low <= value <= high:
        raise ValueError
    return value
