"""The errors of Planaria, by whose mistake they are.

    PlanariaError
    ├── UsageError           the caller erred: a bad topic, option, file or command
    ├── MalformedMessage     a peer erred: bytes that do not decode; counted and dropped
    │   └── UnknownMessage   a peer of another version, perhaps: counted apart
    ├── MalformedState       a store erred: bytes that are no state; the node starts fresh
    ├── CapacityExceeded     a stated bound is reached; try again later
    └── InvariantViolation   a run broke a promise of the protocol; carries its replay command

A stale label or a false neighbour is not in this list: it is input, and the node repairs it.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from typing import Any


class PlanariaError(Exception):
    """Base of all errors of Planaria; never raised itself."""


class UsageError(PlanariaError, ValueError):
    """The caller asked for something that cannot be; the message says what to do instead."""


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that does not exist: the nearest one, and all there are."""
    names = list(known)
    near = get_close_matches(name, names, n=1) if isinstance(name, str) else []
    meant = f"; did you mean {near[0]}?" if near else ""
    return UsageError(f"unknown {what} {name!r}{meant} (one of {', '.join(names)})")


class MalformedMessage(PlanariaError, ValueError):
    """Bytes that are not one whole, well-typed message."""


class UnknownMessage(MalformedMessage):
    """A whole message of a kind that nobody here knows: of another version, perhaps."""


class MalformedState(PlanariaError, ValueError):
    """Bytes that are not the whole, well-typed state of a component."""


class CapacityExceeded(PlanariaError):
    """A stated bound is reached and the request was refused whole; nothing was changed."""


class InvariantViolation(PlanariaError, AssertionError):
    """A run broke a promise: which checker saw it, at which step, and how to see it again."""

    def __init__(self, checker: str, *, seed: int, tick: int, detail: str, replay: str) -> None:
        super().__init__(f"{checker}: {detail} (seed {seed}, tick {tick})\n  replay: {replay}")
        self.checker = checker
        self.seed = seed
        self.tick = tick
        self.detail = detail
        self.replay = replay

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is copied by its positional arguments: a worker process would lose ours.
        named = {name: getattr(self, name) for name in ("seed", "tick", "detail", "replay")}
        return partial(type(self), **named), (self.checker,)
