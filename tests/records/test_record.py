"""Records: what is sealed is read again, and nothing else is accepted."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import MalformedMessage, UsageError
from planaria.records import record as record_module
from planaria.records.record import (
    HEADER_NAME_BYTES_MAX,
    HEADER_VALUE_BYTES_MAX,
    HEADERS_MAX,
    PAYLOAD_BYTES_MAX,
    PUBLICATION_KEY_BYTES_MAX,
    PUBLICATIONS_MAX,
    RECORD_BYTES_MAX,
    SEQUENCE_MAX,
    TIME_MAX,
    Draft,
    MalformedRecord,
    decode,
    intact,
    record_key,
    seal,
)
from records_lab import NOW, A, record, stream

headers = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=3).map(tuple)
drafts = st.builds(
    Draft,
    st.binary(max_size=20),
    st.none() | st.binary(max_size=5),
    headers,
    st.none() | st.integers(-(2**63), 2**63 - 1),
)
FULL = [
    Draft(b"one", b"key", (("name", b"value"), ("é", b"")), 5),
    Draft(b"", None, (), None),
    Draft(b"three", b"", (("", b"x"),), -1),
]


@given(st.lists(drafts, min_size=1, max_size=20), st.integers(0, 2**40), st.integers(0, TIME_MAX))
def test_what_is_sealed_is_read_again(given: list[Draft], first: int, time: int) -> None:
    sealed = seal(stream(7, 9), first, given, time=time, low=first // 2)
    found = decode(bytes(sealed.data))
    assert found == sealed
    assert found.key == sealed.key == record_key(sealed.data)
    assert (found.stream, found.first, found.count) == (stream(7, 9), first, len(given))
    assert (found.time, found.low, found.end) == (time, first // 2, first + len(given))
    assert found.place == time << 128 | int.from_bytes(found.key, "big")
    stamped = any(draft.timestamp is not None for draft in given)
    for number, row in enumerate(found.publications(first, found.end), first):
        draft = given[number - first]
        assert (row.publisher, row.incarnation, row.sequence) == (*stream(7, 9), number)
        assert (row.payload, row.key, row.headers) == draft[:3]
        at = draft.timestamp if stamped else None
        assert row.timestamp == (time * 1_000_000 if at is None else at)


def test_a_part_of_a_record_is_read_without_the_rest() -> None:
    sealed = seal(A, 10, FULL, time=NOW)
    whole = sealed.publications(10, 13)
    assert sealed.publications(11, 13) == whole[1:]
    assert sealed.publications(12, 99) == whole[2:]
    assert sealed.publications(0, 11) == whole[:1]
    assert sealed.payloads(11, 13) == [b"", b"three"]


def test_equal_content_has_one_encoding_and_any_difference_another_key() -> None:
    assert seal(A, 0, FULL, time=1) == seal(A, 0, list(FULL), time=1)
    others = [
        seal(stream(2), 0, FULL, time=1),
        seal(stream(1, 1), 0, FULL, time=1),
        seal(A, 1, FULL, time=1),
        seal(A, 1, FULL, time=1, low=1),
        seal(A, 0, FULL, time=2),
        seal(A, 0, FULL[:2], time=1),
    ]
    assert len({one.key for one in [*others, seal(A, 0, FULL, time=1)]}) == len(others) + 1


def test_any_bytes_give_a_record_or_one_line() -> None:
    """Flip, cut and lengthen sound records: what decodes is another record, whole and sound."""
    random = Random(1)
    accepted, refused = 0, list[str]()
    for turn in range(4_000):
        data = bytearray(seal(A, 5, FULL * random.randrange(1, 4), time=NOW).data)
        for _ in range(random.choice([1, 1, 3])):
            at = random.choice([random.randrange(len(data)), random.randrange(100)]) % len(data)
            data[at] ^= 1 << random.randrange(8)
        if turn % 3 == 0:
            data = data[: random.randrange(len(data))] + random.randbytes(random.randrange(3))
        try:
            found = decode(bytes(data))
        except MalformedRecord as error:
            refused.append(str(error))
            continue
        accepted += 1
        rows = found.publications(found.first, found.end)
        assert len(rows) == found.count
        assert 0 <= found.low <= found.first
    assert accepted > 500
    assert len(refused) > 500
    assert not [line for line in refused if "\n" in line]


def test_a_malformed_record_is_a_peers_mistake() -> None:
    with pytest.raises(MalformedMessage):
        decode(b"")


def changed(at: int, *values: int) -> bytes:
    data = bytearray(seal(A, 5, FULL, time=NOW).data)
    data[at : at + len(values)] = bytes(values)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"PR", "record of 2 bytes"),
        (changed(0, 0), "no record of version 1"),
        (changed(2, 9), "no record of version 1"),
        (changed(3, 31), "unknown columns"),
        (changed(3, 15), "columns end"),
        (changed(4, 0, 0, 0, 0), "0 publications"),
        (changed(4, 255, 255), "publications"),
        (changed(15, 128), "cannot name a node"),
        (changed(23, 128), "out of range"),
        (changed(24, 6), "number 5 from low 6"),
        (changed(37, 1), "time .* out of range"),
        (changed(52, 0), "headers in columns"),
        (changed(52, 4), "columns end"),
        (changed(80, 1), "payload offsets do not ascend"),
        (changed(88, 1), "payload offsets do not ascend"),
        (changed(100, 9), "key offsets"),
        (seal(A, 5, FULL, time=NOW).data + b"x", "columns end"),
    ],
)
def test_a_wrong_field_is_named(data: bytes, line: str) -> None:
    with pytest.raises(MalformedRecord, match=line):
        decode(data)


PLAIN = seal(A, 5, [Draft(b"alone")], time=NOW).data


@pytest.mark.parametrize(
    ("at", "value", "line"),
    [
        (4, bytes(4), "0 publications"),
        (15, b"\x80", "cannot name a node"),
        (16, b"\xff" * 8, "number -1 from low 0: out of range"),
        (16, b"\xff" * 16, "number -1 from low -1: out of range"),
        (16, b"\xff" * 7 + b"\x7f", "out of range"),
        (24, b"\x06", "number 5 from low 6: out of range"),
        (31, b"\x80", "out of range"),
        (37, b"\x01", "time .* out of range"),
        (39, b"\x80", "time .* out of range"),
        (56, b"\x01", "do not ascend"),
        (60, b"\x04", "columns end"),
    ],
)
def test_a_wrong_field_of_a_record_of_payloads_alone_is_named(
    at: int, value: bytes, line: str
) -> None:
    with pytest.raises(MalformedRecord, match=line):
        decode(PLAIN[:at] + value + PLAIN[at + len(value) :])


def test_a_payload_beyond_its_bound_is_refused_though_a_record_could_hold_it() -> None:
    large = [Draft(bytes(PAYLOAD_BYTES_MAX + 1))]
    data = record_module._encode(A, 0, large, NOW, 0)
    assert len(data) < RECORD_BYTES_MAX
    with pytest.raises(MalformedRecord, match="payload"):
        decode(data)


def test_keys_and_names_are_checked_where_bytes_could_lie() -> None:
    sealed = seal(A, 5, FULL, time=NOW)
    validity = sealed.offsets().validity
    with pytest.raises(MalformedRecord, match="a key where there is none"):
        decode(changed(validity, 0b110))
    with pytest.raises(MalformedRecord, match="beyond the last"):
        decode(changed(validity, 0b1101))
    name = sealed.offsets().name_data
    with pytest.raises(MalformedRecord, match="header names"):
        decode(changed(name, 255))
    with pytest.raises(MalformedRecord, match="inside a character"):
        decode(changed(sealed.offsets().names + 4, 5))


def long(payload: int = 0, key: int = 0, pairs: int = 0, name: int = 1, value: int = 0) -> Draft:
    return Draft(bytes(payload), bytes(key), (("n" * name, bytes(value)),) * pairs)


@pytest.mark.parametrize(
    "fits",
    [
        [long(payload=PAYLOAD_BYTES_MAX)],
        [long(key=PUBLICATION_KEY_BYTES_MAX)],
        [long(pairs=HEADERS_MAX)],
        [long(pairs=1, name=HEADER_NAME_BYTES_MAX, value=HEADER_VALUE_BYTES_MAX)],
        [long()] * PUBLICATIONS_MAX,
    ],
    ids=["payload", "key", "headers", "header", "publications"],
)
def test_what_is_within_the_bounds_is_sealed(fits: list[Draft]) -> None:
    assert len(seal(A, 0, fits, time=NOW).data) <= RECORD_BYTES_MAX


@pytest.mark.parametrize(
    "exceeds",
    [
        [],
        [long(payload=RECORD_BYTES_MAX)],
        [long(payload=RECORD_BYTES_MAX // 2)] * 2,
        [long(key=PUBLICATION_KEY_BYTES_MAX + 1)],
        [long(pairs=HEADERS_MAX + 1), long()],
        [long(pairs=1, name=HEADER_NAME_BYTES_MAX + 1)],
        [long(pairs=1, value=HEADER_VALUE_BYTES_MAX + 1)],
        [long()] * (PUBLICATIONS_MAX + 1),
    ],
)
def test_what_exceeds_a_bound_is_the_callers_mistake(exceeds: list[Draft]) -> None:
    with pytest.raises(UsageError, match="cannot seal"):
        seal(A, 0, exceeds, time=NOW)


def test_numbers_end_before_they_overflow() -> None:
    with pytest.raises(UsageError, match="out of range"):
        seal(A, SEQUENCE_MAX, [Draft(b"")], time=NOW)
    with pytest.raises(UsageError, match="out of range"):
        seal(A, 0, [Draft(b"")], time=TIME_MAX + 1)


def test_a_number_beyond_64_bits_is_the_callers_mistake() -> None:
    for first, stamp in ((1 << 64, 0), (0, 1 << 63)):
        with pytest.raises(UsageError, match="cannot seal"):
            seal(A, first, [Draft(b"", timestamp=stamp)], time=NOW)


def test_bytes_are_intact_only_at_the_place_they_were_sealed_for() -> None:
    one, other = record(A, 0), record(A, 1)
    assert intact(one.data, one.place) == one
    assert intact(other.data, one.place) is None
    assert intact(one.data, one.place + (1 << 128)) is None
    assert intact(b"", one.place) is None
    short = b"PR"
    assert intact(short, int.from_bytes(record_key(short), "big")) is None


def test_a_key_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bytes] = []

    def counted(data: bytes) -> bytes:
        calls.append(data)
        return record_key(data)

    monkeypatch.setattr(record_module, "record_key", counted)
    sealed = seal(A, 0, FULL, time=NOW)
    assert len(calls) == 1
    assert (sealed.place, sealed.stream, hash(sealed)) is not None
    sealed.publications(0, 3)
    assert len(calls) == 1


@pytest.mark.parametrize("count", [3, 300, 4096])
@pytest.mark.parametrize("timestamp", [None, 1])
def test_offsets_of_many_rows_are_checked_as_those_of_few(
    count: int, timestamp: int | None
) -> None:
    sealed = seal(A, 0, [Draft(b"xy", timestamp=timestamp)] * count, time=1)
    assert decode(sealed.data) == sealed
    table = sealed.offsets().payloads
    for row, wrong in ((0, 1), (count // 2, 2 * count), (count - 1, 0), (1, 1 << 31)):
        data = bytearray(sealed.data)
        data[table + 4 * row : table + 4 * row + 4] = wrong.to_bytes(4, "little")
        with pytest.raises(MalformedRecord, match="do not ascend from 0"):
            decode(bytes(data))
