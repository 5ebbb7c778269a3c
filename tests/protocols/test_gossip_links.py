"""Supertopic links: found, kept, lost and found again, over gaps and several supertopics."""

from itertools import pairwise
from random import Random

import pytest

from gossip_world import World, chain_wishes
from planaria.core.node import Publish, Send, Subscribe, Unsubscribe
from planaria.protocols.gossip.hierarchy import Hierarchy
from planaria.protocols.gossip.links import (
    CHECK_AGE,
    DENIED_MAX,
    LACKING_MAX,
    LINK_AGE_MAX,
    SEARCH_HOPS_MAX,
    TOPICS_MAX,
    WIDEN_PERIOD,
    Links,
)
from planaria.protocols.gossip.messages import SLOWEST, ContactCheck, Found, Search
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.parameters import Parameters

PATHS = Hierarchy()
DEEP = "/".join("abcdefghijklmnopqrstuvwxyzABCDE")  # as many levels as a subscription may have
BRANCHES = {"x": [f"s{branch}/1/2/3/4/5" for branch in range(7)]}


def topics_held(world: World, topic: str) -> list[str]:
    """The topics of all contacts in the supertopic tables of a group."""
    tables = [node.groups[topic].links.contacts for node in world.processes if topic in node.groups]
    return sorted({above for contacts in tables for above, _ in contacts.values()})


def test_search_starts_at_the_direct_supertopic_and_widens_with_time() -> None:
    links = Links(1, "a/b/c")
    assert links.wanted(PATHS) == ["a/b"]
    links.lacking = WIDEN_PERIOD
    assert links.wanted(PATHS) == ["a/b", "a"]
    links.lacking = 9 * WIDEN_PERIOD
    assert links.wanted(PATHS) == ["a/b", "a", ""]


def test_search_narrows_to_what_is_nearer_than_the_contact_found() -> None:
    links = Links(1, "a/b/c", {7: ("a", 0)}, lacking=9 * WIDEN_PERIOD)
    assert links.wanted(PATHS) == ["a/b"]
    links.contacts = {7: ("a/b", 0)}
    assert links.wanted(PATHS) == []


def test_what_a_contact_denied_is_believed_again_only_by_news_that_is_younger() -> None:
    """By as much as a message may have been on its way: in flight no age grows."""
    links = Links(1, "a/b", {2: ("a", 0), 3: ("a", 0)})
    links.drop(2, "a")
    for _ in range(2 + SLOWEST):
        links.merge([(2, "a", 1)], PATHS, 3, Random(1))
        assert list(links.contacts) == [3]
        links.on_timeout(PATHS, Parameters(), 1, Random(1))
    links.merge([(2, "a", 1)], PATHS, 3, Random(1))
    assert links.contacts[2] == ("a", 2)


def test_a_denial_is_of_one_topic_and_ends_when_the_contact_answers() -> None:
    links = Links(1, "a/b")
    links.drop(2, "a")
    links.merge([(2, "", 0)], PATHS, 3, Random(1))
    assert links.contacts == {2: ("", 1)}
    assert links.on_answer(2, "", []) == [(2, "", 0)]
    assert links.denied == {}


def test_a_flood_of_denials_takes_no_more_room_and_the_latest_count() -> None:
    links = Links(1, "a/b")
    for id in range(100, 200):
        links.drop(id, "a")
    assert list(links.denied) == [*range(200 - DENIED_MAX, 200)]


@pytest.mark.parametrize("lacking", [-7, 0, 3, 63, 64, 80, LACKING_MAX, 500])
def test_who_is_alone_searches_at_least_every_sixteen_intervals_whatever_the_count(
    lacking: int,
) -> None:
    """With a chance of 1/16 in each interval one of 100,000 starts waited for 166 intervals."""
    links, rng = Links(1, "a/b", lacking=lacking), Random(1)
    searched = []
    for interval in range(300):
        links.on_timeout(PATHS, Parameters(), 1, rng)
        if links.searches(PATHS, Parameters(), 1, rng):
            searched.append(interval)
    gaps = [later - earlier for earlier, later in pairwise([-1, *searched, 300])]
    assert max(gaps) <= 16
    assert gaps[-8:-1] == [16] * 7  # and no oftener, after a long time


def test_search_gaps_double_at_the_start_of_each_doubling_of_the_time() -> None:
    links, rng = Links(1, "a/b"), Random(1)
    searched = []
    for interval in range(1, 100):
        links.on_timeout(PATHS, Parameters(), 1, rng)
        if links.searches(PATHS, Parameters(), 1, rng):
            searched.append(interval)
    assert searched == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 80, 96]


@pytest.mark.parametrize(("topic", "declared"), [("x", BRANCHES), (DEEP, {})])
def test_what_is_given_up_was_searched_for_however_many_and_far_the_supertopics(
    topic: str, declared: dict[str, list[str]]
) -> None:
    """The 32 nearest alone were searched for, and none more than 29 levels away."""
    hierarchy, links, rng = Hierarchy(declared), Links(1, topic), Random(1)
    searched: set[str] = set()
    while not links.are_found(hierarchy):
        links.on_timeout(hierarchy, Parameters(), 1, rng)
        for search in links.searches(hierarchy, Parameters(), 1, rng):
            assert len(search.wanted) <= TOPICS_MAX
            searched.update(search.wanted)
    assert searched == set(hierarchy.ancestors(topic))


def test_who_is_one_of_many_searches_as_often_as_g_of_them_and_now_and_then_for_ever() -> None:
    links, rng, searched = Links(1, "a/b"), Random(1), 0
    for _ in range(64 * 400):
        links.on_timeout(PATHS, Parameters(), 50, rng)
        searched += bool(links.searches(PATHS, Parameters(), 50, rng))
    assert searched == pytest.approx(4 * 400 * Parameters().p_sel(50), rel=0.25)


def test_search_that_met_nobody_who_knows_ends_after_its_hops() -> None:
    node = GossipNode(1, Configuration(PATHS), Random(1))
    node.neighbours.view = {2: 0}
    [passed] = node.on_message(Search(9, ("a",), SEARCH_HOPS_MAX - 1))
    assert passed == Send(2, Search(9, ("a",), SEARCH_HOPS_MAX))
    assert list(node.on_message(Search(9, ("a",), SEARCH_HOPS_MAX))) == []


def test_search_is_not_answered_with_the_searcher() -> None:
    """Its own contact in `a` is the searcher: the next topic up is what it needs."""
    node = GossipNode(2, Configuration(PATHS), Random(1))
    node.on_command(Subscribe("a/b"))
    node.groups["a/b"].links.contacts = {1: ("a", 0)}
    node.neighbours.view = {7: 0}
    [passed] = node.on_message(Search(1, ("a",), 0))
    assert passed == Send(7, Search(1, ("a",), 1))
    node.groups["a/b"].links.contacts = {1: ("a", 0), 3: ("", 0)}
    [answer] = node.on_message(Search(1, ("a", ""), 0))
    assert answer == Send(1, Found(((3, "", 0),)))


def test_search_neither_goes_back_to_the_searcher_nor_ends_at_it() -> None:
    node = GossipNode(2, Configuration(PATHS), Random(1))
    node.neighbours.view = {1: 0}
    assert list(node.on_message(Search(1, ("a",), 0))) == []
    node.on_command(Subscribe("a"))
    node.neighbours.view = {7: 0}
    [passed] = node.on_message(Search(2, ("a",), 0))
    assert passed == Send(7, Search(2, ("a",), 1))


def test_members_that_a_search_is_answered_with_are_others_than_the_searcher() -> None:
    node = GossipNode(2, Configuration(PATHS), Random(1))
    node.on_command(Subscribe("a"))
    node.groups["a"].membership.view = {1: 0, 5: 0}
    [answer] = node.on_message(Search(1, ("a",), 0))
    assert answer == Send(1, Found(((2, "a", 0), (5, "a", 0))))


def test_sole_subscriber_of_a_topic_that_publishes_below_finds_its_links() -> None:
    """Whoever it asks knows of `a` only it itself; what it lacks is the root."""
    world = World({0: [""], 1: ["a"], 2: ["a/b"], 3: ["a/b"]}, tables=False)
    world.simulator.command(1, Publish("a/b", b"first"))
    world.heal(100)
    contacts = world[1].groups["a/b"].links.contacts
    assert {id: topic for id, (topic, _) in contacts.items()} == {0: ""}


def test_table_with_fewer_live_superprocesses_than_tau_asks_for_more() -> None:
    """KEEP_TABLE_UPDATED: fresh contacts too, by g members of the group; at tau nobody asks."""
    few = Links(1, "a/b", {2: ("a", 0)})
    assert few.on_timeout(PATHS, Parameters(), 1, Random(1)) == [Send(2, ContactCheck("a", 1, 2))]
    asked = sum(bool(few.on_timeout(PATHS, Parameters(), 10**9, Random(1))) for _ in range(5))
    assert asked == 0
    enough = Links(1, "a/b", {2: ("a", 0), 3: ("a", 0), 4: ("a", 0)})
    assert enough.on_timeout(PATHS, Parameters(), 1, Random(1)) == []
    modest = Links(1, "a/b", {2: ("a", 0)})
    assert modest.on_timeout(PATHS, Parameters(tau=1), 1, Random(1)) == []


def test_table_of_one_superprocess_grows_to_z_with_its_help() -> None:
    """Nobody can search: no neighbourhood, no contacts; only the top-up brings more."""
    world = World(chain_wishes(6, 2), contacts=())
    for node in world.processes:
        node.neighbours.view = {}
    for id in (6, 7):
        world[id].groups["a/b"].links.contacts = {0: ("a", 0)}
    world.run(CHECK_AGE - 1)
    assert [len(world[id].groups["a/b"].links.contacts) for id in (6, 7)] == [3, 3]


def test_root_has_nothing_to_search_for() -> None:
    links = Links(1, "", lacking=99)
    assert links.wanted(PATHS) == []
    assert links.searches(PATHS, Parameters(), 1, Random(1)) == []


def test_topics_with_a_dollar_have_no_root() -> None:
    assert PATHS.supers("$x") == ()
    assert PATHS.supers("$x/y") == ("$x",)


def test_merge_keeps_favourites_and_replaces_the_silent() -> None:
    links = Links(1, "a/b", {2: ("a", 0), 3: ("a", 1), 4: ("a", CHECK_AGE + 5)})
    links.merge([(5, "a", 0)], PATHS, 3, Random(1))
    assert sorted(links.contacts) == [2, 3, 5]
    links.merge([(6, "a", 0), (7, "a", 0)], PATHS, 3, Random(1))
    assert sorted(links.contacts) == [2, 3, 5]


def test_merge_drops_higher_contacts_once_nearer_ones_are_known() -> None:
    links = Links(1, "a/b/c", {2: ("", 0), 3: ("a", 0)})
    links.merge([(5, "a/b", 0)], PATHS, 3, Random(1))
    assert links.contacts == {5: ("a/b", 1)}
    links.merge([(2, "", 0), (3, "a", 0)], PATHS, 3, Random(1))
    assert links.contacts == {5: ("a/b", 1)}


def test_merge_refuses_what_no_table_may_hold() -> None:
    links = Links(1, "a/b")
    stale, myself = (2, "a", LINK_AGE_MAX), (1, "a", 0)
    below, beside, own = (3, "a/b/c", 0), (4, "x", 0), (5, "a/b", 0)
    links.merge([stale, myself, below, beside, own], PATHS, 3, Random(1))
    assert links.contacts == {}
    links.contacts = {2: ("a", 3)}
    links.merge([(2, "a", -5), (6, "a", -2)], PATHS, 3, Random(1))
    assert links.contacts == {2: ("a", 3)}


def test_contact_that_nobody_renews_is_checked_and_then_dropped() -> None:
    links = Links(1, "a/b", {2: ("a", 0)})
    checks = 0
    for _ in range(LINK_AGE_MAX + 1):
        checks += len(links.on_timeout(PATHS, Parameters(tau=0), 1000, Random(1)))
    assert links.contacts == {}
    assert checks == LINK_AGE_MAX - CHECK_AGE + 1


def test_news_handed_round_in_circles_grows_older() -> None:
    """A dead contact that two tables keep telling each other of must not live for ever."""
    one, other = (Links(id, "a/b", {9: ("a", 1)}) for id in (1, 2))
    for _ in range(2 * LINK_AGE_MAX):
        one.merge(other.table(), PATHS, 3, Random(1))
        other.merge(one.table(), PATHS, 3, Random(1))
        one.contacts = {}
        one.merge(other.table(), PATHS, 3, Random(1))
        other.contacts = {}
        other.merge(one.table(), PATHS, 3, Random(1))
    assert one.contacts == other.contacts == {}


@pytest.mark.parametrize("seed", range(3))
def test_links_are_found_from_nothing_over_a_gap(seed: int) -> None:
    wishes = chain_wishes(4, 12, names=("a", "a/b/c/d"))  # nobody wants a/b or a/b/c
    world = World(wishes, seed=seed, tables=False)
    world.heal(80)
    assert topics_held(world, "a/b/c/d") == ["a"]


@pytest.mark.parametrize(
    ("low", "high", "declared"), [("x", "s6", BRANCHES), (DEEP, "", {})], ids=["many", "far"]
)
def test_links_are_found_however_many_or_far_the_supertopics(
    low: str, high: str, declared: dict[str, list[str]]
) -> None:
    """Whoever believes that it has found them is right: there are some, and the judge agrees."""
    world = World(chain_wishes(2, 2, names=(high, low)), tables=False, supertopics=declared)
    hierarchy = world.configuration.hierarchy
    while not all(world[id].groups[low].links.are_found(hierarchy) for id in world.members(low)):
        world.run(1)
    assert world.wrong() == []
    assert topics_held(world, low) == [high]


@pytest.mark.parametrize("seed", range(3))
def test_link_comes_back_after_all_z_superprocesses_of_a_group_crash(seed: int) -> None:
    world = World(chain_wishes(8, 10), seed=seed)
    world.simulator.detects_failed_sends = False  # nobody is told of the dead
    victims = [*range(7)]
    for id in world.members("a/b"):
        world[id].groups["a/b"].links.contacts = dict.fromkeys(victims[:3], ("a", 0))
    world.crash(victims)
    world.heal(120)
    assert world.members("a") == [7]
    assert world.publish(12, "a/b", b"up") == [7, *range(8, 18)]


@pytest.mark.parametrize("seed", range(2))
def test_links_skip_a_crashed_supertopic_and_narrow_to_it_when_it_returns(seed: int) -> None:
    world = World(chain_wishes(4, 5, 9), seed=seed)
    middle = world.members("a/b")
    world.crash(middle)
    world.heal(150)
    assert topics_held(world, "a/b/c") == ["a"]
    assert world.publish(10, "a/b/c", b"over the gap") == [*range(4), *range(9, 18)]
    for id in middle:
        world.simulator.add(world.make(id, ["a/b"]))
    world.heal(150)
    assert topics_held(world, "a/b/c") == ["a/b"]
    assert world.publish(10, "a/b/c", b"through it") == [*range(18)]
    assert world.parasites() == 0


def test_topics_appear_and_vanish_while_events_flow() -> None:
    world = World(chain_wishes(4, 0, 9), seed=5)
    for round_ in range(4):
        command = Unsubscribe("a/b/#") if round_ % 2 else Subscribe("a/b/#")
        world.simulator.add(world.make(100 + round_, []))
        for id in (100, 101)[: round_ + 1]:
            world.simulator.command(id, command)
        for number in range(5):
            world.publish(6, "a/b/c", f"{round_}.{number}".encode(), intervals=1)
        world.heal(150)
        always = {*world.members("a"), *world.members("a/b/c"), *world.members("a/b")}
        assert set(world.publish(6, "a/b/c", f"{round_}".encode())) == always


def test_several_supertopics_each_have_a_table_and_an_event_is_delivered_once() -> None:
    """The paper's closing remark: sport/chess is also a game; both include it, a diamond on top."""
    wishes = chain_wishes(3, 4, 4, 6, names=("", "sport", "games", "sport/chess"))
    world = World(wishes, seed=2, tables=False, supertopics={"sport/chess": ["games"]})
    world.heal(100)
    assert topics_held(world, "sport/chess") == ["games", "sport"]
    got = world.publish(12, "sport/chess", b"mate")
    assert got == [*range(17)]
    assert world.publish(4, "sport", b"goal") == [*range(7)]
    assert world.parasites() == 0


def test_gap_below_a_topic_with_several_supertopics_links_to_all_of_them() -> None:
    wishes = chain_wishes(3, 3, 5, names=("a", "x", "a/b/c"))  # a/b, of which nobody is, is in x
    world = World(wishes, seed=3, tables=False, supertopics={"a/b": ["x"]})
    world.heal(100)
    assert topics_held(world, "a/b/c") == ["a", "x"]
    assert world.publish(7, "a/b/c", b"both") == [*range(11)]


def test_supertopic_table_spreads_with_membership_messages() -> None:
    """Nobody can search: no neighbourhood, no contacts. One member knows the way up."""
    world = World(chain_wishes(3, 12), contacts=())
    for node in world.processes:
        node.neighbours.view = {}
        if node.id > 3:
            node.groups["a/b"].links.contacts = {}
    world.run(12)
    assert all(world[id].groups["a/b"].links.contacts for id in world.members("a/b"))
