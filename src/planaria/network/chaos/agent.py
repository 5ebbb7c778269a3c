"""The part of a node that does it harm when an admin says so: memory, messages, frames, clock."""

import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from planaria.core.chance import stream
from planaria.core.errors import UsageError, unknown
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.network.chaos.layer import Layer
from planaria.network.chaos.rules import make_rule
from planaria.network.client.messages import Inject, Injected
from planaria.network.client.overlays import RING
from planaria.network.host import Host
from planaria.network.tracing import Traced

MESSAGES_MAX = 10_000  # that one fault forges or replays
NAMED = 0.75  # of what is forged comes from whom it names

log = logging.getLogger("planaria.chaos")

Found = dict[str, Any]


QUESTIONS = ("ask", "holdings")  # which change nothing


class Breakable(Protocol):
    """What an overlay knows of breaking one of its running nodes."""

    def corrupt(self, topics: Sequence[str], nodes: Sequence[NodeId], rng: Random) -> int:
        """Give all variables arbitrary values, in these topics or in all; how many were changed.

        `nodes` are those that may be named.
        """

    def forge(self, nodes: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message] | None:
        """A message that nobody sent, and on whose link it comes; None: there is nothing to say."""

    def held(self, topic: str) -> list[tuple[NodeId, bytes, int, int]]:
        """Which positions it could give: publisher, incarnation, from, to."""


class Agent:
    """Carries out what `planaria chaos` asks of one node, and says what it changed."""

    def __init__(self, host: Host, overlays: Mapping[str, Breakable], layer: Layer) -> None:
        self._host, self._overlays, self._layer = host, overlays, layer

    def inject(self, message: Inject) -> Injected:
        """Do it; raises UsageError for what cannot be done."""
        action = _ACTIONS.get(message.fault)
        if action is None:
            raise unknown("fault of a node", message.fault, _ACTIONS)
        rng = stream(message.seed, "chaos", message.fault, self._host.node.id)
        try:
            affected, found = action(self, message.options, rng)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{message.fault}: {type(error).__name__} {error}") from None
        log.warning("chaos: %s affected %d", message.fault, affected)
        if isinstance(self._host.node, Traced) and message.fault not in QUESTIONS:
            rule = f" {message.options['rule']}" if "rule" in message.options else ""
            self._host.node.fault(f"{message.fault}{rule}: affected {affected}")
        return Injected(message.request, affected, found)

    # Frames

    def _begin(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        rule = make_rule(str(options["rule"]), options, rng)
        return 0, {"number": self._layer.begin(rule)}

    def _end(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        return self._layer.end(int(options["number"])), {}

    def _calm(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        """End whatever lasts."""
        ahead, self._host.wall.ahead = self._host.wall.ahead, 0.0
        rules = list(self._layer.rules)
        for number in rules:
            self._layer.end(number)
        return len(rules) + bool(ahead), {}

    def _replay(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        """Process messages of the past again, as if their senders had said them now."""
        past = list(self._layer.past)
        count = min(int(options["count"]), MESSAGES_MAX) if past else 0
        for _ in range(count):
            sender, body = rng.choice(past)
            self._host.hear(self._host.codec.decode(body), sender)
        return count, {}

    def _forge(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        """Process messages that nobody sent, on the links of whom they name, and on others."""
        affected = 0
        for _ in range(min(int(options["count"]), MESSAGES_MAX)):
            forged = self._of(options).forge(list(options["nodes"]), rng)
            if forged is not None:
                self._host.hear(forged[1], forged[0])
                affected += 1
        return affected, {}

    # Memory and clock

    def _corrupt(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        """Overwrite the variables of this node."""
        topics, nodes = list(options.get("topics", ())), list(options["nodes"])
        return self._of(options).corrupt(topics, nodes, rng), {}

    def _skew(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        """Set the clock ahead or behind."""
        before = self._host.wall()
        self._host.wall.ahead = float(options["seconds"])
        return int(abs(self._host.wall() - before) > 1), {}

    # Questions

    def _holdings(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        """Which positions of a topic this node could give."""
        return 0, {"held": self._of(options).held(str(options["topic"]))}

    def _of(self, options: Mapping[str, Any]) -> Breakable:
        """The part that is meant."""
        name = str(options.get("overlay", RING))
        if name not in self._overlays:
            raise unknown("overlay", name, self._overlays)
        return self._overlays[name]

    def _ask(self, options: Mapping[str, Any], rng: Random) -> tuple[int, Found]:
        """Is this node one that may be broken? Says what is in force."""
        return 0, {"rules": len(self._layer.rules), "ahead": self._host.wall.ahead}


_ACTIONS: dict[str, Callable[[Agent, Mapping[str, Any], Random], tuple[int, Found]]] = {
    "ask": Agent._ask,
    "begin": Agent._begin,
    "end": Agent._end,
    "calm": Agent._calm,
    "corrupt": Agent._corrupt,
    "forge": Agent._forge,
    "holdings": Agent._holdings,
    "replay": Agent._replay,
    "skew": Agent._skew,
}
