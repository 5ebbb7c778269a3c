"""Messages of the DHT. Hosts are named by id alone: their keys follow from it."""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.protocols.dht.keys import Label

LEVELS_MAX = 63  # fingers double their reach, and there are no more than 2^63 ids
HOPS_MAX = 256  # a lookup needs one hop per finger level; with more its way is broken
HEIRS_MAX = 2  # a leaver names the neighbours it leaves behind

Level = Annotated[int, Meta(ge=0, lt=LEVELS_MAX)]
Nonce = Annotated[int, Meta(ge=0, lt=1 << 32)]
Hops = Annotated[int, Meta(ge=0, le=HOPS_MAX)]


class DhtMessage(Message, frozen=True):
    """Base of the messages of the DHT."""


class Find(DhtMessage, frozen=True, tag="dht.find"):
    """Who owns `key`? Handed on until the owner answers `asker`."""

    asker: NodeId
    key: Label
    nonce: Nonce
    hops: Hops


class Found(DhtMessage, frozen=True, tag="dht.found"):
    """`owner` owns `key`, and all keys after `predecessor`: its whole keyset."""

    key: Label
    nonce: Nonce
    owner: NodeId
    predecessor: NodeId
    hops: Hops


class AskFinger(DhtMessage, frozen=True, tag="dht.ask_finger"):
    """I am `sender` and you are my finger of `level`: who is yours?"""

    sender: NodeId
    level: Level


class Finger(DhtMessage, frozen=True, tag="dht.finger"):
    """My finger of `level` is `finger`, so yours of the next level is; None if I have none."""

    sender: NodeId
    level: Level
    finger: NodeId | None


class Departed(DhtMessage, frozen=True, tag="dht.departed"):
    """I, `sender`, am no member; whoever pointed at me can use `heirs`."""

    sender: NodeId
    heirs: Annotated[tuple[NodeId, ...], Meta(max_length=HEIRS_MAX)]


MESSAGES = defined_in(globals())
