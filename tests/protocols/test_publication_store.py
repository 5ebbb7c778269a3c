"""The store against a plain list of publications."""

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.core.chance import stream
from planaria.protocols.publications.publication import Publication, key
from planaria.protocols.publications.sketch import Cells, id_array, tug_of_war
from planaria.protocols.publications.store import PublicationStore, place_of


def publication(number: int) -> Publication:
    return Publication(number % 4, 9, number, 0, number % 6, b"p")


def store_of(numbers: list[int], limit: int = 1000) -> PublicationStore:
    store = PublicationStore(limit)
    for number in numbers:
        store.insert(publication(number))
    return store


def largest(publications: list[Publication], limit: int) -> list[Publication]:
    """The reference: what a store of `limit` holds of all these."""
    distinct = {key(p): p for p in publications}
    return sorted(distinct.values(), key=place_of)[-limit:]


def audited(store: PublicationStore) -> int:
    """Repairs of two whole passes."""
    return sum(store.audit(5) for _ in range(40))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=80), st.integers(1, 20))
def test_store_holds_the_largest_by_epoch_and_key(numbers: list[int], limit: int) -> None:
    store = PublicationStore(limit)
    for number in numbers:
        known = key(publication(number)) in store
        taken = store.insert(publication(number))
        assert taken == (not known and key(publication(number)) in store)
    expected = largest([publication(n) for n in numbers], limit)
    assert list(store.publications()) == expected
    assert list(store.keys()) == [key(p) for p in expected]
    assert len(store) == store.count(0) == len(expected)
    assert store.floor == (place_of(expected[0]) if len(expected) == limit else None)
    assert store.digest(0) == store_of([p.sequence for p in reversed(expected)], limit).digest(0)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("insert"), st.integers(0, 60)),
            st.tuples(st.just("remove"), st.integers(0, 6)),
            st.tuples(st.just("window"), st.integers(0, 6)),
            st.tuples(st.just("sketch"), st.integers(1, 70)),
            st.tuples(st.just("audit"), st.integers(1, 9)),
        ),
        max_size=60,
    )
)
def test_store_agrees_with_a_plain_list_after_any_steps(steps: list[tuple[str, int]]) -> None:
    store = PublicationStore()
    plain: dict[bytes, Publication] = {}
    lo, hi = 0, 3
    store.set_window(lo, hi)
    for step, value in steps:
        if step == "insert":
            new = publication(value)
            expected = lo <= new.epoch <= hi and key(new) not in plain
            assert store.insert(new) == expected
            if expected:
                plain[key(new)] = new
        elif step == "remove":
            gone = [k for k, p in plain.items() if p.epoch == value]
            assert store.remove_bucket(value) == len(gone)
            for k in gone:
                del plain[k]
        elif step == "window":
            lo, hi = value, value + 3
            store.set_window(lo, hi)
        elif step == "audit":
            assert store.audit(value) == 0
        visible = sorted((p for p in plain.values() if lo <= p.epoch <= hi), key=place_of)
        assert list(store.publications()) == visible
        assert store.hidden() == sorted({p.epoch for p in plain.values()} - set(range(lo, hi + 1)))
        if step == "sketch":
            ids = id_array(int.from_bytes(key(p)[:8], "big") for p in visible)
            reference = Cells(value)
            reference.fold(ids, 1)
            sums, cells = store.sketch(0, value)
            assert cells.pack() == reference.pack()
            assert (sums == tug_of_war(ids)).all()
        fresh = PublicationStore()
        for p in visible:
            fresh.insert(p)
        assert store.digest(lo) == fresh.digest(0)


def test_hidden_publications_are_not_served_and_come_back_with_the_window() -> None:
    store = store_of(list(range(30)))
    digest = store.digest(0)
    store.set_window(2, 4)
    assert {p.epoch for p in store.publications()} == {2, 3, 4}
    hidden = key(publication(0))
    assert hidden not in store
    assert store.by_ids([int.from_bytes(hidden[:8], "big")], 0)[0] == []
    assert len(list(store.trie(0).keys())) == 0
    assert not store.insert(publication(36))
    assert store.hidden() == [0, 1, 5]
    store.set_window(0, 9)
    assert store.digest(0) == digest


def test_digest_from_an_epoch_on_ignores_older_ones() -> None:
    one, two = store_of([0, 1, 2, 3]), store_of([2, 3])
    assert one.digest(0) != two.digest(0)
    assert one.digest(2) == two.digest(2)


def test_publications_are_found_by_id_and_strangers_are_unknown() -> None:
    store = store_of(list(range(30)))
    wanted = publication(7)
    found, unknown = store.by_ids([int.from_bytes(key(wanted)[:8], "big"), 42], 0)
    assert (found, unknown) == ([wanted], [42])
    assert store.get(key(wanted)) == wanted
    assert store.get(bytes(16)) is None


def test_wrong_size_or_digest_never_costs_a_publication_and_is_repaired() -> None:
    store = store_of(list(range(30)), limit=40)
    digest = store.digest(0)
    for size in (-5, 0, 10**9):
        store._size = size
        store._digest = (store.version, 0, 1)
        store.insert(publication(30))
        store.audit(1)
        assert len(store) == 31
    assert store.digest(0) != digest
    assert store.digest(0) == store_of(list(range(31))).digest(0)


def test_altered_publications_are_found_and_dropped_by_the_audit() -> None:
    for seed in range(30):
        chance = stream(seed, "altered")
        store = store_of(list(range(60)))
        altered = 0
        for epoch in chance.sample(range(6), 3):
            log = store._buckets[epoch].log
            number = chance.choice(sorted(log))
            log[number] = chance.choice([publication(epoch + 600), publication(epoch + 1)])
            altered += 1
        assert audited(store) >= altered
        assert len(store) == 60 - altered
        assert all(key(p) == k for k, p in zip(store.keys(), store.publications(), strict=True))
        assert audited(store) == 0


def test_bucket_filed_under_a_wrong_epoch_is_dropped_by_the_audit() -> None:
    store = store_of(list(range(12)))
    store._buckets[99] = store._buckets.pop(3)
    assert audited(store) >= 2
    assert store.epochs() == [0, 1, 2, 4, 5]


def test_wrong_sketch_is_made_anew_within_one_pass_of_the_audit() -> None:
    store = store_of(list(range(60)))
    sound = store.sketch(0, 8)[1].pack()
    cache = store._buckets[2].sketch
    assert cache is not None
    cache._cells.ids[0] ^= 77
    assert store.sketch(0, 8)[1].pack() != sound
    audited(store)
    assert store.sketch(0, 8)[1].pack() == sound


def test_copy_is_independent_and_equal() -> None:
    store = store_of(list(range(20)), limit=50)
    store.set_window(1, 4)
    copy = deepcopy(store)
    assert list(copy.publications()) == list(store.publications())
    assert copy.digest(0) == store.digest(0)
    assert audited(copy) == 0
    copy.insert(publication(61))
    assert len(copy) == len(store) + 1


def test_full_store_forgets_in_the_same_order_whatever_the_order_of_arrival() -> None:
    numbers = list(range(50))
    digests = set()
    for seed in range(10):
        stream(seed, "order").shuffle(numbers)
        digests.add(store_of(numbers, limit=12).digest(0))
    assert len(digests) == 1


def test_empty_store_says_what_an_emptied_one_says_and_is_repaired_too() -> None:
    """What is empty is asked for its digest in every message, so it answers without a look."""
    store, emptied = PublicationStore(40), store_of([1, 2, 3])
    for number in (1, 2, 3):
        emptied.remove(place_of(publication(number)))
    emptied.set_window(5, 9)
    hidden = store_of([0])
    hidden.set_window(5, 9)
    assert store.empty
    assert not hidden.empty
    assert {one.digest(0) for one in (store, emptied, hidden)} == {store.digest(0)}
    store._size, store._digest = 10**9, (store.version, 0, 1)
    store.audit(1)
    assert store.digest(0) == emptied.digest(0)
    assert store.floor is None, "it would take nothing any more"
