"""All systems that can be measured, by name; each is imported by the processes that need it."""

from importlib import import_module

from planaria.network.bench.contender import Contender

OURS = (
    "planaria", "planaria-tls", "planaria-client", "planaria-durable", "planaria-client-durable",
)  # fmt: skip
PEERS = ("zmq", "zmq-blocking", "nats", "jetstream", "redis", "mosquitto", "zenoh")
_PLACES = {
    "planaria": "embedded:Embedded",
    "planaria-tls": "embedded:EmbeddedTLS",
    "planaria-durable": "embedded:EmbeddedDurable",
    "planaria-client": "clients:Clients",
    "planaria-client-durable": "clients:DurableClients",
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
