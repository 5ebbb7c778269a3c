"""A counterexample as a scenario: first states as bytes, then every step with what it leads to.

It says of each message after how many steps it is heard, and of each coin how it falls, so that
`planaria sim --replay` takes the same way on the simulator (`planaria.verify.replay`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct, to_builtins

from planaria.core.codec import to_wire
from planaria.core.ids import NodeId
from planaria.verify.check import Finding, Search, action_name
from planaria.verify.graph import NOBODY
from planaria.verify.model import constants
from planaria.verify.space import AGES, TIMEOUT, Raised, Space, State

NOWHERE = 0  # sent to nobody alive, or equal to a message in flight
Later = int | None  # steps until it is heard, NOWHERE, or None: in flight at the end


class Step(Struct):
    """One input of one node, how its coins fall, and what becomes of each message that it sends.

    `leads_to` is a name of all nodes' states afterwards; empty where the search counted them from
    elsewhere, or where the step raised.
    """

    what: str
    node: NodeId
    timeout: bool
    coins: list[int]
    sends: list[Later]
    leads_to: str


class Flight(Struct):
    """A message that is in flight at first."""

    source: NodeId | None
    target: NodeId
    wire: bytes
    heard: Later


class Counterexample(Struct):
    """All that is needed to take the steps of a finding again; from `loop` on they repeat."""

    model: str
    n: int
    starts: str
    channel: int
    delay: int
    fifo: bool
    kind: str
    detail: str
    states: list[bytes]  # of the nodes, in the order of the model
    flying: list[Flight]
    steps: list[Step]
    loop: int | None


def counterexample(search: Search, finding: Finding) -> dict[str, Any]:
    """The scenario of a finding, ready to be written as JSON."""
    model, space, schedule = search.model, search.graph.space, search.schedule
    first = search.graph.states[finding.stem[0][1]]
    flying = [it // AGES for it in first[space.head :]]
    with constants(model.constants):
        heard, steps = _steps(search, finding, flying)
    found = Counterexample(
        model.name,
        model.n,
        model.start,
        schedule.channel,
        schedule.delay,
        schedule.fifo,
        finding.kind,
        finding.detail,
        [space.locals[own] for own in first[: space.n]],
        [_flight(space, *it) for it in zip(flying, heard, strict=True)],
        steps,
        len(finding.stem) - 1 if finding.loop else None,
    )
    written = to_builtins(found)
    assert isinstance(written, dict)
    return written


def _flight(space: Space, number: int, heard: Later) -> Flight:
    source, target, message = space.messages[number]
    return Flight(source, target, to_wire(message), heard)


def _steps(
    search: Search, finding: Finding, flying: Sequence[int]
) -> tuple[list[Later], list[Step]]:
    """When the first messages are heard, and all steps; those of a loop once.

    A loop is walked twice: what is in flight at its end is heard when it comes round.
    """
    states = search.graph.states
    path = [*finding.stem, *finding.loop, *finding.loop]
    ways = [
        (states[before], action, states[after]) for (_, before), (action, after) in pairwise(path)
    ]
    known = len(finding.stem) - 1 + len(finding.loop)
    steps: list[Step] = []
    sends: list[list[Later]] = [[None] * len(flying)]  # of the beginning, then of each step
    since = {number: (0, place) for place, number in enumerate(flying)}
    for at, (before, action, after) in enumerate(ways, 1):
        _hear(search.graph.space, action, at, since, sends)
        step, sent = _step(search, before, action, after)
        for place, number in enumerate(sent):
            if number is not None and number not in since:
                since[number] = (at, place)
                step.sends[place] = None
        sends.append(step.sends)
        steps.append(step)
    if finding.last != NOBODY:
        _hear(search.graph.space, finding.last, len(ways) + 1, since, sends)
        return sends[0], [*steps, _raising(search, states[path[-1][1]], finding.last)]
    return sends[0], steps[:known]


def _hear(
    space: Space,
    action: int,
    at: int,
    since: dict[int, tuple[int, int]],
    sends: list[list[Later]],
) -> None:
    """Note that a message is heard now."""
    if action >= space.n:
        then, place = since.pop(action - space.n)
        sends[then][place] = at - then


def _step(
    search: Search, before: State, action: int, after: State
) -> tuple[Step, list[int | None]]:
    """One step, and what the node sends in it: numbers of messages, None for those to nobody."""
    space = search.graph.space
    at, input = _input(space, action)
    for script, outcome, sent in space.ways(at, before[at], input):
        if space.led(before, action, outcome) == after:
            name = space.name(after)
            return _written(search, action, script, [NOWHERE] * len(sent), name), sent
    raise AssertionError("no way of the coins leads there")


def _raising(search: Search, before: State, action: int) -> Step:
    """The step that raised."""
    space = search.graph.space
    at, input = _input(space, action)
    try:
        for _ in space.ways(at, before[at], input):
            pass
    except Raised:
        return _written(search, action, space.coins.script, [], "")
    raise AssertionError("nothing raised")


def _written(
    search: Search, action: int, script: Sequence[int], sends: list[Later], name: str
) -> Step:
    space = search.graph.space
    at, input = _input(space, action)
    words = action_name(search.graph, action)
    return Step(words, space.nodes[at].id, input == TIMEOUT, [*script], sends, name)


def _input(space: Space, action: int) -> tuple[int, int]:
    """Who takes an action, and what it is for it."""
    if action < space.n:
        return action, TIMEOUT
    return space.targets[action - space.n], action - space.n
