"""What a node knows to be wrong with its own part of the network, in words. Changes nothing.

No node can see the whole: one without doubts may still be wrong in a way that its neighbours will
tell it of within a few intervals. `doctor` asks all of them.
"""

from collections.abc import Iterator

from planaria.network.store.database import Database
from planaria.protocols.skipring.inquiry import PATIENCE
from planaria.protocols.skipring.membership import Membership
from planaria.protocols.skipring.topic_supervisor import TopicSupervisor

READ_ONLY = "read-only"


def member_doubts(membership: Membership) -> Iterator[str]:
    """What a member knows to be wrong with its place in the ring and with its history."""
    one = membership.subscriber
    if one.leaving:
        yield "wants to leave and has not been let go"
    elif not one.member:
        yield "is not a member yet: no supervisor has given it a label"
    elif one.orphan is not None:
        yield "no supervisor answers: members keep the ring up by themselves"
    elif one.alarmed:
        yield "saw a contradiction and waits for its supervisor's word"
    elif one.inquiry.waiting > PATIENCE // 2:
        yield f"has waited for its supervisor's answer for {one.inquiry.waiting} intervals"
    if one.missing:
        yield f"misses {len(one.missing)} ring neighbours"
    behind = sum(
        exchange.life > 0 for exchange in membership.history.antientropy.exchanges.values()
    )
    if behind:
        yield f"holds other publications than {behind} of its neighbours, and exchanges them"


def supervisor_doubts(served: TopicSupervisor) -> Iterator[str]:
    """What a supervisor knows to be wrong with a topic that it serves."""
    if served.suspects:
        yield f"waits for a sign of life of {len(served.suspects)} members that others miss"
    queued = len(served.probes) + len(served.outbox)
    if queued:
        yield f"has yet to tell {queued} members where they belong"


def store_doubts(database: Database | None) -> Iterator[str]:
    """What keeps publications from being stored."""
    if database is not None:
        yield from doubts_of_store(stalled(database), database.damaged)


def stalled(database: Database) -> str | None:
    """Why a store cannot write; None: it can."""
    if database.writer is None:
        return READ_ONLY
    return None if database.writer.stalled is None else str(database.writer.stalled)


def doubts_of_store(stalled: str | None, damaged: bool) -> Iterator[str]:
    """The same in words."""
    if stalled == READ_ONLY:
        yield "the store is read-only"
    elif stalled is not None:
        yield f"the store cannot write: {stalled}"
    if damaged:
        yield "the store is damaged: start the node again to mend it"
