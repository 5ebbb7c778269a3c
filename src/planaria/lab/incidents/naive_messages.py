"""What naive protocols say to each other; no overlay of the product accepts it."""

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in


class Beat(Message, frozen=True, tag="naive.beat"):
    """I am here; `majority`: and I see most of us."""

    sender: NodeId
    majority: bool = False


class Hello(Message, frozen=True, tag="naive.hello"):
    """My process began: this is a new connection."""

    sender: NodeId


class Interest(Message, frozen=True, tag="naive.interest"):
    """I want this topic so many times; as a `change`, so many times more or fewer."""

    sender: NodeId
    topic: str
    count: int
    change: bool = False


class Pull(Message, frozen=True, tag="naive.pull"):
    """Send me one more."""

    sender: NodeId


class Event(Message, frozen=True, tag="naive.event"):
    """A publication on its way."""

    sender: NodeId
    topic: str
    id: bytes


class Members(Message, frozen=True, tag="naive.members"):
    """Whom an introducer knows."""

    sender: NodeId
    ids: list[NodeId]


class Log(Message, frozen=True, tag="naive.log"):
    """All publications, as the leader has them."""

    sender: NodeId
    topic: str
    ids: list[bytes]


class Graft(Message, frozen=True, tag="naive.graft"):
    """Take me into your mesh."""

    sender: NodeId


class Prune(Message, frozen=True, tag="naive.prune"):
    """You are out of mine."""

    sender: NodeId


MESSAGES = defined_in(globals())
