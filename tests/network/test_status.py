"""The status of a node, of states made by hand: what it knows of itself, and what it shows."""

from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from planaria.core.node import Clock, Publish, Subscribe
from planaria.network import introspection
from planaria.network.contacts import Contact
from planaria.network.doubts import member_doubts, supervisor_doubts
from planaria.network.gate.clients import CLIENTS_SHOWN, NAMES_MAX, SHOWN_MAX, TEXT_MAX
from planaria.network.identity import handle_of
from planaria.network.introspection import NUMBER_MAX, settled
from planaria.network.status import ClientStatus, FollowedStatus, PublishedStatus, Status
from planaria.network.store.database import Database
from planaria.protocols.ring.sorted_ring import SortedRing
from planaria.protocols.skipring.labels import position
from planaria.protocols.skipring.membership import Membership
from planaria.records.index import Index
from planaria.records.record import RECORD_KEY_BITS
from planaria.records.window import Window
from watched import Watched, ring_node

NOW = 1_700_000_000


def alone(topic: str = "news") -> Watched:
    """A node that is the one member of a topic and serves it itself."""
    id = bytes(8) + bytes(8)
    found = Watched(ring_node(handle_of(id), (handle_of(id),), supervise=True), id, "n0")
    found.ring.peer.on_command(Subscribe(topic))
    one = found.ring.peer.topics[topic].subscriber
    one.label = 0
    one.inquiry.calm()
    assert found.ring.supervisor is not None
    served = found.ring.supervisor.serve(topic)
    assert served is not None
    served.database.insert(0)
    return found


def news(node: Watched) -> Membership:
    return node.ring.peer.topics["news"]


def test_a_member_that_knows_of_nothing_wrong_is_legitimate() -> None:
    node = alone()
    status = node.monitor.status()
    assert status.legitimate
    its = status.topics["news"]
    assert (its.member, its.label, its.served, its.members, its.doubts) == (True, 0, True, 1, [])
    assert (status.totals.topics, status.totals.doubtful) == (1, 0)
    assert json.decode(json.encode(status), type=Status) == status


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("label", "not a member yet"),
        ("alarm", "saw a contradiction"),
        ("leaving", "has not been let go"),
        ("missing", "misses 1 ring neighbours"),
        ("waiting", "has waited for its supervisor's answer for 20 intervals"),
        ("orphan", "no supervisor answers"),
        ("exchange", "holds other publications than 1 of its neighbours"),
    ],
)
def test_each_doubt_is_told(wrong: str, said: str) -> None:
    node = alone()
    membership = news(node)
    one = membership.subscriber
    if wrong == "label":
        one.label = None
    elif wrong == "alarm":
        one.inquiry.alarm(1)
    elif wrong == "leaving":
        one.leaving = True
    elif wrong == "missing":
        one.missing = [7]
    elif wrong == "waiting":
        one.inquiry.waiting = 20
    elif wrong == "orphan":
        one.orphan = SortedRing("news", one.id, 0, position)
    else:
        other = alone()
        other.ring.peer.on_command(Clock(NOW))
        other.ring.peer.on_command(Publish("news", b"more"))
        other.ring.peer.on_command(Clock(NOW + 100))
        membership.history.on_digest(9, news(other).history.digest())
        membership.history.antientropy.on_timeout()
    assert any(said in doubt for doubt in member_doubts(membership))
    status = node.monitor.status()
    assert not status.legitimate
    assert status.doubts[0].startswith("news: ")
    assert status.topics["news"].doubts


def test_a_supervisor_doubts_whom_others_miss_and_whom_it_has_yet_to_tell() -> None:
    node = alone()
    assert node.ring.supervisor is not None
    served = node.ring.supervisor.topics["news"]
    assert not [*supervisor_doubts(served)]
    served.suspects[0] = 3
    served.outbox[0] = False
    said = [*supervisor_doubts(served)]
    assert "sign of life of 1 members" in said[0]
    assert "yet to tell 1 members" in said[1]
    assert not node.monitor.status().legitimate


def test_evidence_is_as_old_as_the_last_word_of_the_neighbour_silent_for_longest() -> None:
    node = alone()
    one, monitor = news(node).subscriber, node.monitor
    one.inquiry.version_age = 5
    assert monitor.evidence.age("news", news(node)) == 5  # it has no neighbour
    one.pred, one.succ = (1, 7), (1, 8)
    for silence in ((0, -120), (1, -119), (2, -118), (-8, -117)):
        one.silence = silence
        monitor.tick()
    assert monitor.evidence.age("news", news(node)) == 3
    assert monitor.status().evidence_age == pytest.approx(0.3)
    assert monitor.stability().evidence_age >= 0.3
    one.silence = (-7, -120)
    monitor.tick()
    assert monitor.evidence.age("news", news(node)) == 1
    one.pred = None
    assert monitor.evidence.age("news", news(node)) == 0


def test_what_a_fault_left_in_memory_never_breaks_the_status() -> None:
    node = alone()
    membership = news(node)
    membership.subscriber.label = 1 << 80
    membership.subscriber.silence = (-5, 1 << 70)
    membership.subscriber.pred = (1, 7)
    membership.history.holdings.store.index.publications = -(1 << 90)
    membership.history.holdings.store.index.bytes = 1 << 90
    membership.history.horizon.now = 1 << 99
    membership.subscriber.inquiry.contact = 1 << 70
    status = json.decode(json.encode(node.monitor.status()), type=Status)
    assert status.topics["news"].label == NUMBER_MAX
    assert status.topics["news"].bytes == NUMBER_MAX


def test_a_status_fits_a_frame_and_shows_doubtful_topics_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(introspection, "TOPICS_SHOWN", 3)
    monkeypatch.setattr(introspection, "CONTACTS_SHOWN", 2)
    node = alone("z")
    for name in ("a", "b", "c"):
        node.ring.peer.on_command(Subscribe(name))
        one = node.ring.peer.topics[name].subscriber
        one.label = 0
        one.inquiry.calm()
    node.ring.peer.topics["z"].subscriber.inquiry.alarm(1)
    for number in range(5):
        node.host.contacts.learn(Contact(bytes([number]) * 16, ("127.0.0.1:1",), 0))
    status = node.monitor.status()
    assert list(status.topics) == ["a", "b", "z"]
    assert (status.totals.topics, status.totals.doubtful) == (4, 1)
    assert [it.id for it in status.contacts] == ["03" * 16, "04" * 16]
    assert status.contacts_total == 5


def test_a_full_status_is_smaller_than_a_frame() -> None:
    node = alone()
    for number in range(2000):
        node.ring.peer.on_command(Subscribe(f"a/rather/long/name/of/a/topic/{number}"))
        node.host.contacts.learn(
            Contact(number.to_bytes(16, "big"), ("127.127.127.127:65535",) * 2, 0)
        )
    long = FollowedStatus("é" * (NAMES_MAX // 2 // SHOWN_MAX), "content", "é" * TEXT_MAX)
    put = PublishedStatus(long.pattern, f"{1 << 63}/{'00' * 12}", "content", 1 << 53)
    client = ClientStatus("0" * 32, "é" * TEXT_MAX, "127.127.127.127:65535", 1e9, 1 << 40, 1 << 40)
    client = replace(client, follows=[long] * SHOWN_MAX, publishes=[put] * SHOWN_MAX)
    status = replace(node.monitor.status(), connected=[client] * CLIENTS_SHOWN)
    assert len(json.encode(status)) < 1 << 20


def filled(times: list[int], window: Window | None = None) -> Index:
    """The index of a node that publishes once in each of these seconds."""
    node = alone()
    peer = node.ring.peer
    for time in times:
        peer.on_command(Clock(time))
        peer.on_command(Publish("news", b"%d" % time))
    store = news(node).history.holdings.store
    if window is not None:
        store.show(window)
    return store.index


def test_the_settled_past_leaves_out_what_is_on_its_way() -> None:
    index = filled([NOW, NOW + 1, NOW + 90, NOW + 99])
    late = {one.cut: one for one in settled(index, NOW + 100)}
    assert len(late) == 2
    assert all(one.records == 2 and one.since == 0 for one in late.values())
    assert all(one.cut % 16 == 0 and 16 < NOW + 100 - one.cut <= 48 for one in late.values())
    fewer = filled([NOW, NOW + 1, NOW + 90])
    assert {one.records for one in settled(fewer, NOW + 100)} == {2}


def test_two_looks_a_few_seconds_apart_have_a_settled_part_in_common() -> None:
    index = filled([NOW, NOW + 1])
    for second in range(100, 120):
        now = {one.cut: one.digest for one in settled(index, NOW + second)}
        then = {one.cut: one.digest for one in settled(index, NOW + second + 10)}
        common = now.keys() & then.keys()
        assert common
        assert all(now[cut] == then[cut] for cut in common)


def test_the_settled_digest_is_the_sum_of_the_keys_before_the_cut() -> None:
    index = filled([NOW, NOW + 1, NOW + 99])
    for part in settled(index, NOW + 100):
        keys = [it & (1 << 128) - 1 for it in index.order if it >> RECORD_KEY_BITS < part.cut]
        assert part.digest == f"{sum(keys) % (1 << 128) >> 64:016x}"
        assert part.records == len(keys)


def test_a_window_that_counts_begins_at_its_oldest_publication() -> None:
    index = filled([NOW, NOW + 5, NOW + 7], Window(0, 2))
    assert {one.since for one in settled(index, NOW + 100)} == {NOW + 5}


def test_bytes_of_a_topic_are_those_of_its_records() -> None:
    index = filled([NOW, NOW + 5, NOW + 7])
    assert index.bytes == sum(entry.size for entry in index.shown.values()) > 0
    before = index.bytes
    index.show(Window(NOW + 6))
    assert index.bytes == sum(entry.size for entry in index.shown.values()) < before
    index.sort()
    assert index.bytes == sum(entry.size for entry in index.shown.values())


def test_the_store_is_shown_with_what_keeps_it_from_writing(tmp_path: Path) -> None:
    node = alone()
    with Database(tmp_path / "store", lambda _: None) as database:
        node.database = database
        store = node.monitor.status().store
        assert store is not None
        assert (store.stalled, store.damaged) == (None, False)
        assert store.bytes > 0
        assert database.writer is not None
        database.writer.stalled = OSError("disk full")
        status = node.monitor.status()
        database.writer.stalled = None
        assert status.doubts == ["the store cannot write: disk full"]
        assert status.store is not None
        assert status.store.stalled == "disk full"
