"""Which overlays there are on the live network beside `ring`, and a node's parts in them."""

from collections.abc import Collection, Mapping
from random import Random

from planaria.core.codec import Codec
from planaria.core.composite import Composite
from planaria.core.message import Message
from planaria.core.node import Node
from planaria.network.client.overlays import RING
from planaria.network.overlays.content import ContentPart
from planaria.network.overlays.gossip import GossipPart
from planaria.network.overlays.mobile import MobilePart
from planaria.network.overlays.part import LivePart
from planaria.protocols.gossip.messages import Event
from planaria.protocols.mobile.messages import Beat
from planaria.protocols.routing.messages import Notify
from planaria.protocols.skipring.all_messages import ALL_MESSAGES

PARTS: Mapping[str, type[LivePart]] = {
    "gossip": GossipPart,
    "content": ContentPart,
    "mobile": MobilePart,
}
BULK: tuple[type[Message], ...] = (Event, Beat, Notify)  # messages that carry publications


def codec() -> Codec:
    """Understands the messages of all overlays, whichever a node takes part in."""
    others = [message for part in PARTS.values() for message in part.kinds]
    return Codec([*ALL_MESSAGES, *others])


def compose(main: Node, overlays: Collection[str], rng: Random) -> Composite:
    """A node with a part in each of these overlays, all asleep but `main`, which is `ring`."""
    parts = {name: PARTS[name](main.id, rng) for name in overlays if name != RING}
    missing = [PARTS[name].kinds for name in PARTS if name not in parts]
    others = [it for kinds in missing for it in kinds if it not in ALL_MESSAGES]
    return Composite(main, parts, others)
