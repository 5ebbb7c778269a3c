"""Arbitrary states of a whole node of the live network: all its parts, in one topic."""

from collections.abc import Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.skipring.arbitrary import (
    any_message,
    aside,
    corrupt_former,
    corrupt_subscriber,
    corrupt_supervisor,
)
from planaria.protocols.skipring.arbitrary_charters import any_charter_message, corrupt_charters
from planaria.protocols.skipring.arbitrary_directory import (
    any_directory_message,
    corrupt_directory,
    corrupt_wildcards,
)
from planaria.protocols.skipring.arbitrary_history import (
    any_publication_message,
    corrupt_history,
)
from planaria.protocols.skipring.node import RingNode

DEAD = 2  # ids of nobody that a corrupt state names too


def corrupt_node(node: RingNode, topic: str, ids: Sequence[NodeId], rng: Random) -> None:
    """Give the variables of all parts arbitrary values; `ids` may be named, and two of the dead.

    What it was asked to do by its applications stays as it is: that is theirs, not ours.
    """
    peers = named(ids)
    if node.supervisor is not None:
        corrupt_supervisor(node.supervisor, topic, peers, rng)
    if topic in node.peer.topics:
        membership = node.peer.topics[topic]
        membership.awaited = rng.random() < 0.5
        corrupt_former(membership.former, peers, aside(rng, "former"))
        corrupt_subscriber(membership.subscriber, peers, rng)
        corrupt_history(membership.history, peers, rng)
    corrupt_directory(node.directory, [topic], peers, rng)
    corrupt_wildcards(node.wildcards, rng)
    corrupt_charters(node.charters, [topic], rng)


def any_node_message(
    topic: str, ids: Sequence[NodeId], supervisors: Sequence[NodeId], rng: Random
) -> Message:
    """A message of any kind that such nodes send each other, with any content."""
    peers, draw = named(ids), rng.random()
    if draw < 0.2:
        return rng.choice((any_directory_message, any_charter_message))([topic], peers, rng)
    if draw < 0.45:
        return any_publication_message(topic, peers, rng)
    return any_message(topic, peers, supervisors or peers, rng)


def named(ids: Sequence[NodeId]) -> list[NodeId]:
    """Whom a corrupt state may name: all of `ids`, and the dead at the end."""
    after = max(ids, default=-1) + 1
    return [*ids, *range(after, after + DEAD)]
