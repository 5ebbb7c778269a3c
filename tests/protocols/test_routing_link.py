"""Acknowledged links against a naive twin: whatever a channel does, each arrives once, in order."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.core.chance import any_integer, stream
from planaria.protocols.routing.link import (
    EARLY_AGE_MAX,
    RESEND_AFTER,
    RESEND_MAX,
    TRIES_MAX,
    UNKNOWN,
    WINDOW,
    WINDOW_BYTES,
    Early,
    Link,
    Sending,
)
from planaria.protocols.routing.messages import ACKNOWLEDGED_MAX, ID_BYTES, SESSIONS
from planaria.protocols.routing.notifications import Notification

PATIENCE = 2 * RESEND_MAX + 4  # timeouts after which an honest channel has brought everything


def name(number: int) -> bytes:
    return number.to_bytes(ID_BYTES, "big")


class Wire:
    """Two ends with what their owners would do, over a channel that a test may abuse.

    The twin of all this is a list: `handled` must be what was offered, in that order.
    """

    def __init__(self) -> None:
        self.sender, self.receiver = Link(1), Link(2)
        self.sender.theirs, self.receiver.theirs = 2, 1
        self.kept: dict[bytes, Notification] = {}  # what the sender's owner can still send
        self.known: dict[bytes, None] = {}
        self.handled: list[bytes] = []
        self.flight: list[tuple[Notification, bytes]] = []
        self.acknowledgements: list[tuple[int, tuple[bytes, ...]]] = []
        self.offered = 0
        self.copies = 0

    def offer(self) -> None:
        id = name(self.offered)
        self.offered += 1
        self.kept[id] = Notification(id, {})
        self.sender.offer(id)
        self.send()

    def send(self) -> None:
        for id, after in self.sender.due():
            if id in self.kept:
                self.flight.append((self.kept[id], after))
                self.copies += 1

    def arrive(self, place: int, *, again: bool = False) -> None:
        body, after = self.flight[place] if again else self.flight.pop(place)
        if body.id in self.known:
            self.receiver.got(body.id)
        elif self.receiver.takes(body, after, self.known.__contains__):
            self.handle(body)
            for early in self.receiver.ready(self.known.__contains__):
                self.handle(early)

    def handle(self, body: Notification) -> None:
        if body.id not in self.known:
            self.handled.append(body.id)
            self.known[body.id] = None
        self.receiver.got(body.id)

    def answer(self, place: int, *, again: bool = False) -> None:
        said = self.acknowledgements
        session, ids = said[place] if again else said.pop(place)
        if session == self.sender.theirs:
            self.sender.acknowledge(ids)
            self.send()

    def timeout(self) -> None:
        for end in (self.sender, self.receiver):
            end.repair()
            end.repair_queue()
        self.sender.tick()
        self.receiver.tick()
        self.sender.give_up([id for id in self.sender.underway() if id not in self.kept])
        self.send()
        ids, _ = self.receiver.acknowledgements()
        if ids:
            self.acknowledgements.append((self.receiver.session, ids))

    def restart_receiver(self) -> None:
        """It forgets all, comes up with another session, and says so."""
        self.receiver = Link(self.receiver.session + 1)
        self.known, self.handled = {}, []
        self.sender.begin_anew(self.receiver.session)
        for id in self.kept:
            self.sender.offer(id)

    def settle(self) -> None:
        """From now on the channel is honest, but as slow as a link may be."""
        for _ in range(PATIENCE):
            self.timeout()
            while self.flight:
                self.arrive(0)
            while self.acknowledgements:
                self.answer(0)


STEPS = ("offer", "offer", "timeout", "arrive", "arrive", "answer", "lose", "lose answer", "repeat")


def abuse(wire: Wire, step: str, draw: Callable[[int], int]) -> None:
    """One thing that an application or a channel does; `draw(n)` picks one of n."""
    if step == "offer":
        wire.offer()
    elif step == "timeout":
        wire.timeout()
    elif step in ("arrive", "lose", "repeat") and wire.flight:
        place = draw(len(wire.flight))
        if step == "lose":
            wire.flight.pop(place)
        else:
            wire.arrive(place, again=step == "repeat")
    elif step in ("answer", "lose answer") and wire.acknowledgements:
        place = draw(len(wire.acknowledgements))
        if step == "answer":
            wire.answer(place, again=draw(2) == 0)
        else:
            wire.acknowledgements.pop(place)


@given(st.lists(st.sampled_from(STEPS), max_size=120), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_each_arrives_once_and_in_order_whatever_the_channel_loses_repeats_and_reorders(
    steps: list[str], rng: Random
) -> None:
    wire = Wire()
    for step in steps:
        abuse(wire, step, rng.randrange)
        assert wire.handled == [name(it) for it in range(len(wire.handled))]
    wire.settle()
    assert wire.handled == [name(it) for it in range(wire.offered)]
    assert (wire.sender.outgoing, wire.receiver.early) == ({}, {})


@given(
    st.lists(st.sampled_from((*STEPS, "restart")), max_size=120), st.randoms(use_true_random=False)
)
@settings(max_examples=200)
def test_a_neighbour_that_restarts_gets_all_again_and_no_stale_acknowledgement_counts(
    steps: list[str], rng: Random
) -> None:
    wire = Wire()
    for step in steps:
        if step == "restart":
            wire.restart_receiver()
        else:
            abuse(wire, step, rng.randrange)
    wire.settle()
    assert sorted(wire.handled) == [name(it) for it in range(wire.offered)]
    assert len(set(wire.handled)) == len(wire.handled)
    assert wire.sender.outgoing == {}


def corrupt(link: Link, ids: list[bytes], rng: Random) -> None:
    """Any queue, any window, any sessions, anything that came early or is to be acknowledged."""

    def some() -> list[bytes]:
        return rng.sample(ids, rng.randrange(len(ids)))

    link.session, link.theirs = any_integer(rng, SESSIONS), any_integer(rng, UNKNOWN)
    link.outgoing = {id: Sending(any_integer(rng, RESEND_MAX), any_integer(rng)) for id in some()}
    link.early = {
        id: Early(Notification(id, {}), rng.choice(ids), any_integer(rng, EARLY_AGE_MAX))
        for id in some()
    }
    link.received, link.stamps = some(), [any_integer(rng) for _ in range(3)]


@pytest.mark.parametrize("end", ["sender", "receiver", "both"])
def test_from_any_two_states_a_link_heals_and_then_loses_doubles_and_swaps_nothing(
    end: str, seeds: Callable[[int, int], int]
) -> None:
    for seed in range(seeds(60, 3_000)):
        rng = stream(seed, "link", end)
        wire = Wire()
        for _ in range(rng.randrange(8)):
            wire.offer()
        junk = [rng.randbytes(ID_BYTES), rng.randbytes(ID_BYTES), b"", b"long" * 9]
        for link in (wire.sender, wire.receiver):
            if end in ("both", "sender" if link is wire.sender else "receiver"):
                corrupt(link, [*wire.kept, *junk], rng)
        wire.receiver.repair()
        wire.sender.theirs = wire.receiver.session  # as the next update says
        wire.settle()
        assert wire.sender.outgoing == {}
        assert wire.receiver.early == {}
        before, healed = len(wire.handled), wire.offered
        for step in rng.choices(STEPS, k=60):
            abuse(wire, step, rng.randrange)
        wire.settle()
        after = [name(it) for it in range(healed, wire.offered)]
        assert wire.handled[before:] == after, seed


def test_no_more_than_a_window_is_on_its_way_and_the_rest_follows_its_acknowledgements() -> None:
    wire = Wire()
    for _ in range(WINDOW + 10):
        wire.offer()
    assert len(wire.flight) == WINDOW
    wire.arrive(0)
    wire.timeout()
    wire.answer(0)
    assert len(wire.flight) == WINDOW  # one came, one more went out
    wire.settle()
    assert len(wire.handled) == WINDOW + 10


@pytest.mark.parametrize(("size", "most"), [(WINDOW_BYTES // 4, 4), (WINDOW_BYTES // 4 + 1, 3)])
def test_no_more_bytes_than_a_link_holds_are_on_their_way(size: int, most: int) -> None:
    link = Link(1)
    for number in range(9):
        link.offer(name(number), size=size)
    assert [id for id, _ in link.due()] == [name(number) for number in range(most)]
    assert link.due() == []
    link.acknowledge([name(0), name(1)])
    assert [id for id, _ in link.due()] == [name(most), name(most + 1)]


@pytest.mark.parametrize(("size", "most"), [(1 << 70, 1), (-(1 << 70), 2)])
def test_a_size_that_a_fault_made_opens_no_window_and_one_always_goes(size: int, most: int) -> None:
    link = Link(1)
    for number in range(4):
        link.offer(name(number), size=WINDOW_BYTES if number else size)
    link.repair_queue()
    assert [id for id, _ in link.due()] == [name(number) for number in range(most)]


def test_what_is_larger_than_the_window_goes_alone_and_at_once() -> None:
    """As a record does with a payload of a mebibyte."""
    link = Link(1)
    for number, size in enumerate((WINDOW_BYTES + 1, 1)):
        link.offer(name(number), size=size)
    assert [id for id, _ in link.due()] == [name(0)]
    link.acknowledge([name(0)])
    assert [id for id, _ in link.due()] == [name(1)]


@pytest.mark.parametrize("tries", [-1, TRIES_MAX + 1, 1 << 70])
def test_a_count_that_a_fault_made_is_none_before_it_is_repaired(tries: int) -> None:
    link = Link(1)
    link.offer(name(0))
    link.outgoing[name(0)].tries = tries
    assert link.due() == [(name(0), b"")]
    assert (link.outgoing[name(0)].tries, link.outgoing[name(0)].wait) == (1, RESEND_AFTER)


def test_an_id_that_a_fault_made_is_neither_sent_nor_named() -> None:
    link = Link(1)
    for id in (name(0), b"long" * 9, name(1)):
        link.offer(id)
    assert link.due() == [(name(0), b""), (name(1), name(0))]


def test_what_is_not_acknowledged_is_sent_again_ever_more_rarely() -> None:
    wire, sent = Wire(), []
    wire.offer()
    for timeout in range(1, 60):
        before = wire.copies
        wire.timeout()
        sent += [timeout] * (wire.copies - before)
    gaps = [later - first for first, later in zip([0, *sent], sent, strict=False)]
    assert gaps == [RESEND_AFTER, 2 * RESEND_AFTER, RESEND_MAX, RESEND_MAX]


def test_what_follows_one_that_was_given_up_is_sent_again_at_once_and_taken() -> None:
    """Waiting for its turn it would itself become too old, and so would all that follow."""
    wire = Wire()
    for _ in range(4):
        wire.offer()
    wire.flight.pop(0)
    for _ in range(3):
        wire.arrive(0)
    assert wire.handled == []
    del wire.kept[name(0)], wire.kept[name(2)]
    wire.timeout()
    assert [(body.id, after) for body, after in wire.flight] == [
        (name(1), b""),
        (name(3), name(1)),
    ]
    wire.arrive(0)
    assert wire.handled == [name(1), name(2), name(3)]  # it had come before it was given up
    assert wire.sender.give_up([name(3)]) == [""]


def test_what_came_early_is_kept_within_bounds_of_room_and_time() -> None:
    link = Link(0)
    for number in range(2 * WINDOW):
        assert not link.takes(Notification(name(number), {}), b"never comes", lambda _: False)
    assert len(link.early) == WINDOW
    for _ in range(EARLY_AGE_MAX):
        link.tick()
    assert len(link.early) == WINDOW
    link.tick()
    assert link.early == {}
    for number in range(2 * ACKNOWLEDGED_MAX):
        link.got(name(number))
        link.heard(number)
    assert [len(it) for it in link.acknowledgements()] == [ACKNOWLEDGED_MAX] * 2


def test_what_waited_is_as_old_as_it_is_when_its_turn_comes() -> None:
    link = Link(0)
    link.takes(Notification(name(2), {}, age=5), name(1), lambda _: False)
    for _ in range(3):
        link.tick()
    assert [it.age for it in link.ready(lambda _: True)] == [8]
