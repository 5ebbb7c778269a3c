"""What a peer's application asks for and is told, and what the driver reports."""

from random import Random

import pytest

from planaria.core.errors import CapacityExceeded, UsageError
from planaria.core.node import (
    Busy,
    Clock,
    Command,
    Deliver,
    Effect,
    Joined,
    Leave,
    LinkDown,
    LinkUp,
    Notice,
    Persist,
    Publish,
    Published,
    PublishMany,
    Ready,
    Send,
    Subscribe,
)
from planaria.core.state import decode_state
from planaria.protocols.publications.antientropy_messages import Estimate
from planaria.protocols.publications.retention import Rejected, Retention
from planaria.protocols.skipring.broadcast_messages import Arc
from planaria.protocols.skipring.messages import Greeting, Unsubscribe
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE, TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer, PeerState
from planaria.records.packing import PACKED_PUBLICATIONS
from planaria.records.record import PAYLOAD_BYTES_MAX, Draft, decode
from planaria.simulator.engine import Entry
from records_lab import no_room
from retention_lab import DAY, Topic
from ring_lab import RingLab


class Told:
    """What applications were told, in order."""

    kinds = ("effect",)

    def __init__(self, lab: RingLab) -> None:
        self.rows: list[tuple[int, Effect]] = []
        lab.simulator.watch(self)

    def record(self, tick: int, kind: str, node: int, entry: Entry, effect: object) -> None:
        assert isinstance(effect, Effect)
        self.rows.append((node, effect))

    def of(self, kind: type[Effect]) -> list[tuple[int, Effect]]:
        return [(node, effect) for node, effect in self.rows if isinstance(effect, kind)]


def peer_of(lab: RingLab, id: int = 0) -> Peer:
    node = lab.simulator.nodes[id]
    assert isinstance(node, Peer)
    return node


def test_publishing_is_answered_first_then_on_disk_then_sent_and_delivered() -> None:
    effects = peer_of(RingLab.legitimate(8)).on_command(Publish(TOPIC, b"p"))
    kinds = [type(effect) for effect in effects]
    assert kinds[:2] == [Published, Persist], "on disk before it leaves"
    assert kinds[-2:] == [Deliver, Persist]
    assert {*kinds[2:-2]} == {Send}
    assert isinstance(effects[0], Published)
    assert isinstance(effects[-2], Deliver)
    assert (effects[0].topic, effects[0].publisher, effects[0].sequence) == (TOPIC, 0, 0)
    assert [effects[0].id] == [it.id for it in effects[-2].publications]


def test_everybody_knows_a_publication_by_the_id_that_its_publisher_was_told() -> None:
    lab = RingLab.legitimate(8)
    effects = Told(lab)
    for id in (0, 3, 3):
        lab.simulator.command(id, Publish(TOPIC, b"same"))
    lab.run(3)
    ids = [it.id for _, it in effects.of(Published) if isinstance(it, Published)]
    assert len({*ids}) == 3
    for node in range(8):
        delivered = [
            one.id
            for who, it in effects.of(Deliver)
            if who == node and isinstance(it, Deliver)
            for one in it.publications
        ]
        assert sorted(delivered) == sorted(ids)


def test_what_is_received_is_forwarded_delivered_and_only_then_marked_on_disk() -> None:
    """A crash in between repeats a delivery; the other order would lose one."""
    lab = RingLab.legitimate(16)
    (first, *_) = [
        effect
        for effect in peer_of(lab).on_command(Publish(TOPIC, b"p"))
        if isinstance(effect, Send)
    ]
    kinds = [type(it) for it in peer_of(lab, first.target).on_message(first.message, 0)]
    assert kinds[-2:] == [Deliver, Persist]
    assert {*kinds[:-2]} <= {Send}
    again = peer_of(lab, first.target).on_message(first.message, 0)
    assert [it for it in again if not isinstance(it, Send)] == [], "nothing new, nothing to store"


def test_a_publication_stamped_anew_keeps_its_id_and_is_not_delivered_again() -> None:
    topic = Topic(2, Retention(age=DAY))
    node = topic.nodes[0]
    effects = node.publish(topic.view(0), Draft(b"said"))
    published = effects[0]
    assert isinstance(published, Published)
    ((name, (said, _)),) = node.publisher.rejectable.items()
    node.horizon.votes.clear()
    node.read_clock(topic.now + 10 * DAY)
    again = node.on_message(topic.view(0), Rejected("t", 1, name))
    assert [type(it) for it in again] == [Persist, Send], "on disk before it leaves again"
    other = topic.nodes[1]
    other.horizon.votes.clear()
    other.read_clock(topic.now + 10 * DAY)
    sends = [it for it in again if isinstance(it, Send)]
    (effect,) = [
        it for it in other.on_message(topic.view(1), sends[0].message) if isinstance(it, Deliver)
    ]
    (delivered,) = effect.publications
    assert delivered.id == published.id
    assert decode(said).first == delivered.sequence


def test_key_headers_and_timestamp_arrive_as_they_were_published() -> None:
    lab = RingLab.legitimate(4)
    effects = Told(lab)
    said = Publish(TOPIC, b"p", key=b"", headers={"colour": "rot", "": "ü"}, timestamp=1234)
    lab.simulator.command(1, said)
    lab.run(3)
    given = [it for _, it in effects.of(Deliver) if isinstance(it, Deliver)]
    assert len(given) == 4
    for (one,) in [it.publications for it in given]:
        assert (one.payload, one.key, one.headers, one.timestamp) == (
            b"p", b"", {"colour": "rot", "": "ü"}, 1234,
        )  # fmt: skip


def test_many_that_are_published_at_once_leave_in_one_record_and_have_one_answer() -> None:
    peer = peer_of(RingLab.legitimate(8))
    many = [Publish(TOPIC, b"%d" % n, key=b"k" * (n % 2)) for n in range(5)]
    effects = peer.on_command(PublishMany(TOPIC, many))
    (published,) = [it for it in effects if isinstance(it, Published)]
    assert (published.sequence, published.count) == (0, 5)
    (deliver,) = [it for it in effects if isinstance(it, Deliver)]
    assert [it.payload for it in deliver.publications] == [b"0", b"1", b"2", b"3", b"4"]
    assert [it.key for it in deliver.publications] == [b"", b"k", b"", b"k", b""]
    assert deliver.publications[0].id == published.id
    assert peer.on_command(PublishMany(TOPIC, ())) == ()
    after = peer.on_command(Publish(TOPIC, b"after"))[0]
    assert isinstance(after, Published)
    assert (after.sequence, after.count) == (5, 1)


def test_of_many_each_keeps_what_it_has_beside_its_payload() -> None:
    peer = peer_of(RingLab.legitimate(8))
    many = [
        Publish(TOPIC, b"plain"),
        Publish(TOPIC, b"keyed", key=b"q"),
        Publish(TOPIC, b"named", headers={"a": "b"}),
        Publish(TOPIC, b"timed", key=b"k", timestamp=7),
    ]
    effects = peer.on_command(PublishMany(TOPIC, many))
    (deliver,) = [it for it in effects if isinstance(it, Deliver)]
    plain, keyed, named, timed = deliver.publications
    assert (plain.payload, plain.key, plain.headers) == (b"plain", None, {})
    assert (keyed.payload, keyed.key, keyed.headers) == (b"keyed", b"q", {})
    assert (named.headers, named.timestamp) == ({"a": "b"}, plain.timestamp)
    assert (timed.key, timed.headers, timed.timestamp) == (b"k", {}, 7)


def test_a_store_that_takes_nothing_refuses_the_publisher_and_numbers_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer = peer_of(RingLab.legitimate(8))
    history = peer.topics[TOPIC].history
    peer.on_command(Publish(TOPIC, b"before"))
    known = dict(history.publisher.rejectable)

    with monkeypatch.context() as full:
        full.setattr(history.holdings.store, "_admit", no_room)
        with pytest.raises(CapacityExceeded, match="no room"):
            peer.on_command(Publish(TOPIC, b"refused"))
    assert history.publisher.rejectable == known
    with monkeypatch.context() as full:  # the disk stalls just after it was asked
        full.setattr(history.holdings.store, "append", no_room)
        stalled = peer.on_command(Publish(TOPIC, b"refused"))
        assert [type(it) for it in stalled] == [Published, Notice]
    after = peer.on_command(Publish(TOPIC, b"after"))
    assert isinstance(after[0], Published)
    assert after[0].sequence == 1
    (deliver,) = [it for it in after if isinstance(it, Deliver)]
    assert [it.payload for it in deliver.publications] == [b"after"]
    assert len({it.stream for it in history.holdings.store.index.shown.values()}) == 1


def test_a_rejected_record_that_the_store_refuses_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer = peer_of(RingLab.legitimate(8))
    history = peer.topics[TOPIC].history
    peer.on_command(Publish(TOPIC, b"late"))
    (key,) = history.publisher.rejectable
    history.horizon.lo = history.horizon.now = 1000
    rejected = Rejected(TOPIC, 1, key)

    with monkeypatch.context() as full:
        full.setattr(history.holdings.store, "_admit", no_room)
        assert [type(it) for it in peer.on_message(rejected, 1)] == [Notice]
    again = peer.on_message(rejected, 1)
    assert Deliver not in [type(it) for it in again], "it was delivered before"
    assert [it for it in again if isinstance(it, Send) and isinstance(it.message, Arc)]


def test_records_that_are_published_at_once_wait_for_the_disk_once() -> None:
    """Or what is published next, and waits once, would overtake the second of them."""
    peer = peer_of(RingLab.legitimate(8))
    many = [Publish(TOPIC, b"%d" % n) for n in range(2 * PACKED_PUBLICATIONS + 1)]
    effects = peer.on_command(PublishMany(TOPIC, many))
    kinds = [type(it) for it in effects]
    assert kinds[:2] == [Published, Persist]
    assert Persist not in kinds[2 : len(kinds) - 1 - kinds[::-1].index(Deliver)]
    given = [one for it in effects if isinstance(it, Deliver) for one in it.publications]
    assert [it.sequence for it in given] == list(range(len(many)))


@pytest.mark.parametrize(
    "wrong",
    [
        Publish(TOPIC, bytes(PAYLOAD_BYTES_MAX + 1)),
        Publish(TOPIC, attributes={"delay": 60}),
        Publish(TOPIC, key=bytes(1 << 12)),
    ],
)
def test_if_one_of_many_cannot_be_published_none_is(wrong: Publish) -> None:
    peer = peer_of(RingLab.legitimate(4))
    with pytest.raises(UsageError):
        peer.on_command(PublishMany(TOPIC, [Publish(TOPIC, b"good"), wrong]))
    with pytest.raises(UsageError, match="subscribe to 'other'"):
        peer.on_command(PublishMany("other", [Publish("other", b"good")]))
    effects = peer.on_command(PublishMany(TOPIC, [Publish(TOPIC, b"next")]))
    (deliver,) = [it for it in effects if isinstance(it, Deliver)]
    assert [(it.payload, it.sequence) for it in deliver.publications] == [(b"next", 0)]


def test_a_restored_peer_numbers_in_a_new_incarnation_and_one_that_goes_on_does_not() -> None:
    peer = peer_of(RingLab.legitimate(2))
    first = peer.on_command(Publish(TOPIC, b"a"))[0]
    for restored in (False, True):
        again = Peer(0, peer.supervisors, Random(5))
        if restored:
            again.restore(peer.snapshot())
        else:
            again.load(decode_state(PeerState, peer.snapshot()))
        second = again.on_command(Publish(TOPIC, b"b"))[0]
        assert isinstance(first, Published)
        assert isinstance(second, Published)
        assert (second.id[:20] == first.id[:20]) != restored
        assert second.sequence == (0 if restored else 1)


def test_a_subscriber_is_told_once_that_it_has_joined() -> None:
    lab = RingLab.unrecorded(5)
    effects = Told(lab)
    lab.heal(60)
    lab.run(5)
    assert sorted(node for node, _ in effects.of(Joined)) == lab.peers
    assert {effect for _, effect in effects.of(Joined)} == {Joined(TOPIC)}
    lab.simulator.command(2, Subscribe(TOPIC))
    lab.run(2)
    assert [node for node, _ in effects.of(Joined)][5:] == [2], "asked again, it is told again"


def test_nobody_is_told_that_it_has_joined_while_it_leaves_or_is_alarmed() -> None:
    lab = RingLab.legitimate(4)
    membership = peer_of(lab).topics[TOPIC]
    membership.subscribe()
    membership.subscriber.inquiry.alarm(5)
    assert not [it for it in membership.on_timeout() if isinstance(it, Joined)]
    membership.subscriber.inquiry.calm()
    membership.subscriber.leaving = True
    assert not [it for it in membership.on_timeout() if isinstance(it, Joined)]


@pytest.mark.parametrize(
    ("command", "word", "instead"),
    [
        (Subscribe("a/+"), "wildcards", "gossip"),
        (Subscribe("#"), "wildcards", "gossip"),
        (Subscribe("a/*/c"), "wildcards", "gossip"),
        (Subscribe("a", where="x > 1"), "where", "content"),
        (Subscribe("a", client=4), "client", "share"),
        (Publish(TOPIC, b"p", attributes={"x": 1}), "attributes", "content"),
        (Publish(TOPIC, bytes((1 << 20) + 1)), "payload", "split"),
        (Publish(TOPIC, b"p", key=bytes(1 << 12)), "key", "at most"),
        (Publish(TOPIC, b"p", headers={"a" * 300: "b"}), "header", "at most"),
        (Publish(TOPIC, b"p", timestamp=1 << 62), "timestamp", "64 bits"),
        (Publish("elsewhere", b"p"), "subscribe", "before"),
        (Subscribe("$SYS/a"), "reserved", "SYS"),
    ],
)
def test_what_a_ring_cannot_do_it_refuses_in_one_line(
    command: Command, word: str, instead: str
) -> None:
    peer = peer_of(RingLab.legitimate(2))
    before = peer.snapshot()
    with pytest.raises(UsageError) as refusal:
        peer.on_command(command)
    said = str(refusal.value)
    assert word in said
    assert instead in said
    assert "\n" not in said
    assert peer.snapshot() == before


def test_leave_leaves_all_topics() -> None:
    peer = Peer(1, (SUPERVISOR_BASE,), Random(1))
    for topic in ("a", "b", "c"):
        peer.on_command(Subscribe(topic))
        peer.topics[topic].subscriber.label = 0
    asked = [it.message for it in peer.on_command(Leave()) if isinstance(it, Send)]
    assert asked == [Unsubscribe(topic, 1) for topic in ("a", "b", "c")]


def test_a_neighbour_that_is_back_is_accused_no_more() -> None:
    lab = RingLab.legitimate(8)
    peer, one = peer_of(lab), lab.member(0)
    neighbour = one.ring[0][1]
    peer.on_command(LinkDown(neighbour))
    assert one.missing == [neighbour]
    peer.on_command(LinkUp(7 if neighbour != 7 else 6))
    assert one.missing == [neighbour]
    peer.on_command(LinkUp(neighbour))
    assert one.missing == []


def test_no_share_goes_over_a_full_link_and_no_exchange_begins_there() -> None:
    lab = RingLab.legitimate(8)
    peer = peer_of(lab)
    busy = lab.member(0).neighbours()[0][1]

    def arcs(number: int) -> list[int]:
        effects = peer.on_command(Publish(TOPIC, b"%d" % number))
        sends = [it for it in effects if isinstance(it, Send)]
        return [it.target for it in sends if isinstance(it.message, Arc)]

    assert busy in arcs(1)
    peer.on_command(Busy(busy))
    assert busy not in arcs(2)
    digest = peer_of(lab, busy).topics[TOPIC].history.digest()
    assert peer.topics[TOPIC].history.on_digest(busy, digest) == []
    peer.on_command(Ready(busy))
    assert busy in arcs(3)
    assert peer.topics[TOPIC].history.on_digest(busy, digest) != []


def test_a_neighbour_whose_link_was_full_is_shown_at_once_what_there_is() -> None:
    """What did not fit is not sent again: it would wait for the next timeout to ask for it."""
    lab = RingLab.legitimate(8)
    peer, one = peer_of(lab), lab.member(0)
    beside, far = one.ring[0], next(it for it in one.neighbours() if it not in one.ring)
    assert not peer.on_command(Ready(beside[1])), "it was not full"
    for full in (beside, far):
        peer.on_command(Busy(full[1]))
    assert not peer.on_command(Ready(beside[1])), "nothing was exchanged: it lacks nothing here"
    peers = peer.topics[TOPIC].history.antientropy.peers
    peers |= {beside[1]: (0, 0), far[1]: (0, 0)}
    peer.on_command(Busy(beside[1]))
    me, digest = (one.label, one.id), peer.topics[TOPIC].history.digest()
    shown = Greeting(TOPIC, me, beside[0], digest)  # type: ignore[arg-type]
    assert peer.on_command(Ready(beside[1])) == [Send(beside[1], shown)]
    assert not peer.on_command(Ready(far[1])), "only ring neighbours are greeted"
    peer.topics[TOPIC].history.antientropy.crossing[beside[1]] = False
    peer.on_command(Busy(beside[1]))
    (sent,) = peer.on_command(Ready(beside[1]))
    assert isinstance(sent, Send)
    assert isinstance(sent.message, Estimate), "it would let a digest go"
    assert not peer.topics[TOPIC].history.antientropy.crossing
    peer.on_command(Busy(beside[1]))
    one.label = None
    assert not peer.on_command(Ready(beside[1])), "and only by members"


def test_a_clock_reaches_every_topic() -> None:
    peer = Peer(1, RingOverlay().supervisors, Random(1))
    for topic in ("a", "b"):
        peer.on_command(Subscribe(topic))
    peer.on_command(Clock(77))
    assert [one.history.horizon.seconds for one in peer.topics.values()] == [77, 77]
