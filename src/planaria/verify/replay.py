"""A counterexample as a file: a first state and the steps from it, which can be taken again.

`planaria sim` begins with states drawn from a seed and orders drawn from a scheduler; neither can
express a chosen state or a chosen order. So a counterexample is replayed by `planaria verify`, step
by step, on the same classes.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from planaria.core.codec import Codec, to_wire
from planaria.core.errors import UsageError
from planaria.verify.cases import find_model
from planaria.verify.check import Finding, Search, action_name
from planaria.verify.graph import NOBODY
from planaria.verify.model import constants
from planaria.verify.space import AGES, Raised, Schedule, Space, State


def counterexample(search: Search, finding: Finding) -> dict[str, Any]:
    """All that is needed to take the steps of a finding again."""
    graph, model, space = search.graph, search.model, search.graph.space
    first = graph.states[finding.stem[0][1]]
    steps = [*finding.stem, *finding.loop]
    flying = [space.messages[it // AGES] for it in first[space.head :]]
    return {
        "model": model.name,
        "n": model.n,
        "starts": model.start,
        "channel": search.schedule.channel,
        "delay": search.schedule.delay,
        "fifo": search.schedule.fifo,
        "kind": finding.kind,
        "detail": finding.detail,
        "states": [space.locals[own].hex() for own in first[: space.n]],
        "flying": [[source, target, to_wire(it).hex()] for source, target, it in flying],
        "steps": [
            _step(search, before, action, after) for (_, before), (action, after) in pairwise(steps)
        ],
        "loop": len(finding.stem) - 1 if finding.loop else None,
        "raises": None if finding.last == NOBODY else _input(space, finding.last),
    }


def _step(search: Search, before: int, action: int, after: int) -> list[Any]:
    """One step: whose timeout or which message, and which of its outcomes."""
    graph = search.graph
    outcomes = next(list(targets) for it, targets in graph.actions(before) if it == action)
    return [*_input(graph.space, action), outcomes.index(after)]


def _input(space: Space, action: int) -> list[Any]:
    """Whose timeout, or which message."""
    if action < space.n:
        return ["timeout", space.nodes[action].id]
    source, target, message = space.messages[action - space.n]
    return ["deliver", source, target, to_wire(message).hex()]


def replay(path: Path) -> Iterator[str]:
    """Take the steps of a counterexample again, in words; Raises UsageError if they cannot be."""
    try:
        data = json.loads(path.read_text())
        model = find_model(data["model"])(data["n"], data["starts"])
        schedule = Schedule(data["channel"], data["delay"], data["fifo"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no counterexample: {error}") from None
    search = Search(model, schedule)
    with constants(model.constants):
        yield from _told(search, data)


def _told(search: Search, data: dict[str, Any]) -> Iterator[str]:
    space, codec = search.graph.space, Codec(search.model.messages)
    own = [space.local(bytes.fromhex(it)) for it in data["states"]]
    flying = [(s, t, codec.decode(bytes.fromhex(wire))) for s, t, wire in data["flying"]]
    rest = [0] if search.schedule.delay else []
    state: State = (*own, *rest, *(space.message(*it) * AGES for it in flying))
    seen = [state]
    yield from _described(search, NOBODY, state)
    for number, step in enumerate(data["steps"]):
        if number == data["loop"]:
            yield "for ever:"
        action = _action(space, codec, step)
        state = dict(space.after(state))[action][step[-1]]
        seen.append(state)
        yield from _described(search, action, state)
    if data["loop"] is not None and seen[data["loop"]] != seen[-1]:
        yield "the loop does not close: the code is not that of the search"
    if data["raises"] is not None:
        action = _action(space, codec, data["raises"])
        yield action_name(search.graph, action)
        yield f"    {_raised(space, state, action)}"


def _raised(space: Space, state: State, action: int) -> str:
    try:
        space.take(state, action)
    except Raised as raised:
        return str(raised)
    return "raises nothing: the code is not that of the search"


def _action(space: Space, codec: Codec, step: list[Any]) -> int:
    if step[0] == "timeout":
        return space.index[step[1]]
    return space.n + space.message(step[1], step[2], codec.decode(bytes.fromhex(step[3])))


def _described(search: Search, action: int, state: State) -> Iterator[str]:
    space = search.graph.space
    yield action_name(search.graph, action)
    found = search.model.violations(space.states(state), space.channel(state))
    yield f"    {found[0]}" if found else "    legitimate"
