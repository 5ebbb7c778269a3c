"""Variables set by hand to what only a fault writes, then the handler that stood on them: each was
found by `damage`."""

from random import Random

import pytest

from planaria.core.ids import NODE_ID_MAX
from planaria.core.node import (
    Deliver,
    Effects,
    Leave,
    LinkDown,
    Publish,
    Published,
    Send,
    Subscribe,
)
from planaria.core.overlay import Violation
from planaria.filters.filters import Filter
from planaria.filters.matching import LEAF_MAX
from planaria.filters.values import point
from planaria.protocols.dht.keys import KeySpace
from planaria.protocols.dht.node import DhtNode
from planaria.protocols.dht.overlay import give_places
from planaria.protocols.gossip.dissemination import disseminate
from planaria.protocols.gossip.hierarchy import Hierarchy
from planaria.protocols.gossip.links import Links
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.messages import Event, Search
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.ring.sorted_ring import SortedRing
from planaria.protocols.routing.leases import LeaseTable
from planaria.protocols.routing.legitimacy import Judge
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.workload import UNIVERSE
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.tree.node import TreeHost
from planaria.protocols.tree.overlay import give_links
from planaria.protocols.tree.reference_tree import BinaryTree
from planaria.simulator.worlds.mobile_book import ReachBook

IMPOSSIBLE = (-1, -(1 << 64), NODE_ID_MAX + 1, 1 << 100)

SPACE = KeySpace(4, lambda host: host)
impossible = pytest.mark.parametrize("id", IMPOSSIBLE)


def targets(effects: Effects) -> list[int]:
    return [effect.target for effect in effects if isinstance(effect, Send)]


# ring


@impossible
def test_peer_publishes_to_members_only_whoever_it_takes_for_a_neighbour(id: int) -> None:
    overlay = RingOverlay()
    for side in ("pred", "succ"):
        peer = overlay.legitimate(5, Random(1))[0]
        setattr(overlay.subscriber(peer), side, (1, id))
        assert id not in targets(peer.on_command(Publish(TOPIC, b"said")))
        setattr(overlay.subscriber(peer), side, (1, id))
        assert id not in targets(peer.on_command(LinkDown(3)))


@impossible
def test_nobody_calls_a_lost_neighbour_that_is_no_node(id: int) -> None:
    ring = SortedRing("test", 1, 10)
    ring.lost = {id: 0, 7: 0}
    assert targets(ring.on_timeout()) == [7]
    assert list(ring.lost) == [7]


# dht and tree


@impossible
@pytest.mark.parametrize("side", ["left", "right"])
def test_leaver_tells_hosts_only(id: int, side: str) -> None:
    nodes = {id: DhtNode(id, SPACE) for id in (2, 5, 9)}
    give_places([node.dht for node in nodes.values()], SPACE)
    setattr(nodes[5].dht.ring, side, (SPACE.ref(5)[0], id))
    effects = nodes[5].on_command(Leave())
    assert id not in targets(effects)
    assert id not in nodes[5].dht.heirs


@impossible
def test_leaver_lets_go_of_hosts_only(id: int) -> None:
    hosts = {id: TreeHost(id, SPACE, BinaryTree(4)) for id in (2, 5, 9)}
    give_links(list(hosts.values()))
    hosts[5].place.children = (id,)
    assert id not in targets(hosts[5].on_command(Leave()))


@impossible
def test_search_that_a_lookup_ends_refuses_hosts_only(id: int) -> None:
    """A search ends within any input, also one of the ring below the tree."""
    hosts = {id: TreeHost(id, SPACE, BinaryTree(4)) for id in (2,)}
    give_links(list(hosts.values()))
    place = hosts[2].place
    place.claims, place.dirty = [id, 7], True
    assert targets(place.review()) == [7]


# gossip


@impossible
def test_search_goes_on_to_processes_only(id: int) -> None:
    node = GossipNode(1, Configuration(Hierarchy()), Random(1))
    node.neighbours.view = {id: 0}
    assert targets(node.on_message(Search(5, ("a",), 0))) == []
    node.neighbours.view = {id: 0, 8: 0}
    assert targets(node.on_message(Search(5, ("a",), 0))) == [8]


@impossible
def test_event_goes_to_processes_only(id: int) -> None:
    event = Event("a/b", "a/b", b"id", b"payload", 1, 0, 1, 0)
    tables = Membership(1, "a/b", view={id: 0, 2: 0}, size=2), Links(1, "a/b")
    tables[1].contacts = {id: ("a", 0), 3: ("a", 0)}
    effects = disseminate(event, *tables, Parameters(), Random(1), publisher=True)
    assert set(targets(effects)) <= {2, 3}


# content


def filters(count: int) -> dict[int, Filter]:
    return {id: Filter((("level", point(id)),)) for id in range(count)}


@pytest.mark.parametrize("use", ["match", "insert", "remove"])
def test_matching_index_that_contradicts_itself_is_made_anew(use: str) -> None:
    table = LeaseTable(10)
    for id, filter in filters(LEAF_MAX + 2).items():
        table.insert(7, id, filter)
    assert table.destinations({"level": 3}) == [7]
    sieve = table._index._root.sieve
    assert sieve is not None
    sieve._keys, sieve._settled, sieve._places = [], ("nothing",), {0: 1 << 70}
    if use == "match":
        assert table.destinations({"level": 3}) == [7]
    elif use == "insert":
        table.insert(8, 99, Filter((("level", point(3)),)))
        assert sorted(table.destinations({"level": 3})) == [7, 8]
    else:
        table.remove(7, 3)
        assert table.destinations({"level": 3}) == []
    assert table.destinations({"level": 4}) == [7]


def test_brokers_whose_index_forgot_an_entry_are_not_legitimate() -> None:
    """They would not forward what is wanted until the index is made anew."""
    overlay = RoutingOverlay(subscriptions=10)
    brokers = {node.id: node for node in overlay.legitimate(3, Random(1))}

    def judged() -> list[Violation]:
        return overlay.violations({id: it.state() for id, it in brokers.items()}, [])

    assert judged() == []
    index = brokers[1].table._index  # type: ignore[attr-defined]
    index.remove(next(iter(index.filters)))
    found = judged()
    assert [(it.invariant, it.node) for it in found] == [("index", 1)]
    assert Judge(UNIVERSE).mask(Filter(())) == (1 << len(UNIVERSE)) - 1


# mobile


def test_nobody_is_owed_what_was_under_way_when_memory_was_damaged() -> None:
    book = ReachBook(lambda _: {0: [1], 1: [0]})
    for id in (0, 1):
        book.subscribed(id, Subscribe("t"))

    def publish(time: float, id: bytes) -> None:
        book.command(time, 0, Publish("t", id))
        for effect in (Published("t", id), Deliver.one("t", id, id)):
            book.effect(time, 0, effect)

    def missed(time: float) -> list[tuple[bytes, int]]:
        return [(it.publication.id, it.client[0]) for it in book.missed(time)]

    publish(1, b"arrived")
    publish(1, b"under way")
    book.effect(2, 1, Deliver.one("t", b"arrived", b"arrived"))
    assert missed(2) == [(b"under way", 1)]
    book.excuse(2)
    assert missed(2) == []
    publish(3, b"later")
    assert missed(3) == [(b"later", 1)]
