"""What an event will reach, exactly: the number reached in a group is a Markov chain.

Let the processes that have the event send one after the other. Each sends to `fanout` different
others; how many of those are new depends on the number reached so far alone. So the distribution
of the number reached follows step by step, without simulation; a link adds one more step.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from planaria.lab.gossip.analysis import everybody, memory, messages, pit
from planaria.lab.gossip.experiment import Setting
from planaria.lab.gossip.sampling import Floats
from planaria.protocols.gossip.parameters import Parameters

CHAIN_MAX = 4096  # members up to which the chain is computed: it costs S^2 ln S
RELAYS_MAX = 256  # relays of one event beyond which more make no difference
A_MAX, G_MAX, C_MAX = 6, 200, 24  # where the search for dials ends


class Prediction(Struct, frozen=True):
    """What one group will see of an event, on average; `deviation` is that of `of_all`."""

    of_all: float
    of_alive: float
    p_all: float
    p_reached: float
    sent: float
    deviation: float


def predict(setting: Setting) -> list[Prediction]:
    """The chain from the publishing group upwards; results from the top down.

    Stillborn failures take a fixed share of every group; per-observer failures are losses.
    """
    stillborn = setting.failures == "stillborn"
    share = 1 - setting.failed if stillborn else 1.0
    arrives = (1 - setting.loss) * (1.0 if stillborn else 1 - setting.failed)
    bottom = range(len(setting.sizes))[setting.level]
    found = [Prediction(0.0, 0.0, 0.0, 0.0, 0.0, 0.0) for _ in setting.sizes]
    seeds = np.array([0.0, 1.0])
    for level in range(bottom, -1, -1):
        size = setting.sizes[level]
        alive = round(size * share)
        fanout = setting.parameters.fanout(size)
        reached = reached_distribution(size, alive, fanout, arrives, seeds)
        found[level] = _prediction(reached, size, alive, fanout)
        if level:
            above = setting.sizes[level - 1]
            first = level == bottom and setting.publisher_relays
            relays = relay_distribution(reached, setting.parameters.p_sel(size), first)
            copies = _copies(relays, setting, arrives * round(above * share) / above)
            seeds = _occupied(copies, round(above * share))
    return found


def _prediction(reached: Floats, size: int, alive: int, fanout: int) -> Prediction:
    counts = np.arange(len(reached))
    mean = float(reached @ counts)
    deviation = float(np.sqrt(reached @ (counts - mean) ** 2))
    p_all = float(reached[alive]) if alive < len(reached) else 0.0
    some = 1 - float(reached[0])
    of_alive = mean / alive if alive else 1.0
    return Prediction(mean / size, of_alive, p_all, some, mean * fanout, deviation / size)


def reached_distribution(
    size: int, alive: int, fanout: int, arrives: float, seeds: Floats
) -> Floats:
    """P(k of the `alive` processes are reached), k = 0.., from a distribution of first ones."""
    here = np.zeros(alive + 1)
    width = min(alive, len(seeds) - 1)
    here[:width] = seeds[:width]
    here[width] = seeds[width:].sum()
    final = np.zeros(alive + 1)
    final[0], here[0] = here[0], 0.0
    new = _new_per_sender(size, alive, fanout, arrives)
    for sender in range(1, alive + 1):
        after = np.zeros(alive + 1)
        for hits in range(min(fanout, alive) + 1):
            after[hits:] += here[: alive + 1 - hits] * new[: alive + 1 - hits, hits]
        final[sender] = after[sender]
        after[: sender + 1] = 0.0
        here = after
    return final


def _new_per_sender(size: int, alive: int, fanout: int, arrives: float) -> Floats:
    """Row i: with i reached, P(y new ones by one sender): hypergeometric, thinned by losses."""
    left = alive - np.arange(alive + 1)
    width = min(fanout, alive) + 1
    chosen = np.zeros((alive + 1, width))
    rest = size - 1
    for x in range(width):
        enough = (left >= x) & (rest - left >= fanout - x)
        u = left[enough]
        log_p = _choose(u, x) + _choose(rest - u, fanout - x) - _choose(np.array(rest), fanout)
        chosen[enough, x] = np.exp(log_p)
    thinning = np.zeros((width, width))
    for x in range(width):
        thinning[x, : x + 1] = _binomial(x, arrives, x)
    return np.asarray(chosen @ thinning)


def _choose(n: Floats | np.ndarray[tuple[int, ...], np.dtype[np.int64]], k: int) -> Floats:
    """ln of the binomial coefficient, for small k."""
    total = np.zeros(np.shape(n))
    for i in range(k):
        total = total + np.log(np.maximum(np.asarray(n) - i, 1e-300)) - np.log(i + 1)
    return total


def _binomial(n: int, p: float, top: int) -> Floats:
    """P(0), ..., P(top) of a binomial distribution; what lies beyond goes to the last."""
    found = np.zeros(top + 1)
    found[0] = 1.0
    for _ in range(n):
        moved = found * p
        found -= moved
        found[1:] += moved[:-1]
        found[-1] += moved[-1]
    return found


def relay_distribution(reached: Floats, p_sel: float, publisher: bool) -> Floats:
    """P(r relays), given the distribution of the number reached; the publisher may always be."""
    top = min(RELAYS_MAX, len(reached))
    total = np.zeros(top + 2)
    electing = np.zeros(top + 1)
    electing[0] = 1.0
    total[0] += reached[0]
    for count in range(1, len(reached)):
        if not publisher or count > 1:
            moved = electing * p_sel
            electing = electing - moved
            electing[1:] += moved[:-1]
            electing[-1] += moved[-1]
        total[int(publisher) : top + 1 + int(publisher)] += reached[count] * electing
    return total


def _copies(relays: Floats, setting: Setting, lands: float) -> Floats:
    """P(k copies arrive in the supergroup)."""
    dials = setting.parameters
    draws, p = (dials.z, dials.a / dials.z * lands) if setting.coins else (dials.a, lands)
    top = min(RELAYS_MAX, draws * (len(relays) - 1))
    found, current = np.zeros(top + 1), np.zeros(top + 1)
    current[0] = 1.0
    for weight in relays:
        found += weight * current
        for _ in range(draws):
            moved = current * p
            current = current - moved
            current[1:] += moved[:-1]
            current[-1] += moved[-1]
    return found


def _occupied(copies: Floats, alive: int) -> Floats:
    """P(s different processes are hit) by copies that each fall on a random one."""
    places = np.arange(alive + 1) / max(1, alive)
    found, current = np.zeros(alive + 1), np.zeros(alive + 1)
    current[0] = 1.0
    for weight in copies:
        found += weight * current
        moved = current * (1 - places)
        current = current - moved
        current[1:] += moved[:-1]
    return found


def complete(size: int, dials: Parameters, arrives: float) -> float:
    """P(all of a group get an event that one of them has), exactly for groups of moderate size."""
    if not 2 <= size <= CHAIN_MAX:
        return everybody(size, dials, arrives)
    found = reached_distribution(size, size, dials.fanout(size), arrives, np.array([0.0, 1.0]))
    return float(found[size])


class Choice(Struct, frozen=True):
    """Dials for a target, with what they will cost: messages per event, entries per process."""

    parameters: Parameters
    predicted: float
    messages: float
    memory: tuple[int, ...]

    @property
    def dials(self) -> tuple[float, int, int, float]:
        """(g, a, z, c)."""
        return self.parameters.g, self.parameters.a, self.parameters.z, self.parameters.c


def reliability(
    target: float = 0.9999,
    loss: float = 0.15,
    sizes: Sequence[int] = (10, 100, 1000),
    z_min: int = 3,
) -> Choice | None:
    """The cheapest (g, a, z, c) with which an event reaches everybody in every group.

    `target` is the probability of that, the paper's meaning of reliability; the event is published
    at the bottom. Fewest messages first, then least memory; None if no dials are enough. A table
    of fewer than `z_min` superprocesses would die with them.
    """
    arrives, best = 1 - loss, None
    for c in range(-4, C_MAX + 1):
        inside = 1.0
        for size in sizes:
            inside *= complete(size, Parameters(c=float(c)), arrives)
        if inside < target:
            continue
        for a in range(1, A_MAX + 1):
            choice = _fewest_relays(target, inside, sizes, arrives, c, a, max(a, z_min))
            if choice and (best is None or _cost(choice) < _cost(best)):
                best = choice
        if best is not None and best.parameters.c < c:
            break  # a larger c costs S more messages and saves a few relays
    return best


def _cost(choice: Choice) -> tuple[float, int]:
    return round(choice.messages, 6), sum(choice.memory)


def _fewest_relays(
    target: float, inside: float, sizes: Sequence[int], arrives: float, c: int, a: int, z: int
) -> Choice | None:
    """The smallest g with which the links keep what the groups leave of the target."""
    for g in range(1, G_MAX + 1):
        dials = Parameters(g=float(g), a=a, z=z, c=float(c), tau=z)
        linked = 1.0
        for level in range(1, len(sizes)):
            up = pit(sizes[level], dials, arrives)
            if level == len(sizes) - 1:  # the publisher relays besides
                up = 1 - (1 - up) * (1 - arrives) ** a
            linked *= up
        if inside * linked >= target:
            held = tuple(memory(size, dials, top=not level) for level, size in enumerate(sizes))
            return Choice(dials, inside * linked, messages(sizes, dials), held)
    return None
