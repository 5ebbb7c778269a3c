"""The codec against every message class there is, and against bytes that nobody should send."""

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arbitrary import message_classes, messages, raw
from planaria.core.codec import FRAME_BYTES_MAX, Codec, to_wire
from planaria.core.errors import CapacityExceeded, MalformedMessage, UsageError
from planaria.core.ids import NODE_ID_MAX, NodeId
from planaria.core.message import Message, tag_of
from planaria.simulator.worlds.registry import REGISTERED, find_kind

# Decoding makes objects of bytes: an empty list on the wire is 1 byte, in memory 56 and a pointer.
BYTES_PER_WIRE_BYTE_MAX = 80
BYTES_ALWAYS = 64_000


class Leaf(Message, frozen=True, tag="test.codec.leaf"):
    node: NodeId
    name: str | None = None


class Branch(Message, frozen=True, tag="test.codec.branch"):
    """Has a field of each shape, so that the tests bite before any protocol has such a message."""

    leaves: list[Leaf]
    pair: tuple[NodeId, bytes]
    many: tuple[int, ...]
    table: dict[str, list[list[int]]]
    choice: Leaf | None = None
    free: Any = None


OURS = message_classes()
CLASSES: list[type[Message]] = [Leaf, Branch, *OURS]
CODEC = Codec(CLASSES)
SIMPLE = Leaf(7, "seven")
RICH = Branch([SIMPLE], (1, b"x"), (1, -2), {"a": [[1], []]}, SIMPLE, [1, {"b": None}])
EXAMPLES = settings().max_examples
ANY = st.one_of([messages(cls) for cls in CLASSES])
STRANGE: list[Any] = [None, True, -1, 2**64 - 1, 0.5, "x", b"x", [], {}, [[]], {"": 0}]


def malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        CODEC.decode(data)


def decoded_or_malformed(data: bytes) -> Message | None:
    """Decodes `data` with a watch on memory; any other error than `MalformedMessage` escapes."""
    tracemalloc.start()
    try:
        return CODEC.decode(data)
    except MalformedMessage:
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < BYTES_ALWAYS + BYTES_PER_WIRE_BYTE_MAX * len(data)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.__struct_config__.tag))
@given(data=st.data())
@settings(max_examples=EXAMPLES // 20)  # of each class, and there are many classes
def test_every_message_comes_back_from_its_bytes(cls: type[Message], data: st.DataObject) -> None:
    message = data.draw(messages(cls))
    wire = CODEC.encode(message)
    again = CODEC.decode(wire)
    assert type(again) is cls
    assert again == message
    assert CODEC.encode(again) == wire
    assert raw(message)[0] == tag_of(message)


@given(ANY)
@settings(max_examples=2 * EXAMPLES)
def test_a_message_cut_at_any_byte_or_followed_by_one_is_malformed(message: Message) -> None:
    wire = CODEC.encode(message)
    for size in range(len(wire)):
        malformed(wire[:size])
    malformed(wire + b"\0")


@given(ANY, st.data())
@settings(max_examples=3 * EXAMPLES)
def test_a_flipped_bit_gives_a_message_or_malformed(message: Message, data: st.DataObject) -> None:
    wire = bytearray(CODEC.encode(message))
    place = data.draw(st.integers(0, 8 * len(wire) - 1))
    wire[place // 8] ^= 1 << place % 8
    other = decoded_or_malformed(bytes(wire))
    assert other is None or CODEC.decode(CODEC.encode(other)) == other


@given(ANY)
@settings(max_examples=3 * EXAMPLES)
def test_a_field_of_a_wrong_type_is_malformed(message: Message) -> None:
    """Each field in turn becomes something that its annotation does not allow."""
    plain, fields = raw(message), msgspec.structs.fields(message)
    for field, info in zip(range(1, len(plain)), fields, strict=True):
        for wrong in STRANGE:
            wire = msgspec.msgpack.encode([*plain[:field], wrong, *plain[field + 1 :]])
            try:
                expected = msgspec.convert(wrong, info.type)
            except msgspec.ValidationError:
                malformed(wire)
            else:
                assert getattr(CODEC.decode(wire), info.name) == expected


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xc1")
def test_random_bytes_give_a_message_or_malformed(data: bytes) -> None:
    decoded_or_malformed(data)


@pytest.mark.parametrize(
    "plain",
    [
        ["test.codec.unknown", 1],
        ["", 1],
        [1, 1],
        [None],
        [],
        ["test.codec.leaf"],
        ["test.codec.leaf", -1],
        ["test.codec.leaf", NODE_ID_MAX + 1],
        ["test.codec.leaf", 1.0],
        ["test.codec.leaf", True],
        ["test.codec.leaf", "1"],
        ["test.codec.leaf", 1, b"bytes"],
        {"type": "test.codec.leaf", "node": 1},
        "test.codec.leaf",
        7,
        None,
    ],
)
def test_an_unknown_tag_or_a_wrong_type_is_malformed(plain: object) -> None:
    malformed(msgspec.msgpack.encode(plain))


def test_fields_that_a_newer_version_adds_are_ignored() -> None:
    wire = msgspec.msgpack.encode([*raw(SIMPLE), "new", {"field": [1, 2]}])
    assert CODEC.decode(wire) == SIMPLE


def test_text_that_is_not_text_is_malformed() -> None:
    malformed(CODEC.encode(SIMPLE).replace(b"seven", b"se\xff\xfen"))
    malformed(CODEC.encode(SIMPLE).replace(b"codec", b"c\xff\xfeec"))


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x10\x00\x00"])
@pytest.mark.parametrize("kind", [b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9"])
@pytest.mark.parametrize("field", range(7))
def test_a_huge_declared_length_is_malformed_and_reserves_nothing(
    field: int, kind: bytes, length: bytes
) -> None:
    parts = [msgspec.msgpack.encode(part) for part in raw(RICH)]
    wire = b"\x97" + b"".join(parts[:field]) + kind + length + b"".join(parts[field + 1 :])
    assert decoded_or_malformed(wire) is None
    assert decoded_or_malformed(kind + length + wire) is None


@pytest.mark.parametrize("nest", [b"\x91", b"\x81\x01", b"\x81\xa1a", b"\x81\x90", b"\x92\x01"])
@pytest.mark.parametrize("depth", [500, 5_000, 300_000])
def test_deep_nesting_is_malformed_in_a_field_and_in_one_that_is_ignored(
    nest: bytes, depth: int
) -> None:
    parts = [msgspec.msgpack.encode(part) for part in raw(RICH)]
    deep = nest * depth + b"\x90"
    for field in range(1, 7):
        wire = b"\x97" + b"".join(parts[:field]) + deep + b"".join(parts[field + 1 :])
        decoded_or_malformed(wire)
    decoded_or_malformed(b"\x98" + b"".join(parts) + deep)
    decoded_or_malformed(deep)


INT = b"\xcd\x7f\xff"  # the shortest that Python keeps as an object of its own


def test_a_whole_frame_of_the_smallest_objects_stays_in_proportion() -> None:
    room = FRAME_BYTES_MAX - 100
    for item, size in (
        (b"\x90", room),
        (b"\xa0", room // 8),
        (b"\x80", room // 8),
        (INT, room // 8),
    ):
        count = size // len(item)
        wire = b"\x97" + b"".join(msgspec.msgpack.encode(part) for part in raw(RICH)[:6])
        wire += b"\xdd" + count.to_bytes(4, "big") + item * count
        assert isinstance(decoded_or_malformed(wire), Branch)


def test_an_oversized_frame_is_refused_on_both_ends() -> None:
    def filled(size: int) -> Leaf:
        return Leaf(1, "x" * size)

    overhead = len(CODEC.encode(filled(2**17))) - 2**17
    largest = filled(FRAME_BYTES_MAX - overhead)
    assert len(CODEC.encode(largest)) == FRAME_BYTES_MAX
    assert CODEC.decode(CODEC.encode(largest)) == largest
    with pytest.raises(CapacityExceeded):
        CODEC.encode(filled(FRAME_BYTES_MAX - overhead + 1))
    malformed(bytes(FRAME_BYTES_MAX + 1))
    malformed(msgspec.msgpack.encode(filled(FRAME_BYTES_MAX)))


def test_no_two_messages_of_the_package_have_one_tag() -> None:
    tags = [cls.__struct_config__.tag for cls in OURS]
    assert sorted(set(tags), key=str) == tags


def test_tags_of_the_package_name_their_protocol_and_are_short() -> None:
    for cls in OURS:
        tag = str(cls.__struct_config__.tag)
        assert "." in tag, f"{cls}: a tag is protocol.message"
        assert len(tag) <= 32, f"{cls}: the tag travels in every message"


def test_two_classes_with_one_tag_are_refused() -> None:
    class Other(Message, frozen=True, tag="test.codec.twin"): ...

    class Twin(Message, frozen=True, tag="test.codec.twin"): ...

    Codec([Leaf, Other, Other])
    with pytest.raises(UsageError, match=r"'test.codec.twin' is used twice"):
        Codec([Leaf, Other, Twin])
    with pytest.raises(UsageError, match="needs messages"):
        Codec([])


def test_a_codec_knows_its_own_classes_and_no_others() -> None:
    codec = Codec([Leaf])
    with pytest.raises(UsageError, match=r"test.codec.branch. is not a message"):
        codec.encode(RICH)
    with pytest.raises(MalformedMessage):
        codec.decode(to_wire(RICH))
    assert codec.decode(codec.encode(SIMPLE)) == SIMPLE


def test_every_message_of_a_protocol_is_named_by_its_overlay_and_by_no_other() -> None:
    """What clients, literal readings, baselines and naive protocols say no node accepts."""
    named = {name: find_kind(name).make().messages for name in REGISTERED}
    all_named = {cls for classes in named.values() for cls in classes}
    protocols = {cls for cls in OURS if cls.__module__.startswith("planaria.protocols.")}
    assert all_named == protocols
    strange = [cls for cls in OURS if cls not in protocols]
    said_by = {str(cls.__struct_config__.tag).split(".")[0] for cls in strange}
    assert said_by == {"client", "literal", "baseline", "naive"}
    for name, classes in named.items():
        codec = Codec(classes)
        for cls in strange:
            with pytest.raises(MalformedMessage):
                codec.decode(msgspec.msgpack.encode([cls.__struct_config__.tag]))
        assert all(cls.__module__.startswith("planaria.protocols.") for cls in classes), name


def test_the_error_is_one_line_whatever_a_peer_wrote() -> None:
    data = msgspec.msgpack.encode(["no.such\ntag\r\n", 1])
    with pytest.raises(MalformedMessage) as error:
        CODEC.decode(data)
    assert len(str(error.value).splitlines()) == 1
    assert "no.such tag" in str(error.value)
