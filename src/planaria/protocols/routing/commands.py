"""What applications ask of their broker, and what it hands to them."""

from planaria.core.node import Command, Deliver
from planaria.filters.filters import Filter
from planaria.filters.values import Value


class SubscribeTo(Command, frozen=True, gc=False):
    """The local client `client` wants what any of `filters` matches, besides what it has."""

    client: int
    filters: tuple[Filter, ...]


class UnsubscribeFrom(Command, frozen=True, gc=False):
    """The local client `client` does not want `filters` any more."""

    client: int
    filters: tuple[Filter, ...]


class PublishContent(Command, frozen=True, gc=False):
    """Publish a notification; its topic, if it has one, is the attribute `topic`."""

    attributes: dict[str, Value]
    payload: bytes = b""


class DeliverTo(Deliver, frozen=True, gc=False):
    """Hand a notification to the local client `client`, once."""

    @property
    def id(self) -> bytes:
        """The notification's id."""
        return self.publications[0].id

    @property
    def payload(self) -> bytes:
        """Its payload."""
        return self.publications[0].payload

    @property
    def attributes(self) -> dict[str, Value]:
        """Its attributes."""
        return self.publications[0].attributes
