"""The alternatives of section VI-E on the same work: one event on one topic of a chain.

Gossip broadcast; gossip multicast in both readings of Figure 1 (a group per topic of everybody
interested, or one per topic of its own subscribers, with the publisher publishing in all of them;
the paper takes its memory from the first and its messages from the second, erratum 14);
hierarchical gossip broadcast over clusters that know nothing of interests; and daMulticast.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log
from random import Random

import numpy as np
from msgspec import Struct

from planaria.lab.gossip.experiment import Reading, Setting, read_as, run, spread
from planaria.lab.gossip.sampling import Bools, Ints, below, distinct, others
from planaria.protocols.gossip.parameters import Parameters
from planaria.simulator.worlds.reach import Estimate, estimated


class Baseline(Struct, frozen=True):
    """One approach: messages and parasite copies per event, the largest tables, reliability.

    Memory is counted as the paper does, ln S + c entries per table, for the process with most.
    """

    messages: Estimate
    memory: int
    parasites: Estimate
    of_interested: Estimate
    p_all: Estimate


class Work(Struct, frozen=True):
    """An event on `level` of a chain of groups (from the top down), over links that lose."""

    sizes: tuple[int, ...] = (10, 100, 1000)
    level: int = -1
    parameters: Parameters = Parameters()
    loss: float = 0.15
    runs: int = 200
    reading: Reading = "planaria"  # of daMulticast

    @property
    def clusters(self) -> int:
        """N of hierarchical broadcast, 'the total number of groups (i.e., topics)'."""
        return len(self.sizes)

    @property
    def bottom(self) -> int:
        """The level as a number from the top."""
        return range(len(self.sizes))[self.level]

    @property
    def interested(self) -> int:
        """How many want the event: the group of its topic and all above."""
        return sum(self.sizes[: self.bottom + 1])


def da_multicast(work: Work, rng: Random) -> Baseline:
    """The algorithm of the paper, as it reads or as Planaria runs it."""
    setting = Setting(work.sizes, work.parameters, work.loss, level=work.level)
    groups = run(read_as(setting, work.reading), work.runs, rng)
    rows = list(zip(*groups, strict=True))
    sent = [float(sum(row.sent + row.intergroup_sent for row in event)) for event in rows]
    got = [sum(row.reached for row in event[: work.bottom + 1]) for event in rows]
    wasted = [float(sum(row.parasites for row in event)) for event in rows]
    memory = max(
        _table(size, work.parameters.c) + (work.parameters.z if level else 0)
        for level, size in enumerate(work.sizes)
    )
    return _baseline(work, sent, wasted, got, memory)


def broadcast(work: Work, rng: Random) -> Baseline:
    """(a) Everybody is in one group; who is not interested gets the event all the same."""
    n = sum(work.sizes)
    return _one_group(work, rng, n, _table(n, work.parameters.c))


def multicast_interested(work: Work, rng: Random) -> Baseline:
    """(b), first reading: a group per topic of all who want it; tables for every subtopic."""
    ever = [sum(work.sizes[: level + 1]) for level in range(len(work.sizes))]
    memory = sum(_table(size, work.parameters.c) for size in ever)
    return _one_group(work, rng, work.interested, memory)


def multicast_subscribers(work: Work, rng: Random) -> Baseline:
    """(b), second reading: the publisher publishes in its group and in every supergroup."""
    sent = np.zeros(work.runs)
    got = np.zeros(work.runs, dtype=np.int64)
    sizes = work.sizes[: work.bottom + 1]
    for level, size in enumerate(sizes):
        alive = np.ones((work.runs, size), dtype=np.bool_)
        seeds = _one_seed(rng, work.runs, size)
        fanout = work.parameters.fanout(size)
        if level < work.bottom:  # the publisher is no member: it sends to ln S + c of them
            fanout = min(size, _table(size, work.parameters.c))
            first = distinct(rng, work.runs, fanout, size)
            seeds = np.zeros_like(alive)
            lost = below(rng, 10**9, work.runs, fanout) < work.loss * 10**9
            rows = np.repeat(np.arange(work.runs), fanout).reshape(first.shape)
            seeds[rows[~lost], first[~lost]] = True
            sent += fanout
            fanout = work.parameters.fanout(size)
        targets = others(rng, work.runs, size, fanout)
        done = spread(seeds, alive, targets, 1 - work.loss, rng, fanout=fanout)
        sent += done.sent
        got += done.reached.sum(1)
    memory = sum(_table(size, work.parameters.c) for size in sizes)
    return _baseline(work, sent.tolist(), [0.0] * work.runs, got.tolist(), memory)


def hierarchical(work: Work, rng: Random) -> Baseline:
    """(c) Clusters that do not depend on interests; every process gossips within and between."""
    n, c, clusters = sum(work.sizes), work.parameters.c, work.clusters
    m = -(-n // clusters)
    places = clusters * m
    within = min(_table(m, c), m - 1)
    between = min(_table(clusters, c), places - m)
    inner = others(rng, work.runs * clusters, m, within).reshape(work.runs, places, within)
    cluster = np.arange(places) // m
    inner = inner + (cluster * m)[None, :, None]
    drawn = distinct(rng, work.runs * places, between, max(1, places - m))
    drawn = drawn.reshape(work.runs, places, between)
    outer = drawn + m * (drawn >= (cluster * m)[None, :, None])
    targets = np.concatenate([inner, outer], axis=2)
    place = _places(rng, work, places)
    alive = np.zeros((work.runs, places), dtype=np.bool_)
    wants = np.zeros_like(alive)
    rows = np.arange(work.runs)[:, None]
    alive[rows, place] = True
    wants[rows, place[:, : work.interested]] = True
    seeds = np.zeros_like(alive)
    seeds[np.arange(work.runs), place[:, work.interested - 1]] = True
    return _judge(work, rng, seeds, alive, wants, targets, _table(m, c) + _table(clusters, c))


APPROACHES: Mapping[str, Callable[[Work, Random], Baseline]] = {
    "daMulticast": da_multicast,
    "broadcast": broadcast,
    "multicast (one group of all interested)": multicast_interested,
    "multicast (publisher publishes in every supergroup)": multicast_subscribers,
    "hierarchical broadcast": hierarchical,
}


def compare(work: Work, rng: Random) -> dict[str, Baseline]:
    """All approaches on the same work."""
    return {name: approach(work, rng) for name, approach in APPROACHES.items()}


def _places(rng: Random, work: Work, limit: int) -> Ints:
    """Where each process is: groups are spread over all clusters at random."""
    keys = below(rng, 2**52, work.runs, limit)
    return keys.argsort(axis=1)[:, : sum(work.sizes)]


def _one_group(work: Work, rng: Random, size: int, memory: int) -> Baseline:
    """Gossip in one group of `size` of which the first `interested` want the event."""
    alive = np.ones((work.runs, size), dtype=np.bool_)
    wants = np.zeros_like(alive)
    wants[:, : work.interested] = True
    fanout = work.parameters.fanout(size)
    targets = others(rng, work.runs, size, fanout)
    seeds = np.zeros_like(alive)
    seeds[:, 0] = True
    return _judge(work, rng, seeds, alive, wants, targets, memory)


def _judge(
    work: Work,
    rng: Random,
    seeds: Bools,
    alive: Bools,
    wants: Bools,
    targets: Ints,
    memory: int,
) -> Baseline:
    fanout = targets.shape[2]
    done = spread(seeds, alive, targets, 1 - work.loss, rng, fanout=fanout)
    wasted = np.where(wants, 0, done.received).sum(1)
    got = (done.reached & wants).sum(1)
    return _baseline(work, done.sent.tolist(), wasted.tolist(), got.tolist(), memory)


def _one_seed(rng: Random, runs: int, size: int) -> Bools:
    seeds = np.zeros((runs, size), dtype=np.bool_)
    seeds[np.arange(runs), below(rng, size, runs)] = True
    return seeds


def _table(size: int, c: float) -> int:
    return max(1, ceil(log(max(1, size)) + c - 1e-9))


def _baseline(
    work: Work,
    sent: Sequence[float],
    wasted: Sequence[float],
    got: Sequence[int],
    memory: int,
) -> Baseline:
    shares = [count / work.interested for count in got]
    return Baseline(
        estimated([*sent]),
        memory,
        estimated([*wasted]),
        estimated(shares),
        estimated([float(count == work.interested) for count in got]),
    )
