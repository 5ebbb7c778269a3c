"""What nodes say about charters: which ones they have, and the charters themselves."""

from typing import Annotated

from msgspec import Meta

from planaria.core.ids import NodeId
from planaria.core.message import Message, defined_in
from planaria.protocols.skipring.charter import HASH_BYTES, SEALED_BYTES_MAX, VERSION_MAX

HINTS_MAX = 64  # in one message: each with a name of up to a kibibyte
CHARTERS_MAX = 16  # in one message

Hint = tuple[
    str,
    Annotated[int, Meta(ge=0, le=VERSION_MAX)],
    Annotated[bytes, Meta(max_length=HASH_BYTES)],
]


class CharterHints(Message, frozen=True, tag="skipring.charter_hints"):
    """Of these topics I have charters of these ranks; version 0: I have none."""

    sender: NodeId
    hints: Annotated[list[Hint], Meta(max_length=HINTS_MAX)]


class AskCharters(Message, frozen=True, tag="skipring.ask_charters"):
    """Send me yours: they are higher than mine."""

    sender: NodeId
    topics: Annotated[list[str], Meta(max_length=HINTS_MAX)]


class CharterNews(Message, frozen=True, tag="skipring.charter_news"):
    """These charters, sealed."""

    sender: NodeId
    sealed: Annotated[
        list[Annotated[bytes, Meta(max_length=SEALED_BYTES_MAX)]], Meta(max_length=CHARTERS_MAX)
    ]


class SeekCharters(Message, frozen=True, tag="skipring.seek_charters"):
    """Which charters of these topics have you, if any? I keep none of them."""

    sender: NodeId
    topics: Annotated[list[str], Meta(max_length=HINTS_MAX)]


class ChartersFound(Message, frozen=True, tag="skipring.charters_found"):
    """Of these topics I keep these charters, sealed, and no others."""

    sender: NodeId
    topics: Annotated[list[str], Meta(max_length=HINTS_MAX)]
    sealed: Annotated[
        list[Annotated[bytes, Meta(max_length=SEALED_BYTES_MAX)]], Meta(max_length=HINTS_MAX)
    ]


MESSAGES = defined_in(globals())
