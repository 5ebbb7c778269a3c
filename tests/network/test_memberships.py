"""The file of memberships: on disk before anybody is told, whole after any crash."""

from pathlib import Path

import pytest

from planaria.network.memberships import FILE, LEFT, MATCHED, NAMED, Memberships


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
