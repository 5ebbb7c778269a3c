"""Which frames of an answer came is remembered by value: bytes in between change nothing."""

from collections import deque
from collections.abc import Sequence

import pytest

from antientropy_lab import ALL, TOPIC, Channel, held, peer, record
from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.core.state import decode_state
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import Digest, Push
from planaria.protocols.publications.bound import intervals_to_agree
from planaria.protocols.publications.exchange import (
    COMING_MAX,
    NUMBER_MAX,
    AntiEntropyState,
    Coming,
    Exchange,
    count_frame,
)
from planaria.protocols.publications.holdings import BODIES_MAX, Holdings
from planaria.protocols.publications.push import (
    FRAMING_BYTES,
    PUSH_BYTES_MAX,
    PUSH_FRAMES_MAX,
    frames,
)
from planaria.protocols.skipring.arbitrary_history import corrupt_coming
from planaria.records.lanes import Entry
from planaria.records.memory import MemoryStore
from planaria.records.record import TIME_MAX, Record

ANSWER = PUSH_FRAMES_MAX * 4  # records


def backlog(id: int, count: int) -> AntiEntropy:
    """One that holds so many records of a quarter of a frame."""
    one = peer(id, [])
    one.holdings.append([record(it, size=PUSH_BYTES_MAX // 4 - 200) for it in range(count)])
    return one


class ThroughBytes(Channel):
    """After every message each peer is replaced by what its bytes say."""

    def send(self, effects: list[Effect]) -> None:
        super().send(effects)
        self.peers = {id: reborn(one) for id, one in self.peers.items()}


def reborn(one: AntiEntropy) -> AntiEntropy:
    fresh = AntiEntropy(one.topic, one.id, one.holdings)
    fresh.load(decode_state(AntiEntropyState, one.snapshot()))
    return fresh


def exchanged(kind: type[Channel], *, descend: bool) -> list[str]:
    """All that is said after one digest of who holds two answers and a little more."""
    one, two = backlog(1, 2 * ANSWER + 3), peer(2, [])
    if descend:
        two._doubt(1)
    channel = kind(one, two)
    channel.send(two.on_digest(1, one.digest(0, ALL)))
    channel.run()
    assert held(one) == held(two)
    return channel.tags


@pytest.mark.parametrize("descend", [False, True])
def test_replaced_by_their_bytes_peers_go_on_identically_in_a_long_answer(descend: bool) -> None:
    said = exchanged(Channel, descend=descend)
    assert said.count("publications.push") > PUSH_FRAMES_MAX
    assert exchanged(ThroughBytes, descend=descend) == said


@pytest.mark.parametrize("size", [10, PUSH_BYTES_MAX // 4 - 200, PUSH_BYTES_MAX + 1])
def test_no_more_is_read_than_an_answer_and_a_frame_more(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer to a newcomer reads anew what it has no room for: two thirds of all, once."""
    store, read = MemoryStore(), list[int]()
    holdings = Holdings(store)
    holdings.append([record(number, size=size) for number in range(6 * ANSWER)])
    load = store._load

    def counted(entries: Sequence[Entry]) -> list[Record | None]:
        read.append(len(entries))
        return load(entries)

    monkeypatch.setattr(store, "_load", counted)
    pushed = sum(map(len, frames(holdings.bodies(holdings.places(0, ALL)))))
    assert pushed <= sum(read) <= pushed + max(read)
    assert max(read) <= max(1, min(BODIES_MAX, PUSH_BYTES_MAX // size))


def frame(number: int) -> Push:
    return Push(TOPIC, 2, number, [b"said"], [])


def test_frames_are_counted_after_their_exchange_is_over() -> None:
    coming: dict[int, Coming] = {}
    open_still: Exchange | None = Exchange(4, 0, 9, True)
    for _ in range(PUSH_FRAMES_MAX - 1):
        assert count_frame(coming, frame(4), open_still, [], 0) is None
        open_still = None
    cut = count_frame(coming, frame(4), None, [], 0)
    assert cut is not None
    assert (cut.lo, cut.cut) == (0, 9)
    assert count_frame(coming, frame(4), None, [], 0) is None
    assert count_frame(coming, frame(5), None, [], 0) is None


@pytest.mark.parametrize(
    "other", [Exchange(4, 0, 9, False), Exchange(4, 1, 9, True), Exchange(4, 0, 8, True)]
)
def test_an_exchange_of_the_same_number_has_frames_of_its_own(other: Exchange) -> None:
    coming: dict[int, Coming] = {}
    for _ in range(PUSH_FRAMES_MAX - 1):
        assert count_frame(coming, frame(4), Exchange(4, 0, 9, True), [], 0) is None
    for _ in range(PUSH_FRAMES_MAX - 1):
        assert count_frame(coming, frame(4), other, [], 0) is None
    assert count_frame(coming, frame(4), other, [], 0) is not None


@pytest.mark.parametrize(
    "false",
    [
        Coming(4, -1, 9, True, 6),
        Coming(4, 0, TIME_MAX + 1, True, 6),
        Coming(4, 0, 9, True, -1),
        Coming(4, 0, 9, True, -(1 << 100)),
        Coming(4, 0, 9, True, 1 << 100),
    ],
)
def test_a_false_count_begins_no_exchange_and_is_forgotten_with_the_next(false: Coming) -> None:
    coming = {2: false}
    assert count_frame(coming, frame(4), None, [], 0) is None
    assert all(0 < it.frames <= PUSH_FRAMES_MAX + 1 for it in coming.values())
    for _ in range(PUSH_FRAMES_MAX - 1):
        assert count_frame(coming, frame(5), Exchange(5, 0, 9, True), [], 0) is None
    assert count_frame(coming, frame(5), Exchange(5, 0, 9, True), [], 0) is not None


def test_frames_of_a_bounded_number_of_peers_are_counted() -> None:
    one = peer(1, [])
    for sender in range(2, COMING_MAX + 9):
        push = Push(TOPIC, sender, 4, [b"said"], [])
        count_frame(one.coming, push, Exchange(4, 0, 9, True), [], 0)
    assert list(one.coming) == list(range(9, COMING_MAX + 9))
    one.coming = {it: Coming(4, 0, 9, True) for it in range(COMING_MAX + 5)}
    one.on_timeout()
    assert list(one.coming) == list(range(5, COMING_MAX + 5))


def test_arbitrary_counts_are_of_every_kind() -> None:
    rng, drawn = stream(1, "coming"), list[Coming]()
    sizes, passed = set[int](), set[bool]()
    for _ in range(400):
        one = peer(1, [])
        one.exchanges[2] = Exchange(4, 0, 9, True)
        corrupt_coming(one, range(5), rng)
        drawn += one.coming.values()
        sizes.add(len(one.coming))
        passed.update(one.crossing.values())
    assert max(sizes) > COMING_MAX
    assert {-1, 0, 1, PUSH_FRAMES_MAX - 1, PUSH_FRAMES_MAX} <= {it.frames for it in drawn}
    assert any(it.counts(Exchange(4, 0, 9, True)) for it in drawn)
    assert any(not it.sound for it in drawn)
    assert any(it.want for it in drawn)
    assert {bool(it.held) for it in drawn} == {False, True}
    assert passed == {False, True}
    assert max(it.number for it in drawn) > NUMBER_MAX


def agreed_after(one: AntiEntropy, two: AntiEntropy, delay: float, limit: int) -> int | None:
    """Intervals until both hold the same, if every message and digest takes `delay` of them."""
    both, due = {one.id: one, two.id: two}, deque[tuple[float, NodeId, Message | Digest, NodeId]]()
    for now in range(limit):
        while due and due[0][0] <= now:
            at, target, word, sender = due.popleft()
            if isinstance(word, Digest):
                sent = both[target].on_digest(sender, word)
            else:
                sent = both[target].on_message(word)
            due += [(at + delay, it.target, it.message, target) for it in sent if type(it) is Send]
        if held(one) == held(two):
            return now
        for each, other in ((one, two), (two, one)):
            each.on_timeout()
            due.append((now + delay, other.id, each.digest(0, ALL), each.id))
    return None


@pytest.mark.parametrize(
    ("count", "size"), [(200, PUSH_BYTES_MAX // 4 - 200), (60, PUSH_BYTES_MAX // 2)]
)
def test_what_does_not_fit_one_answer_takes_another_exchange_for_each_part(
    count: int, size: int
) -> None:
    """Frames are nearly full, or hold one record that is a little more than half of one."""
    full, delay = peer(1, []), 4.5
    records = [record(number, size=size) for number in range(count)]
    full.holdings.append(records)
    missing = sum(len(it.data) + FRAMING_BYTES for it in records)
    took = agreed_after(full, peer(2, []), delay, 2000)
    assert took is not None
    assert intervals_to_agree(2, delay) < took <= intervals_to_agree(2, delay, missing)
