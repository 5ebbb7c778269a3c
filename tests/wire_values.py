"""Every message that a peer can send, drawn from the types of its fields: extremes, and what is
known to the node that gets it."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from planaria.core.message import Message
from planaria.simulator.worlds.registry import REGISTERED, find_kind

INTEGERS = (-(1 << 63), (1 << 64) - 1)  # what msgpack carries
SIZE_MAX = 3  # items of a list: more of them are more of the same
LIMITS_MAX = 1 << 12  # bytes: a length that is at its limit is tried if it is no longer than this

Draw = st.SearchStrategy[Any]


class Wire:
    """Strategies for messages; `ids` and `words` are numbers and texts that mean something."""

    def __init__(self, ids: Sequence[int], words: Sequence[str]) -> None:
        self.ids, self.words = list(ids), list(words)

    def messages(self) -> st.SearchStrategy[Message]:
        """Any message of any protocol."""
        own = {cls: None for name in REGISTERED for cls in find_kind(name).make().messages}
        return st.one_of([self.of(inspect.type_info(cls)) for cls in own])

    def of(self, kind: inspect.Type) -> Draw:
        """Values of one type."""
        match kind:
            case inspect.IntType():
                return self._integers(kind)
            case inspect.StrType():
                return st.sampled_from(self.words) | st.text(max_size=SIZE_MAX)
            case inspect.BytesType():
                return self._bytes(kind)
            case inspect.UnionType():
                return st.one_of([self.of(it) for it in kind.types])
            case inspect.TupleType():
                return st.tuples(*(self.of(it) for it in kind.item_types))
            case inspect.VarTupleType():
                return self._lists(kind).map(tuple)
            case inspect.ListType():
                return self._lists(kind)
            case inspect.DictType():
                keys, values = self.of(kind.key_type), self.of(kind.value_type)
                return st.dictionaries(keys, values, max_size=SIZE_MAX)
            case inspect.StructType():
                fields = [self.of(field.type) for field in kind.fields]
                return st.builds(kind.cls, *fields)
        return {
            inspect.BoolType: st.booleans(),
            inspect.FloatType: st.floats(),
            inspect.NoneType: st.none(),
        }[type(kind)]

    def _integers(self, kind: inspect.IntType) -> Draw:
        low = INTEGERS[0] if kind.ge is None else kind.ge
        high = INTEGERS[1] if kind.le is None else kind.le
        known = [it for it in self.ids if low <= it <= high]
        ends = st.sampled_from([low, high, *known])
        return ends | st.integers(low, high) | st.integers(max(low, -2), min(high, 40))

    def _bytes(self, kind: inspect.BytesType) -> Draw:
        least, most = kind.min_length or 0, kind.max_length
        most = least + 8 if most is None or most > LIMITS_MAX else most
        return st.binary(min_size=least, max_size=most)

    def _lists(self, kind: inspect.VarTupleType | inspect.ListType) -> Draw:
        least, most = kind.min_length or 0, kind.max_length
        most = SIZE_MAX if most is None else min(most, max(least, SIZE_MAX))
        return st.lists(self.of(kind.item_type), min_size=least, max_size=most)
