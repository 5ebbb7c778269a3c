"""A calm topic reads the clock late, and is as one that read it in every second."""

from collections.abc import Callable

import pytest

from planaria.core.chance import stream
from planaria.core.node import Clock, Publish
from planaria.protocols.publications.retention import (
    UNREAD_SECONDS_MAX,
    Horizon,
    Retention,
    WallClock,
)
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.pace import PACE_MAX, REST_MAX
from planaria.protocols.skipring.peer import Peer
from planaria.simulator.trial import Spec, Trial

SETTINGS = (Retention(), Retention(age=20), Retention(age=40_000))


def horizons(retention: Retention) -> tuple[Horizon, Horizon, WallClock]:
    """One that reads in every second, one that does when it must; the clock of the latter."""
    eager, late = Horizon(retention), Horizon(retention)
    return eager, late, late.clock


def test_who_reads_late_is_as_who_reads_in_every_second(seeds: Callable[[int, int], int]) -> None:
    rested = 0
    for seed in range(seeds(60, 3000)):
        rng = stream(seed, "late readers")
        eager, late, clock = horizons(SETTINGS[seed % len(SETTINGS)])
        now, unread = 100_000, 0
        for at in range(80):
            now += rng.choice((0, 1))
            eager.read_clock(now)
            reads = not at or rng.random() < 0.2 or unread == REST_MAX
            unread = 0 if reads else unread + 1
            if not unread:
                late.catch_up()
            clock.seconds = now
            if not unread:
                late.read_clock(now)
            rested += bool(unread)
            if rng.random() < 0.3:
                peer, off = rng.randrange(4), rng.randrange(-5, 6)
                promise = rng.choice((1, PACE_MAX))
                for one in (eager, late):
                    one.hear(peer, now + off, 0, promise)
            if not unread and rng.random() < 0.3:
                for one in (eager, late):
                    one.on_timeout(list(range(4)))
            assert late.shown_clock == eager.shown_clock == now
            assert abs(late.present - eager.present) <= 2 * 5 + REST_MAX, (
                "as far as votes are apart"
            )
        late.catch_up()
        late.read_clock(now)
        eager.read_clock(now)
        for name in ("seconds", "votes", "now", "elapsed"):
            assert getattr(late, name) == getattr(eager, name), (seed, name)
        # Where the window stays when the present steps back depends on when that was read.
        assert abs(late.lo - eager.lo) <= late.retention.step
    assert rested


@pytest.mark.parametrize("seconds", [None, -5, 0, 10**9, 10**9 + UNREAD_SECONDS_MAX + 1, 2**62])
def test_a_false_reading_leaves_nothing_unread(seconds: int | None) -> None:
    """It is as a clock that was moved: the next reading puts it right."""
    horizon = Horizon(Retention())
    horizon.clock.seconds = 10**9
    horizon.seconds = seconds
    assert horizon.unread == 0
    horizon.catch_up()
    horizon.read_clock(10**9)
    assert (horizon.seconds, horizon.present) == (10**9, 10**9)


def resting() -> tuple[Trial, Peer]:
    """A member of a calm ring, in the middle of a rest."""
    trial = Trial(RingOverlay(pace=PACE_MAX), Spec(n=4, seed=1, start="legitimate"))
    peers = [it for it in trial.simulator.nodes.values() if isinstance(it, Peer)]
    for _ in range(400):
        trial.simulator.run_interval()
        for peer in peers:
            horizon = peer.topics[TOPIC].history.horizon
            if horizon.unread > 1 and peer.topics[TOPIC].subscriber.pace.resting:
                return trial, peer
    raise AssertionError("nobody rests")


def test_what_is_published_in_a_rest_has_the_time_of_now() -> None:
    _, peer = resting()
    history = peer.topics[TOPIC].history
    assert history.horizon.seconds != peer.clock.seconds
    peer.on_command(Publish(TOPIC, b"news"))
    assert [it.time for it in history.holdings.at(history.holdings.store.index.shown)] == [
        peer.clock.seconds
    ]


@pytest.mark.parametrize("jump", [-100, -1, 3, 100_000])
def test_a_clock_that_was_moved_is_read_at_once(jump: int) -> None:
    """Those who rest have let pass what passed before it was, and no vote is taken along."""
    _, peer = resting()
    horizon = peer.topics[TOPIC].history.horizon
    assert peer.clock.seconds is not None
    before, unread = peer.clock.seconds, horizon.unread
    voted = {id: clock for id, (clock, _, age) in horizon.votes.items() if age < 0}
    assert voted
    peer.on_command(Clock(before + jump))
    assert horizon.seconds == max(0, before + jump)
    assert {id: horizon.votes[id][0] - unread for id in voted} == voted


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_clock_that_goes_on_is_not_read_in_a_rest(step: int) -> None:
    _, peer = resting()
    horizon = peer.topics[TOPIC].history.horizon
    assert peer.clock.seconds is not None
    read, now = horizon.seconds, peer.clock.seconds + step
    peer.on_command(Clock(now))
    assert horizon.seconds == read
    assert horizon.shown_clock == now
