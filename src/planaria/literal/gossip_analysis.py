"""Section VI of daMulticast as printed, for tests and for plots beside the corrected formulas.

t counts the groups, T_0 to T_(t-1), as in section VII; where the print says T_t, that is erratum 7.
"""

from collections.abc import Sequence
from math import exp, log

from planaria.protocols.gossip.parameters import Parameters


def pit(size: int, dials: Parameters, p_succ: float, pi: float = 1.0) -> float:
    """pit_Ti: random exponents replaced by their means (erratum 4)."""
    susceptible = size * (dials.g / size) * pi
    return float(1 - (1 - p_succ) ** (susceptible * (dials.a / dials.z) * dials.z))


def reliability(sizes: Sequence[int], dials: Parameters, p_succ: float) -> float:
    """(1): includes pit of the destination group (5) and no loss within groups (6)."""
    product = 1.0
    for size in sizes:
        product *= exp(-exp(-dials.c)) * pit(size, dials, p_succ)
    return product


def super_messages(size: int, dials: Parameters, p_succ: float) -> float:
    """nbSuperMsg, called 'sent', with p_succ in it: what is received (9)."""
    return size * (dials.g / size) * (dials.a / dials.z) * dials.z * p_succ


def messages(sizes: Sequence[int], dials: Sequence[Parameters], p_succ: float) -> float:
    """Events sent in all, sizes from the top down; links of i = t-1..0: the root has one (8)."""
    within = sum(size * (log(size) + each.c) for size, each in zip(sizes, dials, strict=True))
    links = list(zip(sizes, dials, strict=True))[:-1]
    return within + sum(super_messages(size, each, p_succ) for size, each in links)


def messages_bound(t: int, size: int, c: float, z: float) -> tuple[float, float]:
    """maxNbMsgSent and its bound t S ln S (1 + c + z), which needs ln S >= 1 (10)."""
    middle = t * size * (log(size) + c) + t * size * z
    return middle, t * size * log(size) * (1 + c + z)


def memory(size: int, dials: Parameters) -> float:
    """ln S + c + z, though the specified table is (b+1) ln S (12)."""
    return log(size) + dials.c + dials.z


def memory_broadcast(n: int, c: float) -> float:
    """ln n + c."""
    return log(n) + c


def c_like_multicast(c: float, pit: float) -> float:
    """(16)."""
    return c - log(1 + exp(c) * log(pit))


def z_below_multicast(size: float, c: float, pit: float, t: int) -> float:
    """(19)."""
    return (t - 1) * (log(size) + c) + log(1 + exp(c) * log(pit))


def c_like_broadcast(c: float, pit: float, t: int) -> float:
    """(23)."""
    return c - log(1 + t * exp(c) * log(pit)) + log(t)


def z_below_broadcast(n: float, size: float, c: float, pit: float, t: int) -> float:
    """(25)."""
    return log(n) + log(1 + t * exp(c) * log(pit)) - log(size) - log(t)


def c_like_hierarchical(c: float, pit: float, t: int, clusters: int) -> float:
    """(28)."""
    return log(t) + c - log(t * exp(c) * log(pit) + clusters + 1)


def z_below_hierarchical(c: float, pit: float, t: int, clusters: int) -> float:
    """(30): silent about m, which it takes to be S_T (13)."""
    return c + log(clusters) + log(clusters + 1 + t * exp(c) * log(pit)) - log(t)


def memory_multicast(sizes: Sequence[int], c: float) -> float:
    """(2): a table for each topic below, of that topic's own subscribers (14)."""
    return sum(log(size) + c for size in sizes)


def messages_multicast(sizes: Sequence[int], c: float) -> float:
    """(3): publish in every supergroup (14)."""
    return sum(size * (log(size) + c) for size in sizes)
