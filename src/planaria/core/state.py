"""State as a value: what a component remembers, as one typed struct that can be sent and compared.

A component keeps its variables as attributes, which is fast; its `State` names them and their
types. `state` shows them to a judge, `snapshot` makes bytes of them for a store, `restore` takes
bytes back, or leaves the component as it was made and says why.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from msgspec import MsgspecError, Struct, convert, msgpack, to_builtins

from planaria.core.errors import MalformedState

S = TypeVar("S", bound="State")

PLAIN, WIDE = b"\x01", b"\x02"  # the first byte of a snapshot: how the rest is encoded
BIG = "\0"  # begins a text that stands for an integer beyond 64 bits


class State(Struct, gc=False):
    """The variables of a component: what a store keeps, a fault may change and a judge reads.

    A subclass has one field for each variable, named as the component's attribute. Its types are
    what memory can hold, not what is right: whatever is wrong in them the component repairs.
    """


class Stateful:
    """Something with protocol state: a node, or a component that a node is made of.

    `state_type` names its variables. A variable that is itself `Stateful` is a part, and its field
    is that part's state. Everything else is configuration.
    """

    __slots__ = ()

    state_type: ClassVar[type[State]] = State

    def state(self) -> State:
        """The variables as they are now. Not a copy: read it before the next input."""
        values = _reader(self.state_type)(self)
        return self.state_type(
            *[value.state() if isinstance(value, Stateful) else value for value in values]
        )

    def load(self, state: State) -> None:
        """Take these variables, right or wrong, in place of mine."""
        for name in self.state_type.__struct_fields__:
            mine, value = getattr(self, name), getattr(state, name)
            if isinstance(mine, Stateful):
                mine.load(value)
            else:
                setattr(self, name, value)

    def snapshot(self) -> bytes:
        """The state as bytes, to store, to compare or to come back to."""
        return encode_state(self.state())


@cache
def _reader(kind: type[State]) -> Callable[[object], tuple[Any, ...]]:
    """What reads all variables of a component at once: a judge asks for them again and again."""
    names = kind.__struct_fields__
    if len(names) > 1:
        return attrgetter(*names)
    return lambda component: tuple(getattr(component, name) for name in names)


def encode_state(state: State) -> bytes:
    """The bytes of a state; integers of any size, since memory can hold them."""
    try:
        return PLAIN + msgpack.encode(state)
    except OverflowError:
        return WIDE + msgpack.encode(_each(to_builtins(state, builtin_types=(bytes,)), _narrow))


def decode_state(kind: type[S], data: bytes) -> S:
    """The state in `data`, or `MalformedState`: never another error."""
    try:
        if data[:1] == PLAIN:
            return msgpack.decode(data[1:], type=kind)
        if data[:1] == WIDE:
            return convert(_each(msgpack.decode(data[1:]), _widen), kind)
    except (MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise MalformedState(f"not a state of {kind.__name__}: {error}") from None
    raise MalformedState(f"not a state of {kind.__name__}: it begins with {data[:1].hex() or '-'}")


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same value with `change` made to each number and text in it."""
    if isinstance(value, dict):
        return {_each(key, change): _each(it, change) for key, it in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_each(it, change) for it in value])
    return change(value)


def _narrow(value: Any) -> Any:
    """An integer that no encoding has becomes a text, and a text that looks like one is marked."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return f"{BIG}{value:x}"
    return BIG + value if isinstance(value, str) and value.startswith(BIG) else value


def _widen(value: Any) -> Any:
    """What `_narrow` changed, as it was."""
    if not isinstance(value, str) or not value.startswith(BIG):
        return value
    return value[1:] if value.startswith(2 * BIG) else int(value[1:], 16)
