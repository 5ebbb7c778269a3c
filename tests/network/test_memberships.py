"""The file of memberships: on disk before anybody is told, whole after any crash."""

from pathlib import Path

import pytest

from planaria.core.errors import CapacityExceeded
from planaria.core.node import Command, Subscribe, Unsubscribe
from planaria.network.memberships import FILE, LEFT, MATCHED, NAMED, RELEASED, Memberships
from planaria.network.resuming import AT_A_TIME, AT_LEAST, Resuming


def test_what_was_written_is_there_at_the_next_start(tmp_path: Path) -> None:
    one = Memberships(tmp_path)
    one.write({"a": NAMED, "b/#": NAMED, "b/c": MATCHED})
    one.write({"a": LEFT, "b/c": NAMED})
    one.close()
    again = Memberships(tmp_path)
    assert again.names == {"b/#": NAMED, "b/c": NAMED}
    again.close()
    assert (tmp_path / FILE).read_text().count("\n") == 2


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    one = Memberships(tmp_path)
    one.write({"a": NAMED, "b": MATCHED})
    assert one.changes({"a": NAMED, "b": MATCHED}) == {}
    assert one.changes({"b": NAMED, "c": NAMED}) == {"b": NAMED, "c": NAMED, "a": LEFT}
    one.close()


def test_lines_that_are_damaged_are_told_and_cost_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [
        b'{"a": "named"}',
        b'{"b": "wanted"}',
        b'["c"]',
        b"\xff\xfe",
        b'{"": "named"}',
        b'{"d": "named", "e": "named"}',
        b'{"f": "nam',
    ]
    (tmp_path / FILE).write_bytes(b"\n".join(lines))
    one = Memberships(tmp_path)
    assert one.names == {"a": NAMED}
    assert "6 lines are damaged" in caplog.text
    one.close()


def test_topics_are_resumed_some_at_a_time_and_all_in_the_end() -> None:
    names = {f"t/{at}": MATCHED if at % 2 else NAMED for at in range(200)}
    given: list[Command] = []
    resuming = Resuming(names, given.append)
    resuming.step(0)
    assert len(resuming.left) == 200 - AT_A_TIME
    resuming.step(AT_A_TIME)  # nobody answers
    assert len(resuming.left) == 200 - AT_A_TIME - AT_LEAST
    while resuming.left:
        resuming.step(0)
    joined = [it.pattern for it in given if isinstance(it, Subscribe)]
    assert joined == [f"t/{at}" for at in (*range(0, 200, 2), *range(1, 200, 2))]
    left = [it.pattern for it in given if isinstance(it, Unsubscribe)]
    assert left == [f"t/{at}" for at in range(1, 200, 2)]  # by name; they stay for the pattern


def test_a_topic_that_cannot_be_resumed_is_told_and_keeps_none_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given: list[Command] = []

    def command(asked: Command) -> None:
        if asked == Subscribe("b", ordered=True):
            raise CapacityExceeded("too many topics")
        given.append(asked)

    Resuming(dict.fromkeys("abc", NAMED), command).step(0)
    assert given == [Subscribe("a", ordered=True), Subscribe("c", ordered=True)]
    assert "b is not resumed: too many topics" in caplog.text


def test_topics_of_the_store_that_the_file_lost_are_taken_part_in_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = Memberships(tmp_path)
    one.write(dict.fromkeys("abcd", NAMED))
    one.write({"c": LEFT, "d": RELEASED})
    one.close()
    for damaged in (b"", b'{"c": "left"}\n{"d": "released"}\n{"a": "na', None):
        file = tmp_path / FILE
        whole = file.read_bytes()
        file.unlink() if damaged is None else file.write_bytes(damaged)
        again = Memberships(tmp_path, ["a", "c", "d", "no\ttopic"])
        again.close()
        lost = ["a"] if damaged else ["a", "c", "d"]  # what says that they were left is lost, too
        assert again.names == dict.fromkeys(lost, NAMED)
        assert not again.new, "a node used this directory before"
        assert f"lacks {len(lost)} topics" in caplog.text
        caplog.clear()
        file.write_bytes(whole)


def test_what_was_left_is_remembered_while_something_of_it_is_stored(tmp_path: Path) -> None:
    one = Memberships(tmp_path)
    one.write({"a": NAMED, "b": NAMED, "c": MATCHED})
    one.write({"a": LEFT, "b": RELEASED})
    one.close()
    for stored, left in ((["a", "b"], {"a": LEFT, "b": RELEASED}), (["b"], {"b": RELEASED})):
        again = Memberships(tmp_path, stored)
        again.close()
        assert (again.names, again.left) == ({"c": MATCHED}, left)
    again = Memberships(tmp_path, ["b"])
    assert again.changes({"b": RELEASED, "c": MATCHED}) == {}
    assert again.changes({"b": NAMED}) == {"b": NAMED, "c": LEFT}
    again.write({"b": NAMED})
    assert (again.names, again.left) == ({"b": NAMED, "c": MATCHED}, {})
    again.close()
