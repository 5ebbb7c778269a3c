"""Arcs of the skip ring: who hands which part of the ring to whom. Pure functions on positions.

An arc (lo, hi) is the open clockwise interval between two positions; with lo = hi it is the whole
ring but that point. A broadcast splits the ring into arcs: whoever is handed an
arc owes the publication to every other node in it. In a legitimate SR(n) each node is then
reached once, at its graph distance from the origin.
"""

from bisect import bisect_left
from itertools import pairwise
from typing import NamedTuple

from planaria.protocols.skipring.labels import CIRCLE, length, position

INSIDE = 0  # the receiver lies in its arc
FROM_LO = 1  # the receiver lies outside and carries an orphaned arc towards its lo end
FROM_HI = 2  # the same, towards its hi end

_HALF = CIRCLE >> 1

Neighbour = tuple[int, int]  # (label, id)


class Share(NamedTuple):
    """The arc (lo, hi) that the neighbour `id`, believed to have `label`, is asked to serve."""

    label: int
    id: int
    lo: int
    hi: int
    side: int = INSIDE


def inside(place: int, lo: int, hi: int) -> bool:
    """Does `place` lie in the open clockwise interval (lo, hi)?"""
    return 0 < (place - lo) % CIRCLE < ((hi - lo) % CIRCLE or CIRCLE)


def split_arc(own: int, neighbours: list[Neighbour], lo: int, hi: int) -> list[Share]:
    """Divide the arc around the label `own` among the neighbours in it, the farthest first.

    The shares are disjoint, each holds its neighbour, and together they hold all of the arc but
    `own` and the sides on which no neighbour is known. The origin asks for lo = hi = own position.
    """
    here = position(own)
    chosen, twins = _by_distance(here, neighbours, lo, hi)
    order = sorted(chosen)
    whole = lo == hi == here
    reach = CIRCLE if whole else (hi - here) % CIRCLE
    cut = bisect_left(order, reach)
    parts = ((order[:cut], 0, reach), (order[cut:], (lo - here) % CIRCLE, CIRCLE))
    shares = []
    for distances, start, end in parts:
        meet = [_border(a, b, chosen[a][0], chosen[b][0]) for a, b in pairwise(distances)]
        borders = [(here + border) % CIRCLE for border in (start, *meet, end)]
        for at, distance in enumerate(distances):
            share = Share(*chosen[distance], borders[at], borders[at + 1])
            shares.append((-min(distance, CIRCLE - distance), distance, share))
    return [share for *_, share in sorted(shares)] + twins


def approach(own: int, neighbours: list[Neighbour], lo: int, hi: int, side: int) -> list[Share]:
    """Bring an arc to nodes that can serve it (R4); empty if this node knows nobody who can.

    A node in the arc splits it. A node outside it divides it among its neighbours inside, else
    hands it whole to the neighbour nearest to the arc's end `side`, if that is nearer than itself.
    """
    here = position(own)
    if inside(here, lo, hi):
        return split_arc(own, neighbours, lo, hi)
    within = [n for n in neighbours if inside(position(n[0]), lo, hi)]
    chosen, twins = _by_distance(lo, within, lo, hi)
    if chosen:
        order = sorted(chosen)
        # Bit 0 is never set in a position, so no border is a label.
        middles = [(lo + (a + b) // 2) % CIRCLE | 1 for a, b in pairwise(order)]
        ends = pairwise([lo, *middles, hi])
        return [Share(*chosen[at], *arc) for at, arc in zip(order, ends, strict=True)] + twins

    def distance_to_end(place: int) -> int:
        return (place - hi) % CIRCLE if side == FROM_HI else (lo - place) % CIRCLE

    nearer = [
        (distance_to_end(position(label)), id, label)
        for label, id in neighbours
        if distance_to_end(position(label)) < distance_to_end(here)
    ]
    return [Share(label, id, lo, hi, side) for _, id, label in sorted(nearer)[:1]]


def reroute(own: int, neighbours: list[Neighbour], lost: Share) -> list[Share]:
    """Serve a share whose receiver is not there (R4), by `neighbours`, which lack that receiver.

    The arc is cut at the lost label y: (lo, y] is approached from its lo end, (y, hi) from its hi
    end, where live ring neighbours of the lost node must be. A part whose end this node cannot
    approach is joined to the other one.
    """
    _, _, lo, hi, side = lost
    place = position(lost.label)
    if side != INSIDE or not inside(place, lo, hi):
        return approach(own, neighbours, lo, hi, side or FROM_LO)
    low = approach(own, neighbours, lo, place + 1, FROM_LO)
    high = approach(own, neighbours, place, hi, FROM_HI)
    if low and high:
        return low + high
    return approach(own, neighbours, lo, hi, FROM_LO if low else FROM_HI)


def _by_distance(
    base: int, neighbours: list[Neighbour], lo: int, hi: int
) -> tuple[dict[int, Neighbour], list[Share]]:
    """The neighbours in the arc by clockwise distance from `base`, and the twins.

    A twin claims the label of another neighbour or of the node itself, which only happens in
    broken states. It is handed its own place and nothing else.
    """
    chosen: dict[int, Neighbour] = {}
    twins = []
    span = (hi - lo) % CIRCLE or CIRCLE
    for neighbour in neighbours:
        place = position(neighbour[0])
        distance = (place - base) % CIRCLE
        if 0 < (place - lo) % CIRCLE < span and distance and distance not in chosen:
            chosen[distance] = neighbour
        elif distance == 0 or distance in chosen:
            twins.append(Share(*neighbour, (place - 1) % CIRCLE, place + 1))
    return chosen, twins


def _border(near: int, far: int, near_label: int, far_label: int) -> int:
    """Where the shares of two consecutive neighbours meet, as clockwise distances from here.

    Two thirds of a gap go to its end that is not informed later: on one side of this node the
    nearer neighbour; across the far side the longer label, which gets two thirds of its own
    level's gap while the rest climbs to the shorter one ('0' and '1' tie: either will do). Bit 0
    is never set in a position, so no border is a label.
    """
    gap = far - near
    if far <= _HALF:
        return near + gap * 2 // 3 | 1
    if near >= _HALF:
        return far - gap * 2 // 3 | 1
    near_depth, far_depth = length(near_label), length(far_label)
    reach = (CIRCLE >> max(near_depth, far_depth)) * 2 // 3
    if reach >= gap:  # only a label known wrongly can lie so near
        reach = gap * 2 // 3
    return near + reach | 1 if near_depth >= far_depth else far - reach | 1
