"""Definitions 1 and 2 of paper 4, read off the one book of a run.

    1(a) a notification is delivered to a client at most once          (`twice`)
    1(b) a client only receives what has been published before         (`never published`)
    1(c) a client only receives what it is subscribed for              (`unwanted`)
    1.2  who is subscribed for long enough receives every matching notification (`missed`)

Definition 2 asks the same from some time on: `Book.judged_since`.
"""

from functools import lru_cache

from planaria.core.book import Book
from planaria.core.node import Publish, Subscribe
from planaria.filters.filters import TOPIC, Filter, matches
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.requests import wanted_filters
from planaria.simulator.checkers import Bookkeeper
from planaria.simulator.engine import Simulator


def wants(subscription: Subscribe, publication: Publish) -> bool:
    """Does what was published satisfy the condition? By plain matching, without an index."""
    attributes = {TOPIC: publication.topic, **publication.attributes}
    for it in _filters(subscription):  # noqa: SIM110 - a generator costs as much as the answer
        if matches(it, attributes):
            return True
    return False


@lru_cache(maxsize=10_000)  # each is asked for at every publication
def _filters(subscription: Subscribe) -> tuple[Filter, ...]:
    return tuple(wanted_filters(subscription))


def subscriptions_of(broker: Broker) -> list[Subscribe]:
    """What its clients want now, as they would ask for it."""
    return [
        Subscribe(where=filter, client=client)
        for client, wanted in broker.clients.items()
        for filter in wanted.values()
    ]


def keep_book(simulator: Simulator, within: float) -> Book:
    """Keep the book of a run from now on; present subscriptions are in force."""
    book = Book(wants, within=within)
    for node in simulator.nodes.values():
        if isinstance(node, Broker):
            for command in subscriptions_of(node):
                book.subscribed(node.id, command)
    simulator.watch(Bookkeeper(book, lambda _: ()))
    return book
