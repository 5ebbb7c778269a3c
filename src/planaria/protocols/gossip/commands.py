"""What an application may ask of the gossip overlay, and what it is told to ask elsewhere."""

from planaria.core.errors import UsageError
from planaria.core.node import Publish, Subscribe, Unsubscribe
from planaria.core.topics import check_topic
from planaria.protocols.gossip.hierarchy import group_of


def wanted_group(command: Subscribe | Unsubscribe) -> str:
    """The group that a subscription is about; `UsageError` if gossip has no such subscription."""
    if command.where is not None:
        raise UsageError("gossip selects by topic alone: use content for a condition (where)")
    if isinstance(command, Subscribe) and command.ordered:
        raise UsageError("gossip keeps no order: use ring for ordered subscriptions")
    if command.client:
        raise UsageError(f"client {command.client}: a gossip process has one client, 0")
    return group_of(command.pattern)


def published_topic(command: Publish) -> str:
    """The topic of a publication; `UsageError` if it has more than gossip can carry."""
    if command.attributes:
        raise UsageError("gossip carries no attributes: put them in the payload, or use content")
    if command.key is not None or command.headers or command.timestamp is not None:
        raise UsageError("gossip carries no key, headers or timestamp: put them in the payload")
    return check_topic(command.topic)
