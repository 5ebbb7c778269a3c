"""Which records a window keeps, beside the definition, and that merging cannot change it."""

from hypothesis import given
from hypothesis import strategies as st

from planaria.records.lanes import Entry
from planaria.records.memory import MemoryStore
from planaria.records.window import Window, kept
from records_lab import NOW, A, B, NaiveStore, record, stream

entries = st.lists(
    st.builds(
        lambda who, count, time: Entry(time << 128 | who, stream(who), 0, count, 0),
        st.integers(1, 3),
        st.integers(1, 9),
        st.integers(0, 40),
    ),
    max_size=14,
    unique_by=lambda entry: entry.place,
)
windows = st.builds(Window, st.integers(0, 15), st.integers(1, 40), st.none() | st.integers(1, 12))


@given(entries, entries, windows)
def test_what_is_kept_of_a_union_is_kept_of_what_its_parts_keep(
    one: list[Entry], other: list[Entry], window: Window
) -> None:
    union = {entry.place: entry for entry in one + other}
    parts = [union[place] for part in (one, other) for place in kept(part, window)]
    once = {entry.place: entry for entry in parts}
    assert kept(union.values(), window) == kept(once.values(), window)


@given(entries, windows)
def test_a_store_keeps_what_the_window_keeps_whatever_comes_first(
    given: list[Entry], window: Window
) -> None:
    records = [record(e.stream, 0, e.count, time=e.time) for e in given]
    store = MemoryStore()
    store.show(window)
    for one in records:
        store.append([one])
    assert store.places(0, NOW) == sorted(kept(records, window))


def test_a_large_record_counts_no_more_than_its_publishers_quota() -> None:
    """Else one more small record, which takes the large one out, would let the lowest back in."""
    newer = record(A, 0, 1, time=NOW + 9)
    records = [
        record(A, 1, 1, time=NOW + 5),
        record(A, 2, 32, time=NOW + 4),
        record(B, 0, 1, time=NOW + 3),
    ]
    window = Window(limit=10, per_publisher=2)
    twin, store = NaiveStore(), MemoryStore()
    store.show(window)
    for one in records:
        store.append([one])
        twin.append(one)
    assert (
        len(store.places(0, NOW + 99)) == len(twin.kept(window)) == len(kept(records, window)) == 3
    )
    store.append([newer])
    assert records[2].place in store
    assert len(kept([*records, newer], window)) == 3
