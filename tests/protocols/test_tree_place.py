"""A host's place in the tree, rule by rule."""

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.node import (
    Command,
    Effect,
    Leave,
    LinkDown,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.lab.tree import (
    edges,
    host_tree,
    mean,
    measure,
    reconfiguration_area,
)
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.member import GROUP, Located, Unlocated
from planaria.protocols.dht.node import Lookup
from planaria.protocols.ring.messages import Introduce
from planaria.protocols.tree.legitimacy import is_tree
from planaria.protocols.tree.messages import Link, Unlink
from planaria.protocols.tree.node import TreeHost
from planaria.protocols.tree.overlay import give_links
from planaria.protocols.tree.place import (
    CLAIMS_MAX,
    REFRESH_PERIOD,
    SEARCHES_MAX,
    SUSPECT_AGE_MAX,
    TreeLink,
)
from planaria.protocols.tree.reference_tree import BinaryTree

SPACE, TREE = KeySpace(4, lambda host: host), BinaryTree(4)


def network(ids: Sequence[NodeId]) -> dict[NodeId, TreeHost]:
    hosts = {id: TreeHost(id, SPACE, TREE) for id in ids}
    give_links(list(hosts.values()))
    return hosts


def carry(hosts: dict[NodeId, TreeHost], source: NodeId, effects: Sequence[Effect]) -> list[Effect]:
    """Deliver messages one by one until none is left; returns the other effects, with the source's
    first."""
    pending, others = [(source, it) for it in effects], []
    for at, effect in pending:
        if not isinstance(effect, Send):
            others.append(effect)
        elif effect.target in hosts:
            target = effect.target
            pending += [(target, it) for it in hosts[target].on_message(effect.message, at)]
        else:
            pending += [(at, it) for it in hosts[at].on_command(LinkDown(effect.target))]
    return others


def test_host_repairs_any_neighbours_when_it_next_searches() -> None:
    hosts = network([5, 9, 11, 13, 15])
    hosts[9].place.parent, hosts[9].place.children = 11, (9, 15, 15)
    hosts[9].place.dirty = True
    links = carry(hosts, 9, hosts[9].on_timeout())
    assert sorted(hosts[9].neighbours) == [5, 13]
    assert links.count(TreeLink(11, up=False)) == 1
    assert is_tree({id: host.neighbours for id, host in hosts.items()})


def test_host_searches_for_no_reason_now_and_then() -> None:
    hosts = network([5, 9, 13])
    hosts[5].place.parent = 13  # nobody will tell it that this is false
    started = 0
    for time in range(1, REFRESH_PERIOD + 2):
        before = hosts[5].place.searching
        hosts[5].on_timeout()
        if before is None and hosts[5].place.searching is not None:
            started = time
            break
    assert started == REFRESH_PERIOD


@pytest.mark.parametrize(("one", "other"), [*combinations([5, 9, 11, 13, 15], 2)])
def test_two_that_confirm_a_false_link_to_each_other_let_go_of_it(one: int, other: int) -> None:
    """Both say so at each timeout; their right neighbours and the refresh make them doubt it."""
    hosts = network([5, 9, 11, 13, 15])
    right = {id: sorted(host.neighbours) for id, host in hosts.items()}
    hosts[one].place.parent, hosts[one].place.children = other, ()
    hosts[other].place.parent, hosts[other].place.children = one, ()
    for _ in range(2 * REFRESH_PERIOD):
        for id, host in hosts.items():
            carry(hosts, id, host.on_timeout())
    assert {id: sorted(host.neighbours) for id, host in hosts.items()} == right


def test_hosts_that_all_confirm_a_false_tree_to_each_other_let_go_of_it() -> None:
    """A path on which both ends of every link agree: nobody claims anything, time alone helps."""
    line = [5, 9, 11, 13, 15]
    hosts = network(line)
    right = {id: sorted(host.neighbours) for id, host in hosts.items()}
    for place, id in enumerate(line):
        hosts[id].place.parent = line[place - 1] if place else None
        hosts[id].place.children = tuple(line[place + 1 : place + 2])
    for interval in range(2 * REFRESH_PERIOD):
        if interval == REFRESH_PERIOD - 1:
            assert [hosts[id].neighbours for id in (11, 15)] == [[9, 13], [13]]
        for id, host in hosts.items():
            carry(hosts, id, host.on_timeout())
    assert {id: sorted(host.neighbours) for id, host in hosts.items()} == right


def test_change_of_the_own_keyset_is_a_reason_to_search_at_once() -> None:
    """The amendment to the notifications of the paper (erratum 3)."""
    hosts = network([5, 9, 13])
    assert hosts[9].place.searching is None
    hosts[9].on_message(Introduce(GROUP, (SPACE.label(7), 7), False, 0), 7)
    assert hosts[9].place.searching == (7, 9)


def test_claim_of_a_stranger_makes_both_look_again_and_the_wrong_one_lets_go() -> None:
    hosts = network([5, 9, 11, 13, 15])
    hosts[5].place.parent, hosts[5].place.children = 9, (15,)
    others = carry(hosts, 5, [Send(15, Link(5))])
    assert TreeLink(15, up=False) in others
    assert hosts[5].neighbours == [9]
    assert hosts[15].neighbours == [13]


def test_lost_neighbour_is_not_taken_back_before_it_speaks() -> None:
    hosts = network([5, 9, 13])
    effects = hosts[9].on_command(LinkDown(13))
    assert TreeLink(13, up=False) in effects
    assert 13 in hosts[9].place.suspects
    hosts[9].place.on_message(Link(13), 13)
    assert 13 not in hosts[9].place.suspects
    hosts[9].place.suspects = {13: 0}
    for _ in range(SUSPECT_AGE_MAX + 1):
        hosts[9].place.on_timeout()
    assert hosts[9].place.suspects == {}


def test_search_that_finds_a_suspect_is_not_adopted_but_repeated() -> None:
    """The DHT may name a host that crashed: taking it back would make the link flap."""
    hosts = network([5, 9, 13])
    hosts[9].place.parent, hosts[9].place.children = None, (5,)
    hosts[9].place.suspects, hosts[9].place.dirty = {13: 0}, True
    carry(hosts, 9, hosts[9].place.review())
    assert hosts[9].neighbours == [5]
    assert hosts[9].place.dirty
    carry(hosts, 9, hosts[9].on_message(Link(13), 13))
    assert sorted(hosts[9].neighbours) == [5, 13]


def test_searches_between_two_timeouts_are_bounded() -> None:
    host = TreeHost(7, SPACE, TREE)
    asked = 0
    for stranger in (1, 2, 3, 4, 5, 6, 8, 9, 10):
        before = host.place.searches
        host.on_message(Link(stranger), stranger)
        asked += host.place.searches - before
    assert asked == SEARCHES_MAX
    host.on_timeout()
    assert host.place.dirty is False


def test_claims_are_bounded_and_claimants_hear_that_they_are_none() -> None:
    host = TreeHost(7, SPACE, TREE)
    host.place.searches = SEARCHES_MAX
    for stranger in range(8, 8 + 2 * CLAIMS_MAX):
        host.on_message(Link(stranger), stranger)
    assert len(host.place.claims) == CLAIMS_MAX
    effects = host.on_timeout()
    targets = [
        it.target for it in effects if isinstance(it, Send) and isinstance(it.message, Unlink)
    ]
    assert targets == list(range(8, 8 + CLAIMS_MAX))


def test_search_that_gets_no_answer_begins_again() -> None:
    hosts = network([5, 9, 13])
    place = hosts[9].place
    place.searching, place.asked = (1, 2), [3]
    hosts[9].on_timeout()
    assert place.searching == hosts[9].dht.keyset
    key = place.asked[0]
    place.on_answer(Unlocated(key))
    assert place.searching is None
    assert place.dirty


def test_answers_of_a_search_for_an_older_keyset_are_not_adopted() -> None:
    hosts = network([5, 9, 13])
    place = hosts[9].place
    place.parent, place.children, place.dirty = None, (), True
    hosts[9].on_timeout()
    hosts[9].dht.ring.left = (SPACE.label(7), 7)
    for key, owner, predecessor in ((4, 5, 13), (15, 5, 13), (12, 13, 9), (0, 5, 13)):
        if key in place.asked:
            place.on_answer(Located(key, owner, predecessor, 1))
    assert place.neighbours == []
    assert place.dirty  # the next input searches anew


def test_leaver_lets_all_links_go_and_refuses_new_ones() -> None:
    hosts = network([5, 9, 13])
    effects = hosts[9].on_command(Leave())
    assert [it for it in effects if isinstance(it, TreeLink)] == [
        TreeLink(5, up=False),
        TreeLink(13, up=False),
    ]
    assert hosts[9].neighbours == []
    assert hosts[9].on_message(Link(5), 5) == [Send(5, Unlink(9))]
    hosts[9].place.parent = 13
    assert TreeLink(13, up=False) in hosts[9].on_timeout()


def test_whoever_is_a_neighbour_no_more_is_told_so() -> None:
    """Erratum 2: else both ends of an old link keep it, and close a cycle."""
    hosts = network([5, 9, 13])
    sends = [it for it in hosts[9].on_command(Leave()) if isinstance(it, Send)]
    assert [it.target for it in sends if it.message == Unlink(9)] == [5, 13]


def test_lookups_of_the_application_pass_through() -> None:
    hosts = network([5, 9, 13])
    assert carry(hosts, 5, hosts[5].on_command(Lookup(12))) == [Located(12, 13, 9, 2)]


def test_state_of_a_host_survives_a_restart() -> None:
    host = network([5, 9, 13])[9]
    host.on_timeout()
    other = TreeHost(9, SPACE, TREE)
    other.restore(host.snapshot())
    assert other.snapshot() == host.snapshot()
    assert other.on_timeout() == host.on_timeout()


@pytest.mark.parametrize("kind", [Link, Unlink])
@pytest.mark.parametrize("sender", [None, 3])
def test_nobody_speaks_for_another_host(kind: type[Link | Unlink], sender: NodeId | None) -> None:
    host = network([5, 9, 13])[9]
    message = kind(13 if kind is Unlink else 2)
    before = host.snapshot()
    assert list(host.on_message(message, sender)) == []
    assert host.snapshot() == before
    host.on_message(message, message.sender)
    assert host.snapshot() != before


@pytest.mark.parametrize("command", [Subscribe("a"), Unsubscribe("a"), Publish("a", b"x")])
def test_tree_refuses_publications_in_one_line(command: Command) -> None:
    with pytest.raises(UsageError, match=r"^tree has lookups, no publications; use ring, .*$"):
        TreeHost(1, SPACE, TREE).on_command(command)


def test_area_of_the_join_in_the_worked_example_is_the_joiner_and_both_ends() -> None:
    before = host_tree(TREE, [5, 9, 11, 13, 15])
    after = host_tree(TREE, [4, 5, 9, 11, 13, 15])
    assert sorted(reconfiguration_area(before, after)) == [4, 5, 9]
    assert reconfiguration_area(after, after) == []
    without_13 = host_tree(TREE, [4, 5, 9, 11, 15])
    assert sorted(reconfiguration_area(after, without_13)) == [9, 11, 15]
    assert len(edges(without_13)) == 4


def test_figures_3_and_4_have_the_papers_shape() -> None:
    """Most hosts have one or three neighbours, none more; the area does not grow with N."""
    few = measure(BinaryTree(8), 10, 6, 5, Random(1))
    many = measure(BinaryTree(8), 60, 6, 5, Random(1))
    assert few[0].degree_max <= 3
    assert many[0].degree_max == 3
    assert many[0].shares[1].mean + many[0].shares[3].mean > 0.5
    assert sum(share.mean for share in many[0].shares.values()) == pytest.approx(1)
    for area in (few[1], many[1]):
        assert 1 < area.join.mean < 8
        assert area.join.mean == pytest.approx(area.join_others.mean + 1)
        assert area.leave.mean == pytest.approx(area.leave_others.mean + 1)


def test_mean_of_equal_samples_has_no_interval() -> None:
    assert mean([2.0, 2.0, 2.0]).interval == 0
    assert mean([1.0, 3.0]).mean == 2
