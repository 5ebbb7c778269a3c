"""Section 4 of paper 4 in closed form: is filtering worth its control traffic?

A complete tree of brokers, hierarchical identity-based routing, subscriptions for one of many
classes at random leaves, in equilibrium. The subscriptions for one class below a broker of level l
are then Poisson distributed with mean m(l), and everything else follows from 1 - exp(-m) (somebody
is subscribed) and m exp(-m) (exactly one is). The paper leaves this for future work.
"""

from collections.abc import Iterator
from itertools import product
from math import exp, expm1

from msgspec import Struct

OMEGAS = (1000.0, 100.0)  # publications per second
RHOS = (60.0, 600.0)  # seconds between refreshes
MUS = (1 / 600, 1 / 60)  # one over the lifetime of a subscription
CROSSING_MAX = 10_000_000  # subscriptions; beyond it we say that the curves do not cross


class Setting(Struct, frozen=True):
    """The tree and the number of filter classes; the defaults are the paper's.

    Interests are local if `home` is not 0: those in one class are all below one broker of that
    level.
    """

    degree: int = 3
    levels: int = 5
    classes: int = 1000
    home: int = 0

    @property
    def depth(self) -> int:
        """Links from a leaf to the root."""
        return self.levels - 1

    @property
    def leaves(self) -> int:
        """Brokers to which clients attach."""
        return int(self.degree**self.depth)

    @property
    def links(self) -> int:
        """All links of the tree."""
        return sum(self.degree**level for level in range(1, self.levels))

    def homes(self, level: int) -> int:
        """Brokers of a level below which a class may be wanted."""
        return int(self.degree ** max(0, level - self.home))


PAPER = Setting()


def mean_below(setting: Setting, subscriptions: float, level: int) -> float:
    """The mean number of subscriptions for one class below such a broker of `level` (root: 0)."""
    return subscriptions / (setting.classes * float(setting.homes(level)))


def transmissions(setting: Setting, subscriptions: float) -> float:
    """How many links one notification crosses: up to the root always, down where it is wanted."""
    down = sum(
        setting.homes(level)
        * (1 - setting.degree**-level)  # never back to where it came from
        * -expm1(-mean_below(setting, subscriptions, level))
        for level in range(1, setting.levels)
    )
    return float(setting.depth + down)


def saved(setting: Setting, subscriptions: float, omega: float) -> float:
    """b_s: notifications per second that filtering saves compared with flooding."""
    return omega * (setting.links - transmissions(setting, subscriptions))


def control(setting: Setting, subscriptions: float, rho: float, mu: float) -> float:
    """b_c: control messages per second, refreshed hop by hop.

    A broker tells its parent of each class once in rho while somebody below is subscribed, of the
    first subscription at once, and of the end of the last one.
    """
    found = 0.0
    for level in range(1, setting.levels):
        mean = mean_below(setting, subscriptions, level)
        each = -expm1(-mean) / rho + 2 * mu * mean * exp(-mean)
        found += setting.homes(level) * setting.classes * each
    return found


def control_limit(setting: Setting, period: float) -> float:
    """To what b_c converges: every broker tells every class once in `period`.

    That period is rho hop by hop; by the printed flag rule it is pi, once in a leasing period.
    """
    brokers = sum(setting.homes(level) for level in range(1, setting.levels))
    return brokers * setting.classes / period


def crossing(setting: Setting, omega: float, rho: float, mu: float) -> float | None:
    """The number of subscriptions from which on flooding is cheaper than filtering."""

    def gain(subscriptions: float) -> float:
        return saved(setting, subscriptions, omega) - control(setting, subscriptions, rho, mu)

    low, high = 0.0, 1.0
    while gain(high) > 0:
        low, high = high, 2 * high
        if high > CROSSING_MAX:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gain(middle) > 0 else (low, middle)
    return (low + high) / 2


def combinations() -> Iterator[tuple[float, float, float]]:
    """The eight settings of the paper: omega, rho, mu."""
    return product(OMEGAS, RHOS, MUS)


def refreshes(rho: float, mu: float) -> float:
    """How often a subscription is refreshed in its life, on average: the sum of exp(-k rho mu)."""
    return 1 / expm1(rho * mu)
