"""All systems that can be measured, by name; each is imported by the processes that need it."""

from collections.abc import Callable
from importlib import import_module

from planaria.core.errors import unknown
from planaria.network.bench.contender import Contender

OURS = (
    "planaria", "planaria-tls", "planaria-client", "planaria-durable", "planaria-client-durable",
)  # fmt: skip
REPLAYS = (  # who keeps what late joiners read
    "planaria", "planaria-replay", "planaria-replay-first", "redis-streams",
)  # fmt: skip
PEERS = ("zmq", "zmq-blocking", "nats", "jetstream", "redis", "mosquitto", "zenoh")
_PLACES = {
    "planaria": "embedded:Embedded",
    "planaria-tls": "embedded:EmbeddedTLS",
    "planaria-durable": "embedded:EmbeddedDurable",
    "planaria-client": "clients:Clients",
    "planaria-client-durable": "clients:DurableClients",
    "planaria-replay": "clients:ReplayingClients",
    "planaria-replay-first": "clients:FirstClients",
    "redis-streams": "brokers:RedisStreams",
    "zmq": "brokerless:ZeroMQ",
    "zmq-blocking": "brokerless:ZeroMQBlocking",
    "nats": "brokers:Nats",
    "jetstream": "brokers:JetStream",
    "redis": "brokers:Redis",
    "mosquitto": "brokers:Mosquitto",
    "zenoh": "brokerless:Zenoh",
}


def contender(name: str) -> type[Contender]:
    """The system of this name."""
    module, _, cls = _PLACES[name].partition(":")
    found = getattr(import_module(f"planaria.network.bench.{module}"), cls)
    assert issubclass(found, Contender)
    return found  # type: ignore[no-any-return]


def peers(names: str, report: Callable[[str], None]) -> list[type[Contender]]:
    """The peers of these names, separated by commas; raises UsageError if there is none of one.

    One that is not installed is reported and left out.
    """
    chosen: list[type[Contender]] = []
    for name in dict.fromkeys(filter(None, names.split(","))):
        if name not in PEERS:
            raise unknown("peer", name, PEERS)
        lacking = contender(name).lacking()
        if lacking:
            report(f"left out, {lacking}")
        else:
            chosen.append(contender(name))
    return chosen
