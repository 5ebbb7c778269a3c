"""Schedules are data: read, printed, composed, and refused by the line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import UsageError
from planaria.core.scenario import CHOICES
from planaria.simulator.schedule import (
    ACTIONS,
    ACTIONS_MAX,
    LASTING,
    LIMITS,
    NAMED,
    Action,
    Value,
    compose,
    load_schedule,
    parse_schedule,
    print_schedule,
)


def values(name: str, default: Value) -> st.SearchStrategy[Value]:
    if isinstance(default, bool):
        return st.booleans()
    if isinstance(default, str):
        return st.sampled_from(CHOICES[name]) if name in CHOICES else st.text()
    if isinstance(default, dict):
        numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        return st.dictionaries(st.text(), numbers | st.booleans() | st.text(), max_size=3)
    low, high = LIMITS[name]
    if isinstance(default, int):
        return st.integers(int(low), int(high))
    return st.floats(low, high, allow_nan=False)


@st.composite
def actions(draw: st.DrawFn) -> Action:
    kind = draw(st.sampled_from(sorted(ACTIONS)))
    names = draw(st.lists(st.sampled_from(sorted(ACTIONS[kind])), unique=True))
    times = st.floats(0, 999_999, allow_nan=False)
    arguments = {name: draw(values(name, ACTIONS[kind][name])) for name in names}
    return Action(draw(times), kind, arguments, draw(times) if kind in LASTING else 0.0)


schedules = st.lists(actions(), max_size=8).map(tuple)


@given(schedules)
def test_printed_schedule_reads_back_the_same(schedule: tuple[Action, ...]) -> None:
    assert parse_schedule(print_schedule(schedule)) == compose(schedule)


@given(schedules, schedules)
def test_composed_schedules_keep_every_action_in_the_order_of_time(
    one: tuple[Action, ...], other: tuple[Action, ...]
) -> None:
    both = compose(one, other)
    assert sorted(map(str, both)) == sorted(map(str, one + other))
    assert [action.at for action in both] == sorted(action.at for action in both)
    assert parse_schedule(print_schedule(one) + print_schedule(other)) == both


def test_actions_at_one_time_keep_the_order_in_which_they_were_given() -> None:
    text = "at 1 crash count=1\nat 1 join count=2\nat 0 forge count=3\n"
    assert [action.kind for action in parse_schedule(text)] == ["forge", "crash", "join"]


def test_comments_and_empty_lines_are_skipped() -> None:
    (action,) = parse_schedule("# all of it\n\n  at 2 for 3 partition groups=3  # three ways\n")
    assert action == Action(2.0, "partition", {"groups": 3}, 3.0)
    assert str(action) == "at 2 for 3 partition groups=3"


def test_a_wildcard_is_not_a_comment_and_quotes_hold_blanks() -> None:
    text = r"""at 0 subscribe pattern=a/# where="delay > 60 # minutes \"so\"" node=3 # a comment"""
    (action,) = parse_schedule(text)
    wanted = {"pattern": "a/#", "where": 'delay > 60 # minutes "so"', "node": 3}
    assert action.arguments == wanted
    assert parse_schedule(str(action)) == (action,)


def test_argument_left_out_has_its_default() -> None:
    (action,) = parse_schedule("at 0 for 1 loss")
    assert action.number("rate") == 0.1


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("crash", "cannot read"),
        ("at crash", "cannot read"),
        ("at 1 crash count = 1", "cannot read"),
        ("at 1 crash count=1 now", "cannot read"),
        ("at 1 explode", "no action 'explode'"),
        ("at x crash", "not a number of intervals"),
        ("at -1 crash", "between 0 and a million"),
        ("at nan crash", "between 0 and a million"),
        ("at inf crash", "between 0 and a million"),
        ("at 1 partition", "needs `for INTERVALS`"),
        ("at 1 for 2 crash", "takes no `for`"),
        ("at 1 for -2 partition", "between 0 and a million"),
        ("at 1 crash groups=2", "has no 'groups'"),
        ("at 1 crash count=two", "a number is needed"),
        ("at 1 crash count=1.5", "a number is needed"),
        ("at 1 crash count=-1", "between 0 and 1e+06"),
        ("at 1 forge count=99999999999", "between 0 and 1e+06"),
        ("at 1 crash share=1.01", "between 0 and 1"),
        ("at 1 crash share=nan", "between 0 and 1"),
        ("at 1 for 1 slow factor=inf", "between 1 and 1000"),
        ("at 1 for 1 slow factor=0", "between 1 and 1000"),
        ("at 1 for 1 partition groups=0", "between 1 and 1000"),
        ("at 1 for 1 partition one_way=maybe", "write yes or no"),
        ("at 1 restart state=lost", "one of kept, stale, none"),
        ('at 1 publish topic="news', "cannot read"),
        ('at 1 publish topic="news"count=2', "cannot read"),
        ("at 1 publish attributes=[1]", "write {"),
        ('at 1 publish attributes={"a":null}', "write {"),
        ('at 1 publish attributes={"a":NaN}', "write {"),
        ("at 1 subscribe node=-2", "between -1"),
    ],
)
def test_bad_line_is_refused_by_its_number(line: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=r"^mine, line 3: ") as refused:
        parse_schedule(f"at 0 join\n\n{line}\n", "mine")
    assert complaint in str(refused.value)


def test_schedule_of_absurd_length_is_refused() -> None:
    with pytest.raises(UsageError, match=f"at most {ACTIONS_MAX}"):
        parse_schedule("at 1 join\n" * (ACTIONS_MAX + 1))


@pytest.mark.parametrize("name", NAMED)
def test_named_schedule_loads(name: str) -> None:
    assert bool(load_schedule(name)) == (name != "none")


def test_schedule_loads_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my.faults"
    file.write_text("at 1 crash count=2\n")
    assert load_schedule(str(file)) == (Action(1.0, "crash", {"count": 2}),)


def test_file_that_is_not_there_or_not_text_is_a_usage_error(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for name in (str(tmp_path / "nothing"), str(tmp_path), str(binary)):
        with pytest.raises(UsageError, match="neither a readable file"):
            load_schedule(name)
