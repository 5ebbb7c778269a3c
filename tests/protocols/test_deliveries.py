"""Deliveries are the same however they are made."""

import pytest

from planaria.protocols.publications.deliveries import Deliveries, position_id
from planaria.records.batches import Slice
from planaria.records.record import Draft, seal

STREAM = (7, b"twelve bytes")
PLAIN = [Draft(b"%d" % number) for number in range(6)]
FULL = [Draft(b"%d" % n, b"k%d" % n, (("h", b"v"),), 5_000 + n * 1000) for n in range(6)]


@pytest.mark.parametrize("drafts", [PLAIN, FULL, [*PLAIN[:3], *FULL[3:]]])
@pytest.mark.parametrize(("lo", "hi"), [(10, 16), (12, 15), (15, 16), (13, 13)])
def test_deliveries_say_what_was_published(drafts: list[Draft], lo: int, hi: int) -> None:
    record = seal(STREAM, 10, drafts, time=1_700_000_000)
    found = list(Deliveries([Slice(record, lo, hi)]))
    assert [it.sequence for it in found] == list(range(lo, hi))
    for one in found:
        assert one.sequence is not None
        draft = drafts[one.sequence - 10]
        assert (one.id, one.publisher) == (position_id(*STREAM, one.sequence), 7)
        assert (one.payload, one.key) == (draft.payload, draft.key)
        assert one.headers == {name: value.decode() for name, value in draft.headers}
        stamp = 1_700_000_000_000 if draft.timestamp is None else draft.timestamp // 1000
        assert one.timestamp == stamp
        assert one.attributes == {}
