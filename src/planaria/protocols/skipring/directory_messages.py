"""What nodes ask supervisors: which topics there are, and who is in them."""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in

PAGE_MAX = 256  # topics in one answer: at most a quarter of a mebibyte
MEMBERS_MAX = 8  # members that one answer names
WALK_BITS = 62  # of the number that a question carries and its answer repeats

Walk = Annotated[int, Meta(ge=0, lt=1 << WALK_BITS)]


class AskTopics(Message, frozen=True, tag="skipring.ask_topics"):
    """Which topics that you serve match `pattern` and come after `after`, in order of names?

    `walk` is drawn anew for each question: an answer without it was not asked for.
    """

    sender: NodeId
    pattern: str
    after: str
    walk: Walk


class Topics(Message, frozen=True, tag="skipring.topics"):
    """These; ask again for those after `next`. None: these were the last."""

    sender: NodeId
    walk: Walk
    topics: Annotated[list[str], Meta(max_length=PAGE_MAX)]
    next: str | None


class AskMembers(Message, frozen=True, tag="skipring.ask_members"):
    """Who is in `topic`?"""

    sender: NodeId
    topic: str


class Members(Message, frozen=True, tag="skipring.members"):
    """Some of its members, drawn anew for each answer, and how many there are in all.

    Not `settled`: there may be more, who have not asked this supervisor yet.
    """

    sender: NodeId
    topic: str
    members: Annotated[list[NodeId], Meta(max_length=MEMBERS_MAX)]
    count: Annotated[int, Meta(ge=0)]
    settled: bool = True


MESSAGES = defined_in(globals())
