"""The error hierarchy: by whose mistake an error is, and that it survives a process border."""

import copy
import pickle

import pytest

from planaria.core import errors
from planaria.core.errors import (
    CapacityExceeded,
    InvariantViolation,
    MalformedMessage,
    PlanariaError,
    UsageError,
)

VIOLATION = InvariantViolation(
    "closure", seed=7, tick=42, detail="2 lost its left neighbour", replay="planaria sim ring"
)


def test_every_error_is_a_planaria_error_and_drawn_in_the_tree() -> None:
    found = [
        cls
        for cls in vars(errors).values()
        if isinstance(cls, type) and cls.__module__ == errors.__name__
    ]
    assert len(found) == 7
    for cls in found:
        assert issubclass(cls, PlanariaError)
        assert cls.__name__ in (errors.__doc__ or "")


def test_errors_are_also_what_python_would_raise() -> None:
    assert issubclass(UsageError, ValueError)
    assert issubclass(MalformedMessage, ValueError)
    assert issubclass(InvariantViolation, AssertionError)


def test_a_violation_says_what_where_and_how_to_see_it_again() -> None:
    text = str(VIOLATION)
    for part in ("closure", "seed 7", "tick 42", "2 lost its left", "replay: planaria sim ring"):
        assert part in text


@pytest.mark.parametrize(
    "error", [VIOLATION, UsageError("no"), MalformedMessage("cut"), CapacityExceeded("full")]
)
def test_an_error_comes_whole_out_of_a_worker_process(error: PlanariaError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
