"""A lone publication between two stores: its record without the bytes that are always the same.

Of the 64 bytes that a record of one payload has beside it about 27 tell something. What is hashed,
stored and forwarded is the record; when stores reconcile it travels as

    mark, publisher, incarnation, time, sizes of the numbers   27 bytes, little endian
    first, low                                                 as many as `sizes` says, 4 bits each
    payload                                                    the rest
"""

from struct import Struct as Layout
from struct import error as StructError  # noqa: N812

from planaria.records.record import BEGIN, TIME_MAX, MalformedRecord, Record, decode

_ALONE = Layout("<3sBIQQQQ12sIII")  # head and offsets of a record of one payload
_LONE = Layout("<cQ12sIBB")  # time has 40 bits: 32, then 8
_MARK = b"L"


def lean(data: bytes) -> bytes:
    """The bytes of a record as they travel: shorter, if it has one payload and nothing else."""
    if len(data) < _ALONE.size:
        return data
    begin, columns, count, publisher, first, low, time, incarnation, pairs, *offsets = (
        _ALONE.unpack_from(data)
    )
    payload = data[_ALONE.size :]
    if (begin, columns, count, pairs, offsets) != (BEGIN, 0, 1, 0, [0, len(payload)]):
        return data
    if time > TIME_MAX:  # then it is no record, and who gets it shall see that
        return data
    numbers = [number.to_bytes((number.bit_length() + 7) // 8, "little") for number in (first, low)]
    sizes = len(numbers[0]) << 4 | len(numbers[1])
    told = _LONE.pack(_MARK, publisher, incarnation, time & 0xFFFFFFFF, time >> 32, sizes)
    return b"".join([told, *numbers, payload])


def whole(data: bytes) -> Record:
    """The record that these bytes were made of, with its key; raises MalformedRecord."""
    if not data.startswith(_MARK):
        return decode(data)
    try:
        _, publisher, incarnation, low_time, high_time, sizes = _LONE.unpack_from(data)
        first_end = _LONE.size + (sizes >> 4)
        low_end = first_end + (sizes & 0xF)
        first = int.from_bytes(data[_LONE.size : first_end], "little")
        low = int.from_bytes(data[first_end:low_end], "little")
        payload, time = data[low_end:], high_time << 32 | low_time
        told = (publisher, first, low, time, incarnation)
        head = _ALONE.pack(BEGIN, 0, 1, *told, 0, 0, len(payload))
    except StructError as error:
        raise MalformedRecord(f"no lone record in {len(data)} bytes: {error}") from None
    record = decode(head + payload)
    if lean(record.data) != data:  # numbers that are cut off, or longer than they need be
        raise MalformedRecord("a lone record in other bytes than it travels in")
    return record
