"""The store against a plain list of publications."""

from hypothesis import given, settings
from hypothesis import strategies as st

from planaria.core.chance import stream
from planaria.core.state import decode_state
from planaria.protocols.publications.publication import Publication, key, rank_of
from planaria.protocols.publications.sketch import Cells, id_array, tug_of_war
from planaria.protocols.publications.store import PublicationStore, StoreState
from planaria.protocols.publications.window import LIMIT_MAX, Window


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
    return sorted(distinct.values(), key=rank_of)[-limit:]


def audited(store: PublicationStore) -> int:
    """Repairs of two whole passes."""
    return sum(store.audit(5) for _ in range(40))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=80), st.integers(1, 20))
def test_store_holds_the_largest_by_time_and_key(numbers: list[int], limit: int) -> None:
    store = PublicationStore(limit)
    for number in numbers:
        known = key(publication(number)) in store
        taken = store.insert(publication(number))
        assert taken == (not known and key(publication(number)) in store)
    expected = largest([publication(n) for n in numbers], limit)
    assert list(store.publications()) == expected
    assert list(store.keys()) == [key(p) for p in expected]
    assert len(store) == store.count(0) == len(expected)
    assert store.floor == (rank_of(expected[0]) if len(expected) == limit else None)
    assert store.digest(0) == store_of([p.sequence for p in reversed(expected)], limit).digest(0)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("insert"), st.integers(0, 60)),
            st.tuples(st.just("purge"), st.integers(0, 6)),
            st.tuples(st.just("window"), st.integers(0, 6)),
            st.tuples(st.just("sketch"), st.integers(1, 70)),
            st.tuples(st.just("audit"), st.integers(1, 9)),
        ),
        max_size=60,
    ),
    st.integers(0, 6),
)
def test_store_agrees_with_a_plain_list_after_any_steps(
    steps: list[tuple[str, int]], since: int
) -> None:
    store = PublicationStore()
    plain: dict[bytes, Publication] = {}
    lo = 0
    store.purge([Window(0)])
    for step, value in steps:
        if step == "insert":
            new = publication(value)
            expected = lo <= new.time and key(new) not in plain
            assert store.insert(new) == expected
            if expected:
                plain[key(new)] = new
        elif step == "purge":
            store.purge([Window(value)])
            plain = {k: p for k, p in plain.items() if p.time >= min(lo, value)}
            store.purge([Window(0)])
        elif step == "window":
            lo = value
            store.show(Window(lo))
        elif step == "audit":
            assert store.audit(value) == 0
        visible = sorted((p for p in plain.values() if lo <= p.time), key=rank_of)
        assert list(store.publications()) == visible
        assert {*store.hidden.values()} == {*plain.values()} - {*visible}
        later = [p for p in visible if p.time >= since]
        if step == "sketch":
            ids = id_array(int.from_bytes(key(p)[:8], "big") for p in later)
            reference = Cells(value)
            reference.fold(ids, 1)
            sums, cells = store.sketch(since, value)
            assert cells.pack() == reference.pack()
            assert (sums == tug_of_war(ids)).all()
        fresh = PublicationStore()
        for p in later:
            fresh.insert(p)
        assert store.digest(since) == fresh.digest(0)
        assert store.count(since) == len(later)


def test_hidden_publications_are_not_served_and_come_back_with_the_window() -> None:
    store = store_of(list(range(30)))
    digest = store.digest(0)
    store.show(Window(2))
    assert {p.time for p in store.publications()} == {2, 3, 4, 5}
    hidden = key(publication(0))
    assert hidden not in store
    assert store.by_ids([int.from_bytes(hidden[:8], "big")], 0)[0] == []
    assert not store.insert(publication(36))
    assert not store.offer(publication(0), key(publication(0)))
    assert {p.time for p in store.hidden.values()} == {0, 1}
    store.show(Window(0))
    assert store.digest(0) == digest


def test_damaged_trie_that_names_strangers_hides_nothing_but_what_is_expired() -> None:
    store = store_of(list(range(30)))
    store._trie._root = 7 << 100
    store.show(Window(2))
    assert {p.time for p in store.publications()} <= {2, 3, 4, 5}
    audited(store)
    assert len(store) == 20


def test_digest_from_a_second_on_ignores_older_ones() -> None:
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


def test_wrong_digest_version_or_part_is_repaired_by_every_audit() -> None:
    store = store_of(list(range(30)), limit=40)
    right = store.digest(0), store.digest(2)
    for version in (-(10**30), 0, 10**30):
        store.version = version
        store._digest = (version, 0, 1)
        store._part = (version, 2, store.trie(4))
        assert (store.digest(0), store.digest(2)) != right
        store.audit(1)
        assert (store.digest(0), store.digest(2)) == right


def test_altered_publications_are_found_and_dropped_by_the_audit() -> None:
    for seed in range(30):
        chance = stream(seed, "altered")
        store = store_of(list(range(60)))
        strangers = [
            publication(601),
            Publication(-1, 9, 3, 0, 3, b"p"),
            Publication(1, 2**64, 3, 0, 3, b"p"),
            Publication(1, 9, 2**100, -5, 3, b"p"),
            Publication(1, 9, 3, 0, -3, b"p"),
        ]
        altered = chance.sample(sorted(store.shown), 3)
        for place in altered:
            store.shown[place] = chance.choice(strangers)
        assert not any(p in strangers for p in store.at(altered)), "never served"
        assert audited(store) >= 1
        assert len(store) == 60 - 3
        assert all(key(p) == k for k, p in zip(store.keys(), store.publications(), strict=True))
        assert audited(store) == 0


def test_publications_filed_under_a_wrong_place_are_dropped_by_the_audit() -> None:
    for place in (-1, 0, 5, 1 << 100, 1 << 168, 1 << 500):
        for log in ("shown", "hidden"):
            store = store_of(list(range(12)))
            getattr(store, log)[place] = publication(77)
            getattr(store, log)[rank_of(publication(78)) + 1] = publication(78)
            audited(store)
            assert [p.sequence for p in store.publications()] == sorted(
                range(12), key=lambda number: rank_of(publication(number))
            )
            assert not store.hidden


def test_publications_in_the_wrong_log_are_put_right_by_the_audit() -> None:
    store = store_of(list(range(30)))
    store.show(Window(2, 10))
    right = list(store.publications())
    store.shown, store.hidden = store.hidden, store.shown
    store._derive()
    assert list(store.publications()) != right
    audited(store)
    assert list(store.publications()) == right


def test_wrong_sketch_is_made_anew_within_one_pass_of_the_audit() -> None:
    store = store_of(list(range(60)))
    sound = store.sketch(0, 8)[1].pack()
    cache = store._sketch
    assert cache is not None
    cache.cells.ids[0] ^= 77
    assert store.sketch(0, 8)[1].pack() != sound
    audited(store)
    assert store.sketch(0, 8)[1].pack() == sound


def test_sketch_whose_parts_do_not_fit_together_is_not_used() -> None:
    store = store_of(list(range(60)))
    sound = store.sketch(0, 8)[1].pack()
    for part in ("ids", "checks", "counts"):
        store.sketch(0, 8)
        assert store._sketch is not None
        setattr(store._sketch.cells, part, getattr(store._sketch.cells, part)[:3])
        assert store.sketch(0, 8)[1].pack() == sound
    assert store._sketch is not None
    store._sketch.sums = store._sketch.sums[:7]
    assert len(store.sketch(0, 8)[0]) == 64


def test_wrong_quota_is_recounted_within_one_pass_of_the_audit() -> None:
    store = store_of([])
    store.show(Window(0, LIMIT_MAX, 5))
    for number in range(60):
        store.insert(publication(number))
    right = list(store.publications())
    store._quota._ranks = {id: [0] * 99 for id in range(4)}
    newest = [Publication(id, 9, 99, 0, 7, b"p") for id in range(4)]
    audited(store)
    assert all(store.insert(p) for p in newest)
    assert len(list(store.publications())) == len(right) == 20
    assert {*newest} <= {*store.publications()}


def test_store_comes_back_from_its_bytes_with_all_that_is_derived() -> None:
    store = store_of(list(range(20)), limit=50)
    store.show(Window(1))
    store.audit(5)
    again = PublicationStore()
    again.load(decode_state(StoreState, store.snapshot()))
    assert again.state() == store.state()
    assert again.state().audited != -1
    assert again.digest(0) == store.digest(0)
    assert again.sketch(0, 8)[1].pack() == store.sketch(0, 8)[1].pack()
    assert audited(again) == 0
    again.insert(publication(61))
    assert len(again) == len(store) + 1


def test_publication_put_right_under_its_rank_is_counted_for_its_own_publisher() -> None:
    """The quota knew it as another's."""
    store = store_of([])
    store.show(Window(0, LIMIT_MAX, 2))
    said = publication(0)
    store.insert(said)
    store.shown[rank_of(said)] = Publication(77, 0, 0, 0, 0, b"damaged")
    again = PublicationStore()
    again.load(store.state())
    again.insert(said)
    assert again._quota._ranks == {said.publisher: [rank_of(said)]}


def test_full_store_forgets_in_the_same_order_whatever_the_order_of_arrival() -> None:
    numbers = list(range(50))
    digests = set()
    for seed in range(10):
        stream(seed, "order").shuffle(numbers)
        digests.add(store_of(numbers, limit=12).digest(0))
    assert len(digests) == 1
