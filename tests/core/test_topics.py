"""Topics and filters against the text of MQTT 5.0, section 4.7, and against brute force."""

import re
import unicodedata
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planaria.core.errors import UsageError
from planaria.core.topics import (
    LEVELS_MAX,
    TOPIC_BYTES_MAX,
    ancestors,
    check_filter,
    check_topic,
    covers,
    has_wildcard,
    matches,
    parent,
)


def selects(pattern: str, topic: str) -> bool:
    """MQTT 4.7 as a regular expression: the stupid second version of `matches`."""
    if topic.startswith("$") and pattern[0] in "+#":
        return False
    text = "/".join("[^/]*" if level == "+" else level for level in pattern.split("/"))
    text = text.replace("$", r"\$")
    text = ".*" if text == "#" else re.sub("/#$", "(/.*)?", text)
    return re.fullmatch(text, topic, re.DOTALL) is not None


LEVELS = ("a", "b", "", "$s")
FILTERS = [
    "/".join(levels)
    for depth in (1, 2, 3)
    for levels in product((*LEVELS, "+", "#"), repeat=depth)
    if "#" not in levels[:-1] and any(levels)
]
# One level and one letter more than any filter has, so that no wildcard looks like a constant.
TOPICS = [
    "/".join(levels)
    for depth in (1, 2, 3, 4)
    for levels in product((*LEVELS, "c"), repeat=depth)
    if depth > 1 or levels[0]
]


@pytest.mark.parametrize(
    ("pattern", "selected", "not_selected"),
    [
        (
            "sport/tennis/player1/#",
            "sport/tennis/player1 sport/tennis/player1/score sport/tennis/player1/score/wimbledon",
            "sport/tennis sport/tennis/player2",
        ),
        ("sport/#", "sport sport/ sport/tennis", "sports"),
        ("#", "sport /sport sport/tennis /", "$SYS $SYS/monitor/Clients"),
        (
            "sport/tennis/+",
            "sport/tennis/player1 sport/tennis/",
            "sport/tennis/player1/ranking sport/tennis",
        ),
        ("sport/+", "sport/ sport/tennis", "sport"),
        ("+/+", "/finance a/b", "finance $SYS/monitor"),
        ("/+", "/finance", "finance finance/a"),
        ("+", "finance", "/finance $SYS"),
        ("+/tennis/#", "sport/tennis sport/tennis/a/b /tennis", "sport $SYS/tennis"),
        ("+/monitor/Clients", "a/monitor/Clients", "$SYS/monitor/Clients"),
        ("$SYS/#", "$SYS/ $SYS $SYS/monitor/Clients", "$SYSTEM"),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", "$SYS/monitor"),
        ("ACCOUNTS", "ACCOUNTS", "Accounts accounts"),
    ],
)
def test_a_filter_selects_what_mqtt_says(pattern: str, selected: str, not_selected: str) -> None:
    assert check_filter(pattern) == pattern
    assert [topic for topic in selected.split() if not matches(pattern, topic)] == []
    assert [topic for topic in not_selected.split() if matches(pattern, topic)] == []


def test_matches_agrees_with_a_regular_expression_on_all_small_filters_and_topics() -> None:
    wrong = [
        (pattern, topic)
        for pattern in FILTERS
        for topic in TOPICS
        if matches(pattern, topic) != selects(pattern, topic)
    ]
    assert wrong == []


def test_covers_is_inclusion_of_the_selected_topics_for_all_small_filters() -> None:
    selected = [[matches(pattern, topic) for topic in TOPICS] for pattern in FILTERS]
    masks = [sum(1 << at for at, hit in enumerate(hits) if hit) for hits in selected]
    wrong = [
        (general, special)
        for general, wide in zip(FILTERS, masks, strict=True)
        for special, narrow in zip(FILTERS, masks, strict=True)
        if covers(general, special) != (narrow & ~wide == 0)
    ]
    assert wrong == []


@given(st.lists(st.sampled_from(["a", "b", "", "+"]), min_size=1, max_size=LEVELS_MAX))
def test_a_filter_covers_itself_and_what_it_becomes_when_a_level_is_named(
    levels: list[str],
) -> None:
    pattern = "/".join(levels) or "a"
    assert covers(pattern, pattern)
    assert covers(pattern, pattern.replace("+", "x"))
    assert covers(f"{pattern}/#", pattern)
    assert covers("#", pattern)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("a/*/c", "a/+/c"),
        ("*", "+"),
        ("a/>", "a/#"),
        (">", "#"),
        ("a/**", "a/#"),
        ("**", "#"),
        ("*/b/**", "+/b/#"),
        ("a*/b>", "a*/b>"),
        ("a/b", "a/b"),
        ("/", "/"),
    ],
)
def test_other_dialects_are_read_and_printed_as_mqtt(written: str, canonical: str) -> None:
    assert check_filter(written) == canonical
    assert check_filter(canonical) == canonical


@pytest.mark.parametrize(
    "pattern", ["", "sport/tennis#", "sport/tennis/#/ranking", "sport+", "a/**/b", ">/a", "#/#"]
)
def test_a_filter_that_mqtt_forbids_is_a_usage_error(pattern: str) -> None:
    with pytest.raises(UsageError):
        check_filter(pattern)


@pytest.mark.parametrize(
    "topic", ["", "+", "a/+", "#", "a/#", "a+b", "x#", "*", "a/>", "**", "$SYS", "$SYS/a"]
)
def test_one_cannot_publish_on_a_wildcard_or_a_reserved_topic(topic: str) -> None:
    with pytest.raises(UsageError):
        check_topic(topic)


@pytest.mark.parametrize("topic", ["a", "/", "/a", "a//b", "a b/ä/東", "$SYSTEM", "$x/y", "a*b"])
def test_one_can_publish_on_any_other_topic(topic: str) -> None:
    assert check_topic(topic) == topic
    assert check_filter(topic) == topic


@pytest.mark.parametrize("check", [check_topic, check_filter])
def test_a_control_character_is_refused_in_one_line_that_shows_it_escaped(
    check: Callable[[str], str],
) -> None:
    """All of general category Cc, which are C0, DEL and C1, and no other character."""
    others = [it for it in map(chr, range(0x3000)) if it not in "+#"]
    control = [it for it in others if unicodedata.category(it) == "Cc"]
    assert len(control) == 65
    for character in control:
        with pytest.raises(UsageError) as refusal:
            check(f"a/{character}b")
        assert str(refusal.value).isprintable()
        assert repr(f"a/{character}b") in str(refusal.value)
    for character in {*others} - {*control}:
        assert check(f"a/{character}b") == f"a/{character}b"


@pytest.mark.parametrize("check", [check_topic, check_filter])
def test_topics_have_bounds_and_must_be_text(check: Callable[[str], str]) -> None:
    check("ä" * (TOPIC_BYTES_MAX // 2))
    check("/".join(["a"] * LEVELS_MAX))
    for topic in ("ä" * (TOPIC_BYTES_MAX // 2) + "a", "/" * LEVELS_MAX, "a/\ud800"):
        with pytest.raises(UsageError):
            check(topic)


@given(st.text(max_size=20))
def test_any_text_is_a_filter_or_a_usage_error_and_the_canonical_form_is_stable(text: str) -> None:
    try:
        canonical = check_filter(text)
    except UsageError:
        return
    assert check_filter(canonical) == canonical
    assert covers(canonical, canonical)


def test_supertopics_come_nearest_first() -> None:
    assert ancestors("a/b/c") == ["a/b", "a"]
    assert ancestors("//a") == ["/"]
    assert [parent(topic) for topic in ("a", "/a", "/", "/a/b")] == [None, None, None, "/a"]


def test_every_supertopic_of_a_topic_is_a_topic_itself() -> None:
    for topic in TOPICS:
        for above in ancestors(topic):
            assert check_topic(above) == above
            assert matches(f"{above}/#", topic)


@pytest.mark.parametrize(("pattern", "wild"), [("a/b", False), ("a/+/b", True), ("#", True)])
def test_a_filter_has_a_wildcard_if_a_level_is_one(pattern: str, wild: bool) -> None:
    assert has_wildcard(pattern) is wild
