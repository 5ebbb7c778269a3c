"""What section 2.1 claims of SR(n), against the definition itself."""

from collections import Counter, deque
from math import ceil, floor, log2

import pytest

from planaria.core.chance import stream
from planaria.literal.skipring.labels import chain, inverse, label, label_at, position
from planaria.literal.skipring.overlay import LiteralSkipRing
from planaria.literal.skipring.reference import (
    reference_labels,
    skip_ring,
    skip_ring_edges,
    value,
)
from planaria.literal.skipring.subscriber import Subscriber

SIZES = [*range(2, 70), 100, 127, 128, 129, 200, 255, 256]


def test_labels_come_in_the_order_of_the_paper() -> None:
    assert [label(x) for x in range(9)] == "0 1 01 11 001 011 101 111 0001".split()
    for x in range(1000):
        assert label(x) == reference_labels(x + 1)[-1]
        assert inverse(label(x)) == x
        assert position(label(x)) == value(label(x)) * 2**64
        assert label_at(position(label(x))) == label(x)


@pytest.mark.parametrize("outside", ["", "00", "10", "110"])
def test_l_has_no_inverse_outside_its_image(outside: str) -> None:
    assert inverse(outside) is None


@pytest.mark.parametrize("n", SIZES)
def test_skip_ring_has_2n_minus_3_undirected_edges(n: int) -> None:
    """Lemma 3 counts 4n - 4 directed ones, the single edge between 0 and 1 twice."""
    edges = skip_ring_edges(n)
    assert len(edges) == 2 * n - 3
    stored = set()
    for bits, place in skip_ring(n).items():
        for other in (place.left, place.right, place.ring, *place.shortcuts):
            if other is not None:
                stored.add((min(bits, other), max(bits, other)))
    assert stored == edges


@pytest.mark.parametrize("k", range(1, 9))
def test_largest_degree_of_a_full_skip_ring_is_2k_minus_1(k: int) -> None:
    """Lemma 3 says 2k for label 0; its two level-1 neighbours are one."""
    degree = Counter(end for edge in skip_ring_edges(2**k) for end in edge)
    assert max(degree.values()) == 2 * k - 1


@pytest.mark.parametrize("n", SIZES)
def test_diameter_is_log2_n_rounded_up_or_down(n: int) -> None:
    beside: dict[str, list[str]] = {bits: [] for bits in reference_labels(n)}
    for one, other in skip_ring_edges(n):
        beside[one].append(other)
        beside[other].append(one)
    diameter = max(_eccentricity(beside, bits) for bits in beside)
    assert diameter in (floor(log2(n)), ceil(log2(n)))


def _eccentricity(beside: dict[str, list[str]], start: str) -> int:
    distance, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for other in beside[here]:
            if other not in distance:
                distance[other] = distance[here] + 1
                waiting.append(other)
    return max(distance.values())


@pytest.mark.parametrize("n", [1, *SIZES])
def test_shortcut_labels_computed_locally_are_those_of_the_definition(n: int) -> None:
    """Section 3.2.2, with positions mod 1 and '0' and '1' on both semicircles."""
    for node in LiteralSkipRing().legitimate(n, stream(n, "lemma")):
        if isinstance(node, Subscriber):
            before = dict(node.shortcuts)
            node.update_shortcuts()
            assert node.shortcuts == before


def test_the_example_of_section_3_2_2_computes_as_printed() -> None:
    assert chain("01", "0011") == ["001", "0"]
    assert chain("01", "0101") == ["011", "1"]
