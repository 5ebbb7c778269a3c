"""Neighbourhood maintenance (3.1) and layers (2), message by message."""

from random import Random

import pytest

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Deliver,
    Effects,
    LinkDown,
    LinkUp,
    Publish,
    Restarted,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.lab.mobile.variants import ThreeStateNode
from planaria.protocols.mobile.dissemination import LOCAL_MAX, MEMORY_TIMEOUTS, REPLAY_TIMEOUTS
from planaria.protocols.mobile.heights import Heights
from planaria.protocols.mobile.layer import DEGREE_MAX, SILENCE_MAX
from planaria.protocols.mobile.link import STALE_MAX, UP
from planaria.protocols.mobile.messages import (
    Beat,
    LinkDownOk,
    LinkUpKo,
    LinkUpOk,
    RequestLinkDown,
    RequestLinkUp,
)
from planaria.protocols.mobile.node import LAYERS_MAX, MobileNode
from planaria.simulator.worlds.graphs import parts

T = "news"


def node(id: NodeId, *, topics: tuple[str, ...] = (T,), points: int = 0) -> MobileNode:
    made = MobileNode(id, Random(id), connection_points=points)
    for topic in topics:
        made.on_command(Subscribe(topic))
    return made


def sent(effects: Effects) -> list[tuple[NodeId, Message]]:
    return [(it.target, it.message) for it in effects if isinstance(it, Send)]


def see_each_other(*nodes: MobileNode) -> None:
    for one in nodes:
        for other in nodes:
            if one is not other:
                one.on_command(LinkUp(other.id))


class Room:
    """Nodes in one room: what they say arrives in order, between two timeouts."""

    def __init__(self, *nodes: MobileNode) -> None:
        self.nodes = {it.id: it for it in nodes}
        self.delivered: list[tuple[NodeId, bytes]] = []

    def round(self, *ids: NodeId) -> None:
        for id in ids or list(self.nodes):
            self.spread(id, self.nodes[id].on_timeout())

    def spread(self, id: NodeId, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.delivered += [(id, it.payload) for it in effect.publications]
            elif isinstance(effect, Send) and effect.target in self.nodes:
                answer = self.nodes[effect.target].on_message(effect.message)
                self.spread(effect.target, answer)


def linked(a: MobileNode, b: MobileNode, topic: str = T) -> bool:
    return all(
        y.id in x.layers[topic].links and x.layers[topic].links[y.id].state == UP
        for x, y in ((a, b), (b, a))
    )


def test_request_ok_and_the_link_is_up_at_both_ends() -> None:
    a, b = node(1), node(2)
    see_each_other(a, b)
    ((target, request),) = sent(a.on_timeout())
    assert (target, type(request)) == (2, RequestLinkUp)
    assert a.layers[T].links[2].state == "asked"  # the paper's forming
    ((target, ok),) = sent(b.on_message(request))
    assert (target, type(ok)) == (1, LinkUpOk)
    assert a.on_message(ok) == []
    assert linked(a, b)


def test_node_outside_the_layer_says_ko_and_is_asked_again_later() -> None:
    a, b = node(1), node(2, topics=("other",))
    see_each_other(a, b)
    ((_, request),) = [it for it in sent(a.on_timeout()) if it[0] == 2]
    ((_, ko),) = sent(b.on_message(request))
    assert isinstance(ko, LinkUpKo)
    a.on_message(ko)
    assert sent(a.on_timeout()) == []
    asked = [bool(sent(a.on_timeout())) for _ in range(10)]
    assert any(asked)


def test_node_with_all_its_links_in_use_says_ko() -> None:
    crowd = node(1)
    for id in range(2, DEGREE_MAX + 3):
        crowd.on_command(LinkUp(id))
        answer = sent(crowd.on_message(RequestLinkUp(T, id, Heights(id, Random(id)).greet())))
        kind = LinkUpOk if id < DEGREE_MAX + 2 else LinkUpKo
        assert [type(message) for _, message in answer] == [kind]


def test_link_that_only_one_end_has_is_made_anew() -> None:
    """A peer restarts under its id before anybody noticed (incident I1)."""
    a, b = node(1), node(2)
    see_each_other(a, b)
    room = Room(a, b)
    room.round()
    assert linked(a, b)
    room.nodes[2] = again = node(2)
    again.on_command(LinkUp(1))
    room.round(1)
    room.round(2, 1)
    assert linked(a, again)


def test_old_residue_is_ignored_because_it_would_be_taken_for_a_new_height() -> None:
    heights = Heights(1, Random(1))
    heights.height, heights.views = 4, {2: (3, 7)}
    heights.hear(2, (1,))  # said three turns ago, at height 1
    assert heights.views[2] == (4, 7)  # above the true 3: why beats are numbered

    a, b = node(1), node(2)
    see_each_other(a, b)
    room = Room(a, b)
    for _ in range(6):
        room.round()
    mine = a.layers[T].orientation
    assert isinstance(mine, Heights)
    before, last = dict(mine.views), a.layers[T].links[2].heard
    assert last is not None
    for word in [(0,), (1,), (2,)]:
        a.on_message(Beat(T, 2, last - 3, None, word, ()))
        assert mine.views == before
    for _ in range(STALE_MAX + 1):
        for _ in range(2 * STALE_MAX):  # what was said long ago may come in one heap
            a.on_message(Beat(T, 2, last - 3, None, (0, 9, 7, 1), ()))
            assert mine.views == before
        a.on_timeout()
    a.on_message(Beat(T, 2, last - 3, None, (0, 9, 7, 1), ()))
    assert mine.views == {2: (9, 7)}  # so long nothing newer: it is our memory that is wrong


def test_counters_far_below_zero_delay_nothing() -> None:
    a, b = node(1), node(2)
    see_each_other(a, b)
    Room(a, b).round()
    link = a.layers[T].links[2]
    link.quiet = link.stale = -(1 << 40)
    a.on_timeout()
    assert (link.quiet, link.stale) == (1, 1)


def test_neighbour_that_falls_silent_is_dropped() -> None:
    a, b = node(1), node(2)
    see_each_other(a, b)
    Room(a, b).round()
    for _ in range(SILENCE_MAX + 1):
        a.on_timeout()
    assert 2 not in a.layers[T].neighbours()


def test_link_lost_by_the_driver_is_lost_in_every_layer() -> None:
    a, b = node(1, topics=("x", "y")), node(2, topics=("x", "y"))
    see_each_other(a, b)
    Room(a, b).round()
    assert linked(a, b, "x")
    assert linked(a, b, "y")
    a.on_command(LinkDown(2))
    assert all(not layer.links and not layer.orientation.peers() for layer in a.layers.values())


def test_leaver_hands_over_then_says_goodbye_and_waits_for_the_answer() -> None:
    a, b = node(1), node(2)
    see_each_other(a, b)
    room = Room(a, b)
    room.round()
    room.spread(1, a.on_command(Publish(T, b"last words")))
    a.on_command(Unsubscribe(T))
    for _ in range(8):
        room.round()
    assert (2, b"last words") in room.delivered
    assert a.layers == {}
    assert b.layers[T].links == {}


def test_leaver_whose_turn_has_not_come_waits_for_it_with_what_it_holds() -> None:
    a, b = node(1), node(2)
    see_each_other(a, b)
    room = Room(a, b)
    for _ in range(6):
        room.round()
    if a.layers[T].orientation.sink():
        room.round(1)
    assert not a.layers[T].orientation.sink()
    a.on_command(Publish(T, b"last words"))
    a.on_command(Unsubscribe(T))
    beats = sent(a.on_timeout())
    assert [(type(it), getattr(it, "items", None)) for _, it in beats] == [(Beat, ())]
    room.round(2)
    room.round(1)
    assert room.delivered == [(2, b"last words")]
    assert a.layers[T].links[2].state == UP  # until it hears that the other has them
    room.round(2, 1, 1)
    assert a.layers == {}


def test_goodbye_is_answered_and_beats_to_a_stranger_bring_one() -> None:
    a = node(1)
    a.on_command(LinkUp(2))
    assert sent(a.on_message(RequestLinkDown(T, 2))) == [(2, LinkDownOk(T, 1))]
    beat = Beat("elsewhere", 2, 1, None, (0,), ())
    assert sent(a.on_message(beat)) == [(2, RequestLinkDown("elsewhere", 1))]


def test_message_from_out_of_reach_or_from_oneself_is_garbage() -> None:
    a = node(1)
    request = RequestLinkUp(T, 9, Heights(9, Random(0)).greet())
    assert a.on_message(request) == ()
    a.on_command(LinkUp(1))
    assert a.reach == {}


@pytest.mark.parametrize(("points", "critical"), [(1, True), (2, False), (3, False)])
def test_f_connection_points_make_nobody_critical(points: int, critical: bool) -> None:
    """A newcomer with f >= 2 links leaves a network without critical points without any (3.1)."""
    found = False
    for seed in range(10):
        nodes = [node(id, points=points) for id in range(10)]
        for it in nodes:
            it.rng = Random(seed * 100 + it.id)
        room = Room(*nodes[:3])
        see_each_other(*nodes[:3])
        for it in nodes[:3]:
            it.connection_points = it.layers[T].connection_points = 2
        room.round()
        for new in nodes[3:]:
            for old in list(room.nodes.values()):
                see_each_other(new, old)
            room.nodes[new.id] = new
            room.round(new.id)
            room.round()
        graph = {it.id: it.layers[T].neighbours() for it in nodes}
        assert all(len(peers) >= points for peers in graph.values())
        found |= any(_cuts(graph, gone) for gone in graph)
    assert found == critical


def _cuts(graph: dict[NodeId, list[NodeId]], gone: NodeId) -> bool:
    """Does the loss of one node cut some others apart?"""
    rest = {id: [p for p in peers if p != gone] for id, peers in graph.items() if id != gone}
    return parts(rest) > parts(graph)


def test_layers_have_their_own_neighbours_orientation_and_identifiers() -> None:
    """Figure 2.1: node 5 is beside 2, 3, 4 in one layer and beside 1 in the other."""
    member = {1: ("l2",), 2: ("l1",), 3: ("l1",), 4: ("l1",), 5: ("l1", "l2")}
    nodes = [node(id, topics=topics) for id, topics in member.items()]
    see_each_other(*nodes)
    room = Room(*nodes)
    for _ in range(6):
        room.round()
    five = room.nodes[5]
    assert sorted(five.layers["l1"].neighbours()) == [2, 3, 4]
    assert five.layers["l2"].neighbours() == [1]
    x, y = five.layers["l1"].orientation, five.layers["l2"].orientation
    assert isinstance(x, Heights)
    assert isinstance(y, Heights)
    assert x.lid != y.lid
    before = five.layers["l2"].snapshot()
    room.nodes[2].on_command(Publish("l1", b"only here"))
    room.spread(5, five.on_message(RequestLinkUp("l1", 2, Heights(2, Random(2)).greet())))
    assert five.layers["l2"].snapshot() == before


def test_what_cannot_be_done_is_refused_whole() -> None:
    a = node(1)
    with pytest.raises(UsageError, match="subscribe"):
        a.on_command(Publish("elsewhere", b""))
    for number in range(LAYERS_MAX - 1):
        a.on_command(Subscribe(f"t/{number}"))
    with pytest.raises(CapacityExceeded, match="layers"):
        a.on_command(Subscribe("one/more"))
    for _ in range(LOCAL_MAX):
        a.on_command(Publish(T, b""))
    with pytest.raises(CapacityExceeded, match="wait"):
        a.on_command(Publish(T, b""))


def test_publication_of_a_lonely_node_waits_for_company() -> None:
    a, b = node(1), node(2)
    a.on_command(Publish(T, b"hello?"))
    for _ in range(REPLAY_TIMEOUTS + 5):
        a.on_timeout()
    see_each_other(a, b)
    room = Room(a, b)
    for _ in range(4):
        room.round()
    assert (2, b"hello?") in room.delivered


@pytest.mark.parametrize("kind", [MobileNode, ThreeStateNode])
def test_what_a_peer_sent_before_it_lost_its_memory_is_sent_back_to_it(
    kind: type[MobileNode],
) -> None:
    def made(id: NodeId, seed: int) -> MobileNode:
        one = kind(id, Random(seed))
        one.on_command(Subscribe(T))
        return one

    a, b = made(1, 1), made(2, 2)
    see_each_other(a, b)
    room = Room(a, b)
    for _ in range(6):
        room.round()
    a.on_command(Publish(T, b"late"))
    late: list[Message] = []
    while not late:
        room.round(2)
        beats = [it for _, it in sent(a.on_timeout()) if isinstance(it, Beat)]
        late = [it for it in beats if it.items]
    again = room.nodes[1] = made(1, 3)
    again.on_command(LinkUp(2))
    for _ in range(6):
        room.round()
    assert linked(again, b)
    room.spread(2, b.on_message(late[0]))
    for _ in range(6):
        room.round()
    assert room.delivered == [(2, b"late"), (1, b"late")]


def test_two_that_meet_again_send_what_both_have_one_way_only() -> None:
    a, b = node(1), node(2)
    see_each_other(a, b)
    room = Room(a, b)
    for number in range(40):  # more than one beat takes
        a.on_command(Publish(T, b"%d" % number))
    for _ in range(12):
        room.round()
    assert a.layers[T].copies + b.layers[T].copies == 40
    a.on_command(LinkDown(2))
    b.on_command(LinkDown(1))
    see_each_other(a, b)
    for _ in range(20):
        room.round()
    assert a.layers[T].copies + b.layers[T].copies == 80
    assert len(room.delivered) == 40


def test_ids_are_remembered_for_longer_than_publications_are_replayed() -> None:
    a, b = node(1), node(2)
    see_each_other(a, b)
    room = Room(a, b)
    a.on_command(Publish(T, b"once"))
    for _ in range(REPLAY_TIMEOUTS + 5):
        room.round()
    news = b.layers[T].news
    assert (len(news.store), len(news.seen)) == (0, 1)
    for _ in range(MEMORY_TIMEOUTS):
        room.round()
    assert len(news.seen) == 0
    assert room.delivered == [(2, b"once")]


def test_restart_takes_back_everything_but_links_and_the_lid_of_its_former_life() -> None:
    a, b = node(1), node(2)
    see_each_other(a, b)
    room = Room(a, b)
    a.on_command(Publish(T, b"x"))
    for _ in range(3):
        room.round()
    copy = MobileNode(1, Random(7))
    assert list(copy.restore(a.snapshot())) == []
    assert copy.state() == a.state()
    copy.on_command(Restarted())
    before, after = a.state().layers[T], copy.state().layers[T]
    assert (list(before.links), after.links, after.refused) == ([2], {}, {})
    assert (after.news.store, after.news.seen) == (before.news.store, before.news.seen)
    assert (after.serial, after.said, after.turns) == (before.serial, before.said, before.turns)
    mine, again = before.orientation, after.orientation
    assert (again.height, again.settled) == (mine.height, mine.settled)
    assert (again.views, mine.views) == ({}, {2: (2, b.layers[T].orientation.greet()[2])})
    assert again.lid != mine.lid
