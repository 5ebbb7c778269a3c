"""What a client publishes on a topic is taken in its order, whatever a node refuses meanwhile."""

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from others_lab import OthersLab, charters, heard
from planaria.core.node import Publish
from planaria.network.client.messages import Failed, Put, Stored
from planaria.network.gate import session as sessions
from planaria.network.gate import turns
from planaria.network.gate.gate import Gate
from planaria.network.gate.held import HELD_SECONDS, Held
from planaria.network.gate.laid import Overlays
from planaria.network.gate.requests import Requests
from planaria.network.gate.turns import TURN_SECONDS, Turns
from planaria.network.gate.warden import Warden
from planaria.records.record import decode


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def at(topic: str) -> tuple[str, str]:
    return ("content", topic)


def offered(it: Turns, *requests: int, topic: str = "news") -> list[bool]:
    return [it.begin(request, at(topic)) for request in requests]


def test_what_comes_after_something_refused_is_refused_until_that_is_offered_again() -> None:
    it = Turns(Clock())
    assert offered(it, 1, 2, 3) == [True] * 3
    it.end(1, refused=False)
    it.end(2, refused=True)
    assert not it.waits(2, at("news"))
    assert it.waits(3, at("news"))
    assert offered(it, 3, 4) == [False] * 2
    it.end(3, refused=True)
    it.end(4, refused=True)
    assert offered(it, 1, topic="other") == [True], "another topic has its own order"
    assert offered(it, 5, 2, 5, 4, 3, 4, 5) == [False, True, False, False, True, True, True]


def test_nobody_waits_for_ever_for_what_does_not_come_again() -> None:
    clock = Clock()
    it = Turns(clock)
    assert offered(it, 1)
    it.end(1, refused=True)
    clock.now = TURN_SECONDS / 2
    assert offered(it, 2) == [False]
    it.end(2, refused=True)
    clock.now = TURN_SECONDS
    assert offered(it, 2, 3) == [True, True]


def test_time_counts_from_when_the_first_of_them_came_again() -> None:
    clock = Clock()
    it = Turns(clock)
    assert offered(it, 1, 2) == [True, True]
    for request in (1, 2):
        it.end(request, refused=True)
    clock.now = TURN_SECONDS - 1
    assert offered(it, 1) == [True]
    it.end(1, refused=False)
    clock.now = TURN_SECONDS + 1
    assert offered(it, 3, 2, 3) == [False, True, True]


def test_what_is_answered_is_over() -> None:
    it = Turns(Clock())
    assert offered(it, 1) == [True]
    it.end(1, refused=False)
    it.end(1, refused=True)
    assert not it.waits(2, at("news"))


def test_what_cannot_be_published_at_all_holds_nothing_up() -> None:
    session = OthersLab().session()
    for request, code in (1, "usage"), (2, "full"):
        assert session.in_turn(Put(request, "news", b"."))
        session.fail(request, code, "why")
    assert not session.in_turn(Put(3, "news", b"."))


def test_what_a_client_is_remembered_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "REFUSED_MAX", 3)
    it = Turns(Clock())
    for request in range(5):
        it.begin(request, at(str(request)))
        it.end(request, refused=True)
        for _ in range(2):  # again and again, before its turn
            it.begin(request + 5, at(str(request)))
            it.end(request + 5, refused=request < 1)
    assert [it.waits(9, at(str(topic))) for topic in range(5)] == [True] * 2 + [False] * 3
    assert offered(it, 0, topic="0") == [True]
    it.begin(9, at("9"))
    it.end(9, refused=True)
    assert it.waits(10, at("9")), "there is room again"
    it.forget(9, at("9"))
    it.begin(11, at("11"))
    it.end(11, refused=True)
    assert it.waits(12, at("11")), "what is forgotten makes room too"


def test_a_client_that_offers_again_in_its_order_is_taken_in_its_order(
    seeds: Callable[[int, int], int],
) -> None:
    """Both directions keep their order and take any time; a node is full as often as it likes."""
    for seed in range(seeds(200, 10_000)):
        taken, refusals = _exchange(Random(seed))
        assert taken == sorted(taken), f"seed {seed}"
        assert refusals, "nothing was refused"


def _exchange(rng: Random) -> tuple[list[int], int]:
    """What a node takes of 30 publications, and how often it refused one."""
    it = Turns(Clock())
    unsent, up, down = deque(range(30)), deque[int](), deque[int]()
    taken: list[int] = []
    refusals = 0
    while len(taken) < 30:
        act = rng.randrange(3)
        if act == 0 and unsent:
            up.append(unsent.popleft())
        elif act == 1 and up:
            request = up.popleft()
            if it.begin(request, at("news")) and rng.random() < 0.5:
                taken.append(request)
                it.end(request, refused=False)
            else:
                it.end(request, refused=True)
                down.append(request)
                refusals += 1
        elif act == 2 and down:
            unsent = deque(sorted([*unsent, down.popleft()]))
    return taken, refusals


def test_a_node_asks_whether_it_is_a_publications_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PUT_BYTES_MAX", 300)
    lab = OthersLab()
    names = ("memberships", "publishing", "settling", "tails", "queries", "showing")
    overlays = Overlays(charters(everything=True), lambda _: None, lambda: lab.now)
    gate = SimpleNamespace(
        host=None, overlays=overlays, warden=Warden(overlays, None), others=lab.others,
        **dict.fromkeys(names),
    )  # fmt: skip
    requests, session = Requests(cast(Gate, gate), None), lab.session()

    def offer(request: int, size: int) -> None:
        record = lab.record(b"%d" % request * size)
        requests.handle(session, Put(request, "news", record.data, overlay="mobile"))

    session.put_bytes = 1
    for request, size in (1, 1), (2, 300), (3, 1):
        offer(request, size)
    assert [getattr(it, "code", "") for it in heard(session)] == ["", "full", "full"]
    session.put_bytes = 0
    for request in 3, 2, 3:
        offer(request, 1)
    assert [it.request for it in heard(session) if isinstance(it, Stored)] == [1, 2, 3]
    assert session.open == 0, "what was refused is answered"


def test_what_waited_for_its_way_behind_something_refused_is_refused_too() -> None:
    lab = OthersLab()
    session = lab.session()

    def offer(*requests: int) -> None:
        for it in requests:
            message = Put(it, "news", lab.record(b"%d" % it).data, overlay="gossip")
            assert session.in_turn(message)
            session.open += 1
            session.attempt(it, partial(lab.others.put, session, message, "gossip"))

    def pass_on() -> None:
        lab.now += HELD_SECONDS + 1
        lab.others.on_timeout()

    offer(1, 2)
    assert not heard(session), "nobody is known yet"
    lab.refused = 1
    pass_on()
    assert [(it.request, cast(Failed, it).code) for it in heard(session)] == [
        (1, "full"),
        (2, "full"),
    ]
    offer(1, 2)
    pass_on()
    found = [decode(it.payload) for it in lab.commands if isinstance(it, Publish)]
    assert [it.publications(0, 1)[0].payload for it in found] == [b"1", b"2"]
    assert session.open == 0


def test_what_waited_for_a_charter_behind_something_refused_is_refused_too() -> None:
    lab = OthersLab()
    session = lab.session()
    messages = [Put(it, "news", lab.record(b"x").data, overlay="mobile") for it in (1, 2)]
    for it in messages:
        assert session.in_turn(it)
    session.fail(1, "full", "the node has no room for it")
    session.attempt(2, partial(lab.others.put, session, messages[1], "mobile"))
    assert [cast(Failed, it).code for it in heard(session)] == ["full", "full"]


def test_what_found_no_room_for_long_is_refused_with_all_that_its_client_published_after_it() -> (
    None
):
    """It came again behind what had come later and still waited."""
    now, order = Clock(), list[int]()
    held = Held(now)
    one, other = OthersLab().session(), OthersLab().session()
    place = ("content", "news")

    def put(session: sessions.Session, *requests: int) -> None:
        for it in requests:
            message = Put(it, "news", b"x", overlay="content")
            if session.in_turn(message):
                session.open += 1
                held.add(place, session, message)

    put(one, 1, 2)
    now.now = HELD_SECONDS / 2
    put(other, 7)
    put(one, 3)
    now.now = HELD_SECONDS + 1
    late = [*held.overdue()]
    assert [(it is one, message.request) for it, message in late] == [
        (True, 1),
        (True, 2),
        (True, 3),
    ]
    assert (len(held), one.put_bytes, other.put_bytes) == (1, 0, 1)
    for session, message in late:
        session.fail(message.request, "full", "no room")
    put(one, 1, 2, 3)
    for _, session, message in held.due(lambda _: True, lambda _: True):
        session.check_turn(message)
        order.append(message.request)
    assert order == [7, 1, 2, 3]
    assert len(held) == 0


def test_rings_keep_no_turns() -> None:
    """What a ring refused stood in the way of all that followed while nobody knew of a charter."""
    session = OthersLab().session()
    first, second = Put(1, "news", b"x"), Put(2, "news", b"x")
    assert session.in_turn(first)
    session.fail(1, "full", "too few members")
    assert not session.in_turn(second)
    asked = list[Put]()
    gate = SimpleNamespace(
        **dict.fromkeys(("host", "memberships", "overlays", "warden", "settling", "tails")),
        queries=None, showing=None, others=None,
        publishing=SimpleNamespace(put=lambda _, message: asked.append(message)),
    )  # fmt: skip
    requests = Requests(cast(Gate, gate), None)
    requests.handle(session, first)
    session.fail(1, "full", "too few members")
    assert session.in_turn(second)
    assert asked == [first]


def test_a_topic_of_another_overlay_has_its_own_order() -> None:
    session = OthersLab().session()
    for request, overlay in (1, "mobile"), (2, "gossip"):
        assert session.in_turn(Put(request, "news", b"x", overlay=overlay))
        session.fail(request, "full", "no room")
