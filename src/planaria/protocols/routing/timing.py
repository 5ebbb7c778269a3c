"""How long a lease must last (paper 4, sections 3.1, 3.3 and 3.5), with the reasons in words.

All times are in one unit of the caller's: timeouts of a broker, ticks, milliseconds.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId

Delays = tuple[float, float]  # of one link, the processing at its end included: least and most


class Timing(Struct, frozen=True):
    """Refresh period, leasing period, stabilization time, memory for replay, for cancels; why."""

    rho: int
    pi: int
    delta: int
    memory: int
    late: int
    why: tuple[str, ...]


def timing(
    rho: int, delays: Delays, diameter: int, *, changing: bool = True, flooding: bool = False
) -> Timing:
    """The shortest lease that survives unlucky delays on every path of `diameter` links.

    `changing`: the tree may change, and one refresh may be lost with a link.
    """
    return timing_on_path(rho, [delays] * diameter, changing=changing, flooding=flooding)


def timing_on_path(
    rho: int, path: Sequence[Delays], *, changing: bool = True, flooding: bool = False
) -> Timing:
    """The same for a subscription whose farthest publisher is behind these links (3.5)."""
    if rho < 1 or any(not 0 <= low <= high for low, high in path):
        raise UsageError("a refresh period is at least 1, and delays are 0 <= least <= most")
    jitter = sum(high - low for low, high in path)
    slowest = sum(high for _, high in path)
    periods = 2 if changing else 1
    why = [f"{len(path)} links, slowest crossing {slowest:g}, of which {jitter:g} is jitter"]
    if flooding:
        pi = periods * rho + (0 if changing else 1)
        delta = ceil(max(2 * pi, slowest))
        why.append(f"pi = {pi}: only local clients renew, no link is between them and the table")
        why.append(f"delta = {delta} = max(2 pi, d*dmax): entries, or false notifications")
    else:
        pi = floor(periods * rho + jitter) + 1
        delta = 2 * pi + ceil(slowest)
        lost = "2 rho (a refresh can be lost with a link)" if changing else "rho"
        why.append(f"pi = {pi} > {lost} + d(dmax - dmin): a renewal is late by the jitter at most")
        why.append(f"delta = {delta} = 2 pi + d*dmax: what a fault left lives 2 pi, then spreads")
    memory = ceil(slowest) + rho
    why.append(f"memory = {memory} = d*dmax + rho: so long are publications kept for new links")
    late = 1 + ceil(max((high - low for low, high in path), default=0))
    why.append(f"late = {late} > dmax - dmin of a link: so late comes what a cancel overtook")
    return Timing(rho, pi, delta, memory, late, tuple(why))


def timing_for(delta: int, delays: Delays, diameter: int, *, changing: bool = True) -> Timing:
    """The longest refresh period (fewest messages) that stabilizes within `delta`."""
    for rho in range(delta, 0, -1):
        found = timing(rho, delays, diameter, changing=changing)
        if found.delta <= delta:
            return found
    raise UsageError(f"no refresh period stabilizes within {delta}: the links are too slow")


def timing_of_each(
    rho: int,
    links: Mapping[tuple[NodeId, NodeId], Delays],
    publishers: Sequence[NodeId],
    *,
    changing: bool = True,
) -> dict[NodeId, Timing]:
    """For a subscription at each broker, by the links between it and the worst publisher (3.5)."""
    near: dict[NodeId, dict[NodeId, Delays]] = {}
    for (a, b), delays in sorted(links.items()):
        near.setdefault(a, {})[b] = delays
        near.setdefault(b, {})[a] = delays
    return {
        broker: max(
            (
                timing_on_path(rho, path, changing=changing)
                for target, path in _paths(broker, near).items()
                if target in publishers
            ),
            key=lambda it: it.pi,
        )
        for broker in sorted(near)
    }


def _paths(
    start: NodeId, near: Mapping[NodeId, Mapping[NodeId, Delays]]
) -> dict[NodeId, list[Delays]]:
    """The delays on the way from `start` to everybody, in a tree."""
    found: dict[NodeId, list[Delays]] = {start: []}
    pending = [start]
    for here in pending:
        for there, delays in near[here].items():
            if there not in found:
                found[there] = [*found[here], delays]
                pending.append(there)
    return found
