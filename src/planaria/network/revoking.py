"""Revokes certificates on a running network: from a second on and, if wished, by position.

A second alone leaves a thief room: what it signs with an earlier one counts still. What nodes hold
now of the holder's streams is told by position, and whatever comes later is beyond that.
"""

from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.network.charters import seal_void
from planaria.network.client.messages import AskExtent, ChartersAre, Extent, ExtentIs, PutCharter
from planaria.network.laid_down import supervisors_of
from planaria.network.survey import Survey, Surveyor
from planaria.protocols.skipring.charter import Charter, Ends
from planaria.records.record import INCARNATION_BYTES, Stream


class Reach(NamedTuple):
    """A stream of somebody, the topic it is in, and the number before which it counts."""

    topic: str
    incarnation: bytes
    end: int


async def lay_down(
    surveyor: Surveyor, survey: Survey, revocation: Charter, key: Ed25519PrivateKey
) -> None:
    """Sign with the authority's key that a certificate is revoked, and tell a supervisor."""
    sealed = seal_void(revocation, key)
    first = next(iter([*supervisors_of(survey), *survey.nodes]))
    await surveyor.ask(first, PutCharter, ChartersAre, sealed)


async def held_by(surveyor: Surveyor, survey: Survey, publisher: NodeId) -> list[Reach]:
    """How far the streams of a publisher go, at whichever node that answers they go furthest."""
    found: dict[tuple[str, bytes], int] = {}
    for node, seen in survey.nodes.items():
        for topic, shown in seen.status.topics.items():
            for one in await _extents(surveyor, node, topic) if shown.member else ():
                if one.publisher == publisher:
                    name = (topic, one.incarnation)
                    found[name] = max(one.next, found.get(name, 0))
    return [Reach(*name, end) for name, end in sorted(found.items())]


async def _extents(surveyor: Surveyor, node: NodeId, topic: str) -> list[Extent]:
    """All that a node holds of a topic; of one that comes no further, what it has said."""
    found: list[Extent] = []
    after: Stream | None = None
    while True:
        answer = await surveyor.ask(node, AskExtent, ExtentIs, topic, b"", 0, 0, after, False)
        found += answer.extents
        last = max(((it.publisher, it.incarnation) for it in answer.extents), default=None)
        if not answer.more or last is None or (after is not None and last <= after):
            return found
        after = last


def ends_of(reaches: list[Reach], after: tuple[str, ...]) -> Ends:
    """What counts: these, but for streams that `after` ends earlier; raises UsageError."""
    ends = {it.incarnation: it.end for it in reaches}
    for text in after:
        stream, number = _parsed(text)
        if stream not in ends:
            raise UsageError(f"--after {text}: no node holds that stream of it")
        ends[stream] = min(number, ends[stream])
    return tuple(sorted(ends.items()))


def _parsed(text: str) -> tuple[bytes, int]:
    name, _, number = text.partition("=")
    try:
        stream = bytes.fromhex(name)
    except ValueError:
        stream = b""
    if len(stream) != INCARNATION_BYTES or not (number.isascii() and number.isdigit()):
        raise UsageError(f"--after {text}: STREAM=NUMBER, as --held --show prints them")
    return stream, int(number)
