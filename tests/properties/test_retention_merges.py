"""Stores that merge in any order, under any clocks and settings, beside a naive twin."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.protocols.publications.retention import Horizon, Retention
from planaria.records.memory import MemoryStore
from planaria.records.record import TIME_MAX, Draft, Record, decode, seal
from planaria.records.window import Window

NOW = 10**9
RETENTIONS = [
    Retention(),
    Retention(age=1600),
    Retention(age=3200, count=4),
    Retention(count=3),
    Retention(count=6, per_publisher=2),
    Retention(per_publisher=1),
]


def naive(items: set[Record], window: Window) -> set[Record]:
    """Kept iff fewer than N stand above it: of its publisher, and of all that pass that."""

    def above(one: Record, others: list[Record]) -> int:
        return sum(o.place > one.place for o in others)

    young = [one for one in items if one.time >= window.lo]
    quota = window.per_publisher or len(young) + 1
    within = [
        o for o in young if above(o, [p for p in young if p.publisher == o.publisher]) < quota
    ]
    return {one for one in within if above(one, within) < window.limit}


class Keeper:
    """A store with its horizon, and beside it the set of all that it once showed."""

    def __init__(self) -> None:
        self.horizon, self.store = Horizon(Retention()), MemoryStore()
        self.clock = NOW
        self.twin: set[Record] = set()
        self.reset()

    def held(self) -> set[Record]:
        return {decode(body) for body in self.store.state().bodies.values()}

    def shown(self, lo: int = 0) -> list[Record]:
        return self.store.get(self.store.places(lo, TIME_MAX))

    def reset(self) -> None:
        """Show the horizon's window; what no window of the last grace showed may be gone."""
        if self.horizon.window not in self.store.index.windows:
            self.twin = self.held()
        self.store.show(self.horizon.window)

    def offer(self, publication: Record) -> None:
        expected = publication in naive({*self.twin, publication}, self.horizon.window)
        self.store.append([publication])
        assert (publication in self.shown()) == expected
        if expected:
            self.twin.add(publication)

    def pass_time(self, seconds: int, peers: list[tuple[int, int, int]]) -> None:
        for peer, clock, lo in peers:
            self.horizon.hear(peer, clock, lo)
        self.clock += seconds
        self.horizon.read_clock(self.clock)
        self.horizon.on_timeout([peer for peer, *_ in peers])
        self.reset()
        windows = self.horizon.windows()
        self.store.purge(windows)
        self.store.audit(5)
        kept = set().union(*(naive(self.twin, window) for window in windows))
        assert self.held() >= kept, "deleted what a window of the grace shows"
        self.twin = kept | naive(self.twin, self.horizon.window)

    def check(self) -> None:
        assert set(self.shown()) == naive(self.twin, self.horizon.window)
        assert set(self.shown()) == naive(self.held(), self.horizon.window)


times = st.one_of(
    st.integers(NOW - 4000, NOW + 4000),
    st.sampled_from([0, NOW, TIME_MAX]),
    st.integers(0, 2 * NOW),
)
publications = st.builds(
    lambda publisher, number, time: seal((publisher, bytes(12)), number, [Draft(b"")], time=time),
    st.integers(0, 2),
    st.integers(0, 3),
    times,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.integers(0, 2), publications),
        st.tuples(st.just("merge"), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("pass"), st.integers(0, 2), st.sampled_from([1, 30, 500, 10**5])),
        st.tuples(
            st.just("jump"), st.integers(0, 2), st.sampled_from([-(10**8), -900, 900, 10**8])
        ),
        st.tuples(st.just("retain"), st.integers(0, 2), st.sampled_from(RETENTIONS)),
    ),
    max_size=60,
)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(steps, st.sampled_from(RETENTIONS), st.randoms(use_true_random=False))
def test_any_merges_clocks_and_settings_keep_what_the_naive_twin_keeps(
    steps: list[tuple[str, int, object]], last: Retention, random: Random
) -> None:
    keepers = [Keeper() for _ in range(3)]
    for step, which, value in steps:
        one = keepers[which]
        if isinstance(value, Record):
            one.offer(value)
        elif isinstance(value, Retention):
            one.horizon.retain(value)
            one.reset()
        elif step == "merge":
            assert isinstance(value, int)
            for publication in keepers[value].shown():
                one.offer(publication)
        else:
            assert isinstance(value, int)
            one.clock += value if step == "jump" else 0
            peers = [(id, k.clock, k.horizon.lo) for id, k in enumerate(keepers) if k is not one]
            one.pass_time(value if step == "pass" else 1, peers)
        one.check()
    agree(keepers, last, random)


def agree(keepers: list[Keeper], retention: Retention, random: Random) -> None:
    """With one setting and one clock, everything merged in a random order is the same for all."""
    for one in keepers:
        one.horizon.retain(retention)
        one.horizon.votes = {}
        one.horizon.read_clock(NOW)
        one.reset()
    lo = max(one.horizon.lo for one in keepers)
    window = keepers[0].horizon.window._replace(lo=lo)
    everything = {p for one in keepers for p in one.shown()}
    order = [(one, other) for one in keepers for other in keepers if one is not other] * 2
    random.shuffle(order)
    for one, other in order + order:
        for publication in random.sample(other.shown(), len(other.shown())):
            one.offer(publication)
    assert {frozenset(one.shown(lo)) for one in keepers} == {frozenset(naive(everything, window))}
