"""A node made of nodes: each part gets its own messages and nobody else's, and sleeps till then."""

from random import Random

import pytest

from planaria.core.composite import Around, Composite, FromOverlay, InOverlay, Part, Wake
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import (
    Command,
    Deliver,
    Effects,
    LinkDown,
    LinkUp,
    Node,
    Persist,
    Restarted,
    Send,
    Subscribe,
)
from planaria.core.state import State
from planaria.network.overlays.registry import PARTS, codec, compose
from planaria.protocols.skipring.node import RingNode


class Hello(Message, frozen=True, tag="test.hello"):
    text: str


class Word(Message, frozen=True, tag="test.word"):
    text: str


class HeardState(State):
    heard: list[str]


class Heard(Node):
    """Remembers all inputs, answers messages, and delivers what it is sent."""

    state_type = HeardState

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.heard: list[str] = []
        self.commands: list[Command] = []

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        self.heard.append(message.text)  # type: ignore[attr-defined]
        return [Persist(), Send(2, message), Deliver.one("t", b"", b"")]

    def on_timeout(self) -> Effects:
        self.heard.append("time")
        return ()

    def on_command(self, command: Command) -> Effects:
        self.commands.append(command)
        return ()


class Words(Part):
    overlay = "words"

    def claims(self, message: Message) -> bool:
        return getattr(message, "text", "") != "for main"

    def admits(self, message: Message, sender: NodeId | None) -> bool:
        return sender != 13

    def links_to(self, peer: NodeId) -> bool:
        return peer % 2 == 0

    def acquaint(self, ids: tuple[NodeId, ...]) -> None:
        self.around = ids


def composite() -> tuple[Composite, Heard, Heard]:
    main, other = Heard(1), Heard(1)
    return Composite(main, {"words": Words(other, [Word])}), main, other


def test_a_message_goes_to_its_part_alone_and_wakes_it() -> None:
    node, main, other = composite()
    node.on_timeout()
    assert (main.heard, other.heard) == (["time"], [])
    effects = node.on_message(Word("a"), 2)
    assert effects[:2] == [Persist(), Send(2, Word("a"))]
    assert effects[2] == FromOverlay("words", Deliver.one("t", b"", b""))
    node.on_message(Hello("b"), 2)
    node.on_message(Word("for main"), 2)
    assert node.on_message(Word("refused"), 13) == ()
    node.on_timeout()
    assert (main.heard, other.heard) == (["time", "b", "for main", "time"], ["a", "time"])


def test_a_command_goes_to_one_part_and_what_the_driver_senses_to_all() -> None:
    node, main, other = composite()
    node.on_command(LinkUp(2))
    node.on_command(LinkUp(3))
    node.on_command(Subscribe("t"))
    node.on_command(InOverlay("words", Subscribe("w")))
    node.on_command(Restarted())
    node.on_command(Around((1, 2, 3)))
    assert main.commands == [LinkUp(2), LinkUp(3), Subscribe("t"), Restarted()]
    assert other.commands == [LinkUp(2), Subscribe("w"), Restarted()]
    assert node.parts["words"].around == (2, 3)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="takes no part in dreams"):
        node.on_command(InOverlay("dreams", Subscribe("w")))


def test_a_part_that_wakes_greets_whom_it_has_links_to() -> None:
    node, _, other = composite()
    node.parts["words"].greets = lambda peer: [Send(peer, Word("hi"))]  # type: ignore[method-assign]
    node.on_command(LinkUp(2))
    node.on_command(LinkUp(3))
    assert node.on_command(Wake("words")) == [Send(2, Word("hi"))]
    assert not node.on_command(Wake("words"))
    assert node.on_command(LinkUp(4)) == [Send(4, Word("hi"))]
    assert node.on_command(InOverlay("words", LinkUp(5))) == [Send(5, Word("hi"))]
    assert other.commands == [LinkUp(2), LinkUp(4), LinkUp(5)]


def test_a_lost_link_tells_each_part_what_of_its_own_did_not_arrive() -> None:
    node, main, other = composite()
    node.wake("words")
    node.on_command(LinkUp(2))
    node.on_command(LinkDown(2, (Hello("a"), Word("b"), Word("for main"))))
    assert main.commands[-1] == LinkDown(2, (Hello("a"), Word("for main")))
    assert other.commands[-1] == LinkDown(2, (Word("b"),))
    assert not node.links


def test_messages_of_an_overlay_without_a_part_are_ignored() -> None:
    main = Heard(1)
    node = Composite(main, {}, [Word])
    assert node.on_message(Word("a"), 2) == ()
    assert not main.heard


def test_each_part_keeps_its_own_state() -> None:
    node, _, other = composite()
    node.on_message(Word("a"), 2)
    again, main, part = composite()
    assert not again.restore(node.snapshot())
    assert (main.heard, part.heard, again.parts["words"].awake) == ([], ["a"], True)
    third, main, part = composite()
    third.on_message(Hello("b"), 2)
    third.load(again.state())
    assert (main.heard, part.heard) == ([], ["a"])
    assert other.heard == ["a"]


def test_all_overlays_of_the_network_share_one_codec_and_no_message_has_two_owners() -> None:
    ring = RingNode(1, (), Random(0), supervise=False)
    node = compose(ring, ("ring", *PARTS), Random(0))
    assert node.parts.keys() == PARTS.keys()
    for kind in codec().classes:
        owners = [part for part in node.parts.values() if kind in part.messages]
        assert len(owners) <= 1
