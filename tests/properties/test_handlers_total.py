"""No handler raises, whatever comes in and whatever memory holds; what it sends can be read.

Messages are those that the overlays forge, and those that the types of the fields allow, of every
protocol to every node. Nodes are fresh, legitimate, or damaged raw between any two inputs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, structs
from msgspec.inspect import type_info

from planaria.core.chance import any_integer, combination, stream
from planaria.core.codec import Codec
from planaria.core.errors import CapacityExceeded, MalformedMessage
from planaria.core.ids import NODE_ID_MAX, NodeId
from planaria.core.message import Message
from planaria.core.node import Clock, Command, Effects, LinkDown, LinkUp, Node, Send
from planaria.core.overlay import Overlay
from planaria.simulator.damage import damage, slots_of, values_of
from planaria.simulator.worlds.registry import REGISTERED, find_kind
from toys import ask
from wire_values import Wire

KINDS = {name: find_kind(name) for name in sorted(REGISTERED)}
OWN = sorted({cls for kind in KINDS.values() for cls in kind.make().messages}, key=str)
CODEC = Codec(OWN)
STARTS = ("fresh", "legitimate", "corrupt")
INPUTS = 30
SIZES = range(1, 7)


def start_of(name: str, start: str, n: int, rng: Random) -> tuple[Overlay, list[Node]]:
    overlay: Overlay = KINDS[name].make()
    return overlay, overlay.start(start, n, rng, rng).nodes


def check(effects: Effects) -> None:
    for effect in effects:
        if isinstance(effect, Send):
            assert CODEC.decode(CODEC.encode(effect.message)) == effect.message
            assert 0 <= effect.target <= NODE_ID_MAX


def inputs(overlay: Overlay, node: Node, ids: Sequence[NodeId], rng: Random) -> Effects:
    """Anything that can happen to a node."""
    peer = rng.choice([*ids, any_integer(rng, *ids)])
    commands: list[Command | None] = [
        LinkDown(peer),
        LinkUp(peer),
        Clock(any_integer(rng, 0)),
        overlay.publication(node.id, rng.randrange(1000)),
        overlay.leave(node),
    ]
    kind = rng.random()
    if kind < 0.2:
        return node.on_timeout()
    command = rng.choice(commands) if kind < 0.4 else None
    if command is not None:
        return ask(node, command)
    return node.on_message(overlay.forge(ids, rng)[1])


@pytest.mark.parametrize("name", KINDS)
def test_no_input_raises_while_memory_is_damaged_between_any_two(
    name: str, seeds: Callable[[int, int], int]
) -> None:
    damaged = 0
    for seed in range(seeds(9, 5_000)):
        rng = stream(seed, "handlers", name)
        start, n = combination(seed, STARTS, SIZES)
        overlay, nodes = start_of(name, start, n, rng)
        ids = [node.id for node in nodes]
        first = {node.id: values_of(slots_of(overlay, node)) for node in nodes}
        for _ in range(INPUTS):
            node = rng.choice(nodes)
            if rng.random() < 0.4:
                damaged += bool(damage(overlay, node, ids, rng, first[node.id]))
            for _ in range(rng.randint(1, 3)):
                try:
                    check(inputs(overlay, node, ids, rng))
                except CapacityExceeded:
                    continue  # a full node says no to its own application
    assert damaged


def texts(value: Any) -> Iterator[str]:
    """All texts in a message."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Struct):
        yield from texts(structs.astuple(value))
    elif isinstance(value, list | tuple):
        for it in value:
            yield from texts(it)


@cache
def world(name: str, start: str) -> tuple[list[NodeId], list[str]]:
    """The ids of a network, and the words that its messages contain."""
    rng = stream(0, "words", name)
    overlay, nodes = start_of(name, start, 4, rng)
    ids = [node.id for node in nodes]
    forged = [overlay.forge(ids, rng)[1] for _ in range(200)]
    return ids, sorted({word for message in forged for word in texts(message)}) or [""]


def readable(message: Message) -> Message | None:
    """The message as it comes over the wire, if it does."""
    try:
        return CODEC.decode(CODEC.encode(message))
    except (MalformedMessage, CapacityExceeded, UnicodeEncodeError):
        return None


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", KINDS)
def test_no_message_that_can_be_read_raises(name: str, start: str) -> None:
    ids, words = world(name, start)

    @settings(max_examples=settings().max_examples // 5)
    @given(st.lists(Wire(ids, words).messages(), min_size=1, max_size=20), st.integers(0, 99))
    def hand_in(messages: list[Message], seed: int) -> None:
        rng = stream(seed, "typed", name)
        overlay, nodes = start_of(name, start, 4, rng)
        first = {node.id: values_of(slots_of(overlay, node)) for node in nodes}
        for message in messages:
            node = rng.choice(nodes)
            if start == "corrupt" and rng.random() < 0.2:
                damage(overlay, node, ids, rng, first[node.id])
            read = readable(message)
            if read is not None:
                check(node.on_message(read))
        for node in nodes:
            check(node.on_timeout())

    hand_in()


@pytest.mark.parametrize("cls", OWN)
def test_most_messages_drawn_can_be_read(cls: type[Message]) -> None:
    """Else the test above tests less than it says."""
    drawn: list[Message | None] = []

    @settings(max_examples=5)
    @given(Wire([0, 1], ["news"]).of(type_info(cls)))
    def draw(message: Message) -> None:
        drawn.append(readable(message))

    draw()
    assert 2 * sum(isinstance(message, cls) for message in drawn) > len(drawn)
