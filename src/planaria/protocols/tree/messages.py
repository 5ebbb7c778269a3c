"""Messages between hosts that are, or are not, neighbours in the tree."""

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in


class TreeMessage(Message, frozen=True):
    """Base of the messages of the tree."""

    sender: NodeId


class Link(TreeMessage, frozen=True, tag="tree.link"):
    """I, `sender`, have you as a neighbour; said at each timeout, and when it begins."""


class Unlink(TreeMessage, frozen=True, tag="tree.unlink"):
    """I, `sender`, do not have you as a neighbour; look again if you have me."""


MESSAGES = defined_in(globals())
