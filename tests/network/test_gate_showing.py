"""What clients are shown: nothing of topics of which they may not hear, one page at a turn."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec import json

from others_lab import OthersLab, charters, heard, named
from planaria.core.errors import UsageError
from planaria.network.client.messages import AskState, AskStatus, StateIs, StatusIs, Tail, Told
from planaria.network.gate.cursors import Cursor
from planaria.network.gate.cursors import Tail as Followed
from planaria.network.gate.laid import Overlays
from planaria.network.gate.queries import Queries
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import Session
from planaria.network.gate.showing import Showing
from planaria.network.gate.showing import heard as heard_of
from planaria.network.gate.tails import Tails
from planaria.network.gate.warden import Warden
from planaria.network.rights import RightsFile
from planaria.network.status import (
    OverlayStatus,
    OverlayTopic,
    Shown,
    Status,
    StoreStatus,
    TopicStatus,
)
from planaria.protocols.skipring.charter import Allowed, Charter
from planaria.protocols.skipring.charters import LaidDown

RIGHTS = """
[[allow]]
who = ["alice"]
rights = ["subscribe"]
topics = ["open/#"]
[[allow]]
who = ["boss"]
rights = ["supervise"]
topics = ["#"]
"""


class Shop:
    """What shows one node's topics, `pages` of them, to clients with names."""

    def __init__(self, directory: Path) -> None:
        (directory / "rights.toml").write_text(RIGHTS)
        self.lab, self.turns = OthersLab(), list[Callable[[], None]]()
        self.overlays = Overlays(charters(2), lambda _: None, lambda: self.lab.now)
        self.warden = Warden(self.overlays, RightsFile(directory / "rights.toml"))
        memberships = cast(Memberships, SimpleNamespace(ring=None))
        clock = lambda: self.lab.now  # noqa: E731
        self.queries = Queries(memberships, clock, clock, 0.1, self.warden)
        self.showing = Showing(self.queries, self._page, clock, self.turns.append, self.warden)
        self.topics: list[str] = []

    def _page(self, after: str | None) -> Shown:
        names = sorted(it for it in self.topics if it > (after or ""))
        return Shown(dict.fromkeys(names[:1], TopicStatus()))

    def client(self, name: str) -> Session:
        return named(self.lab.session(), name)


def shown(session: Session) -> list[str]:
    found = [it for it in heard(session) if isinstance(it, StatusIs)]
    return [topic for it in found for topic in json.decode(it.status, type=Shown).topics]


def test_pages_without_anything_to_tell_take_a_turn_each(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.topics = ["a", "b", "open/1", "z"]
    session = shop.client("alice")
    shop.showing.ask_status(session, AskStatus(1, ""))
    for _ in range(2):
        assert heard(session) == []
        shop.turns.pop()()
    assert shown(session) == ["open/1"]
    shop.showing.ask_status(session, AskStatus(2, "open/1"))
    shop.turns.pop()()
    assert [it.request for it in heard(session)] == [1, 2]
    assert shown(session) == ["open/1"], "and there are no more"
    shop.showing.ask_status(session, AskStatus(3, ""))
    session.closed = True
    shop.turns.pop()()
    assert not shop.turns


def status(**fields: object) -> Status:
    nothing = dict.fromkeys(Status.__struct_fields__)
    return Status(**{**nothing, "store": None, "overlays": {}, **fields})  # type: ignore[arg-type]


def test_no_name_of_a_topic_stands_elsewhere_in_a_status(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    hears = lambda topic: shop.warden.may_hear(shop.client("alice"), topic)  # noqa: E731
    doubted = TopicStatus(doubts=["is odd"])
    groups = dict.fromkeys(("open/#", "pay/#", "#"), OverlayTopic())
    visible = heard_of(
        status(
            topics=dict.fromkeys(("open/a", "pay", "the store"), doubted),
            doubts=[
                "the store is read-only", "open/a: is odd", "pay: is odd", "the store: is odd",
                "gossip: pay/#: looks", "gossip: open/#: looks",
            ],
            store=StoreStatus("x", 0, 0, "read-only", False),
            overlays={
                "gossip": OverlayStatus(groups, doubts=["pay/#: looks", "open/#: looks", "late"]),
                "content": OverlayStatus({"x > 3": OverlayTopic()}),
            },
        ),
        hears,
    )  # fmt: skip
    assert isinstance(visible, Status)
    assert [*visible.topics] == ["open/a"]
    assert visible.doubts == ["the store is read-only", "open/a: is odd", "gossip: open/#: looks"]
    assert [*visible.overlays["gossip"].topics] == ["open/#"]
    assert visible.overlays["gossip"].doubts == ["open/#: looks", "late"]
    assert not visible.overlays["content"].topics


def test_a_look_into_another_overlay_needs_the_right_of_all_charters(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    boss = shop.client("boss")
    shop.lab.follow(shop.lab.session(), 1, "pay/#")
    shop.lab.wake("pay/#")
    asked = AskState(1, "", "gossip")
    with pytest.raises(UsageError, match="'alice' has no right to supervise on '#'"):
        shop.showing.ask_part(shop.client("alice"), asked, shop.lab.others)
    shop.showing.ask_part(boss, asked, shop.lab.others)
    assert heard(boss) == [], "nobody has said yet what is laid down"
    allow: Allowed = (("supervise", ("root",)),)
    shop.overlays.on_laid_down(LaidDown(("pay",), (Charter("pay", 1, 0, 1, allow=allow),)))
    shop.queries.on_timeout()
    assert "no right to supervise on 'pay' by its charter" in str(heard(boss))
    shop.overlays.on_laid_down(LaidDown(("pay",), (Charter("pay", 2, 1, 1),)))
    shop.warden.on_timeout()
    shop.showing.ask_part(boss, asked, shop.lab.others)
    answer = heard(boss)[-1]
    assert isinstance(answer, StateIs)
    assert answer.part is not None


def test_notices_name_no_topic_that_a_client_may_not_read(tmp_path: Path) -> None:
    lab = OthersLab()
    session = lab.session()
    lab.follow(session, 1, notices=True)
    lab.verdict = {"open": "", "pay": "no right"}.get
    for topic in ("open", "pay", "new", "#"):
        lab.tells(topic)
    assert [it.topic for it in heard(session) if isinstance(it, Told)] == ["open", "#"]


def test_tails_in_rings_tell_of_no_topic_that_a_client_may_not_read() -> None:
    lab = OthersLab()
    calm = SimpleNamespace(calm=False)
    memberships = SimpleNamespace(
        get=lambda _: calm, joined=lambda _: True, matching=lambda _: [], release=None
    )
    verdicts: dict[str, str | None] = {"open": "", "pay": "no right", "known": "no right"}
    tails = Tails(
        cast(Memberships, memberships), lambda: lab.now, lambda _: None,
        lambda _, topic: verdicts.get(topic), lambda _, topic: topic != "pay",
    )  # fmt: skip
    session = lab.session()
    tail = Followed(session, Tail(1, "#", {}, notices=True), "#")
    tail.cursors = {topic: Cursor({}) for topic in (*verdicts, "new")}
    tails._say_tailing(tail)
    tails._say_stable(tail)
    for topic in tail.cursors:
        tails._may_read(tail, topic)
        if verdicts.get(topic) != "":
            tails._say_behind(tail, topic, 0.0)
    first, *notices = heard(session)
    assert getattr(first, "topics", None) == ["open"]
    assert [(getattr(it, "topic", ""), getattr(it, "kind", "")) for it in notices] == [
        ("open", "unstable"),
        ("known", "refused"),
    ]
    assert not tail.even, "nobody has said who may read one of them"
    verdicts["new"] = "no right"
    tails.judge_anew()
    tails._may_read(tail, "new")
    assert tail.even, "what it may not read is not still to come"
    tail.grown["open"] = None
    assert not tail.even
    tail.held_back["gone"] = None
    tail.cursors, tail.grown = {"gone": Cursor({})}, {"gone": None}
    session.connection.link.busy = False
    assert not tails._send(tail)
    assert tail.even, "there is nothing to read"
