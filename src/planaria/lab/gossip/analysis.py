"""The analysis of section VI, corrected: formulas for paper and plots (as printed: `literal`).

Groups go from the top (0) down; t groups are joined by t - 1 links (errata 5, 7, 8). `arrives` is
the probability that a message arrives; ln S + c is rounded up, as it is sent (erratum 2).
"""

from collections.abc import Sequence
from math import exp, inf, log

from planaria.protocols.gossip.parameters import Parameters


def pit(
    size: int, dials: Parameters, arrives: float, share: float = 1.0, *, coins: bool = False
) -> float:
    """The probability that an event gets from a group to its supergroup (erratum 4).

    Relays are elected independently, so exponents are random and their means do not do. `share` of
    the group has the event; with `coins` each table entry is chosen with probability a/z, as in
    Figure 7, else exactly a are.
    """
    if coins:
        relay = 1 - (1 - dials.a / dials.z * arrives) ** dials.z
    else:
        relay = 1 - (1 - arrives) ** dials.a
    return float(1 - (1 - dials.p_sel(size) * relay) ** (size * share))


def everybody(size: int, dials: Parameters, arrives: float) -> float:
    """The probability that all of a group receive an event that one of them has (erratum 6).

    e^(-e^-c) with the c that losses leave: c_eff = arrives * fanout - ln S.
    """
    if size < 2:
        return 1.0
    missed = (1 - arrives * dials.fanout(size) / (size - 1)) ** (size - 1)
    return exp(-size * missed)


def reliability_of(sizes: Sequence[int], dials: Parameters, arrives: float) -> float:
    """Equation (1), corrected: everybody in every group, and every link between (erratum 5)."""
    product = 1.0
    for level, size in enumerate(sizes):
        product *= everybody(size, dials, arrives)
        if level:
            product *= pit(size, dials, arrives)
    return product


def messages(sizes: Sequence[int], dials: Parameters) -> float:
    """Events sent in all: each member its fanout, each group but the top g relays (errata 8, 9).

    The publisher relays always, beside the g.
    """
    within = sum(size * dials.fanout(size) for size in sizes)
    upwards = sum(size * dials.p_sel(size) * dials.a for size in sizes[1:])
    return within + upwards + (dials.a if len(sizes) > 1 else 0)


def memory(size: int, dials: Parameters, *, top: bool = False) -> int:
    """Table entries of one process: a view of (b+1) ln S, and z unless it is at the top (12)."""
    return min(dials.view(size), max(0, size - 1)) + (0 if top else dials.z)


def c_like_multicast(c: float, pit: float, t: int) -> float:
    """(16), corrected: the c of t groups with t - 1 links that are as reliable as multicast's c.

    Infinite where no c is enough, the limit itself included (erratum 13).
    """
    return c - _log(1 + (t - 1) / t * exp(c) * log(pit))


def z_below_multicast(size: float, c: float, pit: float, t: int) -> float:
    """(19), corrected: up to this z the tables are smaller than t tables of multicast."""
    return (t - 1) * (log(size) + c) + _log(1 + (t - 1) / t * exp(c) * log(pit))


def c_like_broadcast(c: float, pit: float, t: int) -> float:
    """(23), corrected: the c that is as reliable as broadcast with `c`."""
    return c - _log(1 + (t - 1) * exp(c) * log(pit)) + log(t)


def z_below_broadcast(n: float, size: float, c: float, pit: float, t: int) -> float:
    """(25), corrected: up to this z the tables are smaller than those of broadcast to n."""
    return log(n) + _log(1 + (t - 1) * exp(c) * log(pit)) - log(size) - log(t)


def c_like_hierarchical(c: float, pit: float, t: int, clusters: int) -> float:
    """(28), corrected: the c that is as reliable as hierarchical broadcast over `clusters`."""
    return log(t) + c - _log((t - 1) * exp(c) * log(pit) + clusters + 1)


def z_below_hierarchical(
    size: float, m: float, c: float, pit: float, t: int, clusters: int
) -> float:
    """(30), corrected: clusters of m processes need not be as large as groups (erratum 13)."""
    room = c + log(clusters) + log(m) - log(size) - log(t)
    return room + _log(clusters + 1 + (t - 1) * exp(c) * log(pit))


def _log(value: float) -> float:
    return log(value) if value > 0 else -inf
