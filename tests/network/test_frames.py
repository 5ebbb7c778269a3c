"""Frames come out as they went in, however the network cuts them, and lies about lengths end it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import MalformedMessage
from planaria.network.frames import FRAME_BYTES_MAX, HEAD, Kind, Reader, frame

FRAMES = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=300)), max_size=20)


@given(FRAMES, st.lists(st.integers(1, 200), min_size=1))
def test_frames_survive_any_cutting(frames: list[tuple[int, bytes]], cuts: list[int]) -> None:
    data = b"".join(frame(kind, body) for kind, body in frames)
    reader, found, at, turn = Reader(), [], 0, 0
    while at < len(data):
        size = cuts[turn % len(cuts)]
        found += reader.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    assert found == frames
    assert len(reader) == 0


@pytest.mark.parametrize("length", [0, FRAME_BYTES_MAX + 1, 2**32 - 1])
def test_a_length_that_no_frame_has_is_refused_before_anything_is_held(length: int) -> None:
    reader = Reader()
    whole = reader.feed(frame(Kind.BEAT, b"x"))
    assert whole == [(Kind.BEAT, b"x")]
    with pytest.raises(MalformedMessage, match=str(length)):
        reader.feed(HEAD.pack(length, Kind.BULK))


def test_an_unfinished_frame_waits_and_costs_no_more_than_it_sent() -> None:
    reader = Reader()
    part = frame(Kind.BULK, bytes(1000))[:500]
    assert reader.feed(part) == []
    assert len(reader) == 500
