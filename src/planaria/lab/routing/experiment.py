"""Section 4 of paper 4 simulated, all subscriptions at once in arrays: minutes for 500,000.

Subscriptions arrive and end as in the paper (Poisson arrivals, exponential lifetimes, started in
equilibrium). For each broker and class the times with at least one subscription below it are found
by sorting; its refreshes, first subscriptions and last unsubscriptions are then counted exactly.
Delays are left out: 25 ms a link changes no rate.
"""

from random import Random

import numpy as np
from msgspec import Struct

from planaria.lab.gossip.sampling import Floats, Ints, below, uniform
from planaria.lab.routing.analysis import Setting


class Measured(Struct, frozen=True):
    """What one simulated run gives, per second (b_c) and per notification (transmissions).

    `transmissions` counts the publications that were drawn. `saved`, the links that filtering
    spares a notification, is the mean over all that could have been, for the same subscriptions;
    `saved_error` is its standard error, from the classes, which are independent of each other.
    """

    control: float
    transmissions: float
    subscriptions: float
    saved: float
    saved_error: float


def simulate(
    setting: Setting,
    subscriptions: int,
    rho: float,
    mu: float,
    seconds: float,
    publications: int,
    rng: Random,
) -> Measured:
    """Run the setting for `seconds` with `publications` at random times."""
    start, end = _lifetimes(subscriptions, mu, seconds, rng)
    leaf = below(rng, setting.leaves, len(start))
    topic = below(rng, setting.classes, len(start))
    if setting.home:  # the leaves below the broker at which the class is at home
        wide = setting.degree ** (setting.depth - setting.home)
        leaf = topic % setting.degree**setting.home * wide + leaf % wide
    times = np.sort(uniform(rng, publications)) * seconds
    source = below(rng, setting.leaves, publications)
    wanted = below(rng, setting.classes, publications)
    by_class = np.lexsort((times, wanted))  # near each other, as they will be looked up
    times, source, wanted = times[by_class], source[by_class], wanted[by_class]
    messages, crossed = 0.0, float(publications * setting.depth)
    saved: Floats = np.full(setting.classes, float(setting.links - setting.depth))
    wanted_below = _by_level(setting, leaf * setting.classes + topic, start, end)
    for level in range(1, setting.levels):
        width = setting.degree ** (setting.depth - level)
        brokers = setting.degree**level
        present = wanted_below[level]
        phase = uniform(rng, brokers) * rho
        messages += _messages(present, phase[present[0] // setting.classes], rho, seconds)
        crossed += _downwards(present, times, source // width, wanted, setting.classes, brokers)
        there = np.minimum(present[2], seconds) - present[1]
        shares = np.bincount(present[0] % setting.classes, there / seconds, setting.classes)
        saved -= (1 - 1 / brokers) * shares  # never back to where it came from
    alive = float(np.minimum(end, seconds).sum() - start.sum()) / seconds
    error = float(saved.std(ddof=1)) / setting.classes**0.5
    mean = float(saved.mean())
    return Measured(messages / seconds, crossed / publications, alive, mean, error)


Present = tuple[Ints, Floats, Floats]  # key, since, until; sorted by key, then by time


def _lifetimes(subscriptions: int, mu: float, seconds: float, rng: Random) -> tuple[Floats, Floats]:
    """Those alive at time 0, and those that arrive later; an exponential has no memory."""
    expected = subscriptions * mu * seconds
    arrivals = _poisson(expected, rng)
    start = np.concatenate([np.zeros(subscriptions), uniform(rng, arrivals) * seconds])
    length = -np.log1p(-uniform(rng, len(start))) / mu
    return start, start + length


def _poisson(mean: float, rng: Random) -> int:
    """Large means only: the normal approximation is closer than the error of one run."""
    return max(0, round(rng.gauss(mean, mean**0.5)))


def _by_level(setting: Setting, key: Ints, start: Floats, end: Floats) -> dict[int, Present]:
    """When each class is wanted below each broker: from the leaves up, each of those below it."""
    found = {setting.depth: _present(key, start, end)}
    for level in range(setting.depth - 1, 0, -1):
        key, start, end = found[level + 1]
        above = key // setting.classes // setting.degree
        found[level] = _present(above * setting.classes + key % setting.classes, start, end)
    return found


def _present(key: Ints, start: Floats, end: Floats) -> Present:
    """For each key the maximal times with at least one subscription: the union of lifetimes."""
    # Which of those that begin together comes first does not matter, so the first sort may be the
    # quicker one that is not stable: in 0.6 of the time of `lexsort`.
    by_time = np.argsort(start)
    order = by_time[np.argsort(key[by_time], kind="stable")]
    key, start, end = key[order], start[order], end[order]
    # The latest end so far within a key: shift keys apart so that one running maximum serves all.
    if len(key) == 0:
        return key, start, end
    span = float(end.max()) + 1
    latest = np.maximum.accumulate(end + key * span)
    first = np.ones(len(key), dtype=bool)
    first[1:] = start[1:] + key[1:] * span > latest[:-1]
    begins = np.flatnonzero(first)
    lasts = np.append(begins[1:], len(key)) - 1
    return key[begins], start[begins], latest[lasts] - key[lasts] * span


def _messages(present: Present, phase: Floats, rho: float, seconds: float) -> float:
    """Refreshes inside each presence, its beginning and its end, as far as they are in the run."""
    _, since, until = present
    stop = np.minimum(until, seconds)
    refreshed = np.floor((stop - phase) / rho) - np.floor((since - phase) / rho)
    return float(refreshed.sum() + (since > 0).sum() + (until < seconds).sum())


def _downwards(
    present: Present, times: Floats, source: Ints, wanted: Ints, classes: int, brokers: int
) -> float:
    """How many links from above to this level the notifications cross; never back to the source."""
    key, since, until = present
    if len(key) == 0:
        return 0.0
    span = float(until.max()) + float(times.max(initial=0.0)) + 1
    lines = since + key * span
    found = 0
    for broker in range(brokers):
        asked = broker * classes + wanted
        place = np.searchsorted(lines, times + asked * span, side="right") - 1
        here = np.maximum(place, 0)
        inside = (place >= 0) & (key[here] == asked) & (times < until[here])
        found += int((inside & (source != broker)).sum())
    return float(found)
