"""What a row of the database says, and how it is known to be what was written."""

from struct import Struct as Layout
from zlib import crc32

from planaria.core.ids import stable_hash
from planaria.records.lanes import Drops, Entry
from planaria.records.positions import Intervals
from planaria.records.record import RECORD_KEY_BITS, RECORD_KEY_BYTES, Place, Record, intact

VERSION = 1
READ_ONCE = -1  # no checksum: what was stored before the start is mostly read once
APPLICATION = 0x504C5243  # 'PLRC': whose database this is
SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, head BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS set_aside (id INTEGER PRIMARY KEY, head BLOB, body BLOB);
CREATE TABLE IF NOT EXISTS streams (topic INTEGER, publisher INTEGER, incarnation BLOB, state BLOB,
    PRIMARY KEY (topic, publisher, incarnation)) WITHOUT ROWID;
"""

_HEAD = Layout("<qqqqqII12s16s")
_CHECK = Layout("<I")
_TOPIC = Layout("<q")  # at the beginning of a head; the key is at its end
_KEY_AT = _HEAD.size - RECORD_KEY_BYTES

# Conditions on a row: it is of a topic; it is of a topic and has the record of a key.
OF_TOPIC = "substr(head, 1, 8) = ?"
OWNED = f"{OF_TOPIC} AND substr(head, {_KEY_AT + 1}, {RECORD_KEY_BYTES}) = ?"

Owner = tuple[bytes, bytes]  # the values of `OWNED`


def topic_id(name: str) -> int:
    """The number of a topic, from its name alone: no other row is needed to know it."""
    return stable_hash("topic", name, bits=63)


def staging_id(topic: int) -> int:
    """The number under which is kept what is staged for a topic."""
    return stable_hash("staging", topic, bits=63)


def of_topic(topic: int) -> bytes:
    """The value of `OF_TOPIC`."""
    return _TOPIC.pack(topic)


def owner_of(topic: int, place: Place) -> Owner:
    """To whom a row belongs that has the record of a place."""
    key = place & (1 << RECORD_KEY_BITS) - 1
    return of_topic(topic), key.to_bytes(RECORD_KEY_BYTES, "big")


def owner_in(head: bytes) -> Owner:
    """The same, as a head says it."""
    return head[: _TOPIC.size], head[_KEY_AT : _HEAD.size]


def head_of(topic: int, record: Record) -> bytes:
    """What a row says of its record beside the bytes, with a checksum."""
    head = _HEAD.pack(
        topic, record.publisher, record.first, record.low, record.time, record.count,
        len(record.data), record.incarnation, record.key,
    )  # fmt: skip
    return head + _CHECK.pack(crc32(head))


def entry_of(row: int, data: object) -> tuple[int, Entry, int] | None:
    """The topic, entry and low in a row's head; None if its checksum is wrong."""
    if not isinstance(data, bytes) or len(data) != _HEAD.size + _CHECK.size:
        return None
    if _CHECK.pack(crc32(data[: _HEAD.size])) != data[_HEAD.size :]:
        return None
    topic, publisher, first, low, time, count, size, incarnation, key = _HEAD.unpack_from(data)
    place = time << RECORD_KEY_BITS | int.from_bytes(key, "big")
    return topic, Entry(place, (publisher, incarnation), first, first + count, size, row), low


def pack_state(gone: Drops, newest: int, delivered: Intervals) -> bytes:
    """What is remembered of a stream beyond its records, with a checksum."""
    state = gone.pack() + newest.to_bytes(8, "little") + delivered.pack()
    return _CHECK.pack(crc32(state)) + state


def unpack_state(data: object) -> tuple[Drops, int, Intervals] | None:
    """What `pack_state` made; None if its checksum is wrong."""
    if not isinstance(data, bytes) or data[:4] != _CHECK.pack(crc32(data[4:])):
        return None
    try:
        gone, rest = Drops.unpack(data[4:])
        return gone, int.from_bytes(rest[:8], "little"), Intervals.unpack(rest[8:])
    except ValueError:
        return None


def record_in(body: object, entry: Entry) -> Record | None:
    """The record of an entry in what is kept as its bytes; None if that is another's, or nothing.

    To compare bytes with a key takes four times as long as a checksum, which is for a third read.
    """
    if not isinstance(body, bytes):
        return None
    check = READ_ONCE if entry.check is None else check_of(body, entry)
    if check == entry.check:
        key = entry.place & (1 << RECORD_KEY_BITS) - 1
        return Record(body, key.to_bytes(RECORD_KEY_BYTES, "big"))
    record = intact(body, entry.place)
    if record is not None:
        entry.check = check
    return record


def check_of(body: bytes, entry: Entry) -> int:
    """Tell bytes from others, and from the same under another place."""
    return crc32(body, hash(entry.place) & 0xFFFFFFFF)
