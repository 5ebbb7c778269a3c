"""Clients in the overlays beside `ring`: what waits for a verdict, for others, and for how long."""

import asyncio
from typing import cast

import pytest

from others_lab import OthersLab, heard, passed
from planaria.core.node import Publish, Subscribe, Unsubscribe
from planaria.network.client.messages import Failed, Put, Stored, Tail, Told
from planaria.network.connection import Connection
from planaria.network.gate import followers, held
from planaria.protocols.mobile.messages import RequestLinkDown, RequestLinkUp
from planaria.records.record import decode


def test_what_comes_before_a_verdict_waits_for_it_in_its_order() -> None:
    lab = OthersLab()
    session = lab.session()
    lab.follow(session, 1)
    lab.verdict = lambda topic: "" if topic == "known" else None
    lab.arrives("new", b"1")
    lab.arrives("bad", b"x")
    lab.arrives("known", b"at once")
    assert passed(session) == [("known", b"at once")]
    lab.verdict = lambda topic: "no right" if topic == "bad" else ""
    lab.arrives("new", b"2")
    assert passed(session)[1:] == [], "it does not overtake what came before it"
    lab.others.judge_anew()
    assert passed(session)[1:] == [("new", b"1"), ("new", b"2")]
    lab.arrives("new", b"3")
    assert passed(session)[3:] == [("new", b"3")]
    assert lab.others.statuses()["gossip"].lost == 0


def test_what_waits_for_a_verdict_is_bounded_and_what_is_lost_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = OthersLab()
    session = lab.session()
    lab.follow(session, 1, notices=True)
    lab.follow(session, 2)
    lab.verdict = lambda _: None
    monkeypatch.setattr(followers, "UNJUDGED_MAX", 4)
    for payload in (b"1", b"2", b"3"):
        lab.arrives("new", payload)
    lab.verdict = lambda _: ""
    lab.others.judge_anew()
    assert passed(session) == [("new", b"3"), *(("new", it) for it in (b"1", b"2", b"3"))]
    lab.others.on_timeout()
    assert [it for it in heard(session) if isinstance(it, Told)] == [
        Told(1, "", "gap", {"lost": 2})
    ]
    assert lab.others.statuses()["gossip"].lost == 2
    monkeypatch.setattr(followers, "UNJUDGED_BYTES_MAX", 1)
    lab.verdict = lambda _: None
    lab.arrives("new", b"4")
    assert lab.others.statuses()["gossip"].lost == 4


def test_a_tail_that_ended_gets_nothing_that_waited_for_a_verdict() -> None:
    lab = OthersLab()
    session = lab.session()
    lab.follow(session, 1)
    lab.verdict = lambda _: None
    lab.arrives("new", b"1")
    lab.others.stop(session, 1)
    lab.verdict = lambda _: ""
    lab.others.judge_anew()
    assert passed(session) == []


def test_what_waits_for_others_is_bounded_in_bytes_of_each_client_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = OthersLab()
    session, other = lab.session(), lab.session()
    monkeypatch.setattr(held, "HELD_BYTES_MAX", 3000)
    for request in (1, 2, 3):
        lab.put(session, request, "gossip", bytes(1000))
    (failure,) = heard(session)
    assert isinstance(failure, Failed)
    assert (failure.request, failure.code) == (3, "full")
    assert 2000 < session.put_bytes < 3000
    lab.others.gone(session)
    assert session.put_bytes == 0
    lab.put(other, 1, "gossip", bytes(2000))
    assert heard(other) == [], "there is room again"
    lab.now = held.HELD_SECONDS + 1
    lab.others.on_timeout()
    assert [type(it) for it in heard(other)] == [Stored]
    assert other.put_bytes == 0


@pytest.mark.parametrize(("verdict", "code"), [("no right", "usage"), (None, "elsewhere")])
def test_a_right_that_was_taken_while_a_publication_waited_counts(
    verdict: str | None, code: str
) -> None:
    lab = OthersLab()
    session = lab.session()
    lab.put(session, 1, "gossip", b"late")
    lab.commands.clear()
    lab.now, lab.verdict = held.HELD_SECONDS + 1, lambda _: verdict
    lab.others.on_timeout()
    (failure,) = heard(session)
    assert isinstance(failure, Failed)
    assert failure.code == code
    assert not [it for it in lab.commands if isinstance(it, Publish)]
    assert session.open == 0


def test_what_is_not_on_disk_is_not_acknowledged() -> None:
    lab = OthersLab()
    session = lab.session()
    lab.put(session, 1, "mobile", b"kept")
    lab.disk = "no space left"
    lab.put(session, 2, "mobile", b"not kept")
    first, second = heard(session)
    assert isinstance(first, Stored)
    assert isinstance(second, Failed)
    assert (second.code, second.reason) == (
        "full",
        "on its way, but not on the disk of this node: no space left",
    )


def test_a_client_that_goes_takes_its_own_tails_along_and_no_others() -> None:
    lab = OthersLab()
    one, other = lab.session(), lab.session()
    for session in (one, other):
        for request in (1, 2):
            lab.follow(session, request)
    lab.others.stop(one, 1)
    assert len(lab.others) == 3
    lab.others.gone(one)
    lab.arrives("news", b"x")
    assert passed(one) == []
    assert len(passed(other)) == 2
    lab.others.gone(other)
    assert len(lab.others) == 0


def test_what_was_published_before_a_part_was_full_is_not_published_again() -> None:
    lab = OthersLab()
    lab.node.wake("mobile")
    session = lab.session()
    message = Put(1, "news", lab.record(b"1", b"2", b"3", b"4").data, overlay="mobile")

    def payloads() -> list[bytes]:
        found = [decode(it.payload) for it in lab.commands if isinstance(it, Publish)]
        return [one.payload for it in found for one in it.publications(it.first, it.end)]

    lab.room = 2
    for _ in range(3):
        session.attempt(1, lambda: lab.others.put(session, message, "mobile"))
        lab.room += 1
    assert payloads() == [b"1", b"2", b"3", b"4"]
    assert [type(it) for it in heard(session)] == [Failed, Failed, Stored]
    session.attempt(1, lambda: lab.others.put(session, message, "mobile"))
    assert len(payloads()) == 4, "its answer was lost, perhaps"
    assert lab.others.statuses()["mobile"].published == 4


class Crowd:
    """A link that is full until it is told otherwise, for so long that rings do not wait for it."""

    crowded, behind = True, True


def test_what_links_have_no_room_for_waits_and_leaves_one_by_one() -> None:
    crowd = Crowd()
    lab = OthersLab(links=lambda: [cast(Connection, crowd)])
    session = lab.session()

    async def main() -> None:
        for request in (1, 2):
            lab.put(session, request, "mobile", b"%d" % request)
        assert heard(session) == []
        lab.others.on_timeout()
        assert heard(session) == [], "not before there is room"
        lab.full = lambda: setattr(crowd, "crowded", True)
        for count in (1, 2):
            crowd.crowded = False
            lab.others.on_timeout()
            assert [it.request for it in heard(session)] == [1, 2][:count]
        lab.others.close()

    asyncio.run(main())


def test_what_content_cannot_carry_is_refused_before_anything_of_its_record_is_published() -> None:
    lab = OthersLab()
    session = lab.session()
    lab.put(session, 1, "content", b"good", b'{"": 1}')
    (failure,) = heard(session)
    assert isinstance(failure, Failed)
    assert failure.code == "usage"
    assert not [it for it in lab.commands if isinstance(it, Publish)]
    lab.put(session, 2, "content", b"good", b'{"a": 1}')
    assert len([it for it in lab.commands if isinstance(it, Publish)]) == 2


CARRIED = (
    "64 topics are carried in this part of the network, by all nodes within reach: "
    "one is free 10 minutes after it was last used"
)


@pytest.mark.parametrize(
    ("overlay", "reason"),
    [("gossip", "64 topics: leave one first: ask another node"), ("mobile", CARRIED)],
)
def test_a_node_with_too_many_topics_sends_clients_to_others(overlay: str, reason: str) -> None:
    lab = OthersLab()
    lab.topics_full = True
    session = lab.session()
    lab.put(session, 1, overlay, b"x")
    tail = Tail(2, "more", {}, floor=1, overlay=overlay)
    session.open += 1
    session.attempt(2, lambda: lab.others.follow(session, tail, "more", overlay))
    for failed in heard(session):
        assert isinstance(failed, Failed)
        assert (failed.code, failed.reason) == ("elsewhere", f"{overlay}: {reason}")
    assert len(heard(session)) == 2
    assert (session.open, len(lab.others)) == (0, 0)
    lab.topics_full = False
    lab.put(session, 3, overlay, b"x")
    assert [it for it in lab.commands if isinstance(it, Subscribe)], "it looked joined"


def test_what_is_carried_for_neighbours_alone_is_left_with_them() -> None:
    lab = OthersLab()
    lab.node.wake("mobile")
    session = lab.session()
    lab.put(session, 1, "mobile", b"x")  # on "news"
    part = lab.others.part("mobile")
    for topic in ("news", "carried", "stays"):
        lab.node.on_message(RequestLinkUp(topic, 9, ()), 9)
    lab.others.on_timeout()
    for topic in ("news", "carried"):
        lab.node.on_message(RequestLinkDown(topic, 9), 9)
    lab.others.on_timeout()
    assert [it.pattern for it in lab.commands if isinstance(it, Unsubscribe)] == ["carried"]
    assert part.let_go() == set()
