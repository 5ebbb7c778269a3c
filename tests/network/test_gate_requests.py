"""What clients ask while it is not known yet where a topic is, and what cannot be asked at all."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from others_lab import PUBLISHER, OthersLab, charters, heard
from planaria.core.errors import UsageError
from planaria.core.node import Command
from planaria.network.client.messages import (
    AskBatch,
    BatchIs,
    Failed,
    Position,
    Put,
    Stop,
    Tail,
    Vectors,
)
from planaria.network.gate import session as sessions
from planaria.network.gate import settling
from planaria.network.gate.gate import Gate
from planaria.network.gate.laid import Overlays
from planaria.network.gate.publishing import Publishing
from planaria.network.gate.requests import Requests
from planaria.network.gate.ring import Memberships
from planaria.network.gate.session import Session
from planaria.network.gate.settling import Settling
from planaria.network.gate.warden import Warden
from planaria.protocols.skipring.charter import Charter
from planaria.protocols.skipring.charters import LaidDown
from planaria.protocols.skipring.deposits import Entrust
from planaria.protocols.skipring.directory import Seek
from planaria.records.manifest import Manifest, Part, Portion, row_incarnation, seal_manifest
from planaria.records.record import INCARNATION_BYTES

START = bytes(INCARNATION_BYTES)


class Asked:
    """A gate whose supervisors say nothing until the test does; tails are written down."""

    def __init__(self) -> None:
        self.lab, self.begun, self.asked = OthersLab(), [], []
        self.overlays = Overlays(charters(2), lambda _: None, lambda: self.lab.now)
        tails = SimpleNamespace(begin=self._begin, stop=lambda *_: None)
        settle = SimpleNamespace(ask=lambda *it: self.asked.append(it))
        gate = SimpleNamespace(
            host=None, memberships=SimpleNamespace(join=lambda _: None), overlays=self.overlays,
            warden=Warden(self.overlays, None), publishing=None, settling=settle, tails=tails,
            queries=None, showing=None, others=self.lab.others,
        )  # fmt: skip
        self.requests = Requests(cast(Gate, gate), None)
        self.session = self.lab.session()

    begun: list[Tail]
    asked: list[Any]

    def _begin(self, session: Session, message: Tail, pattern: str) -> None:
        self.begun.append(message)
        session.open -= 1  # it is told that it begins

    def says(self, overlay: Any = "ring") -> None:
        charter = Charter("news", 1, 0, 1, overlay)
        self.overlays.on_laid_down(LaidDown(("news",), (charter,)))


def test_a_tail_that_was_stopped_before_it_began_never_begins() -> None:
    it = Asked()
    for message in (Tail(1, "news", {}), Tail(2, "news", {}), Stop(1)):
        it.requests.handle(it.session, message)
    assert it.begun == []
    it.says()
    assert [tail.request for tail in it.begun] == [2]
    assert it.session.open == 0
    assert not it.session.awaited


def test_a_tail_that_was_asked_for_anew_begins_once() -> None:
    it = Asked()
    for message in (Tail(1, "news", {}), Stop(1), Tail(1, "news", {}, floor=7)):
        it.requests.handle(it.session, message)
    it.says()
    assert [tail.floor for tail in it.begun] == [7]
    assert it.session.open == 0


def test_vectors_that_came_in_parts_are_counted_as_often_as_they_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "POSITIONS_MAX", 5)
    it = Asked()
    two = {"news": [Position(1, START, 1), Position(2, START, 1)]}
    it.says()
    for request in range(1, 9):
        for _ in range(2):
            it.requests.handle(it.session, Vectors(request, two))
        it.requests.handle(it.session, Tail(request, "news", two))
    assert [len(tail.vectors["news"]) for tail in it.begun] == [6] * 8
    for request in (20, 21, 22):
        it.requests.handle(it.session, Vectors(request, two))
    (failure,) = heard(it.session)
    assert isinstance(failure, Failed)
    assert "more than 5 positions" in failure.reason


def manifest(topic: str = "news", parts: int = 2) -> Manifest:
    portion = Portion(row_incarnation("q", START), [Part(START, 1, at) for at in range(parts)])
    return seal_manifest(PUBLISHER, "q", 0, {topic: portion}, time=1, staged=1)


def test_batches_are_settled_in_rings_alone() -> None:
    it = Asked()
    it.requests.handle(it.session, AskBatch(1, "news", manifest().record.data))
    assert not it.asked
    it.says("gossip")
    assert not it.asked
    (failure,) = heard(it.session)
    assert isinstance(failure, Failed)
    assert failure.reason == "batches are published in rings alone: news is gossip"


class Rounds:
    """Questions about batches where nobody says who the members are."""

    def __init__(self) -> None:
        self.now, self.commands, self.timers = 0.0, [], []
        self.looked, self.named = [], set()
        memberships = SimpleNamespace(candidates=self._candidates, named=self.named.__contains__)
        self.settling = Settling(
            cast(Memberships, memberships), self.commands.append, lambda: self.now, self._later
        )
        self.session = OthersLab().session()

    commands: list[Command]
    timers: list[Callable[[], None]]
    looked: list[str]
    named: set[str]

    def _candidates(self, topic: str) -> tuple[list[int], int | None, bool]:
        self.looked.append(topic)
        return ([7, 8], 2, True) if topic in self.named else ([], None, False)

    def _later(self, _: float, act: Callable[[], None]) -> None:
        self.timers.append(act)


def test_however_often_it_is_looked_for_members_one_timer_runs() -> None:
    it = Rounds()
    for request in range(3):
        it.settling.ask(it.session, AskBatch(request, "news", manifest().record.data))
    for _ in range(5):
        it.settling.on_timeout()
        (act,) = it.timers
        it.timers.clear()
        act()
    assert len(it.timers) == 1
    it.now = settling.MEMBERS_SECONDS
    it.timers.pop()()
    assert [type(answer) for answer in heard(it.session)] == [BatchIs] * 3
    assert not it.timers
    assert len(it.settling) == 0


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ({"members": (-1,)}, "numbers of 63 bits"),
        ({"members": (1 << 63,)}, "numbers of 63 bits"),
        ({"members": tuple(range(65))}, "65 members: at most 64"),
        ({"spread": {-5: [0]}}, "numbers of 63 bits"),
        ({"spread": {1: [2]}}, "from 0 to 1"),
        ({"spread": {1: [0] * 3}}, "from 0 to 1"),
        ({"topic": "other"}, "nothing on 'other'"),
    ],
)
def test_whom_and_what_a_question_about_a_batch_names_is_checked(
    named: dict[str, Any], complaint: str
) -> None:
    it = Rounds()
    topic = named.pop("topic", "news")
    with pytest.raises(UsageError, match=complaint):
        it.settling.ask(it.session, AskBatch(1, topic, manifest().record.data, True, **named))
    assert len(it.settling) == 0
    assert not it.commands


def publishing_of(it: Rounds) -> Publishing:
    return Publishing(
        it.settling.memberships, it.commands.append, lambda: it.now, lambda: 1.0, it._later, tuple
    )


def test_publications_on_many_topics_do_not_wait_for_each_other() -> None:
    """All were looked at for each that was joined or named: 1,000 new topics took 23 s."""
    it, topics = Rounds(), [f"t/{number}" for number in range(50)]
    publishing, lab = publishing_of(it), OthersLab()
    for request, topic in enumerate(topics):
        publishing.put(it.session, Put(request, topic, lab.record(b"").data))
    sought = [command for command in it.commands if isinstance(command, Seek)]
    assert [command.topic for command in sought] == topics, "each at once"
    it.looked.clear()
    publishing.look("t/7")
    assert it.looked == ["t/7"]
    it.named |= {"t/3", "t/9"}
    it.looked.clear()
    it.timers.pop()()
    assert it.looked == ["t/3", "t/9"]
    asked = {command.topic for command in it.commands if isinstance(command, Entrust)}
    assert asked == {"t/3", "t/9"}
    it.looked.clear()
    it.timers.pop()()
    assert it.looked == []
    publishing.gone(it.session)
    it.timers.pop()()
    assert not it.timers, "nobody waits any more"
    assert len(publishing) == 0


def test_publications_too_look_for_members_with_one_timer() -> None:
    it = Rounds()
    publishing = publishing_of(it)
    publishing.put(it.session, Put(1, "news", OthersLab().record(b"").data))
    for _ in range(5):
        publishing.on_timeout()
        (act,) = it.timers
        it.timers.clear()
        act()
    assert len(it.timers) == 1
