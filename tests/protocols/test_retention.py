"""The window of a topic, the grace and the delivered marks, one rule at a time."""

import msgspec
import pytest

from planaria.core.node import Deliver, Effect, Notice, Persist, Send
from planaria.protocols.publications import retention as module
from planaria.protocols.publications.retention import (
    GRACE_SECONDS,
    SLOTS,
    STEPS,
    VOTE_TIMEOUTS,
    VOTERS_MAX,
    Horizon,
    Rejected,
    Retention,
)
from planaria.protocols.skipring.broadcast import View
from planaria.protocols.skipring.broadcast_messages import Flood
from planaria.protocols.skipring.history import History
from planaria.records.record import TIME_MAX, Draft, Record, seal
from planaria.records.window import LIMIT_MAX, Window
from retention_lab import history

POLICY = Retention(age=16_000)  # the window moves by 1000 seconds
STEP = POLICY.step
NOW = 10**9


def horizon_at(seconds: int, retention: Retention = POLICY) -> Horizon:
    horizon = Horizon(retention)
    horizon.read_clock(seconds)
    return horizon


HERE = View(None, 9, [])


def history_at(seconds: int) -> History:
    mine = history(9, POLICY)
    mine.read_clock(seconds)
    return mine


def record(time: int) -> Record:
    return seal((1, bytes(12)), 0, [Draft(b"p")], time=time)


def flood(time: int) -> Flood:
    return Flood("t", 1, record(time).data, 1)


def offered(time: int) -> list[type[Effect]]:
    """What a node whose clock shows NOW does with a publication of `time`."""
    return [type(effect) for effect in history_at(NOW).on_message(HERE, flood(time))]


def pass_time(horizon: Horizon, seconds: int, step: int = 10) -> None:
    """The own clock goes on for so long, with a timeout every `step` seconds."""
    assert horizon.seconds is not None
    for now in range(horizon.seconds, horizon.seconds + seconds, step):
        horizon.read_clock(now + step)
        horizon.on_timeout(list(horizon.votes))


def oldest_kept(horizon: Horizon) -> int:
    return min(window.lo for window in horizon.windows())


def test_a_publication_is_shown_for_its_age_and_little_longer() -> None:
    for age in (1, 16, 17, 160, 86_400):
        retention = Retention(age=age)
        for stamped in (NOW, NOW + retention.step - 1):
            horizon = horizon_at(stamped + age, retention)
            assert horizon.lo <= stamped
            horizon.read_clock(stamped + (STEPS + 2) * retention.step)
            assert horizon.lo > stamped


def test_without_an_age_limit_no_clock_hides_or_deletes_anything() -> None:
    for retention in (Retention(), Retention(count=5), Retention(per_publisher=3)):
        horizon = Horizon(retention)
        for clock in (NOW, 0, TIME_MAX, 10**30, -(10**30), NOW + 3 * 3600, NOW):
            horizon.read_clock(clock)
            for peer, vote in enumerate((clock, TIME_MAX, 0)):
                horizon.hear(peer, vote, vote)
            horizon.on_timeout([0, 1, 2])
            assert horizon.lo == oldest_kept(horizon) == 0


def test_what_is_newer_than_the_present_is_never_hidden() -> None:
    """A clock that was ahead is corrected: what it stamped stands in the future for a while."""
    for ahead in (60, 3 * 3600, 10**8, TIME_MAX - NOW):
        assert offered(NOW + ahead) == [Deliver, Persist]


def test_the_present_is_the_low_median_of_the_own_clock_and_the_neighbours() -> None:
    horizon = horizon_at(100)
    for voters, (vote, median) in enumerate([(101, 100), (10**9, 101), (0, 100)], 1):
        horizon.hear(voters, vote, 0)
        horizon.on_timeout([1, 2, 3])
        assert horizon.now == median


def test_one_lying_neighbour_of_two_moves_nothing() -> None:
    for lie in (0, 10**12, -5, 10**40):
        horizon = horizon_at(NOW)
        horizon.hear(1, NOW, 0)
        horizon.hear(2, lie, 0)
        horizon.on_timeout([1, 2])
        assert (horizon.lo, horizon.now) == (NOW - STEPS * STEP, NOW)


def test_a_node_with_a_crazy_clock_follows_its_neighbours() -> None:
    horizon = horizon_at(10**11)
    horizon.hear(1, NOW, 0)
    horizon.hear(2, NOW, 0)
    horizon.on_timeout([1, 2])
    assert horizon.now == NOW
    assert horizon.seconds == 10**11, "what it tells is its raw clock, so lies do not spread"


def test_votes_of_strangers_and_of_the_silent_do_not_count() -> None:
    horizon = horizon_at(100)
    for peer in (1, 2, 3):
        horizon.hear(peer, 500, 0)
    horizon.on_timeout([2, 3])
    assert list(horizon.votes) == [2, 3]
    for _ in range(VOTE_TIMEOUTS - 1):
        horizon.on_timeout([2, 3])
    assert horizon.now == 500
    horizon.on_timeout([2, 3])
    assert horizon.now == 100
    for peer in range(2 * VOTERS_MAX):
        horizon.hear(peer, 100, 0)
    assert len(horizon.votes) == VOTERS_MAX


def test_lo_does_not_step_back_with_the_present_but_any_other_lo_is_reset() -> None:
    horizon = horizon_at(NOW)
    horizon.read_clock(NOW + STEP)
    horizon.read_clock(NOW)
    assert (horizon.now, horizon.lo) == (NOW, NOW - (STEPS - 1) * STEP)
    for corrupted in (-5, 0, 10**12, NOW):
        horizon.lo = corrupted
        horizon.read_clock(NOW)
        assert horizon.lo == NOW - STEPS * STEP


def test_without_any_clock_everything_is_shown_and_nothing_deleted() -> None:
    horizon = Horizon(POLICY)
    for _ in range(1000):
        horizon.on_timeout([])
        assert horizon.lo == oldest_kept(horizon) == 0


@pytest.mark.parametrize("step", [1, 50, 200])
def test_what_is_hidden_is_deleted_after_the_grace_and_not_before(step: int) -> None:
    horizon = horizon_at(NOW)
    pass_time(horizon, POLICY.grace + 2 * STEP, step)
    before = horizon.lo
    pass_time(horizon, POLICY.grace * 9 // 10, step)
    assert horizon.lo > before
    assert oldest_kept(horizon) <= before, "what was shown a grace ago"
    pass_time(horizon, POLICY.grace // 5 + 2 * STEP, step)
    assert oldest_kept(horizon) > before


@pytest.mark.parametrize("jump", [600, 3 * 3600, 10**8, -600, -3 * 3600, -(10**8)])
def test_a_jump_of_all_clocks_deletes_nothing_for_a_grace(jump: int) -> None:
    horizon = horizon_at(NOW)
    pass_time(horizon, 3 * POLICY.grace)
    shown = horizon.lo
    assert horizon.seconds is not None
    horizon.read_clock(horizon.seconds + jump)
    pass_time(horizon, POLICY.grace * 9 // 10)
    assert oldest_kept(horizon) <= shown
    horizon.read_clock(horizon.seconds - jump)
    assert horizon.lo <= shown + POLICY.grace


@pytest.mark.parametrize("jump", [750, 10**8])
def test_a_clock_that_jumps_at_every_reading_does_not_hurry_deletion_much(jump: int) -> None:
    horizon = horizon_at(NOW)
    pass_time(horizon, 3 * POLICY.grace)
    shown = horizon.lo
    for reading in range(120):
        horizon.read_clock(NOW + 10**8 + (-1) ** reading * jump)
        horizon.on_timeout([])
    assert oldest_kept(horizon) <= shown


def test_what_a_neighbour_still_shows_is_not_deleted() -> None:
    horizon = horizon_at(NOW)
    horizon.hear(1, NOW, 5000)
    for _ in range(5):
        pass_time(horizon, POLICY.grace)
        horizon.hear(1, NOW, 5000)
        assert oldest_kept(horizon) == 5000 if len(horizon.slots) > SLOTS else 0
    horizon.votes = {}
    pass_time(horizon, POLICY.grace + 2 * STEP)
    assert oldest_kept(horizon) > 5000


@pytest.mark.parametrize("corrupted", [-(10**30), -1, 10**30])
def test_a_corrupted_grace_heals(corrupted: int) -> None:
    for slots in (0, 1, SLOTS + 1, 500):
        horizon = horizon_at(NOW)
        horizon.elapsed = corrupted
        horizon.slots = [{(corrupted, corrupted): corrupted} for _ in range(slots)]
        horizon.on_timeout([])
        assert oldest_kept(horizon) <= 0 or slots > SLOTS, "what was shown is not known"
        pass_time(horizon, 2 * POLICY.grace)
        assert [window[1:] for window in horizon.windows()] == [(LIMIT_MAX, None)]
        assert horizon.lo - 2 * POLICY.grace < oldest_kept(horizon) <= horizon.lo
        assert len(horizon.slots) == SLOTS + 1


def test_a_new_setting_moves_the_window_at_once_and_the_old_one_is_held_for_a_grace() -> None:
    horizon = horizon_at(NOW, Retention(count=100, per_publisher=9))
    pass_time(horizon, 2 * GRACE_SECONDS, 900)
    horizon.retain(Retention(count=10))
    assert horizon.window == Window(0, 10, None)
    pass_time(horizon, GRACE_SECONDS * 9 // 10, 900)
    assert set(horizon.windows()) == {Window(0, 100, 9), Window(0, 10, None)}
    pass_time(horizon, GRACE_SECONDS // 5, 900)
    assert horizon.windows() == [Window(0, 10, None)]


def test_more_settings_than_fit_a_slot_are_left_out() -> None:
    horizon = horizon_at(NOW)
    for count in range(1, 50):
        horizon.retain(Retention(count=count))
        horizon.on_timeout([])
    assert len(horizon.windows()) <= module.SETTINGS_MAX


def test_an_expired_publication_is_refused() -> None:
    lo = horizon_at(NOW).lo
    assert offered(lo) == [Deliver, Persist]
    (refused,) = history_at(NOW).on_message(HERE, flood(lo - 1))
    assert refused == Send(1, Rejected("t", 9, record(lo - 1).key))
    clockless = history(9, POLICY)
    assert Deliver in [type(effect) for effect in clockless.on_message(HERE, flood(lo - 1))]


def test_marks_outlive_what_they_mark_by_one_retention_period_and_no_more() -> None:
    mine = history_at(NOW)
    delivered = mine.holdings.store.delivered

    def pass_time_of(seconds: int) -> None:
        assert mine.horizon.seconds is not None
        for now in range(mine.horizon.seconds, mine.horizon.seconds + seconds, 100):
            mine.read_clock(now + 100)
            mine.on_timeout([])

    mine.on_message(HERE, flood(NOW))
    pass_time_of(5 * 8_000)
    assert record(NOW).place not in mine.holdings.store, "hidden, and deleted after the grace"
    assert [*delivered.numbers((1, bytes(12)))] == [(0, 1)], "who was away may still bring it back"
    pass_time_of(3 * 16_000)
    assert len(delivered) == 0


def test_a_digest_leaves_alone_what_is_younger_than_the_cut() -> None:
    mine = history_at(NOW)
    empty = mine.digest()
    assert empty.cut == NOW - module.ON_ITS_WAY_SECONDS
    mine.on_message(HERE, flood(NOW))
    assert mine.digest() == empty
    mine.on_message(HERE, flood(NOW - 60))
    assert mine.digest() != empty
    assert history(9).digest().cut == TIME_MAX, "without a clock everything is compared"


@pytest.mark.parametrize("field", ["age", "count", "per_publisher"])
def test_a_limit_below_one_is_no_policy(field: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(
            [0 if name == field else 1 for name in Retention.__struct_fields__], Retention
        )


@pytest.mark.parametrize("shorter", [Retention(count=1), Retention(age=100), Retention(None, 9, 1)])
def test_what_waits_for_its_turn_is_handed_out_before_a_setting_hides_it(
    shorter: Retention,
) -> None:
    """A setting decides what is kept, never what is delivered."""
    mine = history(9, Retention(age=16_000), ordered=True)
    mine.read_clock(NOW)
    for number in (0, 2, 3):
        said = seal((1, bytes(12)), number, [Draft(b"%d" % number)], time=NOW - 1000 + number)
        mine.on_message(HERE, Flood("t", 1, said.data, 1))
    effects = mine.retain(shorter)
    handed = [it.payload for e in effects if isinstance(e, Deliver) for it in e.publications]
    assert handed == [b"2", b"3"]
    assert [e.detail["first"] for e in effects if isinstance(e, Notice)] == [1]
