"""The deterministic driver: virtual time, a bucket per tick, first in first out within a tick.

Knows nodes, messages and effects, nothing of any protocol. Faults reach it through five doors:
rules on the links, the order within a tick, holding a node's inputs, adding and removing nodes,
and cutting its power as it persists.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from random import Random
from typing import Protocol

from msgspec import Struct

from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Clock, Command, Effects, LinkDown, LinkUp, Node, Persist, Send
from planaria.core.state import State
from planaria.simulator.delays import DEFAULT_DELAY, INTERVAL, QUANTILES, Delay
from planaria.simulator.doors import LinkRule, PowerCut

ENVIRONMENT = -1  # the source of messages and commands that no node sent
TICKS_PER_SECOND = INTERVAL  # a node's wall clock: one second is one interval

# What can be seen of a run. `start` and `stop` are the life of a node; `effect` is whatever a node
# asks for that is not a message; `refuse` is a command that a node does not carry out; `fault` and
# `restart` come from the nemesis.
MESSAGE_KINDS = ("send", "deliver", "drop")
NODE_KINDS = ("timeout", "command", "refuse", "effect", "start", "stop", "fault", "restart")
KINDS = (*MESSAGE_KINDS, *NODE_KINDS, "verdict")


class Entry(Struct, frozen=True, gc=False):
    """Something that will happen to `target`: a message, or (message None) its timeout.

    For a timeout `source` is the life of the node it belongs to: a restart begins a new life, and
    what was left of the old one's clock is void.
    """

    target: NodeId
    message: Message | None
    source: int
    number: int
    cause: int


class WrongHandler(UsageError):
    """A handler returned what no handler may return: a mistake in the protocol, not a refusal."""


class TooManyMessages(Exception):
    """More was sent than the run may send."""


class Observer(Protocol):
    """Whoever watches a run: recorders and checkers. Watching never changes what happens.

    An observer with an attribute `kinds` is shown only those of `KINDS`: messages that nobody
    looks at are cheap.
    """

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Something happened at `node`; `entry` is the input that caused it."""


class Simulator:
    """Runs nodes in virtual time. Same seed, same nodes, same calls: same run, byte for byte."""

    def __init__(self, seed: int, *, delay: Delay = DEFAULT_DELAY, drift: float = 0.0) -> None:
        self.seed = seed
        self.tick = 0
        self.nodes: dict[NodeId, Node] = {}
        self.rng: Random = stream(seed, "protocol")
        self.delay = delay
        self.drift = drift
        self.link_delays: dict[tuple[NodeId, NodeId], Delay] = {}
        self.rules: list[LinkRule] = []
        self.order: Callable[[list[Entry]], list[Entry]] | None = None
        self.detects_failed_sends = True
        self.phases: Sequence[int] = ()  # of nodes in the order of joining, again and again
        self.persisted: dict[NodeId, bytes] | None = None  # on disk, if a fault may ask for it
        self.power_cuts: dict[NodeId, PowerCut] = {}
        self.clock_skew: dict[NodeId, int] = {}
        self.slowness: dict[NodeId, float] = {}
        self.sent = 0
        self.sent_max = sys.maxsize  # a storm of messages doubles in every tick: it must end
        self.delivered = 0
        self.undeliverable = 0
        self._buckets: defaultdict[int, list[Entry]] = defaultdict(list)
        self._held: dict[NodeId, list[Entry]] = {}
        self.joined = 0  # nodes, those that have left again too
        self._added = 0
        self._lives: dict[NodeId, int] = {}
        self._asked: dict[NodeId, list[Command]] = {}
        self._news: list[tuple[NodeId, Command]] = []  # of links, for nodes at the end of a tick
        self._lost: dict[NodeId, dict[NodeId, None]] = {}  # who was told that a link is down
        self._observers: dict[str, list[Observer]] = {kind: [] for kind in KINDS}
        self._draw = stream(seed, "delay").random
        self._phase = stream(seed, "phase")
        self._period = stream(seed, "period")

    # Membership of the run

    def add(self, node: Node) -> None:
        """Let `node` live from now on; its timeouts start at a phase of its own."""
        self.nodes[node.id] = node
        self._added += 1
        self.joined += node.id not in self._lives
        life = self._lives[node.id] = self._lives.get(node.id, 0) + 1
        phase = 1 + int(self._phase.random() * INTERVAL)
        if self.phases:
            phase = self.phases[(self._added - 1) % len(self.phases)]
        self._put(self.tick + phase, Entry(node.id, None, life, 0, 0))
        self.note("start", node.id, None)
        for peer in self._lost.pop(node.id, ()):
            self.tell(peer, LinkUp(node.id))

    def remove(self, id: NodeId) -> Node:
        """Take a node out without a word, as a crash does; messages to it go nowhere."""
        self._held.pop(id, None)
        self._asked.pop(id, None)
        self._lives[id] += 1
        self.note("stop", id, None)
        return self.nodes.pop(id)

    def pause(self, id: NodeId) -> None:
        """Stop a node: its inputs wait, nothing is lost, nobody is told."""
        self._held.setdefault(id, [])

    def resume(self, id: NodeId) -> int:
        """Let a paused node go on with all that waited; returns how many inputs did."""
        waiting = self._held.pop(id, [])
        for entry in waiting:
            self._put(self.tick + 1, entry)
        asked = self._asked.pop(id, [])
        for command in asked:
            self.command(id, command)
        return len(waiting) + len(asked)

    # Inputs from outside

    def command(self, id: NodeId, command: Command, cause: Entry | None = None) -> None:
        """The application at node `id` asks for something, at once, or when it is resumed.

        With a `cause` it is this driver that reports something, at once.
        """
        if cause is None and id in self._held:
            self._asked.setdefault(id, []).append(command)
            return
        node, cause = self.nodes[id], cause or Entry(id, None, ENVIRONMENT, 0, 0)
        try:
            effects = node.on_command(command)
        except Exception:
            self._note("refuse", id, cause, command)
            raise
        self._note("command", id, cause, command)
        if effects is None:
            raise _returned_none(node, "on_command")
        self._perform(id, effects, cause)

    def tell(self, id: NodeId, command: Command) -> None:
        """Report something of its links to node `id` at the end of this tick, if it lives then."""
        self._news.append((id, command))

    def perform(self, id: NodeId, effects: Effects) -> None:
        """Carry out what node `id` asked for when it was made or restored."""
        self._perform(id, effects, Entry(id, None, ENVIRONMENT, 0, 0))

    def inject(
        self, target: NodeId, message: Message, delay: int = 1, sender: NodeId | None = None
    ) -> None:
        """Put a message on a channel: forged (nobody vouches for it), or left from before.

        What was left on the link from `sender` counts as sent by it, whatever it says.
        """
        self.sent += 1
        source = ENVIRONMENT if sender is None else sender
        entry = Entry(target, message, source, self.sent, 0)
        self._note("send", source, entry, None)
        self._put(self.tick + delay, entry)

    def watch(self, observer: Observer) -> None:
        """Show `observer` everything that happens from now on."""
        for kind in getattr(observer, "kinds", KINDS):
            self._observers[kind].append(observer)

    def note(self, kind: str, node: NodeId, effect: object) -> None:
        """Let observers see something that a fault schedule did to `node`."""
        self._note(kind, node, Entry(node, None, ENVIRONMENT, 0, 0), effect)

    # Time

    @property
    def interval(self) -> int:
        """How many whole intervals have passed."""
        return self.tick // INTERVAL

    def run(self, ticks: int) -> None:
        """Let `ticks` pass; more than `sent_max` messages raise `TooManyMessages`."""
        pop = self._buckets.pop
        for tick in range(self.tick + 1, self.tick + ticks + 1):
            self.tick = tick
            bucket = pop(tick, None)
            if bucket:
                self._run_bucket(bucket if self.order is None else self.order(bucket))
                if self.sent > self.sent_max:
                    raise TooManyMessages(f"more than {self.sent_max:,} messages")
            if self._news:
                self._report()

    def run_interval(self) -> None:
        """Let one interval pass."""
        self.run(INTERVAL)

    def states(self) -> dict[NodeId, State]:
        """The state of every node that lives, for a judge."""
        return {id: node.state() for id, node in self.nodes.items()}

    def channel(self) -> Iterator[tuple[NodeId, Message]]:
        """All messages in flight, each with its target, in the order they will arrive."""
        ticks = sorted(self._buckets)
        waiting = chain(
            chain.from_iterable(self._held[id] for id in sorted(self._held)),
            chain.from_iterable(self._buckets[tick] for tick in ticks),
        )
        return ((entry.target, entry.message) for entry in waiting if entry.message is not None)

    def delay_max(self) -> int:
        """The longest, in ticks, that a message sent with the present rules takes."""
        ticks = max(max(table) for table in [self.delay, *self.link_delays.values()])
        for rule in self.rules:
            ticks = rule.delay_max(ticks)
        return max(1, ticks)

    def overdue(self) -> int:
        """How many ticks longer than any message or timeout now the slowest pending one takes."""
        wait, delay = round(INTERVAL * (1 + self.drift)), self.delay_max()
        late = 0
        for tick, bucket in self._buckets.items():
            for entry in bucket:
                if entry.message is not None:
                    late = max(late, tick - self.tick - delay)
                elif self._lives[entry.target] == entry.source:
                    late = max(late, tick - self.tick - wait)
        return late

    def rewrite_channel(self, change: Callable[[Entry], Sequence[Entry]]) -> int:
        """Replace each message in flight by `change(entry)`; returns how many were changed."""
        changed = 0
        for bucket in [*self._buckets.values(), *self._held.values()]:
            fresh: list[Entry] = []
            for entry in bucket:
                after = (entry,) if entry.message is None else change(entry)
                changed += len(after) != 1 or after[0] is not entry
                fresh.extend(after)
            bucket[:] = fresh
        return changed

    # The loop

    def _run_bucket(self, bucket: list[Entry]) -> None:
        nodes, held, perform = self.nodes, self._held, self._perform
        observers, delivered = self._observers["deliver"], 0
        for entry in bucket:
            target, message = entry.target, entry.message
            if held and target in held:
                held[target].append(entry)
                continue
            if message is None:
                self._run_timeout(entry)
                continue
            node = nodes.get(target)
            if node is None:
                self._fail(entry)
                continue
            delivered += 1
            for observer in observers:
                observer.record(self.tick, "deliver", target, entry, None)
            source = entry.source
            effects = node.on_message(message, None if source == ENVIRONMENT else source)
            if effects:
                perform(target, effects, entry)
            elif effects is None:
                raise _returned_none(node, "on_message")
        self.delivered += delivered

    def _run_timeout(self, entry: Entry) -> None:
        """The driver's promise of fairness: a live node's timeout always comes round again."""
        id = entry.target
        if self._lives[id] != entry.source:
            return
        period = self._next_period(id) if self.drift or self.slowness else INTERVAL
        self._buckets[self.tick + period].append(entry)
        node = self.nodes[id]
        for observer in self._observers["timeout"]:
            observer.record(self.tick, "timeout", id, entry, None)
        if node.reads_clock:
            seconds = self.tick // TICKS_PER_SECOND + self.clock_skew.get(id, 0)
            self.command(id, Clock(seconds), entry)
            if self._lives[id] != entry.source:
                return  # its power was cut as it took the time down
        effects = node.on_timeout()
        if effects is None:
            raise _returned_none(node, "on_timeout")
        if effects:
            self._perform(id, effects, entry)

    def _next_period(self, id: NodeId) -> int:
        drifted = 1 + self.drift * (2 * self._period.random() - 1)
        return max(1, round(INTERVAL * drifted * self.slowness.get(id, 1.0)))

    def _perform(self, source: NodeId, effects: Effects, cause: Entry) -> None:
        buckets, delay, draw, tick = self._buckets, self.delay, self._draw, self.tick
        plain = not (self.rules or self.link_delays or self._observers["send"])
        number, sent = cause.number, self.sent
        for effect in effects:
            if type(effect) is not Send:
                self._note("effect", source, cause, effect)
                if type(effect) is Persist and self.persisted is not None:
                    self.sent = sent
                    if self._persist(source, cause):
                        return
            elif plain:
                sent += 1
                entry = Entry(effect.target, effect.message, source, sent, number)
                buckets[tick + delay[int(draw() * QUANTILES)]].append(entry)
            else:
                sent += 1
                self._route(Entry(effect.target, effect.message, source, sent, number))
        self.sent = sent

    def _persist(self, id: NodeId, cause: Entry) -> bool:
        """Put the state of a node on disk; True if its power is cut and nothing follows."""
        assert self.persisted is not None
        cut = self.power_cuts.pop(id, None)
        if cut is None or cut.after:
            self.persisted[id] = self.nodes[id].snapshot()
        if cut is None:
            return False
        cut.happen()
        if cause.message is not None and cause.target == id:  # it was not acknowledged yet
            self._link_down(cause)
        return True

    def _report(self) -> None:
        """Tell nodes what became of their links; what they send now can make news again."""
        news, self._news = self._news, []
        for id, command in news:
            if id in self.nodes:
                self.command(id, command)

    def _route(self, entry: Entry) -> None:
        """Send one message over links that misbehave or are watched."""
        source, target, message = entry.source, entry.target, entry.message
        assert message is not None
        own = self.link_delays
        table = own.get((source, target), self.delay) if own else self.delay
        delays = [table[int(self._draw() * QUANTILES)]]
        if self._observers["send"]:
            self._note("send", source, entry, None)
        for rule in self.rules:
            delays = rule.apply(source, target, message, delays)
        if not delays:
            self._note("drop", target, entry, None)
        for ticks in delays:
            self._buckets[self.tick + max(1, ticks)].append(entry)

    def _fail(self, entry: Entry) -> None:
        """A message to nobody: a connection-oriented network tells the sender, later."""
        if entry.source in self._held:  # a sender that is paused hears of it when it goes on
            self._held[entry.source].append(entry)
            return
        self.undeliverable += 1
        self._note("drop", entry.target, entry, None)
        if self.detects_failed_sends:
            self._lost.setdefault(entry.target, {})[entry.source] = None
        self._link_down(entry)

    def _link_down(self, entry: Entry) -> None:
        """Tell the sender, if anybody does, that its message was not acknowledged."""
        source, message = entry.source, entry.message
        if self.detects_failed_sends and source in self.nodes and message is not None:
            self.command(source, LinkDown(entry.target, (message,)), entry)

    def _note(self, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        for observer in self._observers[kind]:
            observer.record(self.tick, kind, node, entry, effect)

    def _put(self, tick: int, entry: Entry) -> None:
        self._buckets[tick].append(entry)


def _returned_none(node: Node, handler: str) -> WrongHandler:
    """A `return` that somebody forgot: taken for no effects, the network would merely not heal."""
    place = f"{type(node).__name__}.{handler}"
    return WrongHandler(f"{place} returned None: a handler returns its effects, [] if it has none")
