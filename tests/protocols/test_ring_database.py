"""The supervisor's database against a plain dictionary, and its sums against direct ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.protocols.skipring.database import Database
from planaria.protocols.skipring.labels import label_index
from planaria.protocols.skipring.reference import skip_ring
from planaria.protocols.skipring.sums import WORD, fingerprint

ENTRIES = st.lists(st.none() | st.integers(-2, 9), max_size=24)


def repaired(entries: list[int | None]) -> list[int]:
    """CHECKMULTIPLECOPIES and CHECKLABELS in slow motion: one wrong label at a time."""
    labelled: dict[int, int] = {}
    for label, id in enumerate(entries):
        if id is not None and id >= 0 and id not in labelled.values():
            labelled[label] = id
    while labelled and max(labelled) >= len(labelled):
        gap = next(label for label in range(len(labelled)) if label not in labelled)
        labelled[gap] = labelled.pop(max(labelled))
    return [labelled[label] for label in range(len(labelled))]


def direct_sum(entries: list[int], label: int) -> int:
    """The fingerprints of everybody below `label`, found by walking up from each."""
    total = 0
    for below, id in enumerate(entries):
        above = below
        while above > label:
            above >>= 1
        total += fingerprint(below, id) if above == label else 0
    return total & WORD


def recorded(database: Database) -> list[int]:
    return [id for id in database.entries if id is not None]


@pytest.mark.parametrize("outside", ["", "10", "00", "110"])
def test_database_cannot_even_name_a_label_outside_the_image_of_l(outside: str) -> None:
    """E8, E12: what has no index has no place in a list."""
    assert label_index(outside) is None


@given(ENTRIES)
def test_any_list_of_entries_is_repaired_like_the_slow_one(entries: list[int | None]) -> None:
    database = Database()
    database._entries[:] = entries
    database.repair()
    assert recorded(database) == database.entries == repaired(entries)


@given(ENTRIES)
def test_repair_says_whether_something_was_wrong(entries: list[int | None]) -> None:
    database = Database(range(5))
    assert not database.repair()
    database._entries[:] = entries
    assert database.repair() == (entries != [0, 1, 2, 3, 4])
    assert not database.repair()


@given(ENTRIES, st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=20))
def test_sums_and_places_follow_every_change(
    entries: list[int | None], changes: list[tuple[bool, int]]
) -> None:
    database = Database()
    database.entries = entries
    for insert, id in changes:
        if insert and id not in database:
            database.insert(id)
        elif not insert and id in database:
            database.remove(id)
    ids = recorded(database)
    assert ids == database.entries
    assert [database.label_of(id) for id in ids] == list(range(len(ids)))
    expected = [direct_sum(ids, label) for label in range(len(ids))]
    assert [database.sum_of(label) for label in range(len(ids))] == expected
    assert database.sum_of(len(ids)) is None


@given(st.integers(0, 40), st.integers(0, 39), st.booleans())
def test_change_names_everybody_whose_configuration_it_changes(
    n: int, at: int, insert: bool
) -> None:
    """S1, E10: no more than four others; whoever is not named keeps label and neighbours."""
    database = Database(range(n))
    before = {id: configuration(database, id) for id in range(n)}
    touched = database.insert(100) if insert or at >= n else database.remove(at)
    assert len(set(touched)) <= 5
    after = {id: configuration(database, id) for id in recorded(database)}
    assert {id for id, now in after.items() if now != before.get(id)} <= set(touched)
    assert set(touched) <= set(after)


def configuration(database: Database, id: int) -> object:
    label = database.label_of(id)
    assert label is not None
    return label, database.neighbours(label)


@pytest.mark.parametrize("n", range(1, 70))
def test_neighbours_are_those_of_the_definition(n: int) -> None:
    database = Database(range(n))
    for label, place in enumerate(skip_ring(n)):
        beside = database.neighbours(label)
        if place.pred is None or place.succ is None:
            assert beside is None
        else:
            assert beside == ((place.pred, place.pred), (place.succ, place.succ))


def test_removal_lets_the_last_one_fill_the_gap() -> None:
    """E9: there is never a hole that a subscriber could be written over."""
    database = Database([10, 11, 12, 13])
    database.remove(11)
    assert database.entries == [10, 13, 12]
    database.insert(14)
    assert database.entries == [10, 13, 12, 14]
