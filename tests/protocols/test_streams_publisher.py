"""Incarnations and numbers on the publisher's side."""

from copy import deepcopy
from random import Random

import pytest
from msgspec.structs import replace

from planaria.protocols.publications import streams as module
from planaria.protocols.publications.publication import Publication, key
from planaria.protocols.publications.streams import Publisher, Stamp


class Mine(Publisher):
    """A publisher whose publications are looked at without the names that come with them."""

    def say(self, payload: bytes, time: int, lo: int) -> Publication:
        name, said = self.publish(payload, time, lo)
        assert name == key(said)
        return said

    def say_again(self, name: bytes, time: int, lo: int) -> Publication | None:
        found = self.restamp(name, time, lo)
        assert found is None or found[0] == key(found[1])
        return found[1] if found else None


def publisher(seed: int = 1, stamp: Stamp | None = None, id: int = 9) -> Mine:
    return Mine(id, Random(seed), stamp)


def test_numbers_run_from_zero_in_one_incarnation() -> None:
    mine = publisher()
    said = [mine.say(b"p", 100, 84) for _ in range(5)]
    assert [p.sequence for p in said] == [0, 1, 2, 3, 4]
    assert len({p.incarnation for p in said}) == 1
    assert said[0].incarnation >> 32 == 100
    assert len({key(p) for p in said}) == 5, "the same payload said five times (erratum T4)"


def test_a_stamp_read_back_intact_goes_on_and_any_other_starts_anew() -> None:
    mine = publisher()
    last = mine.say(b"p", 100, 84)
    stored = deepcopy(mine.stamp)
    assert stored is not None
    again = publisher(2, stored).say(b"q", 100, 84)
    assert (again.incarnation, again.sequence) == (last.incarnation, 1)
    for broken in (
        None,
        replace(stored, sequence=0),
        replace(stored, incarnation=5),
        replace(stored, starts=((0, 10**9),)),
        replace(stored, check=stored.check ^ 1),
    ):
        fresh = publisher(2, broken).say(b"q", 100, 84)
        assert fresh.incarnation != last.incarnation
        assert (fresh.sequence, fresh.low) == (0, 0)
    stolen = publisher(2, stored, id=8).say(b"q", 100, 84)
    assert stolen.incarnation != last.incarnation


def test_a_stamp_corrupted_in_memory_is_not_used() -> None:
    mine = publisher()
    first = mine.say(b"p", 100, 84)
    assert mine.stamp is not None
    mine.stamp = replace(mine.stamp, sequence=10**6)
    second = mine.say(b"p", 100, 84)
    assert second.sequence == 0
    assert second.incarnation != first.incarnation


def test_the_last_number_is_followed_by_a_new_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEQUENCE_MAX", 3)
    mine = publisher()
    said = [mine.say(b"p", 1, 0) for _ in range(4)]
    assert [p.sequence for p in said] == [0, 1, 2, 0]


def test_low_is_the_first_number_that_may_still_be_kept() -> None:
    mine = publisher()
    lows = [mine.say(b"p", time, lo=time - 2).low for time in (10, 10, 11, 12, 13, 14, 20)]
    assert lows == [0, 0, 0, 0, 2, 3, 6]


def test_low_passes_no_number_that_is_still_kept_whatever_the_clock_does() -> None:
    for seed in range(20):
        mine, random, said = publisher(), Random(seed), []
        time = lo = 10**6
        for _ in range(200):
            time += random.choice([0, 1, 1, 7, 100, -50])
            lo = max(lo, time - 500)
            said.append(mine.say(b"p", time, lo))
            alive = min(p.sequence for p in said if p.time >= lo or p is said[-1])
            assert said[-1].low <= alive
        assert said[-1].low > 0, "and old numbers are not vouched for for ever"


def test_low_never_passes_the_publication_when_time_steps_back() -> None:
    mine = publisher()
    random = Random(3)
    for _ in range(300):
        time = random.randrange(30)
        said = mine.say(b"p", time, lo=max(0, time - random.randrange(5)))
        assert said.low <= said.sequence


def test_known_spans_stay_within_their_bound() -> None:
    mine = publisher()
    for time in range(500):
        assert mine.say(b"p", time, lo=0).low == 0
    assert mine.stamp is not None
    assert len(mine.stamp.starts) <= module.STARTS_MAX


def test_a_rejected_publication_is_stamped_anew_with_a_new_key_and_the_same_number() -> None:
    mine = publisher()
    said = mine.say(b"p", 100, 84)
    assert mine.say_again(key(said), 110, 94) is None, "who refuses it errs: it is not expired"
    again = mine.say_again(key(said), 500, 484)
    assert again == replace(said, time=500)
    assert mine.say_again(key(said), 500, 484) is None, "once for many rejections"
    assert mine.say_again(key(again), 500, 484) is None


def test_a_publication_is_stamped_anew_only_so_often() -> None:
    mine = publisher()
    said, times = mine.say(b"p", 500, 484), 0
    for step in range(20):
        again = mine.say_again(key(said), 1000 * step + 2000, 1000 * step + 1900)
        if again is not None:
            said, times = again, times + 1
    assert times == module.RESTAMPS_MAX


def test_rejections_of_the_unknown_or_long_gone_are_ignored() -> None:
    mine = publisher()
    first = mine.say(b"p", 500, 484)
    assert mine.say_again(b"x" * 16, 1000, 900) is None
    for _ in range(module.REJECTABLE_MAX):
        mine.say(b"p", 500, 484)
    assert mine.say_again(key(first), 1000, 900) is None
