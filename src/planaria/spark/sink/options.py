"""The options and columns of a write, understood and checked once, where the query is made."""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
)

from planaria.core.errors import UsageError, unknown
from planaria.core.topics import check_topic
from planaria.network.client.messages import COPIES, COPIES_MAX
from planaria.spark.source.options import Network, network_of, number_of, option, option_or_path

NAMES = (
    "servers", "context", "credentials", "insecure", "topic", "copies", "path",
    "checkpointLocation",
)  # fmt: skip
COLUMNS = ("value", "key", "topic", "headers")


class WriteOptions(NamedTuple):
    """Where rows go, and how many members are to hold them."""

    network: Network
    topic: str | None
    copies: int

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "WriteOptions":
        """Understand options as Spark hands them over; raises UsageError that names the option."""
        options = {name.lower(): value for name, value in given.items()}
        known = {name.lower() for name in NAMES}
        for name in options:
            if name not in known:
                raise unknown("option", name, NAMES)
        topic = option_or_path(options, "topic")
        copies = number_of("copies", options.get("copies"), COPIES_MAX) or COPIES
        if topic is not None:
            with option("topic"):
                check_topic(topic)
        return cls(network_of(options), topic, copies)


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise UsageError unless these columns can be published."""
    names = schema.fieldNames()
    for field in schema.fields:
        if field.name not in COLUMNS:
            raise UsageError(
                f"a column {field.name!r}: a sink takes {', '.join(COLUMNS)}; put all else into "
                "value, as in to_json(struct(*)) AS value"
            )
        if not _fits(field.name, field.dataType):
            found = field.dataType.simpleString()
            raise UsageError(f"column {field.name} is {found}: it is {_WANTED[field.name]}")
        if names.count(field.name) > 1:
            raise UsageError(f"{names.count(field.name)} columns {field.name}: select one")
    if "value" not in names:
        raise UsageError(
            "no column value: it is what is published, say to_json(struct(*)) AS value"
        )
    if topic is None and "topic" not in names:
        raise UsageError("no topic: give a column topic, or the option topic for all rows")


_WANTED = {
    "value": "string or binary",
    "key": "string or binary",
    "topic": "string",
    "headers": "map<string, string or binary>, or array<struct<key, value>> with these names",
}


def _fits(name: str, type: DataType) -> bool:
    if name == "topic":
        return isinstance(type, StringType)
    if name != "headers":
        return _is_bytes(type)
    if isinstance(type, MapType):
        return isinstance(type.keyType, StringType) and _is_bytes(type.valueType)
    if not isinstance(type, ArrayType) or not isinstance(type.elementType, StructType):
        return False
    types = {field.name: field.dataType for field in type.elementType.fields}
    named = len(type.elementType.fields) == 2 and types.keys() == {"key", "value"}
    return named and isinstance(types["key"], StringType) and _is_bytes(types["value"])


def _is_bytes(type: DataType) -> bool:
    return isinstance(type, StringType | BinaryType)
