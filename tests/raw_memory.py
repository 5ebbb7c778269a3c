"""Inputs to a node whose memory, raw variables and caches, is corrupted between any two of them."""

from collections.abc import Sequence
from random import Random

from planaria.core.chance import any_integer
from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, LinkDown, Node, Send
from planaria.core.overlay import Overlay
from toys import ask

INPUTS = 20


def live_through(overlay: Overlay, rng: Random) -> None:
    """No handler raises, and every message it sends can be read at the other end."""
    codec = Codec(overlay.messages)
    nodes = overlay.start("legitimate", rng.randint(1, 6), rng, rng).nodes
    ids = [node.id for node in nodes]
    for _ in range(INPUTS):
        node = rng.choice(nodes)
        overlay.corrupt(node, ids, rng)
        for _ in range(rng.randint(1, 3)):
            for effect in _input(overlay, node, ids, rng):
                if isinstance(effect, Send):
                    codec.decode(codec.encode(effect.message))


def _input(overlay: Overlay, node: Node, ids: Sequence[NodeId], rng: Random) -> Effects:
    kind = rng.randrange(5)
    if kind == 0:
        return node.on_timeout()
    if kind == 1:
        return node.on_command(LinkDown(rng.choice(ids)))
    command = overlay.publication(node.id, any_integer(rng)) if kind == 2 else None
    if command is not None:
        return ask(node, command)
    message = overlay.forge(ids, rng)[1]
    return node.on_message(message, rng.choice([None, rng.choice(ids), claimed_sender(message)]))


def claimed_sender(message: Message) -> NodeId | None:
    """Whom a message says it is from; None if it does not say."""
    said = getattr(message, "sender", getattr(message, "subject", None))
    return said[1] if isinstance(said, tuple) else said
