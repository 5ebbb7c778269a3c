"""Staged rows are published by one manifest, whole and once, whatever dies in between."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from batches_lab import DRIVER, ENTRY, QUERY, Batch, Lab, drawn, kinds, lab
from planaria.core.chance import combination, stream
from planaria.core.node import Clock, Deliver, Notice, Persist, Send
from planaria.protocols.skipring import staging
from planaria.protocols.skipring.arbitrary_history import corrupt_history
from planaria.protocols.skipring.batch_messages import Review, Reviewed, Settle
from planaria.protocols.skipring.deposit_messages import Deposit, Held, NotHeld
from planaria.protocols.skipring.deposits import EXPIRED, MALFORMED, STRANGER, TAKEN
from planaria.protocols.skipring.overlay import SUPERVISOR_BASE, TOPIC
from planaria.protocols.skipring.peer import Peer
from planaria.records.manifest import (
    Manifest,
    origin_of,
    seal_manifest,
)
from planaria.records.record import Draft, seal

STEPS_MAX = 400  # of a driver that lives: ten times what it takes


def test_a_part_of_which_nobody_holds_all_settles_from_its_pieces() -> None:
    """A task whose node dies goes on at another: its records lie at different members then."""
    ring, batch = lab(), Batch([6])
    for id, at in ((0, 0), (1, 0), (2, 1), (3, 2)):
        assert ring.stage(id, batch.records[at]) == ""
    answers = [ring.review(id, batch.manifest) for id in ring.peers]
    assert [it.staged for it in answers] == [[], [], [], []]
    assert [it.pieces for it in answers] == [[(0, 0, 2)], [(0, 0, 2)], [(0, 2, 4)], [(0, 4, 6)]]
    for id in ring.peers:
        ring.settle(id, batch.manifest, 0)
    ring.agree(batch.rows)
    assert ring.settle(0, batch.manifest).settled == [0]
    ring.tidy(0, batch.manifest)


def test_what_is_staged_is_on_disk_before_it_is_held_and_delivered_to_nobody() -> None:
    ring, batch = lab(), Batch([3])
    deposit = Deposit(TOPIC, ENTRY, batch.records[0].data, True, True, True)
    assert kinds(ring.peer(0).on_message(deposit, ENTRY)) == [Persist, Held]
    assert kinds(ring.peer(0).on_message(deposit, ENTRY)) == [Persist, Held]
    ring.run(5)
    assert not any(ring.rows(id) for id in ring.peers)
    assert ring.review(0, batch.manifest).staged == [], "the rest of the part is missing"


def test_what_is_no_stage_is_not_held() -> None:
    ring, batch = lab(), Batch([1])
    plain = seal((DRIVER, drawn(7)), 0, [Draft(b"a")], time=0)
    assert ring.stage(0, plain) == MALFORMED
    elsewhere = seal_manifest(
        DRIVER, QUERY, 0, {"other": batch.manifest.portions[TOPIC]}, time=0, staged=0
    )
    assert ring.stage(0, elsewhere.record) == MALFORMED
    assert ring.tell(0, Review(TOPIC, ENTRY, plain.data)) == []


def test_who_is_no_member_says_so() -> None:
    peer, batch = Peer(5, (SUPERVISOR_BASE,), Random(1)), Batch([1])
    for question in (
        Review(TOPIC, ENTRY, batch.manifest.record.data),
        Settle(TOPIC, ENTRY, batch.manifest.record.data, []),
    ):
        (effect,) = peer.on_message(question, ENTRY)
        assert isinstance(effect, Send)
        assert effect.message == NotHeld(TOPIC, 5, batch.manifest.record.key, STRANGER)


def test_a_member_with_one_manifest_refuses_another_and_names_its_own() -> None:
    ring, one, other = lab(), Batch([2]), Batch([1, 1], attempt=1)
    assert ring.stage(0, one.manifest.record) == ""
    assert ring.stage(0, one.manifest.record) == ""
    assert ring.stage(0, other.manifest.record) == TAKEN
    assert ring.review(0, other.manifest).rival == one.manifest.record.data
    for record in other.records:
        ring.stage(0, record)
    assert ring.settle(0, other.manifest, 0, 1).settled == []
    assert ring.rows(0) == []


def test_settled_rows_are_numbered_in_the_order_of_the_manifest_and_name_it() -> None:
    ring, batch = lab(), Batch([3, 2])
    for record in [*batch.records, batch.manifest.record]:
        assert ring.stage(0, record) == ""
    assert ring.review(0, batch.manifest).staged == [0, 1]
    assert ring.review(0, batch.manifest).pieces == [], "whole parts are no pieces"
    answer = ring.settle(0, batch.manifest, 0, 1)
    assert (answer.settled, answer.batch, answer.last) == ([0, 1], 0, batch.manifest.record.key)
    ring.agree(batch.rows)
    ring.tidy(0, batch.manifest)
    for id in ring.peers:
        assert ring.rows(id) == batch.rows
        store = ring.peer(id).topics[TOPIC].history.holdings.store
        origins = {origin_of(part.record) for part in store.read({}).slices}
        assert origins == {(batch.manifest.record.key, 0, 0)}


def test_settling_is_on_disk_before_it_is_answered_and_delivers_once() -> None:
    ring, batch = lab(), Batch([3])
    for record in [*batch.records, batch.manifest.record]:
        ring.stage(0, record)
    settle = Settle(TOPIC, ENTRY, batch.manifest.record.data, [])
    assert kinds(ring.peer(0).on_message(settle, ENTRY)) == [Deliver, Persist, Persist, Reviewed]
    assert kinds(ring.peer(0).on_message(settle, ENTRY)) == [Persist, Reviewed]


def test_rows_that_nobody_broadcasts_come_by_anti_entropy() -> None:
    ring, batch = lab(), Batch([4])
    for record in [*batch.records, batch.manifest.record]:
        ring.stage(2, record)
    ring.settle(2, batch.manifest)
    ring.agree(batch.rows)


def test_a_query_that_went_on_takes_no_older_batch() -> None:
    ring, newer, older = lab(), Batch([2], attempt=1, batch=5), Batch([2], batch=4)
    for record in [*newer.records, newer.manifest.record]:
        ring.stage(0, record)
    ring.settle(0, newer.manifest, 0)
    assert ring.stage(0, older.manifest.record) == TAKEN
    ring.agree(newer.rows)
    assert ring.review(3, older.manifest).batch == 5, "every member knows it by its rows"
    assert ring.stage(3, older.manifest.record) == TAKEN
    for record in older.records:
        assert ring.stage(3, record) == ""
    assert ring.settle(3, older.manifest, 0).settled == []
    assert sorted(ring.rows(3)) == newer.rows


def test_stages_expire() -> None:
    ring, batch = lab(), Batch([2])
    for record in [*batch.records, batch.manifest.record]:
        ring.stage(0, record)
    peer = ring.peer(0)
    now = staging.STAGE_SECONDS + 10
    history = peer.topics[TOPIC].history
    for second in (now, now + 1):
        peer.on_command(Clock(second))
        history.on_timeout([])
    assert ring.review(0, batch.manifest).staged == []
    assert ring.stage(0, batch.records[0]) == EXPIRED
    fast = seal(batch.records[0].stream, 0, [Draft(b"a")], time=2 * now)
    assert ring.stage(0, fast) == EXPIRED, "it would stay for long"
    assert ring.settle(0, batch.manifest, 0).settled == []
    index = history.staging.holdings.store.index
    assert [*index.shown, *index.hidden, *index.lanes] == [], "nothing is left of it"


@pytest.mark.parametrize("crashed", [0, 1, 2, 3])
def test_a_crash_between_any_two_steps_loses_nothing(
    crashed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the manifest, after it, in the middle of settling, after it."""
    monkeypatch.setattr(staging, "SETTLE_BYTES", 1)
    ring, batch = lab(), Batch([5, 4])
    for record in batch.records:
        ring.stage(1, record)
    if crashed == 0:
        ring.crash(1)
    ring.stage(1, batch.manifest.record)
    if crashed == 1:
        ring.crash(1)
    assert ring.settle(1, batch.manifest, 0, 1).settled == []
    if crashed == 2:
        ring.crash(1)  # and nobody asks it again
        assert ring.rows(1)
    else:
        for _ in batch.rows:  # each time one record at least
            answer = ring.settle(1, batch.manifest, 0, 1)
        assert answer.settled == [0, 1]
    if crashed == 3:
        ring.crash(1)
    ring.agree(batch.rows)


def test_who_holds_a_manifest_and_sees_one_of_its_rows_settles_the_rest() -> None:
    ring, batch = lab(), Batch([3, 3])
    for record in [*batch.records[:2], batch.manifest.record]:
        ring.stage(0, record)
    for record in [*batch.records[2:], batch.manifest.record]:
        ring.stage(2, record)
    ring.settle(0, batch.manifest, 0)  # and its driver dies
    ring.agree(batch.rows)


def test_a_batch_under_two_manifests_is_told_and_neither_is_cut() -> None:
    ring, one, other = lab(), Batch([3]), Batch([2, 1], attempt=1)
    for id, batch in ((0, one), (3, other)):  # on the two sides of a partition
        for record in [*batch.records, batch.manifest.record]:
            ring.stage(id, record)
        ring.peer(id).on_message(Settle(TOPIC, ENTRY, batch.manifest.record.data, []), ENTRY)
    history = ring.peer(0).topics[TOPIC].history
    theirs = ring.peer(3).topics[TOPIC].history.holdings.store.read({}).slices
    effects = [it for part in theirs for it in history._take([part.record])]
    notices = [it for it in effects if isinstance(it, Notice)]
    assert [(it.kind, it.detail["batch"]) for it in notices] == [("equivocation", 0)]
    ring.agree([*one.rows, *other.rows])


class Driver:
    """One run of a driver, which follows the rules until it dies after so many steps."""

    COPIES = 2

    def __init__(self, ring: Lab, batch: Batch, chance: Random, steps: int) -> None:
        self.ring, self.batch, self.chance, self.steps = ring, batch, chance, steps

    def alive(self) -> bool:
        """Count a step; between two, members crash or time passes."""
        self.steps -= 1
        if self.chance.random() < 0.2:
            self.ring.crash(self.chance.choice(self.ring.peers))
        if self.chance.random() < 0.2:
            self.ring.run()
        return self.steps >= 0

    def run(self) -> bool:
        """Commit the batch; did it live to the end?"""
        manifest = self.batch.manifest
        for at in range(len(self.batch.parts)):
            holders = self.chance.sample(self.ring.peers, self.COPIES)
            its = self.batch.parts[at].incarnation
            for record in [it for it in self.batch.records if it.incarnation == its]:
                for id in holders:
                    if not self.alive():
                        return False
                    assert self.ring.stage(id, record) == ""
        answers = [self.ring.review(id, manifest) for id in self.ring.peers]
        rivals = {it.rival for it in answers if it.rival}
        settled = {it.last for it in answers if it.batch >= manifest.batch}
        if rivals:
            found = self.ring.peer(0).topics[TOPIC].history.batches.read(rivals.pop())
            assert found is not None
            assert not rivals
            manifest = found[0]
        elif settled:
            return True
        return self._settle(manifest)

    def _settle(self, manifest: Manifest) -> bool:
        for id in self.chance.sample(self.ring.peers, self.COPIES):
            if not self.alive():
                return False
            self.ring.stage(id, manifest.record)
        parts = range(len(manifest.portions[TOPIC].parts))
        left = {*parts}
        while left:
            for id in self.ring.peers:
                if not self.alive():
                    return False
                spread = [at for at in parts if self.chance.random() < 0.5]
                left -= {*self.ring.settle(id, manifest, *spread).settled}
        return True


@pytest.mark.parametrize("part", range(4))
def test_one_driver_after_another_publishes_a_batch_once(
    part: int, seeds: Callable[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each dies after some steps and the next replays the batch in other partitions."""
    monkeypatch.setattr(staging, "SETTLE_BYTES", 1)
    for seed in range(part, seeds(24, 4_000), 4):
        deaths, size = combination(seed, range(1, 4), range(3, 8))
        chance = stream(seed, "drivers")
        ring = lab(4, seed + 1)
        for attempt in range(deaths):
            partitions = [chance.randrange(1, size) for _ in range(chance.randrange(1, 4))]
            rest = 9 - sum(partitions)
            batch = Batch([*partitions, rest] if rest > 0 else [9], attempt)
            if Driver(ring, batch, chance, chance.randrange(40)).run():
                break
        assert Driver(ring, Batch([9], deaths), chance, STEPS_MAX).run(), seed
        ring.agree([b"%d" % number for number in range(9)])


def test_a_batch_is_published_after_any_fault_in_memory(seeds: Callable[[int, int], int]) -> None:
    for seed in range(seeds(8, 1_000)):
        chance, ring = stream(seed, "faults and batches"), lab(4, seed + 1)
        for id in ring.peers:
            corrupt_history(ring.peer(id).topics[TOPIC].history, ring.peers, chance)
        ring.run(40)
        before = {id: Counter(ring.rows(id)) for id in ring.peers}
        batch = Batch([4, 3], attempt=5, batch=9)
        for record in [*batch.records, batch.manifest.record]:
            for id in (0, 1):
                assert ring.stage(id, record) == "", (seed, id)
        for id in (0, 1):
            ring.settle(id, batch.manifest, 0, 1)
        ring.run(40)
        for id in ring.peers:
            assert Counter(ring.rows(id)) - before[id] == Counter(batch.rows), (seed, id)
