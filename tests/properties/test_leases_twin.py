"""The table of leases against a list of entries with the overruns left to each, step by step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from planaria.core.state import decode_state
from planaria.filters.sql import parse
from planaria.protocols.routing import leases as module
from planaria.protocols.routing.leases import LeaseTable, LeaseTableState
from planaria.protocols.routing.messages import STAMPS

LEASES_MAX, DESTINATIONS_MAX = 2, 3
CONDITIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "n = 1": lambda it: it["n"] == 1,
    "n > 1": lambda it: it["n"] > 1,
    "n >= 1 AND s = 'a'": lambda it: it["n"] >= 1 and it["s"] == "a",
    "s <> 'a'": lambda it: it["s"] != "a",
}
FILTERS = {text: parse(text)[0] for text in CONDITIONS}
NOTIFICATIONS = [{"n": n, "s": s} for n in (0, 1, 2) for s in ("a", "b")]

destinations = st.integers(-1, 4)
ids = st.integers(0, 3)
conditions = st.sampled_from(sorted(CONDITIONS))
ages = st.integers(0, 3)  # how many messages ago this one was sent


class Entry(NamedTuple):
    condition: str
    sent: int
    overruns: int  # left


class LeasesAndList(RuleBasedStateMachine):
    """Leases live for two overruns of their link's clock, cancels for `late` timeouts.

    Messages are numbered here without end, and there in a circle, over whose end they go.
    """

    @initialize(
        pi=st.integers(1, 4), pis=st.dictionaries(destinations, st.integers(1, 5)), late=ages
    )
    def start(self, pi: int, pis: dict[int, int], late: int) -> None:
        self.pi, self.pis, self.late = pi, pis, late
        self.table = LeaseTable(pi, pis, late)
        self.now, self.sent = 0, STAMPS - 5
        self.links: dict[int, dict[int, Entry]] = {}
        self.cancels: dict[tuple[int, int], tuple[int, int]] = {}  # sent, and until when

    def cancelled(self, destination: int, id: int, sent: int) -> bool:
        """Was this message sent before a cancel that is still remembered?"""
        last, until = self.cancels.get((destination, id), (0, 0))
        return self.now < until and sent <= last

    @rule(destination=destinations, id=ids, condition=conditions, age=ages)
    def insert(self, destination: int, id: int, condition: str, age: int) -> None:
        self.sent += 1
        sent = self.sent - age
        link = self.links.get(destination, {})
        old = link.get(id)
        known = destination in self.links or len(self.links) < DESTINATIONS_MAX
        room = old is not None or len(link) < LEASES_MAX
        refused = old is None and self.cancelled(destination, id, sent)
        taken = known and room and not refused
        news = taken and (old is None or old.condition != condition)
        if known and not refused:
            self.links[destination] = link
        if taken:
            fresh = old is not None and old.overruns == 2  # a late message does not make it older
            link[id] = Entry(condition, max(sent, old.sent) if old and fresh else sent, 2)
        filter = FILTERS[condition]
        assert self.table.insert(destination, id, filter, sent % STAMPS) == news

    @rule(destination=destinations, id=ids)
    def remove(self, destination: int, id: int) -> None:
        found = self.links.get(destination, {}).pop(id, None)
        assert self.table.remove(destination, id) == (found is not None)

    @rule(destination=destinations, id=ids, age=ages)
    def cancel(self, destination: int, id: int, age: int) -> None:
        self.sent += 1
        sent, link = self.sent - age, self.links.get(destination, {})
        ended = False
        if id not in link or link[id].sent <= sent:
            self.cancels[destination, id] = (sent, self.now + max(1, self.late))
            ended = link.pop(id, None) is not None
        assert self.table.cancel(destination, id, sent % STAMPS) == ended

    @rule(destination=destinations)
    def begin_anew(self, destination: int) -> None:
        self.sent += 1
        self.table.forgive(destination, self.sent % STAMPS)
        if destination in self.links:
            anew = {id: it._replace(sent=self.sent) for id, it in self.links[destination].items()}
            self.links[destination] = anew
        self.cancels = {it: kept for it, kept in self.cancels.items() if it[0] != destination}

    @rule()
    def tick(self) -> None:
        self.now += 1
        over = [it for it in self.links if self.now % self.pis.get(it, self.pi) == 0]
        lost = []
        for destination in over:
            link = self.links[destination]
            left = {id: it._replace(overruns=it.overruns - 1) for id, it in link.items()}
            self.links[destination] = {id: it for id, it in left.items() if it.overruns}
            lost += [destination] if len(self.links[destination]) < len(link) else []
            if not self.links[destination]:
                del self.links[destination]
        quiet = not over and self.now % self.pi
        assert self.table.tick() == (None if quiet else lost)

    @rule()
    def restart(self) -> None:
        """From a snapshot, which the old table no longer changes."""
        old, snapshot = self.table, self.table.snapshot()
        for destination in self.links:
            for id in range(4):
                old.remove(destination, id)
        self.table = LeaseTable(self.pi, self.pis, self.late)
        self.table.load(decode_state(LeaseTableState, snapshot))

    @invariant()
    def has_the_entries_of_the_list(self) -> None:
        found = {it: leases for it, leases in self.table.entries.items() if leases}
        assert {
            it: {id: (lease.filter, lease.stamp) for id, lease in leases.items()}
            for it, leases in found.items()
        } == {
            it: {id: (FILTERS[entry.condition], entry.sent % STAMPS) for id, entry in link.items()}
            for it, link in self.links.items()
            if link
        }
        for destination in range(-1, 5):
            assert self.table.of(destination).keys() == self.links.get(destination, {}).keys()

    @invariant()
    def forwards_what_an_entry_asks_for(self) -> None:
        for notification in NOTIFICATIONS:
            found = self.table.destinations(notification)
            assert len({*found}) == len(found)
            assert {*found} == {
                it
                for it, link in self.links.items()
                if any(CONDITIONS[entry.condition](notification) for entry in link.values())
            }

    @invariant()
    def remembers_few_cancels(self) -> None:
        """One that can no longer refuse a lease is forgotten."""
        due = {it for it, (_, until) in self.cancels.items() if self.now < until}
        assert {*self.table.cancelled} == due


def test_leases_live_and_end_as_in_a_list_after_any_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEASES_PER_DESTINATION_MAX", LEASES_MAX)
    monkeypatch.setattr(module, "DESTINATIONS_MAX", DESTINATIONS_MAX)
    run_state_machine_as_test(LeasesAndList)
