"""Section VI of daMulticast in figures: each formula as printed and as corrected."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, exp, log

from planaria.core.chance import stream
from planaria.lab.gossip import analysis
from planaria.lab.gossip.prediction import complete
from planaria.literal import gossip_analysis as printed
from planaria.literal.gossip import LiteralProcess
from planaria.protocols.gossip.overlay import parse_sizes
from planaria.protocols.gossip.parameters import Parameters
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result
from planaria.studies.damulticast.runs import LOSS

DIALS = Parameters()  # section VII's: g = 5, a = 1, z = 3, b = 3, c = 5
ARRIVES = 1 - LOSS
C, PIT = 2.0, 0.999  # where equations (14) to (30) are solved: for c = 5 the real pit has no c_1

Pair = tuple[float, float]
Sizes = Sequence[int]


def formula(cell: Cell) -> Result:
    """One formula as printed, and corrected."""
    at = cell.parameters
    sizes, name = parse_sizes(str(at["sizes"])), str(at["formula"])
    if name in FORMULAS:
        as_printed, corrected = FORMULAS[name](sizes)
    else:
        kind, _, group = name.partition(" T")
        as_printed, corrected = of_group(int(group), sizes)[kind]
    return Result({"printed": float(as_printed), "corrected": float(corrected)})


def worst_pit(sizes: Sizes) -> float:
    """The least of the links' probabilities, with a publisher that always relays."""
    links = [analysis.pit(size, DIALS, ARRIVES) for size in sizes[1:]]
    links[-1] = 1 - (1 - links[-1]) * (1 - ARRIVES) ** DIALS.a
    return min(links)


def _bound(sizes: Sizes) -> Pair:
    """Messages over their bound: the worst of all S > 1 as printed, of all S > 2 corrected."""
    ratios = []
    for size in range(2, max(sizes) + 1):
        middle, bound = printed.messages_bound(len(sizes), size, DIALS.c, DIALS.z)
        ratios.append(middle / bound)
    return max(ratios), max(ratios[1:])


def _solved(sizes: Sizes, wanted: float, as_printed: float, corrected: float) -> Pair:
    """How far from the reliability `wanted` one is with each c_1."""
    t = len(sizes)
    found = [exp(-t * exp(-c)) * PIT ** (t - 1) - wanted for c in (as_printed, corrected)]
    return abs(found[0]), abs(found[1])


def _like_multicast(sizes: Sizes) -> Pair:
    t = len(sizes)
    ours = analysis.c_like_multicast(C, PIT, t)
    return _solved(sizes, exp(-t * exp(-C)), printed.c_like_multicast(C, PIT), ours)


def _like_broadcast(sizes: Sizes) -> Pair:
    t = len(sizes)
    ours = analysis.c_like_broadcast(C, PIT, t)
    return _solved(sizes, exp(-exp(-C)), printed.c_like_broadcast(C, PIT, t), ours)


def _like_hierarchical(sizes: Sizes) -> Pair:
    t = clusters = len(sizes)
    wanted = exp(-(clusters + 1) * exp(-C))
    theirs = printed.c_like_hierarchical(C, PIT, t, clusters)
    return _solved(sizes, wanted, theirs, analysis.c_like_hierarchical(C, PIT, t, clusters))


def _limits(sizes: Sizes, factor: float, links: float) -> Pair:
    """Up to which c a c_1 exists, by the printed pit and by the real one."""
    promised = printed.pit(sizes[-1], DIALS, ARRIVES)
    return -log(-factor * log(promised)), -log(-links * log(worst_pit(sizes)))


def _z_multicast(sizes: Sizes) -> Pair:
    size, t = sum(sizes) / len(sizes), len(sizes)
    return (
        printed.z_below_multicast(size, C, PIT, t),
        analysis.z_below_multicast(size, C, PIT, t),
    )


def _z_broadcast(sizes: Sizes) -> Pair:
    n, t = sum(sizes), len(sizes)
    return (
        printed.z_below_broadcast(n, n / t, C, PIT, t),
        analysis.z_below_broadcast(n, n / t, C, PIT, t),
    )


def _z_hierarchical(sizes: Sizes) -> Pair:
    t = clusters = len(sizes)
    size, m = sum(sizes) / t, -(-sum(sizes) // clusters)
    return (
        printed.z_below_hierarchical(C, PIT, t, clusters),
        analysis.z_below_hierarchical(size, m, C, PIT, t, clusters),
    )


def _process(size: int, dials: Parameters) -> LiteralProcess:
    """A process of Figure 7 with a full table."""
    table = [*range(1, 1 + min(size - 1, ceil((dials.b + 1) * log(size))))]
    return LiteralProcess("t", {"t": table}, {"t": []}, {"t": size}, dials, stream(0, "formulas"))


def _whole(_: Sizes) -> Pair:
    """Copies that a process sends where ln S + c is 6 (erratum 2)."""
    dials = Parameters(c=6 - log(40))
    return len(_process(40, dials).disseminate("t")[1]), dials.fanout(40)


def _smallest(_: Sizes) -> Pair:
    """The smallest group of at least two in which everybody can choose its targets (erratum 3)."""
    size = 2
    while True:
        try:
            _process(size, DIALS).disseminate("t")
        except IndexError:  # selects from an empty set
            size += 1
        else:
            break
    ours = next(size for size in range(2, size + 1) if DIALS.fanout(size) <= size - 1)
    return size, ours


def _more_relays(sizes: Sizes) -> Pair:
    """Messages that 45 more relays at the bottom cost (erratum 8)."""
    busy = Parameters(g=DIALS.g + 45)
    alike = [DIALS] * len(sizes)
    theirs = [printed.messages(sizes, dials, 1.0) for dials in ([*alike[:-1], busy], alike)]
    ours = [analysis.messages(sizes[-2:], dials) for dials in (busy, DIALS)]
    return theirs[0] - theirs[1], ours[0] - ours[1]


def _messages(sizes: Sizes) -> Pair:
    dials = [DIALS] * len(sizes)
    return printed.messages(sizes, dials, ARRIVES), analysis.messages(sizes, DIALS)


def _links(sizes: Sizes) -> Pair:
    """Events from the bottom group to the next."""
    return printed.super_messages(sizes[-1], DIALS, ARRIVES), DIALS.g * DIALS.a + DIALS.a


def _hierarchical_sends(sizes: Sizes) -> Pair:
    clusters = len(sizes)
    m = -(-sum(sizes) // clusters)
    return sum(sizes) * (log(clusters) + log(m) + 2 * DIALS.c), sum(sizes) * (
        DIALS.fanout(clusters) + DIALS.fanout(m)
    )


def _hierarchical_memory(sizes: Sizes) -> Pair:
    clusters = len(sizes)
    m = -(-sum(sizes) // clusters)
    return log(m) + log(clusters) + 2 * DIALS.c, DIALS.view(m) + DIALS.view(clusters)


def _multicast_memory(sizes: Sizes) -> Pair:
    return printed.memory_multicast(sizes, DIALS.c), sum(DIALS.view(size) for size in sizes)


def _bound_4(sizes: Sizes) -> float:
    most = max(sizes)
    return len(sizes) * most * (log(most) + DIALS.c)


def _bound_11(sizes: Sizes) -> float:
    """N is the number of topics."""
    most, t = max(sizes), len(sizes)
    return t * most * (log(t) + log(most) + 2 * DIALS.c)


def _bound_12(sizes: Sizes) -> float:
    most = max(sizes)
    return len(sizes) * most * (2 * log(most) + 2 * DIALS.c)


def _stated(exponent: Callable[[int], int]) -> Callable[[Sizes], Pair]:
    """A probability e^(-k e^-c), by how many groups there are; nothing to correct."""

    def found(sizes: Sizes) -> Pair:
        value = exp(-exponent(len(sizes)) * exp(-DIALS.c))
        return value, value

    return found


def _both(value: Callable[[Sizes], float]) -> Callable[[Sizes], Pair]:
    """A formula with nothing to correct."""
    return lambda sizes: (value(sizes), value(sizes))


FORMULAS: Mapping[str, Callable[[Sizes], Pair]] = {
    "(4)": _both(_bound_4),
    "(11)": _both(_bound_11),
    "(12)": _both(_bound_12),
    "broadcast reliability": _stated(lambda _: 1),
    "multicast reliability": _stated(lambda t: t),
    "hierarchical reliability": _stated(lambda t: t + 1),
    "fanout": _both(lambda sizes: float(DIALS.fanout(sizes[-1]))),
    "relayed": _both(lambda _: DIALS.g * DIALS.a),
    "messages": _messages,
    "links": _links,
    "bound": _bound,
    "whole fanout": _whole,
    "smallest group": _smallest,
    "more relays": _more_relays,
    "multicast sends": lambda sizes: (
        printed.messages_multicast(sizes, DIALS.c),
        sum(size * DIALS.fanout(size) for size in sizes),
    ),
    "broadcast sends": lambda sizes: (
        sum(sizes) * (log(sum(sizes)) + DIALS.c),
        sum(sizes) * DIALS.fanout(sum(sizes)),
    ),
    "hierarchical sends": _hierarchical_sends,
    "memory broadcast": lambda sizes: (
        printed.memory_broadcast(sum(sizes), DIALS.c),
        DIALS.view(sum(sizes)),
    ),
    "memory multicast": _multicast_memory,
    "memory multicast at the bottom": lambda sizes: _multicast_memory(sizes[-1:]),
    "memory hierarchical": _hierarchical_memory,
    "pit": lambda sizes: (printed.pit(sizes[-1], DIALS, ARRIVES), worst_pit(sizes)),
    "everybody": lambda sizes: (exp(-exp(-DIALS.c)), complete(sizes[-1], DIALS, ARRIVES)),
    "everybody without loss": lambda sizes: (
        exp(-exp(-DIALS.c)),
        complete(sizes[-1], DIALS, 1.0),
    ),
    "reliability": lambda sizes: (
        printed.reliability(sizes, DIALS, ARRIVES),
        analysis.reliability_of(sizes, DIALS, ARRIVES),
    ),
    "(16)": _like_multicast,
    "(23)": _like_broadcast,
    "(28)": _like_hierarchical,
    "limit of (16)": lambda sizes: _limits(sizes, 1.0, (len(sizes) - 1) / len(sizes)),
    "limit of (23)": lambda sizes: _limits(sizes, len(sizes), len(sizes) - 1),
    "limit of (28)": lambda sizes: _limits(
        sizes, len(sizes) / (len(sizes) + 1), (len(sizes) - 1) / (len(sizes) + 1)
    ),
    "(19)": _z_multicast,
    "(25)": _z_broadcast,
    "(30)": _z_hierarchical,
}


OF_GROUP = ("within", "memory", "specified")  # each followed by the name of a group


def of_group(level: int, sizes: Sizes) -> dict[str, Pair]:
    """Of one group: messages within it, entries of a process by section VI and by section V."""
    size, up = sizes[level], DIALS.z if level else 0
    held = analysis.memory(size, DIALS, top=not level)
    pairs = (
        (size * (log(size) + DIALS.c), size * DIALS.fanout(size)),
        (log(size) + DIALS.c + up, held),
        ((DIALS.b + 1) * log(size) + up, held),
    )
    return dict(zip(OF_GROUP, pairs, strict=True))
