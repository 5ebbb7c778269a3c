"""Section 4.3 of the first paper, flooding: what it promises, what it costs, where it is cut."""

from collections import deque

import pytest

from planaria.core.node import Send
from planaria.literal.flooding import LiteralFlooding, Publish
from planaria.protocols.skipring.broadcast import Broadcast, view
from planaria.protocols.skipring.broadcast_messages import Flood
from planaria.protocols.skipring.labels import label_bits
from planaria.records.record import Draft, Record, seal

SIZES = [2, 3, 4, 5, 8, 13, 16, 31, 64, 100, 256]


def skip_ring(n: int) -> dict[int, list[int]]:
    """SR(n), Definition 2: the sorted rings over the labels of at most k bits, for all k."""
    places = sorted(range(n), key=lambda x: label_bits(x).ljust(64, "0"))
    graph: dict[int, set[int]] = {x: set() for x in range(n)}
    for k in range(1, max(1, (n - 1).bit_length()) + 1):
        ring = [x for x in places if len(label_bits(x)) <= k]
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
            if a != b:
                graph[a].add(b)
                graph[b].add(a)
    return {x: sorted(graph[x]) for x in graph}


def literal_flood(nodes: dict[int, LiteralFlooding], origin: int, payload: bytes) -> int:
    """The messages of one literal flood."""
    queue, messages = deque(nodes[origin].publish(payload)), 0
    while queue:
        effect = queue.popleft()
        assert isinstance(effect, Send)
        messages += 1
        queue.extend(nodes[effect.target].on_message(effect.message))
    return messages


def said(sequence: int) -> Record:
    return seal((1, bytes(12)), sequence, [Draft(b"p")], time=0)


def amended_flood(
    graph: dict[int, list[int]], origin: int, item: Record
) -> tuple[dict[int, int], int]:
    """Hops per node and the messages of one flood by the rule R6."""
    nodes = {x: Broadcast("t", x) for x in graph}
    views = {x: view(x, x, [(y, y) for y in graph[x]], doubt=True) for x in graph}
    hops, messages = {origin: 0}, 0
    queue = deque(nodes[origin].publish(views[origin], item))
    while queue:
        effect = queue.popleft()
        assert isinstance(effect, Send)
        assert isinstance(effect.message, Flood)
        messages += 1
        hops.setdefault(effect.target, effect.message.hops)
        queue.extend(nodes[effect.target].on_flood(views[effect.target], effect.message, item.key))
    return hops, messages


@pytest.mark.parametrize("n", SIZES)
def test_section_4_3_literal_flooding_reaches_all_and_costs_4n_minus_6(n: int) -> None:
    graph = skip_ring(n)
    nodes = {x: LiteralFlooding(graph[x]) for x in graph}
    assert literal_flood(nodes, n // 2, b"p") == 4 * n - 6
    assert all(b"p" in node.trie for node in nodes.values())


@pytest.mark.parametrize("n", SIZES)
def test_section_4_3_flooding_reaches_all_within_log_n_hops_and_costs_3n_minus_5(n: int) -> None:
    hops, messages = amended_flood(skip_ring(n), n // 2, said(0))
    assert len(hops) == n
    assert max(hops.values()) <= (n - 1).bit_length()
    assert messages == 3 * n - 5


def test_erratum_t7_a_node_that_got_p_by_anti_entropy_cuts_the_literal_flood() -> None:
    """PUBLISH overtakes the flood at both neighbours of the origin: nobody else ever hears it."""
    graph = skip_ring(16)
    origin = 15
    nodes = {x: LiteralFlooding(graph[x]) for x in graph}
    for beside in graph[origin]:
        nodes[beside].on_message(Publish(b"p"))
    literal_flood(nodes, origin, b"p")
    reached = [x for x in graph if b"p" in nodes[x].trie]
    assert reached == sorted([origin, *graph[origin]])


def test_erratum_t7_amended_flooding_never_looks_at_the_store() -> None:
    """`Broadcast` has no store to look at: what anti-entropy brought cannot cut the flood."""
    graph = skip_ring(16)
    hops, _ = amended_flood(graph, 15, said(0))
    assert len(hops) == 16
    assert not [name for name in Broadcast.__slots__ if "store" in name]


def test_erratum_t4_the_same_payload_said_twice_is_flooded_once_if_read_literally() -> None:
    graph = skip_ring(8)
    nodes = {x: LiteralFlooding(graph[x]) for x in graph}
    assert literal_flood(nodes, 0, b"p") == 4 * 8 - 6
    assert literal_flood(nodes, 0, b"p") == len(graph[0]), "neighbours drop the second saying"
    first, second = (said(sequence) for sequence in (0, 1))
    assert amended_flood(graph, 0, first) == amended_flood(graph, 0, second)


def test_erratum_t5_an_empty_node_takes_part_in_a_flood() -> None:
    nodes = {x: LiteralFlooding(beside) for x, beside in skip_ring(4).items()}
    assert not nodes[0].trie
    literal_flood(nodes, 0, b"p")
    assert list(nodes[3].trie) == [b"p"]
