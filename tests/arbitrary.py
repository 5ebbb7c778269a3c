"""Arbitrary messages: Hypothesis strategies made from the type of a message class alone."""

import pkgutil
from importlib import import_module
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect as types

import planaria
from planaria.core.message import Message

WIRE_INT_MIN, WIRE_INT_MAX = -(2**63), 2**64 - 1  # the integers of MessagePack
ITEMS_MAX = 4  # of an arbitrary list: enough for every case of one, two, several


def message_classes() -> list[type[Message]]:
    """Every message class of the package, from all its modules; none that a test made."""
    for module in pkgutil.walk_packages(planaria.__path__, "planaria."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    found, pending = [], list(Message.__subclasses__())
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        if cls.__struct_config__.tag is not None and cls.__module__.startswith("planaria."):
            found.append(cls)
    return sorted(found, key=lambda cls: str(cls.__struct_config__.tag))


def messages(cls: type[Message]) -> st.SearchStrategy[Message]:
    """Any message of class `cls` that has the types it promises."""
    strategy: st.SearchStrategy[Message] = of_type(types.type_info(cls))
    return strategy


def of_type(info: types.Type) -> st.SearchStrategy[Any]:
    """Any value of the type `info`, within its bounds."""
    match info:
        case types.NoneType():
            return st.none()
        case types.BoolType():
            return st.booleans()
        case types.IntType():
            return integers(info)
        case types.FloatType():
            return st.floats(allow_nan=False)
        case types.StrType():
            return texts(info)
        case types.BytesType():
            return st.binary(min_size=info.min_length or 0, max_size=info.max_length)
        case types.LiteralType():
            return st.sampled_from(info.values)
        case types.UnionType():
            return st.one_of([of_type(each) for each in info.types])
        case types.TupleType():
            return st.tuples(*map(of_type, info.item_types))
        case types.ListType() | types.VarTupleType():
            low, high = sizes(info)
            items = st.lists(of_type(info.item_type), min_size=low, max_size=high)
            return items if isinstance(info, types.ListType) else items.map(tuple)
        case types.DictType():
            low, high = sizes(info)
            keys, values = of_type(info.key_type), of_type(info.value_type)
            return st.dictionaries(keys, values, min_size=low, max_size=high)
        case types.StructType() | types.NamedTupleType():
            return st.builds(info.cls, *(of_type(field.type) for field in info.fields))
        case types.AnyType():
            leaves = st.none() | st.booleans() | st.text(max_size=3) | st.binary(max_size=3)
            return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=6)
    raise TypeError(f"no arbitrary values of {info}: add its type to tests/arbitrary.py")


def integers(info: types.IntType) -> st.SearchStrategy[int]:
    low = max(
        WIRE_INT_MIN if info.ge is None else info.ge,
        WIRE_INT_MIN if info.gt is None else info.gt + 1,
    )
    high = min(
        WIRE_INT_MAX if info.le is None else info.le,
        WIRE_INT_MAX if info.lt is None else info.lt - 1,
    )
    return st.sampled_from([low, high]) | st.integers(low, high)


def texts(info: types.StrType) -> st.SearchStrategy[str]:
    low, high = info.min_length or 0, info.max_length
    if info.pattern is None:
        return st.text(min_size=low, max_size=high)
    fitting = st.from_regex(info.pattern)
    return fitting.filter(lambda text: low <= len(text) and (high is None or len(text) <= high))


def sizes(info: types.ListType | types.VarTupleType | types.DictType) -> tuple[int, int]:
    low = info.min_length or 0
    high = low + ITEMS_MAX
    return low, high if info.max_length is None else min(high, info.max_length)


def raw(message: Message) -> list[Any]:
    """`message` as the plain list that stands on the wire: its tag, then its fields."""
    plain: list[Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(message))
    return plain
