"""The flat membership of one group: views, subscription forwarding, leaving, splits, sizes."""

from math import log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossip_world import World
from planaria.core.node import Send, Unsubscribe
from planaria.protocols.gossip import sketch
from planaria.protocols.gossip.membership import (
    PATIENCE,
    REMEMBERED_MAX,
    SUBSCRIPTION_HOPS_MAX,
    Membership,
)
from planaria.protocols.gossip.messages import (
    AGE_MAX,
    SKETCH_SIZE,
    SLOWEST,
    Shuffle,
    Subscription,
    Unsubscription,
)
from planaria.protocols.gossip.overlay import GossipOverlay
from planaria.protocols.gossip.parameters import Parameters
from planaria.simulator.links import Partition
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, must_heal

DIALS = Parameters()
IDS = st.integers(0, 40)


def one_group(n: int, *, seed: int = 0, tables: bool = True) -> World:
    return World({id: ["a"] for id in range(n)}, seed=seed, tables=tables)


def test_views_of_a_running_group_hold_about_b_plus_1_times_ln_s_members() -> None:
    world = one_group(60, tables=False)
    world.run(30)
    sizes = [len(node.groups["a"].membership.view) for node in world.processes]
    wanted = 4 * log(60)
    assert 0.8 * wanted <= sum(sizes) / len(sizes) <= 1.25 * wanted
    assert world.wrong() == []


def test_everybody_stays_known_by_about_as_many_as_it_knows() -> None:
    """Entries move instead of multiplying; copied at random, some would be known by nobody."""
    world = one_group(80)
    for _ in range(4):
        world.run(10)
        known = dict.fromkeys(range(80), 0)
        for node in world.processes:
            for id in node.groups["a"].membership.view:
                known[id] += 1
        assert min(known.values()) >= 3


def test_contact_forwards_a_subscription_to_all_it_knows_and_answers_with_its_view() -> None:
    contact = Membership(1, "a", view={2: 0, 3: 0, 4: 0}, size=5)
    sends = contact.on_subscription(Subscription("a", 9, 0), DIALS, Random(1), ())
    assert [send.target for send in sends] == [9, 2, 3, 4]
    assert isinstance(sends[0].message, Shuffle)
    assert all(send.message == Subscription("a", 9, 1) for send in sends[1:])
    assert 9 in contact.view


def test_full_view_keeps_a_forwarded_subscription_with_probability_1_over_1_plus_its_size() -> None:
    rng, kept, tries = Random(7), 0, 4000
    for _ in range(tries):
        full = Membership(1, "a", view=dict.fromkeys(range(10, 19), 0), size=8)
        passed = full.on_subscription(Subscription("a", 99, 3), DIALS, rng, ())
        kept += not passed
        assert len(full.view) == 9
        assert (99 in full.view) == (not passed)
    assert abs(kept / tries - 1 / 10) < 0.02


def test_subscription_that_travelled_to_the_end_is_kept() -> None:
    full = Membership(1, "a", view=dict.fromkeys(range(10, 19), 0), size=8)
    last = Subscription("a", 99, SUBSCRIPTION_HOPS_MAX)
    assert full.on_subscription(last, DIALS, Random(1), ()) == []
    assert 99 in full.view


def test_leaver_hands_on_its_view_and_is_forgotten() -> None:
    member = Membership(2, "a", view={1: 0, 3: 0}, size=4)
    leaver = Membership(1, "a", view={2: 0, 4: 5}, size=4)
    sends = leaver.leave()
    assert [send.target for send in sends] == [2, 4]
    message = sends[0].message
    assert isinstance(message, Unsubscription)
    member.on_unsubscription(message, DIALS)
    assert 1 not in member.view
    member.on_unsubscription(Unsubscription("a", 3, ((4, 5),)), DIALS)
    assert list(member.view) == [4]


def test_group_forgets_a_member_that_unsubscribed() -> None:
    world = one_group(30)
    world.simulator.command(5, Unsubscribe("a/#"))
    assert world.heal(60) > 0
    assert world.members("a") == [id for id in range(30) if id != 5]
    assert world.publish(7, "a", b"x") == world.members("a")
    assert world.parasites() == 0


def test_silent_member_is_dropped_and_remembered() -> None:
    member = Membership(1, "a", view={2: 0})
    for _ in range(PATIENCE + 2):
        member.on_timeout(DIALS, Random(1), ())
    assert member.view == {}
    assert member.remembered == {2: 1}


def test_news_from_before_a_member_was_found_silent_is_not_believed_and_later_news_is() -> None:
    member = Membership(1, "a", view={2: 3, 4: 0}, size=9)
    member.forget(2)
    stale = Shuffle("a", 4, ((2, 3),), (), (), ())
    for _ in range(3):
        member.on_shuffle(stale, DIALS, Random(1), ())
        assert list(member.view) == [4]
        member.on_timeout(DIALS, Random(1), ())
    member.on_shuffle(Shuffle("a", 4, ((2, 1),), (), (), ()), DIALS, Random(1), ())
    assert member.view[2] == 2


def test_who_says_that_it_is_no_member_is_believed_before_others_unless_their_news_is_younger() -> (
    None
):
    """By as much as a message may have been on its way: in flight no age grows."""
    member = Membership(1, "a", view={2: 3, 4: 0}, size=9)
    member.drop(2)
    for _ in range(2 + SLOWEST):
        member.on_shuffle(Shuffle("a", 4, ((2, 1),), (), (), ()), DIALS, Random(1), ())
        assert list(member.view) == [4]
        member.on_timeout(DIALS, Random(1), ())
    member.on_shuffle(Shuffle("a", 4, ((2, 1),), (), (), ()), DIALS, Random(1), ())
    assert member.view[2] == 2


def test_a_flood_of_denials_takes_no_more_room_and_the_latest_count() -> None:
    member = Membership(1, "a")
    for id in range(100, 200):
        member.drop(id)
    assert list(member.denied) == [*range(200 - REMEMBERED_MAX, 200)]


@pytest.mark.parametrize(
    "joined", [Shuffle("a", 2, ((2, 0),), (), (), None), Subscription("a", 2, 0)]
)
def test_who_was_no_member_and_joins_is_believed_at_once(joined: Shuffle | Subscription) -> None:
    member = Membership(1, "a", view={4: 0}, size=9)
    member.drop(2)
    if isinstance(joined, Shuffle):
        member.on_shuffle(joined, DIALS, Random(1), ())
    else:
        member.on_subscription(joined, DIALS, Random(1), ())
    assert 2 in member.view
    assert member.denied == {}


@pytest.mark.parametrize(
    ("n", "seed", "faults"),
    [
        (2, 353, "at 1 join count=2\nat 2 crash count=1"),
        (5, 546, "at 2 crash count=1"),
        (5, 1407, "at 1 crash share=0.33"),
    ],
)
def test_a_dead_member_is_not_handed_round_for_long_where_links_are_slow(
    n: int, seed: int, faults: str
) -> None:
    """Found by the hunt: these took over 200 intervals, as ages do not grow in flight."""
    schedule = parse_schedule(faults)
    spec = Spec(n, seed, start="legitimate", faults=schedule, scheduler="priority", intervals=30)
    must_heal(GossipOverlay(), spec)


def test_alone_with_a_memory_one_calls_again() -> None:
    member = Membership(1, "a", remembered={2: 0})
    sends = member.on_timeout(DIALS, Random(1), ())
    assert [send.target for send in sends] == [2]


@pytest.mark.parametrize("seed", range(2))
def test_halves_that_forgot_each_other_in_a_long_partition_merge_again(seed: int) -> None:
    world = one_group(24, seed=seed)
    halves = [list(range(0, 24, 2)), list(range(1, 24, 2))]
    cut = Partition(halves)
    world.simulator.rules.append(cut)
    world.run(120)
    for half in halves:
        for id in half:
            assert set(world[id].groups["a"].membership.view) <= set(half)
            assert set(world[id].neighbours.view) <= set(half)
    world.simulator.rules.remove(cut)
    assert world.heal(100) > 0
    assert world.publish(3, "a", b"whole") == [*range(24)]


@given(
    view=st.dictionaries(IDS, st.integers(-5, 200), max_size=40),
    asked=st.dictionaries(IDS, st.integers(-5, 200), max_size=40),
    remembered=st.dictionaries(IDS, st.integers(-5, 200), max_size=40),
    denied=st.dictionaries(IDS, st.integers(-5, 200), max_size=40),
    hashes=st.dictionaries(st.integers(-5, 2**64), st.integers(-5, 200), max_size=200),
    size=st.integers(-(10**9), 10**12),
)
def test_any_variables_are_in_bounds_after_one_timeout(
    view: dict[int, int],
    asked: dict[int, int],
    remembered: dict[int, int],
    denied: dict[int, int],
    hashes: dict[int, int],
    size: int,
) -> None:
    member = Membership(7, "a", view, asked, hashes, remembered, denied, size)
    for send in member.on_timeout(DIALS, Random(1), ()):
        assert send.target != 7
    assert 7 not in member.view
    assert member.view.keys() <= view.keys()
    assert all(0 <= age <= AGE_MAX for age in member.view.values())
    assert set(member.asked) <= set(member.view)
    assert len(member.remembered) <= REMEMBERED_MAX
    assert all(0 <= since <= AGE_MAX for since in member.remembered.values())
    assert len(member.denied) <= REMEMBERED_MAX
    assert all(0 <= since <= AGE_MAX for since in member.denied.values())
    assert 1 <= member.size == sketch.estimate(member.sketch)
    assert len(member.sketch) <= SKETCH_SIZE


@pytest.mark.parametrize("age", [0, AGE_MAX, -1, 10**9])
def test_view_that_is_too_long_loses_the_dead_and_keeps_the_only_live_member(age: int) -> None:
    """The oldest were cut at once: with the only live one among them nobody was left to ask."""
    ghosts = dict.fromkeys(range(100, 160), 0)
    member = Membership(1, "a", view={**ghosts, 2: age})
    asked: set[int] = set()
    for _ in range(2 * PATIENCE + 2):
        for send in member.on_timeout(DIALS, Random(1), ()):
            asked.add(send.target)
            if send.target == 2:
                member.on_shuffle(Shuffle("a", 2, (), (), (), ()), DIALS, Random(1), ())
    assert asked == {2, *ghosts}
    assert list(member.view) == [2]


def test_view_that_is_too_long_of_live_members_shrinks_to_its_bound_as_they_are_heard() -> None:
    member = Membership(1, "a", view=dict.fromkeys(range(2, 62), 0))
    for _ in range(5):
        for send in member.on_timeout(DIALS, Random(1), ()):
            member.on_shuffle(Shuffle("a", send.target, (), (), (), ()), DIALS, Random(1), ())
            assert member.view
    assert len(member.view) == DIALS.view(1)


def test_member_that_makes_room_for_a_newcomer_is_remembered() -> None:
    """The newcomer may be a lie, and the one that went the only live one."""
    full = Membership(1, "a", view=dict.fromkeys(range(10, 13), 4))
    full.on_subscription(Subscription("a", 99, 0), DIALS, Random(1), ())
    [gone] = {10, 11, 12} - full.view.keys()
    assert full.remembered == {gone: 4}


def test_message_of_myself_changes_nothing() -> None:
    member = Membership(1, "a", view={2: 3})
    echo = Shuffle("a", 1, ((5, 0),), (), (), None)
    assert member.on_shuffle(echo, DIALS, Random(1), ()) == []
    assert member.view == {2: 3}


def test_news_of_others_is_one_older_on_arrival_and_too_old_at_the_limit() -> None:
    member = Membership(1, "a", size=9)
    news = Shuffle("a", 2, ((2, 0), (3, 3), (4, AGE_MAX)), ((50, 3), (60, 64)), (), ())
    member.on_shuffle(news, DIALS, Random(1), ())
    assert member.view == {2: 1, 3: 4}
    assert member.sketch == {50: 4}
    fresher = Shuffle("a", 5, ((3, 0),), ((50, 9),), (), ())
    member.on_shuffle(fresher, DIALS, Random(1), ())
    assert member.view == {2: 1, 3: 1}
    assert member.sketch == {50: 4}


def test_news_handed_on_at_once_lives_for_as_many_hops_as_its_greatest_age() -> None:
    """No age grows in flight, so in intervals it lives longer the slower the links are."""
    ghost, hops, holder = 99, 0, Membership(1, "a", view={99: 0}, size=3)
    while ghost in holder.view:
        taker = Membership(holder.me + 100, "a", view={holder.me: 0}, size=3)
        request = taker.call(holder.me, Random(1), ()).message
        assert isinstance(request, Shuffle)
        [answer] = holder.on_shuffle(request, DIALS, Random(2), ())
        assert isinstance(answer, Send)
        assert isinstance(answer.message, Shuffle)
        taker.on_shuffle(answer.message, DIALS, Random(3), ())
        holder, hops = taker, hops + 1
    assert hops == AGE_MAX + 1  # the last one is handed nothing
    for delay in (0.5, 1.0, float(SLOWEST)):
        assert GossipOverlay().bound(1, delay) > AGE_MAX * (delay + 1)


def test_exchange_swaps_entries_of_full_views() -> None:
    asker = Membership(1, "a", view=dict.fromkeys(range(10, 15), 1), size=3)
    asked = Membership(2, "a", view=dict.fromkeys(range(20, 25), 1), size=3)
    asker.view[2] = 1
    request = asker.call(2, Random(1), ()).message
    assert isinstance(request, Shuffle)
    [answer] = asked.on_shuffle(request, DIALS, Random(2), ())
    assert isinstance(answer, Send)
    assert isinstance(answer.message, Shuffle)
    asker.on_shuffle(answer.message, DIALS, Random(3), ())
    moved = set(asked.view) & set(range(10, 15))
    assert 1 in asked.view
    assert moved
    assert not moved & set(asker.view)


# How many are we?


@given(st.sets(st.integers(0, 10**9), max_size=127))
def test_small_groups_are_counted_exactly(ids: set[int]) -> None:
    assert sketch.estimate(sketch.exact(sorted(ids))) == max(1, len(ids))


def test_large_groups_are_estimated_without_bias() -> None:
    errors = []
    for trial in range(60):
        ids = Random(trial).sample(range(10**9), 2000)
        errors.append(sketch.estimate(sketch.exact(ids)) / 2000 - 1)
    assert abs(sum(errors) / 60) < 0.04
    assert (sum(error**2 for error in errors) / 60) ** 0.5 < 0.13


def test_groups_of_section_vii_have_the_fanout_of_their_size() -> None:
    """The processes of `--groups 10,100,1000`; 1,166 was estimated for 1,000, and sent to 13."""
    for first, size in ((0, 10), (10, 100), (110, 1000)):
        estimated = sketch.estimate(sketch.exact(range(first, first + size)))
        assert DIALS.fanout(estimated) == DIALS.fanout(size)
        assert abs(estimated / size - 1) < 0.05


def test_sketch_of_the_dead_dies_out() -> None:
    held = sketch.exact(range(1000, 1032))
    for _ in range(sketch.SKETCH_AGE_MAX + 1):
        held = sketch.grow_old(held, 5)
    assert sketch.estimate(held) == 1


def test_a_group_whose_members_died_counts_them_no_more() -> None:
    """Two that are left tell each other of the dead at every exchange: they die out anyway."""
    both = {id: Membership(id, "a", {3 - id: 0}, sketch=sketch.exact(range(40))) for id in (1, 2)}
    rng = Random(1)
    for _ in range(2 * sketch.SKETCH_AGE_MAX):
        for one in both.values():
            for asked in one.on_timeout(DIALS, rng, ()):
                assert isinstance(asked.message, Shuffle)
                for answer in both[asked.target].on_shuffle(asked.message, DIALS, rng, ()):
                    assert isinstance(answer.message, Shuffle)
                    one.on_shuffle(answer.message, DIALS, rng, ())
    assert [one.size for one in both.values()] == [2, 2]


def test_merged_sketches_estimate_the_union() -> None:
    left, right = sketch.exact(range(600)), sketch.exact(range(400, 1000))
    sketch.merge(left, right.items())
    assert sorted(left) == sorted(sketch.exact(range(1000)))
