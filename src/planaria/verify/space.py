"""States and steps of a model: each local step is taken once, by the real class, and remembered.

What a node does depends on its own variables, its input and its coins alone. A state of the whole
is one number per node, then (with rounds) who has had its timeout, then the messages in flight.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from planaria.core.codec import to_wire
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Clock, Effects, Send
from planaria.core.state import decode_state, encode_state
from planaria.verify.coins import Coins
from planaria.verify.model import First, Flying, Model

State = tuple[int, ...]
Link = tuple[NodeId, NodeId]  # from whom to whom
Outcome = tuple[int, tuple[int, ...]]  # the node's next state, and what it sends
AGES = 4  # of a message in flight, in ends of rounds, and how many bits' worth of room it has
STORM = 64  # messages in flight that no schedule bounds: more is a storm
TIMEOUT = -1


class Schedule(Struct, frozen=True):
    """Which orders are tried.

    `channel`: at most so many messages in flight; 0: all are heard before the next timeout.
    `delay`: 0: no bound; else everybody has one timeout in each round, in any order, and a message
    is heard before so many further rounds have ended. `fifo`: what one node sends another is heard
    in that order, as over a stream.
    """

    channel: int = 0
    delay: int = 0
    fifo: bool = False

    def __str__(self) -> str:
        if not self.channel:
            order = "every message heard, in every order, before the next timeout"
        else:
            order = f"every order of deliveries and timeouts with at most {self.channel} in flight"
        if self.delay:
            order += "; one timeout of each node a round"
        if self.delay and self.channel:
            order += f", nothing in flight for longer than {self.delay + 1} rounds"
        if self.fifo:
            order += "; of one link in the order sent"
        return order


class Raised(Exception):
    """A handler raised, or did what no step may do, when `action` was taken."""

    def __init__(self, words: str, action: int) -> None:
        super().__init__(words)
        self.action = action


class Space:
    """All that one model can do under one kind of schedule."""

    def __init__(self, model: Model, schedule: Schedule) -> None:
        self.model, self.schedule = model, schedule
        self.coins = Coins()
        self.nodes = model.nodes(self.coins)
        self.n = len(self.nodes)
        self.index = {node.id: at for at, node in enumerate(self.nodes)}
        self.head = self.n + bool(schedule.delay)  # numbers before the messages
        self.locals: list[bytes] = []
        self.local_of: dict[bytes, int] = {}
        self.messages: list[Flying] = []
        self.targets: list[int] = []
        self.links: list[Link] = []
        self.message_of: dict[tuple[NodeId | None, NodeId, bytes], int] = {}
        self.steps: dict[tuple[int, int, int], tuple[Outcome, ...]] = {}
        self._firsts: dict[int, tuple[Any, int]] = {}  # with the state: an id must not come again
        self.shifts = type(model).shifted is not Model.shifted
        self._shifted: dict[State, State] = {}
        self._decoded: dict[tuple[int, int], Any] = {}
        self._names: dict[tuple[bool, int], bytes] = {}
        self.cut = 0  # steps not taken: more would have been in flight than the channel holds

    # Numbers for values

    def local(self, data: bytes) -> int:
        """The number of a node's state."""
        found = self.local_of.get(data)
        if found is None:
            found = self.local_of[data] = len(self.locals)
            self.locals.append(data)
        return found

    def message(self, source: NodeId | None, target: NodeId, message: Message) -> int:
        """The number of a message in flight."""
        key = (source, target, to_wire(message))
        found = self.message_of.get(key)
        if found is None:
            found = self.message_of[key] = len(self.messages)
            self.messages.append((source, target, message))
            self.targets.append(self.index[target])
            self.links.append((-1 if source is None else source, target))
        return found

    def first(self, first: First) -> State:
        """The number of a first state."""
        own = [self._own(first.states[node.id]) for node in self.nodes]
        flying = {self.message(*it) * AGES for it in first.channel if it[1] in self.index}
        state = (*own, *([0] if self.schedule.delay else []), *self.ordered(sorted(flying)))
        return state if flying or not self.shifts else self._shift(state)

    def _own(self, state: Any) -> int:
        """The number of a first state of a node; the same one stands in many first states."""
        known = self._firsts.get(id(state))
        if known is None:
            known = self._firsts[id(state)] = state, self._plain(state)
        return known[1]

    def states(self, state: State) -> dict[NodeId, Any]:
        """The variables of every node in a state of the whole."""
        return {it.id: self.known(at, state[at]) for at, it in enumerate(self.nodes)}

    def known(self, at: int, own: int) -> Any:
        """A node's state as a judge reads it, decoded once."""
        found = self._decoded.get((at, own))
        if found is None:
            found = decode_state(self.nodes[at].state_type, self.locals[own])
            self._decoded[at, own] = found
        return found

    def channel(self, state: State) -> list[Flying]:
        """What is in flight in a state of the whole."""
        return [self.messages[flying // AGES] for flying in state[self.head :]]

    def digest(self, state: State) -> bytes:
        """The same name for the same state in every process, whatever its numbers are there."""
        parts = [self._named(False, own) for own in state[: self.n]]
        flying = [(self._named(True, it // AGES), it % AGES) for it in state[self.head :]]
        parts += [b"%d" % it for it in state[self.n : self.head]]
        parts += [
            name + b"%d" % age for name, age in (flying if self.schedule.fifo else sorted(flying))
        ]
        return _hashed(b" ".join(parts))

    def _named(self, flying: bool, number: int) -> bytes:
        """The name of a node's state or of a message, made once."""
        found = self._names.get((flying, number))
        if found is None:
            if flying:
                source, target, message = self.messages[number]
                found = _hashed(f"{source} {target} ".encode() + to_wire(message))
            else:
                found = _hashed(self.locals[number])
            self._names[flying, number] = found
        return found

    def _shift(self, state: State) -> State:
        """A state without messages, counted from where the model says."""
        found = self._shifted.get(state[: self.n])
        if found is None:
            kinds = [node.state_type for node in self.nodes]
            pairs = zip(kinds, state, strict=False)
            fresh = self.model.shifted([decode_state(it, self.locals[own]) for it, own in pairs])
            found = state[: self.n] if fresh is None else tuple(map(self._plain, fresh))
            self._shifted[state[: self.n]] = found
        return (*found, *state[self.n :])

    def _plain(self, state: Any) -> int:
        return self.local(encode_state(self.model.plain(state)))

    # Steps

    def step(self, at: int, own: int, input: int) -> tuple[Outcome, ...]:
        """Every outcome of one input at one node: a message by its number, or TIMEOUT."""
        key = (at, own, input)
        found = self.steps.get(key)
        if found is None:
            found = self.steps[key] = self._step(at, own, input)
        return found

    def _step(self, at: int, own: int, input: int) -> tuple[Outcome, ...]:
        return tuple(dict.fromkeys(outcome for _, outcome, _ in self.ways(at, own, input)))

    def ways(
        self, at: int, own: int, input: int
    ) -> Iterator[tuple[list[int], Outcome, list[int | None]]]:
        """Each way its coins may fall, what comes of it, and all it sends (None: to nobody)."""
        node, data = self.nodes[at], self.locals[own]
        action = at if input == TIMEOUT else self.n + input
        for script in self.coins.scripts():
            node.load(decode_state(node.state_type, data))
            self.coins.begin(script)  # what is drawn only to be overwritten does not count
            try:
                effects = self._input(at, input)
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
                raise Raised(f"node {node.id} raised {said}", action) from error
            before = decode_state(node.state_type, data)
            if wrong := self.model.forbidden(before, node.state(), effects):
                raise Raised(f"node {node.id}: {wrong}", action)
            sent = [
                self.message(node.id, it.target, it.message) if it.target in self.index else None
                for it in effects
                if isinstance(it, Send)
            ]
            alive = dict.fromkeys(it for it in sent if it is not None)
            yield script, (self._plain(node.state()), (*alive,)), sent

    def _input(self, at: int, input: int) -> Effects:
        node = self.nodes[at]
        if input != TIMEOUT:
            source, _, message = self.messages[input]
            return node.on_message(message, source)
        read = node.on_command(Clock(0)) if node.reads_clock else ()
        return [*read, *node.on_timeout()]

    def take(self, state: State, action: int) -> tuple[Outcome, ...]:
        """What one action does to the node that takes it; raises Raised."""
        if action < self.n:
            return self.step(action, state[action], TIMEOUT)
        at = self.targets[action - self.n]
        return self.step(at, state[at], action - self.n)

    def after(self, state: State) -> Iterator[tuple[int, list[State]]]:
        """Each action possible in a state, with all its outcomes.

        Actions are the place of a node, for its timeout, or n and the number of a message.
        """
        yield from self._timeouts(state)
        before = None
        for place in range(self.head, len(state)):
            number = state[place] // AGES
            if self.schedule.fifo:
                if self.links[number] == before:
                    continue
                before = self.links[number]
            at = self.targets[number]
            rest = state[:place] + state[place + 1 :]
            reached = self._reached(rest, at, self.step(at, state[at], number))
            if reached:
                yield self.n + number, reached

    def _timeouts(self, state: State) -> Iterator[tuple[int, list[State]]]:
        flying = len(state) > self.head
        if flying and not self.schedule.channel:
            return
        for at in range(self.n):
            start = self._due(state, at) if self.schedule.delay else state
            if start is None:
                continue
            reached = self._reached(start, at, self.step(at, state[at], TIMEOUT))
            if reached:
                yield at, reached

    def _due(self, state: State, at: int) -> State | None:
        """The state with this node's timeout of the round taken; None if it is not due."""
        had = state[self.n]
        if had >> at & 1:
            return None
        had |= 1 << at
        aged = state[self.head :]
        if had == (1 << self.n) - 1:
            if any(it % AGES >= self.schedule.delay for it in aged):
                return None  # the round ends with what is due heard
            had, aged = 0, tuple(it + 1 for it in aged)
        return (*state[: self.n], had, *aged)

    def led(self, state: State, action: int, outcome: Outcome) -> State:
        """Where one outcome of an action that is possible leads."""
        at, start = action, state
        if action >= self.n:
            at = self.targets[action - self.n]
            numbers = [it // AGES for it in state[self.head :]]
            place = self.head + numbers.index(action - self.n)
            start = state[:place] + state[place + 1 :]
        elif self.schedule.delay:
            due = self._due(state, at)
            assert due is not None
            start = due
        return self._reached(start, at, (outcome,))[0]

    def name(self, state: State) -> str:
        """A name of all nodes' states; none for those that are counted from elsewhere later."""
        if self.shifts and len(state) > self.head:
            return ""
        return named(self.locals[own] for own in state[: self.n])

    def ordered(self, flying: list[int]) -> list[int]:
        """Messages in flight as they stand in a state: a set, or of each link as they were sent."""
        if self.schedule.fifo:
            return sorted(flying, key=lambda it: self.links[it // AGES])
        return sorted(flying)

    def _reached(self, start: State, at: int, outcomes: tuple[Outcome, ...]) -> list[State]:
        """What each outcome leads to; nothing if one of them does not fit the channel."""
        limit = self.schedule.channel or STORM
        reached, head, flying = [], self.head, start[self.head :]
        for own, sends in outcomes:
            new = flying
            if sends:
                known = {it // AGES for it in flying}
                fresh = [it * AGES for it in sends if it not in known]
                if len(flying) + len(fresh) > limit:
                    self.cut += 1
                    return []
                if fresh:
                    new = tuple(self.ordered([*flying, *fresh]))
            after = (*start[:at], own, *start[at + 1 : head], *new)
            reached.append(after if new or not self.shifts else self._shift(after))
        return list(dict.fromkeys(reached)) if len(reached) > 1 else reached


def named(states: Iterable[bytes]) -> str:
    """A short name of the states of all nodes."""
    return _hashed(b"".join(map(_hashed, states))).hex()[:16]


def _hashed(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
