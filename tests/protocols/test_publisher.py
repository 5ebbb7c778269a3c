"""Incarnations, numbers and records on the publisher's side."""

from random import Random

import pytest

from planaria.core.errors import UsageError
from planaria.core.state import decode_state
from planaria.protocols.publications import publisher as module
from planaria.protocols.publications.publisher import Publisher, PublisherState
from planaria.records.packing import PACKED_PUBLICATIONS
from planaria.records.record import PAYLOAD_BYTES_MAX, Draft, Record


class Mine(Publisher):
    """A publisher each of whose publications leaves at once, alone."""

    def say(self, payload: bytes = b"p", time: int = 100) -> Record:
        stream, number = self.publish(time, Draft(payload))
        (record,) = self.seal(time, None)
        assert (record.stream, record.first, record.end) == (stream, number, number + 1)
        return record


def publisher(seed: int = 1, id: int = 9) -> Mine:
    return Mine(id, Random(seed))


def test_numbers_run_from_zero_in_one_incarnation() -> None:
    mine = publisher()
    said = [mine.say() for _ in range(5)]
    assert [it.first for it in said] == [0, 1, 2, 3, 4]
    assert len({it.stream for it in said}) == 1
    assert said[0].publisher == 9
    assert len({it.key for it in said}) == 5, "the same payload said five times (erratum T4)"


def test_what_is_published_at_once_leaves_in_full_records() -> None:
    mine = publisher()
    mine.say()
    drafts = [Draft(b"%d" % number) for number in range(2 * PACKED_PUBLICATIONS + 1)]
    assert mine.publish(100, *drafts)[1] == 1
    sealed = mine.seal(100, None)
    assert [it.count for it in sealed] == [PACKED_PUBLICATIONS] * 2 + [1]
    assert [one for it in sealed for one in it.payloads(it.first, it.end)] == [
        draft.payload for draft in drafts
    ]
    assert mine.seal(100, None) == []


def test_a_state_read_back_intact_goes_on_and_any_other_starts_anew() -> None:
    mine = publisher()
    last = mine.say()
    stored = mine.snapshot()

    def say_with(**changed: int) -> Record:
        again, state = publisher(2), decode_state(PublisherState, stored)
        assert state.packer is not None
        for name, value in changed.items():
            setattr(state if name == "check" else state.packer, name, value)
        again.load(state)
        return again.say()

    going_on = say_with()
    assert (going_on.stream, going_on.first) == (last.stream, 1)
    for changed in ({"next": 0}, {"next": -1}, {"next": 2**80}, {"time": 5}, {"check": 1}):
        fresh = say_with(**changed)
        assert fresh.stream != last.stream
        assert (fresh.first, fresh.low) == (0, 0)
    stolen = publisher(2, id=8)
    stolen.load(decode_state(PublisherState, stored))
    assert stolen.say().publisher == 8


def test_a_process_that_begins_anew_continues_no_stored_numbers() -> None:
    """Restored from an older copy it would give acknowledged publications old positions."""
    mine = publisher()
    last = mine.say()
    again = publisher(2)
    again.load(decode_state(PublisherState, mine.snapshot()))
    again.restart()
    assert again.say().stream != last.stream


def test_numbers_corrupted_in_memory_are_not_used() -> None:
    mine = publisher()
    first = mine.say()
    assert mine.packer is not None
    mine.packer.next = 10**6
    second = mine.say()
    assert second.first == 0
    assert second.stream != first.stream


def test_a_stream_numbered_by_a_wrong_clock_is_left_when_the_clock_is_right() -> None:
    mine = publisher()
    ahead = mine.say(time=10**6)
    assert mine.say(time=10**6 - 5).time == 10**6, "times of a stream never decrease"
    right = mine.say(time=500)
    assert right.time == 500
    assert right.stream != ahead.stream


def test_the_last_number_is_followed_by_a_new_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEQUENCE_MAX", 3)
    mine = publisher()
    assert [mine.say().first for _ in range(4)] == [0, 1, 2, 0]


def test_a_record_vouches_for_what_its_publisher_still_holds() -> None:
    mine = publisher()
    for _ in range(5):
        mine.say()
    for low, vouched in ((3, 3), (None, 6), (99, 7)):
        mine.publish(100, Draft(b"p"))
        (record,) = mine.seal(100, low)
        assert record.low == min(vouched, record.first)


def test_a_publication_that_no_record_can_hold_is_refused_and_not_numbered() -> None:
    mine = publisher()
    with pytest.raises(UsageError, match="split it"):
        mine.publish(100, Draft(bytes(PAYLOAD_BYTES_MAX + 1)))
    assert mine.say().first == 0


def test_a_rejected_record_is_stamped_anew_with_a_new_key_and_the_same_numbers() -> None:
    mine = publisher()
    mine.publish(100, Draft(b"a", b"key", (("h", b"v"),)))
    mine.publish(100, Draft(b"b"))
    (said,) = mine.seal(100, None)
    assert mine.restamp(said.key, 110, 94) is None, "who refuses it errs: it is not expired"
    again = mine.restamp(said.key, 500, 484)
    assert again is not None
    assert (again.time, again.stream, again.first) == (500, said.stream, said.first)
    contents = [[it[:6] for it in record.publications(0, 9)] for record in (said, again)]
    assert contents[0] == contents[1]
    assert mine.restamp(said.key, 500, 484) is None, "once for many rejections"
    assert mine.restamp(again.key, 500, 484) is None


def test_a_record_is_stamped_anew_only_so_often() -> None:
    mine = publisher()
    said, times = mine.say(time=500), 0
    for step in range(20):
        again = mine.restamp(said.key, 1000 * step + 2000, 1000 * step + 1900)
        if again is not None:
            said, times = again, times + 1
    assert times == module.RESTAMPS_MAX


@pytest.mark.parametrize("bound", ["REJECTABLE_MAX", "REJECTABLE_BYTES_MAX"])
def test_rejections_of_the_unknown_or_long_gone_are_ignored(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = publisher()
    first = mine.say(time=500)
    monkeypatch.setattr(module, bound, 4 if bound == "REJECTABLE_MAX" else 4 * len(first.data))
    assert mine.restamp(b"x" * 16, 1000, 900) is None
    said = [mine.say(time=500) for _ in range(4)]
    assert mine.restamp(first.key, 1000, 900) is None
    assert 3 <= len(mine.rejectable) <= 4
    assert mine.restamp(said[-1].key, 1000, 900) is not None


def test_what_memory_holds_in_place_of_a_rejected_record_is_not_published() -> None:
    mine, other = publisher(), publisher(id=8)
    said, foreign = mine.say(time=5), other.say(time=5)
    for body in (b"", said.data[:-1], foreign.data):
        for name in (said.key, foreign.key):
            mine.rejectable[name] = (body, 0)
            assert mine.restamp(name, 500, 400) is None
