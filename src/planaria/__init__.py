"""Planaria: publish/subscribe that heals itself, as pure state machines that run anywhere.

The names below are the public surface. Each is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planaria.core.errors import (
        CapacityExceeded,
        InvariantViolation,
        MalformedMessage,
        MalformedState,
        PlanariaError,
        UsageError,
    )
    from planaria.core.message import Message
    from planaria.core.node import (
        Deliver,
        Delivery,
        Joined,
        Leave,
        Node,
        Notice,
        Persist,
        Publish,
        Published,
        Send,
        Subscribe,
        Unsubscribe,
    )
    from planaria.core.overlay import Overlay, Violation
    from planaria.core.state import State
    from planaria.filters.filters import Filter, covers, matches, merge, overlaps
    from planaria.filters.sql import parse
    from planaria.network.client.client import Batch, Client, connect
    from planaria.network.client.errors import Unreachable
    from planaria.network.client.events import Ack, Event
    from planaria.network.client.subscription import Subscription
    from planaria.records.record import Draft
    from planaria.simulator.engine import Simulator
    from planaria.simulator.schedule import load_schedule, parse_schedule
    from planaria.simulator.trial import Spec, Trial, must_heal
    from planaria.simulator.worlds.registry import find_kind

__version__ = "0.1.0"

_PLACES = {
    "core.errors": "CapacityExceeded InvariantViolation MalformedMessage MalformedState "
    "PlanariaError UsageError",
    "core.message": "Message",
    "core.node": "Deliver Delivery Joined Leave Node Notice Persist Publish Published Send "
    "Subscribe Unsubscribe",
    "core.overlay": "Overlay Violation",
    "core.state": "State",
    "filters.filters": "Filter covers matches merge overlaps",
    "filters.sql": "parse",
    "network.client.client": "Batch Client connect",
    "network.client.errors": "Unreachable",
    "network.client.events": "Ack Event",
    "network.client.subscription": "Subscription",
    "records.record": "Draft",
    "simulator.engine": "Simulator",
    "simulator.schedule": "load_schedule parse_schedule",
    "simulator.trial": "Spec Trial must_heal",
    "simulator.worlds.registry": "find_kind",
}
_PUBLIC = {name: place for place, names in _PLACES.items() for name in names.split()}

__all__ = [
    "Ack",
    "Batch",
    "CapacityExceeded",
    "Client",
    "Deliver",
    "Delivery",
    "Draft",
    "Event",
    "Filter",
    "InvariantViolation",
    "Joined",
    "Leave",
    "MalformedMessage",
    "MalformedState",
    "Message",
    "Node",
    "Notice",
    "Overlay",
    "Persist",
    "PlanariaError",
    "Publish",
    "Published",
    "Send",
    "Simulator",
    "Spec",
    "State",
    "Subscribe",
    "Subscription",
    "Trial",
    "Unreachable",
    "Unsubscribe",
    "UsageError",
    "Violation",
    "__version__",
    "connect",
    "covers",
    "find_kind",
    "load_schedule",
    "matches",
    "merge",
    "must_heal",
    "overlaps",
    "parse",
    "parse_schedule",
    "sync",
]


def __getattr__(name: str) -> Any:
    """The public thing called `name`, from the module that has it; `sync` is one itself."""
    if name == "sync":
        return import_module("planaria.sync")
    if name not in _PUBLIC:
        raise AttributeError(f"planaria has no public name {name!r}")
    return getattr(import_module(f"planaria.{_PUBLIC[name]}"), name)
