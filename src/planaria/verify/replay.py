"""A counterexample on the simulator: its first states, its steps, one an interval, and its judge.

The simulator does what it does in any trial; what is chosen goes through the doors that faults use:
phases and slowness give the timeouts, a rule of the links says when each message arrives. As in the
search, what no rule reads is taken from a node after its step (`Model.plain`); after the last step
nothing is.
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from msgspec import MsgspecError, json

from planaria.core.codec import Codec
from planaria.core.errors import MalformedMessage, MalformedState, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Node
from planaria.core.overlay import Violation
from planaria.core.state import State, decode_state, encode_state
from planaria.simulator.delays import INTERVAL, fixed
from planaria.simulator.engine import Simulator
from planaria.verify.cases import find_model
from planaria.verify.coins import Coins
from planaria.verify.counterexample import NOWHERE, Counterexample, Later, Step
from planaria.verify.model import Flying, Model, constants
from planaria.verify.space import named

ROUNDS = 3  # of a loop, after which it counts as one that never ends
FREELY = 30  # intervals in which whatever can heal does, with constants as small as a search's
CALM = 5  # of them in a row, after which it has healed; small heights come to their end soon
MESSAGES_MAX = 100_000  # more is a storm
LEGITIMATE = "legitimate"


class HandlerRaised(Exception):
    """A node raised, as no node may."""


class Told(Coins):
    """Coins that fall as a scenario says; once `free`, as they like."""

    free: Random | None = None

    def _choose(self, width: int) -> int:
        return min(super()._choose(width), width - 1)  # other code may ask for other coins

    def random(self) -> float:
        """As told, below or above every probability; or any."""
        return super().random() if self.free is None else self.free.random()

    def _randbelow(self, n: int) -> int:
        return super()._randbelow(n) if self.free is None else self.free.randrange(n)


class Post:
    """The links: each message of a step arrives as many steps later as the scenario says.

    Without a scenario it arrives at once, and one that is equal to another in flight is the same
    one, as in a search.
    """

    def __init__(self, simulator: Simulator, steps: int = 0) -> None:
        self.simulator, self.never = simulator, (steps + 1) * INTERVAL
        self.sends: Sequence[Later] | None = None
        self.sent = 0  # in this step
        self.flights: list[tuple[int, Flying]] = []  # until which tick each is in flight

    def begin(self, sends: Sequence[Later]) -> None:
        """A step begins in which these are sent."""
        self.sends, self.sent = sends, 0

    def apply(
        self, source: NodeId, target: NodeId, message: Message, delays: list[int]
    ) -> list[int]:
        """When it arrives; what the scenario does not know of is in flight to the end."""
        flying, delay = (source, target, message), 1
        if self.sends is None and flying in self.in_flight():
            return []
        if self.sends is not None:
            later = self.sends[self.sent] if self.sent < len(self.sends) else None
            self.sent += 1
            if later == NOWHERE:
                return []
            delay = self.never if later is None else later * INTERVAL
        if target not in self.simulator.nodes:
            return []
        self.note(flying, delay)
        return [delay]

    def delay_max(self, ticks: int) -> int:
        """Whatever the scenario says."""
        return self.never

    def note(self, flying: Flying, delay: int) -> None:
        """Remember that it is in flight."""
        self.flights.append((self.simulator.tick + delay, flying))

    def in_flight(self) -> list[Flying]:
        """What is in flight now."""
        self.flights = [it for it in self.flights if it[0] > self.simulator.tick]
        return [flying for _, flying in self.flights]


class Replay:
    """One counterexample on the simulator; `found` says in the end what went wrong."""

    def __init__(self, example: Counterexample, model: Model) -> None:
        self.example, self.model, self.coins = example, model, Told()
        self.nodes = model.nodes(self.coins)
        for node, data in zip(self.nodes, example.states, strict=True):
            node.load(decode_state(node.state_type, data))
        given = {it.node for it in example.steps} | {it.target for it in example.flying}
        if strangers := given - {node.id for node in self.nodes}:
            raise UsageError(f"no node {min(strangers)}")
        codec = Codec(model.messages)
        self.flying = [(it.source, it.target, codec.decode(it.wire)) for it in example.flying]
        self.found: list[str] = []
        self.was_legitimate = False
        self.ever_legitimate = False
        self._shifts = type(model).shifted is not Model.shifted

    def lines(self) -> Iterator[str]:
        """Take the steps, in words, and go on if they do not repeat for ever."""
        with constants(self.model.constants):
            try:
                yield from self._run()
            except HandlerRaised as error:
                self.found.append(f"exception: {error}")
        for it in self.found:
            yield f"FOUND {it}"
        if not self.found:
            yield "nothing found: it became legitimate and stayed so"

    def _run(self) -> Iterator[str]:
        yield "start"
        yield f"    {self._judged()}"
        followed = yield from self._recounted()
        if followed and self.example.loop is not None:
            if not self.ever_legitimate:
                self.found.append(f"livelock: so it was {ROUNDS} times, and never legitimate")
            return
        if not followed:
            yield "here the nodes do otherwise than those that were searched"
        yield f"then all is heard at once and coins are honest, for up to {FREELY} intervals:"
        self._freely()
        yield f"    {self._judged()}"

    # The steps of the scenario

    def _unrolled(self) -> list[Step]:
        steps, loop = self.example.steps, self.example.loop
        return steps if loop is None else [*steps, *steps[loop:] * (ROUNDS - 1)]

    def _recounted(self) -> Generator[str, None, bool]:
        """Each step at the end of an interval; returns whether the nodes did as in the search."""
        steps = self._unrolled()
        first = {it.node: at for at, it in reversed([*enumerate(steps, 1)]) if it.timeout}
        never = len(steps) + 1
        phases = [first.get(it.id, never) * INTERVAL for it in self.nodes]
        heard = [(it.heard or never) * INTERVAL for it in self.example.flying]
        simulator, post = self._simulator(phases, heard, len(steps))
        for at, step in enumerate(steps):
            if at == self.example.loop:
                yield "for ever:"
                self.ever_legitimate = False
            if at < len(self.example.steps):
                yield step.what
            before = encode_state(simulator.nodes[step.node].state())
            simulator.run(INTERVAL - 1)
            self.coins.begin(step.coins)
            post.begin(step.sends)
            simulator.clock_skew[step.node] = -(at + 1)  # a search stops all clocks
            if step.timeout:
                simulator.slowness[step.node] = _until_next(steps, at)
            before_it = simulator.delivered
            _run(simulator, 1)
            self.flying = post.in_flight()
            said = self._judged()
            if at < len(self.example.steps):
                yield f"    {said}"
            self._safe(simulator.nodes[step.node], before)
            node = simulator.nodes[step.node]
            node.load(self.model.plain(_copied(node)))
            done = step.timeout or simulator.delivered > before_it
            if not done or post.sent != len(step.sends) or not self._as_searched(step):
                return False
        return True

    def _simulator(
        self, phases: Sequence[int], delays: Sequence[int], steps: int = 0
    ) -> tuple[Simulator, Post]:
        """The nodes as they are, with their next timeouts and with what is in flight."""
        simulator = Simulator(0, delay=fixed(1))
        simulator.detects_failed_sends, simulator.sent_max = False, MESSAGES_MAX
        post = Post(simulator, steps)
        simulator.rules, simulator.phases = [post], phases
        for node in self.nodes:
            simulator.add(node)
        for flying, delay in zip(self.flying, delays, strict=True):
            source, target, message = flying
            simulator.inject(target, message, delay, source)
            post.note(flying, delay)
        return simulator, post

    def _as_searched(self, step: Step) -> bool:
        """Are all nodes now in the states that the search had?"""
        if not step.leads_to:
            return True
        states = [_copied(node) for node in self.nodes]
        if self._shifts:
            states = [self.model.plain(it) for it in self.model.shifted(states) or states]
        return named(map(encode_state, states)) == step.leads_to

    # And after them

    def _freely(self) -> None:
        """Let everybody have a timeout an interval, and all be heard before the next timeout."""
        share = INTERVAL // (len(self.nodes) + 1)
        phases = [share * at for at in range(1, len(self.nodes) + 1)]
        simulator, post = self._simulator(phases, [1] * len(self.flying))
        self.coins.free = Random(0)
        calm = 0
        for _ in range(FREELY):
            _run(simulator, INTERVAL)
            self.flying = post.in_flight()
            said = self._judged()
            calm = calm + 1 if said == LEGITIMATE else 0
            if calm == CALM:
                return
        if not calm:
            self.found.append(f"trap: not legitimate after {FREELY} intervals: {said}")

    # What is right

    def _judged(self) -> str:
        """What is not legitimate now; that it was before is noted."""
        states = {node.id: node.state() for node in self.nodes}
        found = self.model.violations(states, self.flying)
        if broken := self.model.broken(states):
            self.found.append(f"safety: {broken}")
        if found and self.was_legitimate:
            self.found.append(f"closure: it was legitimate, and then {found[0]}")
        self.was_legitimate = not found
        self.ever_legitimate |= not found
        return _words(found)

    def _safe(self, node: Node, before: bytes) -> None:
        """Did this step do what no step may?"""
        wrong = self.model.forbidden(decode_state(node.state_type, before), node.state(), ())
        if wrong:
            self.found.append(f"safety: node {node.id}: {wrong}")


def read(path: Path) -> Replay:
    """The counterexample in a file. Raises UsageError if it is none."""
    try:
        example = json.decode(path.read_bytes(), type=Counterexample)
        model = find_model(example.model)(example.n, example.starts)
        with constants(model.constants):
            return Replay(example, model)
    except (OSError, MsgspecError, MalformedMessage, MalformedState, ValueError, KeyError) as error:
        raise UsageError(f"{path} is no counterexample: {error}") from None


def _run(simulator: Simulator, ticks: int) -> None:
    try:
        simulator.run(ticks)
    except Exception as error:
        raise HandlerRaised(f"{type(error).__name__}: {error}") from error


def _until_next(steps: Sequence[Step], at: int) -> int:
    """After how many steps the node of this one has its next timeout."""
    node = steps[at].node
    later = enumerate(islice(steps, at + 1, None), 1)
    return next((it for it, step in later if step.timeout and step.node == node), len(steps))


def _copied(node: Node) -> State:
    return decode_state(node.state_type, node.snapshot())


def _words(found: Sequence[Violation]) -> str:
    return f"{found[0]}" if found else LEGITIMATE
