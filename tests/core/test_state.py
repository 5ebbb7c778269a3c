"""State as a value: bytes and back, parts in parts, and bytes that are no state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import MalformedState
from planaria.core.node import Node, Notice
from planaria.core.state import State, Stateful, decode_state, encode_state


class InnerState(State):
    turn: int
    names: dict[str, int]


class Inner(Stateful):
    state_type = InnerState

    def __init__(self) -> None:
        self.turn, self.names = 0, {"a": 1}


class OuterState(State):
    inner: InnerState
    links: dict[tuple[int, int], bytes]
    label: int | None
    word: str


class Outer(Node):
    state_type = OuterState

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.inner = Inner()
        self.links: dict[tuple[int, int], bytes] = {}
        self.label: int | None = None
        self.word = ""


INTEGERS = st.integers() | st.integers(-(2**200), 2**200)
STATES = st.builds(
    OuterState,
    st.builds(InnerState, INTEGERS, st.dictionaries(st.text(), INTEGERS)),
    st.dictionaries(st.tuples(INTEGERS, INTEGERS), st.binary()),
    st.none() | INTEGERS,
    st.text() | st.sampled_from(["\0", "\0\0", "\0ff", "\0\0ff"]),
)


@given(STATES)
def test_whatever_memory_holds_comes_back_from_its_bytes(state: OuterState) -> None:
    node = Outer(1)
    node.load(state)
    again = Outer(1)
    assert list(again.restore(node.snapshot())) == []
    assert again.state() == node.state() == state
    assert again.inner.turn == state.inner.turn
    assert again.snapshot() == node.snapshot()


def test_a_snapshot_is_a_copy_and_a_state_is_not() -> None:
    node = Outer(1)
    before, shown = node.snapshot(), node.state()
    node.inner.names["b"] = 2
    assert node.snapshot() != before
    assert shown == node.state()


@given(STATES, st.data())
def test_truncated_bytes_leave_a_node_fresh_and_say_so(
    state: OuterState, data: st.DataObject
) -> None:
    whole = encode_state(state)
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    node = Outer(1)
    fresh = node.snapshot()
    (notice,) = node.restore(part)
    assert isinstance(notice, Notice)
    assert notice.kind == "fresh"
    assert "OuterState" in notice.detail["reason"]
    assert node.snapshot() == fresh


@given(st.binary())
def test_foreign_bytes_are_a_state_or_an_error_of_one_kind(data: bytes) -> None:
    for foreign in (data, b"\x01" + data, b"\x02" + data):
        try:
            assert isinstance(decode_state(OuterState, foreign), OuterState)
        except MalformedState as error:
            one_line = "\n" not in str(error)
            assert one_line, error  # noqa: PT017 - an error is one of two right answers


def test_a_state_of_another_component_is_foreign() -> None:
    with pytest.raises(MalformedState, match="OuterState"):
        decode_state(OuterState, Inner().snapshot())
