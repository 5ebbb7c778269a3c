"""A broker with neighbours that are only said to be there, and what it is told and says."""

from random import Random
from typing import Any

from planaria.core.message import Message
from planaria.core.node import Effects, Send
from planaria.filters.filters import Filter, filter_id
from planaria.filters.sql import parse
from planaria.protocols.routing.messages import Notify, Update
from planaria.protocols.routing.node import Broker
from planaria.protocols.routing.timing import timing

TIMING = timing(3, (0, 1.5), 2)


def broker(strategy: str = "covering", *, hierarchical: bool = False, links: int = 3) -> Broker:
    """Broker 0 with neighbours 1, 2, ..., all in session 0; the first of them is its parent."""
    found = Broker(0, TIMING, Random(1), strategy=strategy, hierarchical=hierarchical)
    found.set_links(list(range(1, links + 1)), 1)
    for link in found.links.values():
        link.theirs = 0
    return found


def lease(condition: str) -> tuple[int, Filter]:
    (filter,) = parse(condition)
    return filter_id(filter), filter


def update(sender: int, *conditions: str, stamp: int = 1, **options: Any) -> Update:
    return Update(sender, stamp, tuple(lease(it) for it in conditions), **options)


def notify(sender: int, number: int, **attributes: Any) -> Notify:
    return Notify(sender, number.to_bytes(16, "big"), attributes)


def acquainted(it: Broker, *neighbours: int) -> Broker:
    """The same after these neighbours said hello, each with its id for a session."""
    for id in neighbours:
        it.on_message(Update(id, 0, (), (), id))
    return it


def sent(effects: Effects, target: int) -> list[Notify]:
    sends = [it for it in effects if isinstance(it, Send) and it.target == target]
    return [it.message for it in sends if isinstance(it.message, Notify)]


def targets(effects: Effects, kind: type[Message]) -> list[int]:
    sends = [it for it in effects if isinstance(it, Send)]
    return [it.target for it in sends if isinstance(it.message, kind)]
