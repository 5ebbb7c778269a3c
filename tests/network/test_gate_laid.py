"""What a gate knows of charters, whom it asks, and for how long it waits."""

import pytest

from others_lab import charters
from planaria.core.node import Command, Effect, Send
from planaria.network.gate import laid
from planaria.network.gate.laid import Laid, Overlays
from planaria.protocols.skipring.charter import Charter
from planaria.protocols.skipring.charter_messages import SeekCharters
from planaria.protocols.skipring.charters import LEARNING, Charters, LaidDown, SeekOverlays

RING = Laid("ring", False)


class Asking:
    """A gate's view of charters, and what it asked supervisors."""

    def __init__(self, known: Charters) -> None:
        self.now = 100.0
        self.asked: list[tuple[str, ...]] = []
        self.done: list[Laid] = []
        self.overlays = Overlays(known, self._command, lambda: self.now)

    def _command(self, command: Command) -> None:
        assert isinstance(command, SeekOverlays)
        self.asked.append(command.topics)

    def answer(self, topic: str, *laid_down: Charter) -> None:
        self.overlays.on_laid_down(LaidDown((topic,), laid_down))


def test_a_question_of_long_ago_is_no_patience_spent() -> None:
    gate = Asking(charters(2))
    assert gate.overlays.settled("news") is None
    gate.answer("news")
    gate.now += 100  # nobody asked meanwhile, and the answer is too old to be believed
    assert gate.overlays.settled("news") is None
    assert gate.asked == [("news",), ("news",)]
    gate.overlays.when("news", gate.done.append)
    gate.now += laid.PATIENCE_SECONDS
    gate.overlays.on_timeout()
    assert gate.done == []
    gate.answer("news", Charter("news", 1, 0, 1, "gossip"))
    assert gate.done == [Laid("gossip", True)]


def test_an_answer_is_a_reason_to_look_for_those_alone_that_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that waited were looked at for each answer: with 1,000 topics a third of the time."""
    gate, looked = Asking(charters(2)), list[str]()
    find = gate.overlays._find

    def counted(pattern: str, names: list[str], since: float) -> Laid | None:
        looked.append(pattern)
        return find(pattern, names, since)

    monkeypatch.setattr(gate.overlays, "_find", counted)
    for number in range(50):
        gate.overlays.when(f"plant/{number}", gate.done.append)
    gate.overlays.when("plant/3/#", gate.done.append)
    looked.clear()
    gate.answer("plant/7")
    assert looked == ["plant/7"]
    gate.answer("plant/3", Charter("plant/3", 1, 0, 1, "gossip"))
    assert looked[1:] == ["plant/3", "plant/3/#"]
    assert gate.done == [], "the topic above is not known yet"
    gate.answer("plant")
    assert gate.done == [Laid("gossip", True), RING, Laid("gossip", True)]
    looked.clear()
    gate.answer("plant/7")
    assert looked == [], "it waits no more"
    gate.overlays.on_timeout()
    assert len(looked) == 48
    gate.now += laid.PATIENCE_SECONDS + 0.1
    gate.overlays.on_timeout()
    assert len(gate.done) == 51
    assert not gate.overlays._needed


def test_who_waits_too_long_goes_on_in_the_ring_and_of_rights_nothing_is_known() -> None:
    gate = Asking(charters(2))
    gate.overlays.when("news", gate.done.append)
    gate.now += laid.PATIENCE_SECONDS + 0.1
    gate.overlays.on_timeout()
    assert gate.done == [RING]
    assert gate.overlays.charters("news") is None
    assert len(gate.asked) == 2, "and it is asked for them on"


def test_questions_are_forgotten_and_not_more_than_so_many_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(laid, "TOPICS_MAX", 3)
    gate = Asking(charters(2))
    for number in range(10):
        gate.overlays.charters(f"n{number}")
        gate.overlays.charters(f"n{number}")
    assert gate.asked == [("n0",), ("n1",), ("n2",)]
    gate.now += laid.AGAIN_SECONDS
    gate.overlays.on_timeout()
    gate.overlays.charters("n9")
    assert gate.asked[3:] == [("n9",)]


@pytest.mark.parametrize("met", [(1, 2), (1,), ()])
def test_a_new_supervisor_has_heard_the_others_first(met: tuple[int, ...]) -> None:
    known = charters(*met, everything=True)
    gate = Asking(known)
    assert gate.overlays.charters("pay") == []
    known.learn_first(company=True)
    assert gate.overlays.charters("pay") is None, "though nobody else was met yet"
    assert _effects(known, SeekCharters(5, ["pay"])) == [], "nor does it speak for others"
    assert [it.target for it in known.seek(["pay"]) if isinstance(it, Send)] == [*met[1:]]
    gate.answer("pay", Charter("pay", 1, 0, 1))
    assert gate.overlays.charters("pay") == [Charter("pay", 1, 0, 1)]
    for _ in range(LEARNING):
        assert gate.overlays.charters("news") is None
        known.on_timeout()
    assert gate.overlays.charters("news") == []
    assert len(_effects(known, SeekCharters(5, ["pay"]))) == 1


def test_a_supervisor_that_is_alone_knows_what_there_is_to_know() -> None:
    known = charters(1, everything=True)
    known.learn_first(company=False)
    assert Asking(known).overlays.charters("pay") == []
    assert _effects(charters(1), SeekCharters(5, ["pay"])) == [], "one that does not supervise"


def _effects(known: Charters, message: SeekCharters) -> list[Effect]:
    return known.on_message(message, message.sender)
