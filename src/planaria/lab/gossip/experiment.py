"""The paper's experiment (section VII) as arrays: many runs of one event at once.

Every process sends an event at most once, so who would send to whom can be drawn beforehand; what
is left is reachability. Tables are uniform (b has no influence on a single event), delays have no
influence at all. Agrees with the event-driven simulator within the error of both.
"""

from collections.abc import Sequence
from random import Random
from typing import Literal

import numpy as np
from msgspec import Struct, structs

from planaria.lab.gossip.sampling import Bools, Ints, distinct, others, uniform
from planaria.protocols.gossip.parameters import Parameters
from planaria.simulator.worlds.reach import GroupReach

BATCH_CELLS = 4_000_000  # random numbers held at once: some 100 MB of arrays


class Setting(Struct, frozen=True):
    """What an experiment is made of; the defaults are section VII's.

    `sizes` go from the top down; the event is published on `level`. `failures`: 'stillborn'
    processes have failed for everybody, 'observer' failures are drawn for each pair. With `coins`
    a relay throws one for each entry of its table, as in Figure 7; else it sends to exactly a.
    """

    sizes: tuple[int, ...] = (10, 100, 1000)
    parameters: Parameters = Parameters()
    loss: float = 0.15
    failed: float = 0.0
    failures: Literal["stillborn", "observer"] = "stillborn"
    level: int = -1
    coins: bool = False
    publisher_relays: bool = True


Reading = Literal["paper", "planaria"]


def read_as(setting: Setting, reading: Reading) -> Setting:
    """The same by the paper's rules as Figure 7 reads (errata 1, 2, 18, 19 amended), or by ours.

    The paper's publisher elects itself like anybody else; ours always relays (errata 4, 20).
    """
    printed = reading == "paper"
    return structs.replace(setting, coins=printed, publisher_relays=not printed)


def run(setting: Setting, runs: int, rng: Random) -> list[list[GroupReach]]:
    """What each group (from the top down) saw of each of `runs` events."""
    largest = max(setting.sizes) * (setting.parameters.fanout(max(setting.sizes)) + 1)
    batch = max(1, BATCH_CELLS // largest)
    found: list[list[GroupReach]] = [[] for _ in setting.sizes]
    for start in range(0, runs, batch):
        for rows, more in zip(found, _batch(setting, min(batch, runs - start), rng), strict=True):
            rows.extend(more)
    return found


def _batch(setting: Setting, runs: int, rng: Random) -> list[list[GroupReach]]:
    stillborn = setting.failures == "stillborn"
    alive = [
        uniform(rng, runs, size) >= (setting.failed if stillborn else 0.0) for size in setting.sizes
    ]
    arrives = (1 - setting.loss) * (1.0 if stillborn else 1 - setting.failed)
    bottom = range(len(setting.sizes))[setting.level]
    seeds, publisher = _publisher(alive[bottom], rng)
    rows: list[list[GroupReach]] = []
    for level in range(bottom, -1, -1):
        tally = _Tally(alive[level])
        reached = _spread(setting, alive[level], seeds, arrives, rng, tally)
        if level:
            first = publisher if level == bottom and setting.publisher_relays else None
            seeds = _relay(setting, reached, first, alive[level - 1], arrives, rng, tally)
        rows.append(tally.rows(reached))
    empty = [_Tally(here).rows(np.zeros_like(here)) for here in alive[bottom + 1 :]]
    return [*reversed(rows), *empty]


class _Tally:
    """The counts of one group, one of each for every run."""

    def __init__(self, alive: Bools) -> None:
        self.alive = alive
        zero = np.zeros(len(alive), dtype=np.int64)
        self.sent, self.received, self.up_sent, self.up_received = zero, zero, zero, zero

    def rows(self, reached: Bools) -> list[GroupReach]:
        members = self.alive.shape[1]
        columns = (
            self.alive.sum(1),
            self.sent,
            self.received,
            self.up_sent,
            self.up_received,
            reached.sum(1),
        )
        return [GroupReach(members, *map(int, each)) for each in zip(*columns, strict=True)]


def _publisher(alive: Bools, rng: Random) -> tuple[Bools, Ints]:
    """One live member of each run as the publisher (none where all have failed)."""
    runs, size = alive.shape
    ranks = np.where(alive, uniform(rng, runs, size), -1.0)
    publisher = ranks.argmax(1)
    seeds = np.zeros_like(alive)
    seeds[np.arange(runs), publisher] = True
    return seeds & alive, publisher


class Spread(Struct, frozen=True):
    """Gossip within one group: who is reached, copies sent in each run, copies at each process."""

    reached: Bools
    sent: Ints
    received: Ints


def spread(
    seeds: Bools, alive: Bools, targets: Ints, arrives: float, rng: Random, *, fanout: int
) -> Spread:
    """Everybody who gets the event sends it to its row of `targets`, starting with `seeds`."""
    runs, size = alive.shape
    kept = uniform(rng, runs, size, fanout) < arrives
    flat = targets + (np.arange(runs) * size)[:, None, None]
    reached, fresh = seeds.copy(), seeds
    while fresh.any():
        hit = np.zeros(runs * size, dtype=np.bool_)
        hit[flat[fresh][kept[fresh]]] = True
        fresh = hit.reshape(runs, size) & alive & ~reached
        reached |= fresh
    landed = kept & reached[:, :, None] & alive.reshape(-1)[flat]
    received = np.bincount(flat[landed], minlength=runs * size).reshape(runs, size)
    return Spread(reached, reached.sum(1) * fanout, received)


def _spread(
    setting: Setting, alive: Bools, seeds: Bools, arrives: float, rng: Random, tally: _Tally
) -> Bools:
    """Gossip within one group from `seeds`; who is reached."""
    runs, size = alive.shape
    fanout = setting.parameters.fanout(size)
    if not fanout:
        return seeds
    done = spread(seeds, alive, others(rng, runs, size, fanout), arrives, rng, fanout=fanout)
    tally.sent, tally.received = done.sent, done.received.sum(1)
    return done.reached


def _relay(
    setting: Setting,
    reached: Bools,
    publisher: Ints | None,
    above: Bools,
    arrives: float,
    rng: Random,
    tally: _Tally,
) -> Bools:
    """Relays send the event upwards; the live members of the supergroup that it reaches."""
    runs, size = reached.shape
    dials = setting.parameters
    elected = reached & (uniform(rng, runs, size) < dials.p_sel(size))
    if publisher is not None:
        rows = np.arange(runs)
        elected[rows, publisher] = reached[rows, publisher]
    run_of, _ = np.nonzero(elected)
    z = min(dials.z, above.shape[1])
    table = distinct(rng, len(run_of), z, above.shape[1])
    if setting.coins:
        chosen = uniform(rng, *table.shape) < dials.a / z
    else:  # the first a of a random table are a random choice
        chosen = np.broadcast_to(np.arange(z) < dials.a, table.shape)
    kept = chosen & (uniform(rng, *table.shape) < arrives)
    runs_of = np.broadcast_to(run_of[:, None], table.shape)
    landed = kept & above[runs_of, table]
    tally.up_sent = np.bincount(runs_of[chosen], minlength=runs)
    tally.up_received = np.bincount(runs_of[landed], minlength=runs)
    seeds = np.zeros_like(above)
    seeds[runs_of[landed], table[landed]] = True
    return seeds


def failure_sweep(
    shares: Sequence[float], runs: int, rng: Random, setting: Setting | None = None
) -> list[tuple[float, list[list[GroupReach]]]]:
    """The experiment for every failed share, as in Figures 8 to 11."""
    base = setting or Setting()
    return [(share, run(structs.replace(base, failed=share), runs, rng)) for share in shares]
