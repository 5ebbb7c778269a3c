"""Traces: one schema, whole files, bounded memory, numbers that add up."""

import sys
from collections import Counter
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest

from planaria.core.errors import InvariantViolation, UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Send
from planaria.simulator import trace as trace_module
from planaria.simulator.engine import ENVIRONMENT, KINDS, MESSAGE_KINDS, Simulator
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trace import COLUMNS, Counters, Recorder, Trace
from planaria.simulator.trial import Spec, Trial
from toys import Letter, Note, Probe, ProbeOverlay

ABOUT = {"seed": "4", "version": "0", "replay": "planaria sim toy --n 5 --seed 4"}
FAULTS = """
at 0 for 4 loss rate=0.3
at 1 restart count=1
at 2 publish count=1
at 2 subscribe where=x node=1
at 3 crash count=1
"""


def trial(*observers: object) -> Trial:
    spec = Spec(5, 4, start="legitimate", faults=parse_schedule(FAULTS))
    return Trial(ProbeOverlay(), spec, observers)  # type: ignore[arg-type]


def recorded(file: Path, level: str = "everything") -> Recorder:
    with Recorder(file, level, ABOUT) as recorder:
        trial(recorder).run()
    return recorder


def test_file_has_the_documented_schema_and_says_how_it_came_to_be(tmp_path: Path) -> None:
    file = tmp_path / "run.parquet"
    recorder = recorded(file)
    schema = parquet.read_schema(file)
    assert {field.name: str(field.type) for field in schema} == dict(COLUMNS)
    assert [name for name in COLUMNS if name not in (trace_module.__doc__ or "")] == []
    about = Trace(file).about
    assert {name: about[name] for name in ABOUT} == ABOUT
    assert about["level"] == "everything"
    assert '"toys.note": {"sent":' in about["counters"]
    metadata = parquet.read_metadata(file)
    assert metadata.num_rows == recorder.rows > 100
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_run_column_is_one_and_names_the_run(tmp_path: Path) -> None:
    recorded(tmp_path / "a.parquet")
    runs = set(parquet.read_table(tmp_path / "a.parquet")["run"].to_pylist())
    assert runs == {Trace(tmp_path / "a.parquet").about["run"]}


def test_every_kind_of_event_is_written_with_what_it_has(tmp_path: Path) -> None:
    recorded(tmp_path / "a.parquet")
    rows = list(Trace(tmp_path / "a.parquet").rows())
    assert {row.kind for row in rows} == set(KINDS)
    assert [row.tick for row in rows] == sorted(row.tick for row in rows)
    for row in rows:
        if row.kind in MESSAGE_KINDS:
            assert row.message_type == "toys.note"
            assert None not in row[:-1]
            assert row.topic is None, "a note is about none"
            assert row.node == (row.src if row.kind == "send" else row.dst)
        else:
            assert (row.src, row.dst, row.message_id, row.bytes, row.topic) == (None,) * 5
    names = {(row.kind, row.message_type) for row in rows}
    assert {("effect", "Deliver"), ("command", "Publish"), ("command", "Clock")} <= names
    assert {("effect", "Published"), ("refuse", "Subscribe")} <= names
    assert {("fault", "at 1 restart count=1"), ("restart", "kept")} <= names
    assert {row.node for row in rows if row.kind == "fault"} == {ENVIRONMENT}


class Echo(Probe):
    """Answers a note with a letter to itself."""

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        return [Send(self.id, Letter(2))] if isinstance(message, Note) else []


def test_cause_is_the_message_whose_handling_sent_this_one(tmp_path: Path) -> None:
    simulator = Simulator(1)
    with Recorder(tmp_path / "a.parquet", "messages", ABOUT) as recorder:
        simulator.watch(recorder)
        simulator.add(Echo(0))
        simulator.inject(0, Note(1))
        simulator.inject(0, Letter(1))
        simulator.run(5)
    sent = [row for row in Trace(tmp_path / "a.parquet").rows() if row.kind == "send"]
    assert [(row.message_type, row.message_id, row.cause_id) for row in sent] == [
        ("toys.note", 1, 0),
        ("toys.letter", 2, 0),
        ("toys.letter", 3, 1),
    ]


def test_counters_agree_with_the_rows_and_with_the_simulator(tmp_path: Path) -> None:
    counters = Counters()
    with Recorder(tmp_path / "a.parquet", "messages", ABOUT) as recorder:
        run = trial(recorder, counters)
        run.run()
    assert counters.totals() == recorder.counters.totals()
    rows = list(Trace(tmp_path / "a.parquet").rows())
    kinds = Counter(row.kind for row in rows)
    total = counters.totals()["toys.note"]
    assert (total["sent"], total["delivered"], total["dropped"]) == (
        kinds["send"],
        kinds["deliver"],
        kinds["drop"],
    )
    assert total["bytes"] == sum(row.bytes or 0 for row in rows if row.kind == "send")
    assert (run.simulator.sent, run.simulator.delivered) == (kinds["send"], kinds["deliver"])


def test_message_too_large_for_a_frame_is_recorded_and_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planaria.core.codec.FRAME_BYTES_MAX", 3)
    recorded(tmp_path / "a.parquet")
    sizes = {row.bytes for row in Trace(tmp_path / "a.parquet").rows() if row.kind == "send"}
    assert sizes == {None}


def test_rows_are_written_in_groups_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "one.parquet")
    monkeypatch.setattr(trace_module, "ROWS_PER_GROUP", 16)
    recorder = recorded(tmp_path / "many.parquet")
    metadata = parquet.read_metadata(tmp_path / "many.parquet")
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert len(sizes) > 5
    assert max(sizes) == 16
    one, many = Trace(tmp_path / "one.parquet"), Trace(tmp_path / "many.parquet")
    assert list(one.rows()) == list(many.rows())
    assert sum(sizes) == recorder.rows


def test_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_text("the old one")
    with Recorder(file, "everything", ABOUT) as recorder:
        trial(recorder).run()
        assert file.read_text() == "the old one"
    assert len(list(Trace(file).rows())) == recorder.rows
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def stopped_by(error: BaseException, file: Path) -> None:
    with Recorder(file, "everything", ABOUT) as recorder:
        trial(recorder).run()
        raise error


def test_run_that_was_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        stopped_by(KeyboardInterrupt(), tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_run_that_broke_a_promise_leaves_its_trace(tmp_path: Path) -> None:
    with pytest.raises(InvariantViolation):
        stopped_by(trial().violation("closure", "did not hold"), tmp_path / "a.parquet")
    assert len(list(Trace(tmp_path / "a.parquet").rows())) > 100


def test_empty_trace_can_be_read(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.parquet", "everything", ABOUT):
        pass
    assert list(Trace(tmp_path / "a.parquet").rows()) == []


def test_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        Recorder(tmp_path / "no" / "a.parquet", "everything", ABOUT)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        Recorder(tmp_path / "folder", "everything", ABOUT).close()


def test_file_that_is_no_trace_is_a_usage_error(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.parquet"
    text.write_text("not Parquet at all")
    parquet.write_table(pyarrow.table({"tick": [1]}), other)
    for path in (tmp_path / "nothing", tmp_path, text, other):
        with pytest.raises(UsageError, match=r"cannot read|is not a trace"):
            Trace(path)


def test_without_pyarrow_there_is_one_line_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match=r"pip install 'planaria\[trace\]'"):
        Recorder(tmp_path / "a.parquet", "everything", ABOUT)
