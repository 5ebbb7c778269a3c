"""Files of rights: default deny, deny first, and one line that names the line at fault."""

from pathlib import Path

import pytest

from planaria.core.errors import UsageError
from planaria.network.rights import RIGHTS, Rights, RightsFile, parse_rights

GOOD = """
[groups]
desk = ["alice", "bob"]

[[allow]]
who = ["@desk"]
rights = ["publish", "subscribe"]
topics = ["weather/#"]

[[allow]]
who = ["*"]
rights = ["subscribe"]
topics = ["news/+"]

[[deny]]
who = ["bob"]
rights = ["publish"]
topics = ["weather/archive/#"]
"""


def test_nothing_is_allowed_that_is_not_written() -> None:
    for right in RIGHTS:
        assert not Rights().allows("alice", right, "news")
        assert not Rights().allows_all("alice", right, "#")
    found = parse_rights(GOOD)
    assert found.allows("alice", "publish", "weather/now")
    assert not found.allows("carol", "publish", "weather/now")
    assert not found.allows("alice", "admin", "weather/now")
    assert not found.allows("alice", "publish", "news/today")
    assert found.allows("carol", "subscribe", "news/today")
    assert not found.allows("carol", "subscribe", "news/today/late")


def test_what_is_denied_is_denied_whatever_is_allowed() -> None:
    found = parse_rights(GOOD)
    assert found.allows("alice", "publish", "weather/archive/1999")
    assert not found.allows("bob", "publish", "weather/archive/1999")
    assert found.allows("bob", "subscribe", "weather/archive/1999")


@pytest.mark.parametrize(
    ("name", "pattern", "may"),
    [
        ("alice", "weather/#", True),
        ("alice", "weather/+/x", True),
        ("alice", "#", False),
        ("alice", "+/now", False),
        ("alice", "news/#", False),
        ("carol", "news/+", True),
        ("bob", "weather/#", True),  # what is denied of it is left out
        ("bob", "weather/archive/+", False),
    ],
)
def test_one_filter_must_allow_a_whole_pattern(name: str, pattern: str, may: bool) -> None:
    text = GOOD.replace('rights = ["publish"]\n', 'rights = ["publish", "subscribe"]\n')
    assert parse_rights(text).allows_all(name, "subscribe", pattern) == may


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("#", True),
        ("weather/#", True),
        ("weather/+/x", True),
        ("+/archive", True),
        ("weather/archive", True),
        ("weather/now/#", False),
        ("weather", False),
        ("+", False),
        ("news/#", False),
    ],
)
def test_a_part_of_a_pattern_is_denied_if_a_topic_of_it_is(pattern: str, part: bool) -> None:
    found = parse_rights(GOOD)
    assert found.denies_part("bob", "publish", pattern) == part
    assert not found.denies_part("bob", "subscribe", pattern)
    assert not found.denies_part("alice", "publish", pattern)


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ('rights = ["subscribe"]', 'rights = ["subscribe", "read"]', 12, "unknown right 'read'"),
        ('topics = ["news/+"]', 'topics = ["news/#/x"]', 13, "may only be the last level"),
        ('who = ["@desk"]', 'who = ["@dusk"]', 6, "unknown group 'dusk'; did you mean desk?"),
        ('who = ["bob"]', "who = []", 16, "who: a list of one text or more"),
        ('who = ["bob"]', 'whom = ["bob"]', 16, "unknown key 'whom'; did you mean who?"),
        ('who = ["bob"]\n', "", 15, "who: a list of one text or more"),
        ("[[deny]]", "[[denied]]", 15, "unknown table 'denied'; did you mean deny?"),
        ("[[deny]]", "[deny]", 15, "write [[deny]] above each rule"),
        ('desk = ["alice", "bob"]', "desk = 3", 3, "group 'desk': a list of names"),
    ],
)
def test_a_bad_file_is_refused_with_the_line_at_fault(
    before: str, after: str, line: int, words: str
) -> None:
    assert GOOD.count(before) == 1
    with pytest.raises(UsageError) as error:
        parse_rights(GOOD.replace(before, after), "rights.toml")
    said = str(error.value)
    assert said.startswith(f"rights.toml line {line}: ")
    assert words in said
    assert "\n" not in said


def test_what_is_no_toml_is_refused_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"rights.toml is not TOML.*line 3"):
        parse_rights("\n\nwho = ]", "rights.toml")


def test_a_file_is_read_again_when_it_changes_and_a_bad_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rights.toml"
    with pytest.raises(UsageError, match=r"cannot read .*rights.toml"):
        RightsFile(path)
    path.write_text(GOOD)
    file = RightsFile(path)
    assert file.rights.allows("alice", "publish", "weather/now")
    path.write_text(GOOD.replace('"alice", ', ""))
    file.look()
    assert not file.rights.allows("alice", "publish", "weather/now")
    path.write_text("allow = 3 # broken")
    file.look()
    path.unlink()
    file.look()
    assert file.rights.allows("bob", "publish", "weather/now"), "the rights stay as they were"
    assert "write [[allow]] above each rule" in caplog.text
    assert "cannot read" in caplog.text
