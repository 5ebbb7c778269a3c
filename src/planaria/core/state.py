"""State as a value: what a component remembers, as one typed struct to compare, store and send.

A component names its variables once, as the fields of its `State`. Whatever is not named there is
configuration, or follows from the variables. A snapshot is that state as bytes; a restart decodes
it, or starts fresh if it cannot be read.
"""

from typing import Any, ClassVar

import msgspec
from msgspec import Struct


class State(Struct, frozen=True, tag=True):
    """The variables of one component.

    Every field has the value of a fresh component as its default, so that what an older version
    stored can be read by a newer one.
    """


class Stateful:
    """Something with protocol state: a node, or a component that a node is made of.

    Attributes have the names of the state's fields. One that is itself `Stateful`, or a dict of
    such, stands in the state as its own state.
    """

    __slots__ = ()

    state_type: ClassVar[type[State]] = State

    def state(self) -> State:
        """All variables as one value; it shares what they hold, so `snapshot` it to keep it."""
        return self.state_type(
            *[_value(getattr(self, name)) for name in self.state_type.__struct_fields__]
        )

    def load(self, state: Any) -> None:
        """Take a state, however old or wrong. Keeps the parts: configuration is theirs."""
        for name in self.state_type.__struct_fields__:
            own, value = getattr(self, name), getattr(state, name)
            if isinstance(own, Stateful):
                own.load(value)
            elif isinstance(value, dict) and any(isinstance(it, State) for it in value.values()):
                setattr(self, name, {key: self._loaded(name, key, it) for key, it in value.items()})
            else:
                setattr(self, name, value)

    def part(self, name: str, key: Any) -> "Stateful":
        """A new part for entry `key` of the dict `name`; only who has such dicts overrides it."""
        raise NotImplementedError(f"{type(self).__name__} has no parts in {name}")

    def repair(self) -> None:
        """Put my own variables right, whatever they are: afterwards they can be encoded."""

    def snapshot(self) -> bytes:
        """The state as bytes, to store or to come back to."""
        try:
            return msgspec.msgpack.encode(self.state())
        except OverflowError:  # memory can hold numbers of any size, a message cannot
            self.repair()
            return msgspec.msgpack.encode(self.state())

    def restore(self, snapshot: bytes) -> str | None:
        """Take stored bytes; if they are no state of mine, change nothing and say what is wrong."""
        try:
            self.load(msgspec.msgpack.decode(snapshot, type=self.state_type))
        except (msgspec.DecodeError, RecursionError) as error:
            return str(error)
        return None

    def _loaded(self, name: str, key: Any, state: State) -> "Stateful":
        part = self.part(name, key)
        part.load(state)
        return part


def _value(it: Any) -> Any:
    if isinstance(it, Stateful):
        return it.state()
    if type(it) is dict and it and isinstance(next(iter(it.values())), Stateful):
        return {key: part.state() for key, part in it.items()}
    return it
