"""What is remembered of streams is forgotten again, of those alone of which nothing is held."""

import pytest

from planaria.records import positions
from planaria.records.positions import Delivered
from planaria.records.record import Stream
from planaria.records.store import Store
from planaria.records.window import Window
from records_lab import NOW, A, B, record, stream

pytest_plugins = ("record_stores",)


@pytest.mark.parametrize("narrow", [Window(NOW + 20), Window(limit=1)])
def test_a_stream_is_remembered_while_a_record_of_it_is_hidden(
    store: Store, narrow: Window
) -> None:
    store.append([record(A, 0, time=NOW), record(B, 0, time=NOW + 30)])
    store.purge([Window()])
    store.show(narrow)
    assert store.index.lanes[A].entries == []
    store.forget(NOW + 20)
    assert len(store.delivered) == 2
    store.show(Window())
    assert store.append([record(A, 0, time=NOW + 1)])[0].new == [], "it was delivered before"
    store.show(narrow)
    store.purge([])
    store.forget(NOW + 20)
    assert len(store.delivered) == 1


def test_only_silent_streams_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered, asked = Delivered(), list[Stream]()
    for number in range(50):
        delivered.add(stream(number), 0, 1, NOW + number)

    def held(one: Stream) -> bool:
        asked.append(one)
        return one[0] % 2 == 0

    assert delivered.forget(NOW + 4, held) == [stream(1), stream(3)]
    assert asked == [stream(number) for number in range(4)]
    monkeypatch.setattr(positions, "STREAMS_MAX", 45)
    assert delivered.forget(0, held) == [stream(5), stream(7), stream(9)]
    assert len(delivered) == 45
