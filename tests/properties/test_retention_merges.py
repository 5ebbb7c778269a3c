"""Stores that merge in any order, under any clocks and settings, beside a naive twin."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.protocols.publications.publication import TIME_MAX, Publication, rank_of
from planaria.protocols.publications.retention import Horizon, Retention
from planaria.protocols.publications.store import PublicationStore
from planaria.protocols.publications.window import Window

NOW = 10**9
RETENTIONS = [
    Retention(),
    Retention(age=1600),
    Retention(age=3200, count=4),
    Retention(count=3),
    Retention(count=6, per_publisher=2),
    Retention(per_publisher=1),
]


def naive(items: set[Publication], window: Window) -> set[Publication]:
    """Kept iff fewer than N stand above it: of its publisher, and of all that pass that."""

    def above(one: Publication, others: list[Publication]) -> int:
        return sum((o.time, rank_of(o)) > (one.time, rank_of(one)) for o in others)

    young = [one for one in items if one.time >= window.lo]
    quota = window.per_publisher or len(young) + 1
    within = [
        o for o in young if above(o, [p for p in young if p.publisher == o.publisher]) < quota
    ]
    return {one for one in within if above(one, within) < window.limit}


class Keeper:
    """A store with its horizon, and beside it the set of all that it once showed."""

    def __init__(self) -> None:
        self.horizon, self.store = Horizon(Retention()), PublicationStore()
        self.clock = NOW
        self.twin: set[Publication] = set()
        self.reset()

    def held(self) -> set[Publication]:
        return {*self.store.shown.values(), *self.store.hidden.values()}

    def reset(self) -> None:
        """Show the horizon's window; what no window of the last grace showed may be gone."""
        if self.horizon.window not in self.store.windows:
            self.twin = self.held()
        self.store.show(self.horizon.window)

    def offer(self, publication: Publication) -> None:
        expected = publication in naive({*self.twin, publication}, self.horizon.window)
        assert self.store.insert(publication) == (expected and publication not in self.twin)
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
        assert set(self.store.publications()) == naive(self.twin, self.horizon.window)
        assert set(self.store.publications()) == naive(self.held(), self.horizon.window)


times = st.one_of(
    st.integers(NOW - 4000, NOW + 4000),
    st.sampled_from([0, NOW, TIME_MAX]),
    st.integers(0, 2 * NOW),
)
publications = st.builds(
    Publication, st.integers(0, 2), st.just(1), st.integers(0, 3), st.just(0), times, st.just(b"")
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
        if isinstance(value, Publication):
            one.offer(value)
        elif isinstance(value, Retention):
            one.horizon.retain(value)
            one.reset()
        elif step == "merge":
            assert isinstance(value, int)
            for publication in list(keepers[value].store.publications()):
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
    everything = {p for one in keepers for p in one.store.publications()}
    order = [(one, other) for one in keepers for other in keepers if one is not other] * 2
    random.shuffle(order)
    for one, other in order + order:
        for publication in random.sample(list(other.store.publications()), len(other.store)):
            one.offer(publication)
    assert {frozenset(one.store.publications(lo)) for one in keepers} == {
        frozenset(naive(everything, window))
    }
