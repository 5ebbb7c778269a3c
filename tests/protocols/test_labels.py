"""Labels of the skip ring against the definitions of section 2.1, read literally from strings."""

from itertools import product

import pytest

from planaria.protocols.skipring.labels import (
    index_at,
    label_bits,
    label_index,
    length,
    position,
    predecessor,
    shortcut_labels,
    successor,
)
from planaria.protocols.skipring.neighbourhood import plausible
from planaria.protocols.skipring.reference import skip_ring


def skip_ring_edges(n: int) -> set[frozenset[int]]:
    """Definition 2 in plain words: the sorted rings over the labels of at most k bits, all k."""
    labels = {index: label_bits(index) for index in range(n)}
    edges = set()
    for k in range(1, max(len(bits) for bits in labels.values()) + 1):
        ring = sorted(
            (index for index in labels if len(labels[index]) <= k),
            key=lambda index: int(labels[index].ljust(64, "0"), 2),
        )
        edges |= {frozenset((a, b)) for a, b in zip(ring, ring[1:] + ring[:1], strict=True)}
    return {edge for edge in edges if len(edge) == 2}


def test_labels_come_in_the_order_of_the_paper() -> None:
    assert [label_bits(x) for x in range(9)] == "0 1 01 11 001 011 101 111 0001".split()


@pytest.mark.parametrize("bits", ["", "10", "00", "010", "x1", "2"])
def test_a_string_outside_the_image_of_l_is_no_label(bits: str) -> None:
    assert label_index(bits) is None


def test_index_length_and_position_agree_with_the_bits() -> None:
    for x in range(4096):
        bits = label_bits(x)
        assert label_index(bits) == x
        assert length(x) == len(bits)
        assert position(x) == int(bits.ljust(64, "0"), 2)
        assert index_at(position(x)) == x


def test_neighbours_and_shortcuts_computed_locally_are_the_skip_ring() -> None:
    for n in range(2, 200):
        ring = sorted(range(n), key=position)
        edges = set()
        for x in range(n):
            place = ring.index(x)
            assert predecessor(x, n) == ring[place - 1]
            assert successor(x, n) == ring[(place + 1) % n]
            for beside in (predecessor(x, n), successor(x, n)):
                edges.add(frozenset((x, beside)))
                edges |= {frozenset((x, far)) for far in shortcut_labels(x, beside)}
        assert edges == skip_ring_edges(n)
        assert len(edges) == 2 * n - 3


def test_shortcuts_of_one_quarter_are_those_of_the_example_in_3_2_2() -> None:
    quarter = label_index("01")
    assert quarter is not None
    left, right = label_index("0011"), label_index("0101")
    assert left is not None
    assert right is not None
    assert [label_bits(x) for x in shortcut_labels(quarter, left)] == ["001", "0"]
    assert [label_bits(x) for x in shortcut_labels(quarter, right)] == ["011", "1"]


def test_shortcut_labels_of_any_pair_of_labels_are_finite() -> None:
    for own in range(64):
        for neighbour in [*range(64), 2**61, 2**62 - 1]:
            assert len(shortcut_labels(own, neighbour)) <= 64


def test_plausible_places_are_exactly_those_of_some_skip_ring() -> None:
    """A3: gaps that are powers of two and fit each other are not enough; a label has its level."""
    true = {
        (label, place.pred, place.succ)
        for n in range(2, 66)
        for label, place in enumerate(skip_ring(n))
    }
    small = range(16)
    for place in product(small, small, small):
        assert plausible(*place) == (place in true)
    assert not plausible(4, 7, 5), "gaps of a quarter around one eighth"
