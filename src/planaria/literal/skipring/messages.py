"""The remote calls of Algorithms 1-4. A label may be bottom (None) wherever the text allows it."""

from typing import Literal, NamedTuple

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.literal.skipring.labels import Bits

Flag = Literal["CYC", "LIN"]


class Ref(NamedTuple):
    """A tuple (label, v) of the pseudocode: a node, and the label it is thought to have."""

    label: Bits | None
    id: NodeId


class Check(Message, frozen=True, tag="literal.check"):
    """CHECK(sender, label, flag): `sender` thinks that you have this label."""

    sender: Ref
    label: Bits | None
    flag: Flag


class Linearize(Message, frozen=True, tag="literal.linearize"):
    """LINEARIZE(v)."""

    node: Ref


class Introduce(Message, frozen=True, tag="literal.introduce"):
    """INTRODUCE(c, flag)."""

    node: Ref
    flag: Flag


class RemoveConnections(Message, frozen=True, tag="literal.remove_connections"):
    """REMOVECONNECTIONS(u): forget u."""

    node: NodeId


class IntroduceShortcut(Message, frozen=True, tag="literal.introduce_shortcut"):
    """INTRODUCESHORTCUT(l, v)."""

    node: Ref


class SetData(Message, frozen=True, tag="literal.set_data"):
    """SETDATA(pred, label, succ): a configuration; three bottoms are the permission to leave."""

    pred: Ref | None
    label: Bits | None
    succ: Ref | None


class Subscribe(Message, frozen=True, tag="literal.subscribe"):
    """SUBSCRIBE(v)."""

    node: NodeId


class Unsubscribe(Message, frozen=True, tag="literal.unsubscribe"):
    """UNSUBSCRIBE(v)."""

    node: NodeId


class GetConfiguration(Message, frozen=True, tag="literal.get_configuration"):
    """GETCONFIGURATION(u); who asks is not in the text, and only amendment E6 looks at it."""

    node: NodeId
    asker: NodeId
