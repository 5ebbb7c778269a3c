"""How a member goes on with a batch: in which order, until when, and what it drops."""

import pytest

from batches_lab import Batch, kinds, lab
from planaria.protocols.skipring import staging
from planaria.protocols.skipring.broadcast_messages import Arc
from planaria.protocols.skipring.overlay import TOPIC


def test_a_member_settles_first_what_it_is_to_spread_and_tells_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "SETTLE_BYTES", 0)  # a record at a time
    ring, batch = lab(), Batch([4, 4])
    for record in [*batch.records, batch.manifest.record]:
        ring.stage(0, record)
    assert ring.review(0, batch.manifest).rows == 0
    answers = [ring.settle(0, batch.manifest, 1) for _ in range(4)]
    assert [it.rows for it in answers] == [2, 4, 6, 8]
    assert [it.settled for it in answers] == [[], [1], [1], [0, 1]]


def test_a_member_that_is_told_to_settle_does_not_go_on_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "SETTLE_BYTES", 0)
    ring, batch = lab(), Batch([8])
    for record in [*batch.records, batch.manifest.record]:
        ring.stage(0, record)
    history, view = ring.peer(0).topics[TOPIC].history, ring.peer(0).topics[TOPIC]._view()
    ring.settle(0, batch.manifest)
    assert history.finish(view) == [], "whoever settles it goes on"
    assert Arc in kinds(history.finish(view)), "nobody does"


def test_what_a_manifest_settled_is_dropped_before_the_next_one_hides_it() -> None:
    ring, first, second = lab(), Batch([3]), Batch([2], attempt=1, batch=1)
    for record in [*first.records, first.manifest.record]:
        ring.stage(0, record)
    ring.settle(0, first.manifest)
    assert ring.review(0, first.manifest).staged == [0]
    for record in [*second.records, second.manifest.record]:
        assert ring.stage(0, record) == ""
    assert ring.review(0, first.manifest).staged == []
    assert ring.review(0, second.manifest).staged == [0]
