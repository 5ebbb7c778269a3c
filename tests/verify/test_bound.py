"""What a space can hold at most is no less than what is reached."""

import pytest

from planaria.core.errors import UsageError
from planaria.verify.bound import Bound, bound
from planaria.verify.cases import Case
from planaria.verify.space import Schedule
from toys import ROOT
from verify_toys import ToyModel

CASES = [
    Case("sorted-ring", 2, "right"),
    Case("sorted-ring", 3, "right"),
    Case("sorted-ring", 2, "garbage"),
    Case("dht", 2, "living", delay=1),
    Case("tree", 1, "links", delay=1),
    Case("ring", 1, "leavers", delay=1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_more_is_reached_than_there_can_be(case: Case) -> None:
    plain = case.search()
    reached = plain.run()
    found, space = bound(plain.model, plain.schedule, 100_000), plain.graph.space
    owns = [{state[at] for state in plain.graph.states} for at in range(space.n)]
    assert all(len(mine) <= most for mine, most in zip(owns, found.locals, strict=True))
    assert len(space.messages) <= found.messages
    assert reached.states <= 10**found.digits * (1 + 1e-9)


@pytest.mark.parametrize(("n", "digits"), [(3, "10.7"), (4, "29.8")])
def test_the_page_says_how_large_the_spaces_of_build_ring_are_at_most(n: int, digits: str) -> None:
    plain = Case("sorted-ring", n, "right").search()
    assert f"{bound(plain.model, plain.schedule, 100_000).digits:.1f}" == digits
    assert f"10^{digits}" in (ROOT / "docs" / "proofs" / "index.md").read_text(encoding="utf-8")


def test_each_variable_and_each_message_counts() -> None:
    assert bound(ToyModel(2, "tells"), Schedule(0, 1), 100) == Bound([3, 3], 2, 3)
    assert Bound([3, 3], 2, 3).digits == pytest.approx(2.0334, abs=1e-4)  # 3 * 3 * 2^2 * 3 = 108
    assert bound(ToyModel(2, "swaps"), Schedule(), 100) == Bound([3, 3], 0, 1)


def test_who_raises_is_counted_where_it_is() -> None:
    assert bound(ToyModel(2, "raises"), Schedule(), 100) == Bound([3, 3], 0, 1)


def test_a_bound_that_takes_too_many_steps_is_not_given() -> None:
    with pytest.raises(UsageError, match="more than 10 steps"):
        bound(ToyModel(2, "tells"), Schedule(), 10)


def test_what_is_counted_from_elsewhere_has_no_bound() -> None:
    plain = Case("mobile", 2, "links", delay=1).search()
    with pytest.raises(UsageError, match="counted from elsewhere"):
        bound(plain.model, plain.schedule, 100)
