"""Clients in the overlays beside `ring`: what waits for a verdict, for others, and for how long."""

import pytest

from others_lab import OthersLab, heard, passed
from planaria.network.client.messages import Told
from planaria.network.gate import followers


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
