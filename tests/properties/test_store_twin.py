"""The publication store against a plain list of publications, step by step."""

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from planaria.core.state import decode_state
from planaria.protocols.publications.publication import Publication, key, rank_of
from planaria.protocols.publications.sketch import Cells, id_array, tug_of_war
from planaria.protocols.publications.store import PublicationStore, StoreState
from planaria.protocols.publications.window import LIMIT_MAX, Window

SECONDS = 6

seconds = st.integers(0, SECONDS)
limits = st.sampled_from([1, 3, 8, LIMIT_MAX])
windows = st.builds(Window, st.just(0) | seconds, limits, st.sampled_from([2, 1, None]))
publications = st.integers(0, 40).map(
    lambda number: Publication(number // SECONDS % 3, 9, number, 0, number % SECONDS, b"p")
)


def shown_by(window: Window, held: list[Publication]) -> list[Publication]:
    """By definition: with fewer than N above it, of its publisher and then of all."""
    within = [it for it in held if it.time >= window.lo]
    if window.per_publisher is not None:
        ranks = {
            rank_of(it): sum(
                rank_of(other) > rank_of(it) for other in within if other.publisher == it.publisher
            )
            for it in within
        }
        within = [it for it in within if ranks[rank_of(it)] < window.per_publisher]
    return sorted(within, key=rank_of)[-window.limit :]


class StoreAndList(RuleBasedStateMachine):
    """Whatever a window may show again is held, and what the window shows is the definition's.

    The store may hold more for a while: only what a window asks for is compared.
    """

    def __init__(self) -> None:
        super().__init__()
        self.store = PublicationStore()
        self.held: list[Publication] = []  # what one of the windows may ask for
        self.ever: list[Publication] = []

    @property
    def shown(self) -> list[Publication]:
        return shown_by(self.store.window, self.held)

    def needed(self, held: list[Publication]) -> list[Publication]:
        """What one of the windows shows."""
        places = {rank_of(it) for w in self.store.windows for it in shown_by(w, held)}
        return [it for it in held if rank_of(it) in places]

    def all_held(self) -> list[Publication]:
        return [*self.store.hidden.values(), *self.store.shown.values()]

    @initialize(asked=st.lists(windows, min_size=1, max_size=3))
    def begin(self, asked: list[Window]) -> None:
        self.store.purge(asked)
        self.store.show(asked[0])

    @rule(come=st.lists(publications, min_size=1, max_size=6))
    def insert_some(self, come: list[Publication]) -> None:
        for it in come:
            self.insert(it)

    def insert(self, publication: Publication) -> None:
        still = self.all_held()
        self.held = [it for it in self.held if it in still]  # what no window asks for may be gone
        new = publication not in still and publication.time >= self.store.window.lo
        taken = new and publication in shown_by(self.store.window, [*self.held, publication])
        before = len(still)
        assert self.store.offer(publication, key(publication)) == new
        assert (publication in self.all_held()) == (taken or publication in still)
        assert taken or len(self.all_held()) == before
        if taken:
            self.held.append(publication)
            self.ever.append(publication)

    @rule(data=st.data())
    def show(self, data: st.DataObject) -> None:
        self.store.show(data.draw(st.sampled_from(self.store.windows)))

    @rule(asked=st.lists(windows, max_size=3))
    def purge(self, asked: list[Window]) -> None:
        """From now on other windows count; what was held for no window is deleted at once."""
        before, changed = self.all_held(), self.store.windows != [self.store.window, *asked]
        self.store.purge(asked)
        left = self.all_held()
        assert not changed or {*left} == {*self.needed(before)}
        assert {*left} <= {*before}
        self.held = left

    @rule(size=st.integers(1, 70), lo=seconds)
    def sketch(self, size: int, lo: int) -> None:
        """Remembered from here on: whatever changes must change it."""
        ids = id_array(int.from_bytes(key(it)[:8], "big") for it in self.shown if it.time >= lo)
        reference = Cells(size)
        reference.fold(ids, 1)
        sums, cells = self.store.sketch(lo, size)
        assert cells.pack() == reference.pack()
        assert (sums == tug_of_war(ids)).all()

    @rule(limit=st.integers(1, 9))
    def audit(self, limit: int) -> None:
        assert self.store.audit(limit) == 0

    @rule()
    def come_back_from_its_bytes(self) -> None:
        again = PublicationStore()
        again.load(decode_state(StoreState, self.store.snapshot()))
        self.store = again

    @precondition(lambda self: self.held)
    @rule(field=st.sampled_from(["_trie", "_quota", "_sketch", "logs", "one"]))
    def damage(self, field: str) -> None:
        """What is derived becomes another store's; two passes of the audit bring it back."""
        if field == "logs":
            self.store.shown, self.store.hidden = self.store.hidden, self.store.shown
        elif field == "one":
            for rank in [*self.store.shown][:1]:
                self.store.hidden[rank] = self.store.shown.pop(rank)
            self.store._derive()
        else:
            other = PublicationStore()
            other.show(self.store.window)
            other.insert(Publication(0, 1, 1, 0, SECONDS, b"other"))
            other.sketch(0, 64)
            setattr(self.store, field, getattr(other, field))
        for _ in range(2 * len(self.ever) + 2):
            self.store.audit(5)

    @rule(lo=seconds)
    def count_and_digest(self, lo: int) -> None:
        later = [it for it in self.shown if it.time >= lo]
        assert self.store.count(lo) == len(later)
        assert list(self.store.publications(lo)) == later
        fresh = PublicationStore()
        for it in later:
            fresh.insert(it)
        assert self.store.digest(lo) == fresh.digest(0)
        ids = [int.from_bytes(key(it)[:8], "big") for it in self.ever]
        found, unknown = self.store.by_ids(ids, lo)
        assert found == later
        assert len(unknown) == len({*ids}) - len(later)

    @invariant()
    def shows_what_the_window_asks_for(self) -> None:
        shown = self.shown
        assert list(self.store.publications()) == shown
        assert list(self.store.keys()) == [key(it) for it in shown]
        assert len(self.store) == len(shown)
        full = len(shown) >= self.store.window.limit
        assert self.store.floor == (rank_of(shown[0]) if full else None)
        for it in self.ever:
            assert (key(it) in self.store) == (it in shown)

    @invariant()
    def holds_what_another_window_would_show(self) -> None:
        held = self.all_held()
        assert len({*held}) == len(held), "in both logs"
        assert {*self.needed(self.held)} <= {*held} <= {*self.ever}

    @invariant()
    def sketches_what_is_shown(self) -> None:
        self.sketch(8, 0)


def test_store_answers_as_a_list_of_publications_after_any_steps() -> None:
    run_state_machine_as_test(StoreAndList)
