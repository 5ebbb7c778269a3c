"""Subscribers follow a topic that its charter puts into another overlay, or are told."""

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from live_lab import run
from others_lab import OthersLab, charters, heard
from overlays_lab import PATIENCE, at, network, payloads, until
from planaria.core.errors import UsageError
from planaria.core.node import Command, Notice
from planaria.network.charters import seal_locally
from planaria.network.client.messages import Failed, Told
from planaria.network.client.subscription import Subscription
from planaria.network.gate import followers, laid
from planaria.network.gate.laid import Overlays
from planaria.network.gate.moves import Moves
from planaria.network.gate.session import Session
from planaria.network.gate.tails import Tails
from planaria.network.live import LiveNode
from planaria.protocols.skipring.charter import Charter
from planaria.protocols.skipring.charter_messages import HINTS_MAX
from planaria.protocols.skipring.charters import LaidDown, LayDown, SeekOverlays
from planaria.records.record import decode

OverlayName = Literal["ring", "gossip", "content", "mobile"]
AFTER: tuple[tuple[int, OverlayName], ...] = ((2, "content"), (3, "ring"), (4, "gossip"))
MOVED = Failed(1, "moved", "'ch/g' is in content now, not in gossip")


class Watch:
    """Tails of one node in gossip, and what it asks supervisors."""

    def __init__(self) -> None:
        self.lab, self.asked = OthersLab(), list[tuple[str, ...]]()
        self.overlays = Overlays(charters(2), self._command, lambda: self.lab.now)
        none = cast(Tails, ())
        self.moves = Moves(self.overlays, none, self.lab.others, lambda: self.lab.now)
        self.lab.now = 100.0

    def _command(self, command: Command) -> None:
        assert isinstance(command, SeekOverlays)
        self.asked.append(command.topics)

    def follow(self, pattern: str, overlay: str = "") -> Session:
        session = self.lab.session()
        self.lab.follow(session, 1, pattern, overlay=overlay)
        return session

    def look(self, *answers: dict[str, tuple[OverlayName, int]]) -> None:
        """A second later; `answers` are overlay and version by topic, and none of other topics."""
        self.lab.now += 1
        self.moves.on_timeout()
        for answer in answers:
            found = (Charter(topic, it[1], 0, 1, it[0]) for topic, it in answer.items())
            self.overlays.on_laid_down(LaidDown(self.asked[-1], tuple(found)))

    def old(self) -> None:
        """All answers are too old to be believed."""
        self.lab.now += laid.FRESH_SECONDS


def test_a_charter_that_does_not_change_disturbs_nobody_and_is_asked_for_now_and_then() -> None:
    watch = Watch()
    sessions = [watch.follow("ch/g"), watch.follow("ch/g", "gossip"), watch.follow("ch/#")]
    for _ in range(5):
        watch.look({"ch": ("gossip", 1)})
        for _ in range(int(laid.FRESH_SECONDS) - 1):
            watch.look()
    assert watch.asked == 5 * [("ch/g", "ch")]
    assert [heard(it) for it in sessions] == [[], [], []]


@pytest.mark.parametrize(("pattern", "charter"), [("ch/g", "ch/g"), ("ch/g", "ch"), ("ch/#", "ch")])
def test_a_tail_that_is_elsewhere_is_ended_when_it_is_seen_twice(
    pattern: str, charter: str
) -> None:
    watch = Watch()
    session, other = watch.follow(pattern), watch.follow("news", "gossip")
    watch.look({charter: ("gossip", 1)})
    watch.old()
    watch.look({charter: ("content", 2)})
    watch.look()
    assert heard(session) == []
    watch.look()
    assert heard(session) == [Failed(1, "moved", f"{pattern!r} is in content now, not in gossip")]
    assert session.open == 0
    watch.look()
    assert (heard(other), len(watch.lab.others)) == ([], 1), "its topic has no charter"


def test_who_named_the_former_overlay_is_told_what_a_new_one_would_be() -> None:
    watch = Watch()
    session = watch.follow("ch/g", "gossip")
    for _ in range(3):
        watch.look({"ch/g": ("content", 2)})
    reason = "'ch/g' is in content by its charter, not in gossip"
    assert heard(session) == [Failed(1, "usage", reason)]


def test_what_nobody_says_moves_nobody_nor_does_who_knows_least_and_is_first() -> None:
    watch = Watch()
    session = watch.follow("ch/g")
    watch.look({"ch/g": ("gossip", 1)})
    watch.overlays.when("ch/g", lambda _: None)
    watch.old()
    for _ in range(5):
        watch.overlays.when("ch/g", lambda _: None)
        watch.overlays.on_timeout()
        watch.look()
    assert watch.overlays.settled("ch/g") == laid.Laid("ring", False), "of new ones it is assumed"
    assert heard(session) == []
    watch.look({})
    watch.look({"ch/g": ("gossip", 1)})
    for _ in range(3):
        watch.look()
    assert heard(session) == []


def test_what_came_in_the_former_overlay_goes_first() -> None:
    watch = Watch()
    session = watch.follow("ch/g")
    session.connection.link.busy = True
    watch.lab.arrives("ch/g", b"late")
    for _ in range(4):
        watch.look({"ch/g": ("content", 1)})
    session.connection.link.busy = False
    watch.look()
    assert heard(session) == [], "it waits behind that"
    watch.lab.others.ready(session)
    watch.look()
    assert [type(it).__name__ for it in heard(session)] == ["Passing", "Failed"]
    assert heard(session)[-1] == MOVED


def test_nor_is_what_nobody_has_said_yet_who_may_read_left_behind() -> None:
    watch = Watch()
    session = watch.follow("ch/g")
    watch.lab.verdict = lambda _: None
    watch.lab.arrives("ch/g", b"unjudged")
    for _ in range(4):
        watch.look({"ch/g": ("content", 1)})
    assert heard(session) == [], "its rights are not known yet"
    watch.lab.verdict = lambda _: ""
    watch.lab.others.judge_anew()
    watch.look()
    assert [type(it).__name__ for it in heard(session)] == ["Passing", "Failed"]


def test_what_was_lost_is_told_before_a_tail_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch()
    session = watch.lab.session()
    watch.lab.follow(session, 1, "ch/g", overlay="", notices=True)
    monkeypatch.setattr(followers, "BEHIND_BYTES_MAX", 0)
    session.connection.link.busy = True
    watch.lab.arrives("ch/g", b"too much")
    session.connection.link.busy = False
    for _ in range(4):
        watch.look({"ch/g": ("content", 1)})
    assert heard(session) == []
    watch.lab.others.ready(session)
    watch.look()
    assert heard(session) == [Told(1, "", "gap", {"lost": 1}), MOVED]


def test_one_question_at_a_time_comes_to_all_that_is_followed() -> None:
    watch = Watch()
    for number in range(3 * HINTS_MAX):
        watch.follow(f"many/{number}", "gossip")
    for _ in range(4):
        watch.look({})
    assert max(map(len, watch.asked)) <= HINTS_MAX
    assert len({name for names in watch.asked for name in names}) == 3 * HINTS_MAX + 1


def _lay_down(node: LiveNode, version: int, overlay: OverlayName) -> None:
    charter = Charter("ch/g", version, version - 1, int(time.time()), overlay)
    node.host.command(LayDown(seal_locally(charter, Ed25519PrivateKey.generate())))


def test_a_subscriber_follows_its_topic_and_loses_nothing_that_it_had_received(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laid, "FRESH_SECONDS", 0.5)

    async def main() -> None:
        async with network(tmp_path, 2) as nodes, at(nodes[1]) as client:
            _lay_down(nodes[0], 1, "gossip")
            events = client.subscribe("ch/g")
            told = client.subscribe("ch/g", notices=True)
            strict = client.subscribe("ch/g", overlay="gossip")
            for it in (events, told, strict):
                await it.ready()
            await client.publish("ch/g", b"1")
            await until(lambda: events._parcels and told._parcels)
            for version, overlay in AFTER:
                _lay_down(nodes[0], version, overlay)
                await until(partial(_serves_in, nodes[1], overlay))
                async with at(nodes[1]) as publisher:  # who has numbered nothing elsewhere
                    await publisher.publish("ch/g", b"%d" % version)
                for it in (events, told):  # on its way when a topic moves again, it might be lost
                    await until(partial(_holds, it, b"%d" % version))
                if overlay == "ring":
                    assert events.vector()
            assert await payloads(events, 4) == [b"1", b"2", b"3", b"4"]
            with pytest.raises(UsageError, match="in content by its charter, not in gossip"):
                await asyncio.wait_for(_all(strict), PATIENCE)
            kinds = list[str]()
            while kinds.count("moved") < 3:
                one = await asyncio.wait_for(anext(told), PATIENCE)
                kinds += [one.kind] if isinstance(one, Notice) else []

    run(main)


def _holds(events: Subscription[Any], payload: bytes) -> bool:
    """Has a client a publication that its application did not take yet?"""
    records = [decode(piece.record) for parcel in events._parcels for piece in parcel.pieces]
    return any(
        one.payload == payload for it in records for one in it.publications(it.first, it.end)
    )


async def _all(events: Subscription[Any]) -> None:
    async for _ in events:
        pass


def _serves_in(node: LiveNode, overlay: str) -> bool:
    """Is this the one overlay in which a node serves clients, and were they told so?"""
    assert node.gate is not None
    assert node.gate.others is not None
    served = {it.overlay if it.tailing else "" for it in (*node.gate.tails, *node.gate.others)}
    return served == {overlay}
