"""What applications do: commands at times, the same for a simulation and for a network.

A workload is part of a scenario (`core/scenario`): `ask_of` reads one of its lines as a command and
`action_of` writes it again. A driver calls `offers` when the time has come and tries what it is
offered until a node accepts: `UsageError` means 'not this node', `CapacityExceeded` 'not now'.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.node import Command, Leave, Publish, Subscribe, Unsubscribe
from planaria.core.overlay import Overlay
from planaria.core.scenario import ANYBODY, WORKLOAD, Action, Value

_COMMANDS: dict[str, type[Command]] = {
    "subscribe": Subscribe,
    "unsubscribe": Unsubscribe,
    "publish": Publish,
    "leave": Leave,
}
_BYTES = ("payload", "key")


class Ask(Struct, frozen=True):
    """A command at a time, in intervals, to the application at one node or at any that can.

    `node` is the number of a node in the order of joining; None: whoever can. It is asked `count`
    times. A `Publish` without a topic stands for whatever the overlay's applications publish.
    """

    at: float
    command: Command
    node: int | None = None
    count: int = 1


def ask_of(action: Action) -> Ask:
    """The command that a line of a scenario asks for."""
    given = dict(action.arguments)
    node, count = given.pop("node", ANYBODY), given.pop("count", 1)
    given.pop("share", None)  # of those who may leave: the driver counts them
    assert isinstance(node, int)
    assert isinstance(count, int)
    fields: dict[str, Any] = {
        name: _encoded(value) if name in _BYTES else value for name, value in given.items()
    }
    if action.kind == "publish":
        fields.setdefault("topic", "")
    if fields.get("where") == "":
        del fields["where"]
    command = _COMMANDS[action.kind](**fields)
    return Ask(action.at, command, None if node == ANYBODY else node, count)


def action_of(ask: Ask) -> Action:
    """The line of a scenario that asks for this; refuses what a line cannot say."""
    kind = next((name for name, it in _COMMANDS.items() if type(ask.command) is it), None)
    if kind is None:
        raise UsageError(f"a workload asks for {', '.join(_COMMANDS)}, not for {ask.command}")
    arguments: dict[str, Value] = {} if ask.count == 1 else {"count": ask.count}
    plain = _COMMANDS[kind]("") if kind == "publish" else _COMMANDS[kind]()
    for name in WORKLOAD[kind]:
        value: Any = getattr(ask.command, name, None)
        if value != getattr(plain, name, None):
            arguments[name] = _decoded(value) if name in _BYTES else _plain(name, value)
    if ask.node is not None:
        arguments["node"] = ask.node
    return Action(ask.at, kind, arguments)


def offers(
    ask: Ask, members: Sequence[NodeId], overlay: Overlay | None, rng: Random, number: int = 0
) -> Iterator[tuple[NodeId, Command]]:
    """Whom to ask for what, in the order to try: the node named, or all that may, drawn at random.

    `members` are the nodes that live, in a fixed order; `number` is how many publications were
    asked for before, so that each is another one. What has a topic needs no overlay.
    """
    possible = [id for id in members if ask.node in (None, id)]
    found = {id: _command(ask.command, overlay, id, number) for id in possible}
    candidates = [id for id in possible if found[id] is not None]
    while candidates:
        id = rng.choice(candidates)
        command = found[id]
        assert command is not None
        yield id, command
        candidates.remove(id)


def _command(command: Command, overlay: Overlay | None, id: NodeId, number: int) -> Command | None:
    if isinstance(command, Publish) and not command.topic:
        return overlay.publication(id, number) if overlay else None
    return command


def _encoded(text: Value) -> bytes:
    try:
        return str(text).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} is no text: a half of a pair of surrogates") from None


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _plain(name: str, value: Any) -> Value:
    if isinstance(value, int | float | str | dict):
        return value
    raise UsageError(f"{name} {value!r} has no place in a scenario: write it as text")
