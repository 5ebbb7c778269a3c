"""All states that any schedule reaches, old views included: the orientations on small graphs.

What a node does depends on its own variables alone, so each of its steps is taken once, with the
classes of the product, and remembered. A beat that is lost or repeated says what the next one says,
so a channel is what the other end has not heard yet.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations
from random import Random

from planaria.lab.mobile.edge_bits import Edge, EdgeBits
from planaria.literal.mobile import Graph, Lids, orders
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.messages import Word

State = tuple[tuple[int, ...], int]  # heights above the lowest; a bit per end that has not heard


def renamings(graph: Graph) -> list[tuple[int, ...]]:
    """All names for the nodes that leave the graph as it is."""
    n = len(graph)
    return [
        p
        for p in permutations(range(n))
        if all(p[j] in graph[p[i]] for i in range(n) for j in graph[i])
    ]


def different_orders(graph: Graph) -> list[Lids]:
    """Lids for each acyclic orientation, one of those that differ by the names of nodes only."""
    arcs, same = [(i, j) for i, peers in enumerate(graph) for j in peers], renamings(graph)
    found: dict[tuple[bool, ...], Lids] = {}
    for lids in orders(graph):
        key = min(tuple(lids[p[i]] < lids[p[j]] for i, j in arcs) for p in same)
        found.setdefault(key, lids)
    return list(found.values())


def different_links(graph: Graph) -> list[tuple[int, int]]:
    """The links of a graph, one of those that differ by the names of nodes only."""
    same = renamings(graph)
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    for link in [(i, j) for i, peers in enumerate(graph) for j in peers if i < j]:
        key = min(tuple(sorted((p[link[0]], p[link[1]]))) for p in same)
        found.setdefault(key, link)
    return list(found.values())


@cache
def turn(around: tuple[tuple[int, bool], ...]) -> int:
    """How far a node climbs if it sees such (height above its own, higher lid); 0: it is no sink.

    The same at every height, so that heights need be known up to a shift only.
    """
    climbs = []
    for level in (3, 4, 5):
        node = Heights(0, Random(0))
        node.height, node.lid, node.settled = level, 10, True
        for peer, (gap, higher) in enumerate(around, 1):
            node.views[peer] = (level + gap, 11 if higher else 9)
        if node.sink():
            node.reverse()
        climbs.append(node.height - level)
    assert len(set(climbs)) == 1
    return climbs[0]


@cache
def heard(gap: int, view: int) -> int:
    """What a node takes a peer for, that is `gap` above it and that it took for `view` above it."""
    taken = []
    for level in (3, 4, 5):
        node, peer = Heights(0, Random(0)), Heights(1, Random(1))
        node.height, peer.height = level, level + gap
        node.views[1], peer.views[0] = (level + view, peer.lid), (level, node.lid)
        for audit in (0, 5):  # the whole height, and its residue where that will do
            peer.audit[0] = audit
            node.views[1] = (level + view, peer.lid)
            node.hear(1, peer.word(0))
            taken.append(node.views[1][0] - level)
    assert len(set(taken)) == 1
    return taken[0]


class HeightStates:
    """Heights on one graph, all equal at first, under every schedule and every delay."""

    def __init__(self, graph: Graph, lids: Lids) -> None:
        self.graph, self.lids = graph, lids
        ends = [(i, j) for i in range(len(graph)) for j in graph[i]]
        self.bit = {end: 1 << number for number, end in enumerate(ends)}
        self.said = [sum(self.bit[i, j] for j in graph[i]) for i in range(len(graph))]

    def around(self, state: State, i: int) -> tuple[tuple[int, bool], ...]:
        """What node `i` sees: a neighbour whose last turn it has not heard of is one lower."""
        levels, late = state
        return tuple(
            (
                levels[j] - bool(late & self.bit[j, i]) - levels[i],
                self.lids[j] > self.lids[i],
            )
            for j in self.graph[i]
        )

    def sinks(self, state: State) -> list[int]:
        """Who believes that it is its turn."""
        return [i for i in range(len(self.graph)) if turn(self.around(state, i))]

    def after(self, state: State) -> Iterator[State]:
        """Each sink acts, or each word that was not heard yet is."""
        levels, late = state
        for i in self.sinks(state):
            assert not late & self.said[i]  # nobody acts twice before a neighbour has heard of it
            climbed = list(levels)
            climbed[i] += turn(self.around(state, i))
            low = min(climbed)
            yield tuple(level - low for level in climbed), late | self.said[i]
        for (j, i), bit in self.bit.items():
            if late & bit:
                gap = levels[j] - levels[i]
                assert heard(gap, gap - 1) == gap
                yield levels, late ^ bit

    def reachable(self) -> list[State]:
        """All of them."""
        start: State = ((0,) * len(self.graph), 0)
        found = {start: None}
        queue = [start]
        while queue:
            for state in self.after(queue.pop()):
                if state not in found:
                    found[state] = None
                    queue.append(state)
        return list(found)


# A link that forms

End = tuple[object, ...]
Handshake = tuple[End, End, tuple[Word, ...], tuple[Word, ...]]
ENDS = (0, 1)


def _end(node: EdgeBits, peer: int) -> End:
    edge = node.edges[peer]
    rest = (edge.heard, edge.offer, edge.accepted, edge.refused)
    return (node.acts, edge.up, edge.bit, edge.other, *rest)


def _node(id: int, end: End) -> EdgeBits:
    node = EdgeBits(id, Random(0))
    node.acts = end[0]  # type: ignore[assignment]
    up, bit, other, heard, offer, accepted, refused = end[1:]
    node.edges[1 - id] = Edge(up, bit, other, heard, offer, accepted, refused)  # type: ignore[arg-type]
    return node


@cache
def acted(id: int, end: End) -> End:
    """This end after its node acted."""
    node = _node(id, end)
    node.reverse()
    return _end(node, 1 - id)


@cache
def word_of(id: int, end: End) -> Word:
    """What this end says."""
    return _node(id, end).word(1 - id)


@cache
def hears(id: int, end: End, word: Word) -> End:
    """This end after it heard a word."""
    node = _node(id, end)
    node.hear(1 - id, word)
    return _end(node, 1 - id)


@cache
def token(id: int, end: End) -> bool | None:
    """Does this end believe that the token is here? None: no direction yet."""
    node = _node(id, end)
    return node.sink() if node.oriented(1 - id) else None


def direction(ends: Sequence[End]) -> int | None:
    """The end that the link truly points to, from the bits of both, or None while it forms."""
    if not (ends[0][1] and ends[1][1]):
        return None
    return 0 if ends[0][2] == ends[1][2] else 1


class FormingStates:
    """A graph of edge bits in which one link forms while everybody acts, under every schedule.

    Words of the forming link wait in order, up to `slots` of them; those of the others are heard at
    once. Its ends act up to `acts` times each, the others as often as they like.
    """

    def __init__(self, graph: Graph, link: tuple[int, int], acts: int, slots: int) -> None:
        self.n, self.link, self.acts, self.slots = len(graph), link, acts, slots
        edges = [(i, j) for i in range(self.n) for j in graph[i] if i < j and (i, j) != link]
        self.edges = edges
        self.mine = [
            sum(1 << k for k, edge in enumerate(edges) if i in edge) for i in range(self.n)
        ]
        # With all bits of `into[i]` set and the others of `mine[i]` not, all links point to i.
        self.into = [
            sum(1 << k for k, (_, high) in enumerate(edges) if i == high) for i in range(self.n)
        ]

    def starts(self) -> list[tuple[int, Handshake]]:
        """All acyclic orientations of the other links, and the link unknown to both ends."""
        new = [EdgeBits(id, Random(0)) for id in ENDS]
        for id in ENDS:
            assert new[id].link_up(1 - id, new[1 - id].greet())
        shake: Handshake = (_end(new[0], 1), _end(new[1], 0), (), ())
        return [(bits, shake) for bits in range(1 << len(self.edges)) if self.acyclic(bits, None)]

    def acyclic(self, bits: int, low: int | None) -> bool:
        """Can all nodes be taken away, always one that no link leaves? A bit is set if its link
        points to the larger end."""
        arcs = [(j, i) if not bits >> k & 1 else (i, j) for k, (i, j) in enumerate(self.edges)]
        if low is not None:
            arcs.append((self.link[1 - low], self.link[low]))
        left = list(range(self.n))
        while left:
            ends = [i for i in left if not any(a == i and b in left for a, b in arcs)]
            if not ends:
                return False
            left = [i for i in left if i not in ends]
        return True

    def after(self, bits: int, shake: Handshake) -> Iterator[tuple[int, Handshake]]:
        """Each sink acts; each end of the link speaks; each waiting word is heard."""
        for i in range(self.n):
            if bits & self.mine[i] != self.into[i]:
                continue
            if i not in self.link:
                yield bits ^ self.mine[i], shake
                continue
            id = self.link.index(i)
            end = shake[id]
            if end[0] != self.acts and token(id, end) is not False:
                yield bits ^ self.mine[i], _replaced(shake, id, acted(id, end))
        for id in ENDS:
            said, words = word_of(id, shake[id]), shake[2 + id]
            if len(words) < self.slots and words[-1:] != (said,):
                yield bits, _replaced(shake, 2 + id, (*words, said))
            if words:
                other = hears(1 - id, shake[1 - id], words[0])
                yield bits, _replaced(_replaced(shake, 2 + id, words[1:]), 1 - id, other)

    def cyclic(self) -> list[tuple[int, int | None]]:
        """The orientations with a cycle that any schedule reaches, and the new link's direction."""
        found = {(bits, direction(shake[:2])): None for bits, shake in self.reachable()}
        return [it for it in found if not self.acyclic(*it)]

    def reachable(self) -> list[tuple[int, Handshake]]:
        """All of them."""
        queue = self.starts()
        found = dict.fromkeys(queue)
        while queue:
            for state in self.after(*queue.pop()):
                if state not in found:
                    found[state] = None
                    queue.append(state)
        return list(found)


def _replaced(shake: Handshake, place: int, value: object) -> Handshake:
    return (*shake[:place], value, *shake[place + 1 :])  # type: ignore[return-value]
