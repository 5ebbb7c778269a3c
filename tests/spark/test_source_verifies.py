"""Spark's source and archives believe no node: rows are those that publishers signed."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from msgspec.structs import replace

from liars_lab import LIES, TRUE, Liars, Lie, altered, network, unsigned
from planaria.core.errors import PlanariaError, UsageError
from planaria.core.node import Subscribe
from planaria.network.client.distrust import Distrust
from planaria.network.client.errors import Untrusted
from planaria.network.client.messages import ClientMessage, Pieces, Read
from planaria.network.client.verifying import Verifier
from planaria.network.context import Context
from planaria.network.gate.gate import Gate
from planaria.network.gate.session import Session
from planaria.network.live import LiveNode
from planaria.records.packing import PACKED_PUBLICATIONS
from planaria.records.record import Record, decode_unnamed
from planaria.spark.archive import archive
from planaria.spark.datasource import PlanariaDataSource
from planaria.spark.source import fetch
from planaria.spark.source.batch import BatchReader
from planaria.spark.source.options import ReadOptions
from planaria.spark.source.stream import StreamReader
from secure_lab import Secure, run
from source_lab import ALL, apart, rows, values

MANY = [b"%06d" % number + bytes(122) for number in range(40_000)]


@pytest.fixture(autouse=True)
def first_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node that is named first is asked first, however busy this process is."""
    monkeypatch.setattr("planaria.network.client.channel.STAGGER_SECONDS", 60.0)


def source(lab: Secure, *nodes: LiveNode, **options: Any) -> PlanariaDataSource:
    servers = ",".join(it.listen for it in nodes)
    usual = {"servers": servers, "credentials": lab.people["carol"], "subscribe": "news"}
    given = {**usual, "startingOffsets": "earliest", **options}
    return PlanariaDataSource({name: str(value) for name, value in given.items()})


def batch(lab: Secure, *nodes: LiveNode, **options: Any) -> BatchReader:
    found = source(lab, *nodes, **options)
    reader = found.reader(found.schema())
    assert isinstance(reader, BatchReader)
    return reader


def streamed(lab: Secure, *nodes: LiveNode, **options: Any) -> list[bytes]:
    """What the first batch of a stream has."""
    found = source(lab, *nodes, **options)
    reader = found.streamReader(found.schema())
    assert isinstance(reader, StreamReader)
    try:
        start = reader.initialOffset()
        return values(rows(reader, start, reader.latestOffset(start, ALL)))
    finally:
        reader.stop()


def archived(lab: Secure, directory: Path, *nodes: LiveNode) -> list[bytes]:
    context = Context(tuple(it.listen for it in nodes), credentials=lab.people["carol"])
    list(archive(context, ["news"], directory))
    table = ds.dataset(directory, partitioning="hive").to_table().sort_by("sequence")
    return list(table.column("payload").to_pylist())


def blamed(patch: pytest.MonkeyPatch) -> list[str]:
    """The nodes that are left for a lie, from now on."""
    found, leave = list[str](), Distrust.leave

    def noted(doubt: Any, *given: Any) -> Any:
        found.append(doubt._channel.address)
        return leave(doubt, *given)

    patch.setattr(Distrust, "leave", noted)
    return found


@pytest.mark.parametrize("lie", LIES)
def test_rows_are_those_that_were_signed_whichever_node_is_asked_first(
    lie: Lie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(lab: Secure) -> None:
        honest, liar = await network(lab, 2)
        liars = Liars(lie, monkeypatch)
        liars.add(liar)
        assert values(await apart(lambda: rows(batch(lab, liar, honest)))) == TRUE
        assert liars.lies, "it was asked first"
        liars.lies = 0
        assert await apart(lambda: streamed(lab, liar, honest)) == TRUE
        assert liars.lies
        liars.lies = 0
        assert await apart(lambda: archived(lab, tmp_path / "archive", liar, honest)) == TRUE
        assert liars.lies

    run(tmp_path, test)


def test_a_source_that_is_told_so_believes_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(lab: Secure) -> None:
        honest, liar = await network(lab, 2)
        Liars(unsigned, monkeypatch).add(liar)
        reader = batch(lab, liar, honest, verify="false")
        assert values(await apart(lambda: rows(reader))) == [b"false"] * len(TRUE)
        found = await apart(lambda: streamed(lab, liar, honest, verify="FALSE"))
        assert found == [b"false"] * len(TRUE)

    run(tmp_path, test)


@pytest.mark.parametrize("verify", [True, False])
def test_a_filter_selects_in_signed_records(verify: bool, tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        (node,) = await network(lab, 1)
        options = {"filter": "n = 1 OR n = 2 OR n = 4", "verify": verify}
        wanted = [TRUE[1], TRUE[2], TRUE[4]]
        assert values(await apart(lambda: rows(batch(lab, node, **options)))) == wanted
        assert await apart(lambda: streamed(lab, node, **options)) == wanted
        nothing = {**options, "filter": "n = 9"}
        assert await apart(lambda: rows(batch(lab, node, **nothing))) == []

    run(tmp_path, test)


def test_readers_of_liars_alone_say_so_when_patience_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "PATIENCE_SECONDS", 0.2)

    async def test(lab: Secure) -> None:
        nodes = await network(lab, 2)
        liars = Liars(unsigned, monkeypatch)
        for node in nodes:
            liars.add(node)
        complaint = r"no node gives what its publisher signed: .* is not signed by it.*former\.pem"
        for read in (
            lambda: rows(batch(lab, *nodes)),
            lambda: streamed(lab, *nodes),
            lambda: archived(lab, tmp_path / "archive", *nodes),
        ):
            with pytest.raises(Untrusted, match=complaint) as error:
                await apart(read)
            assert {*error.value.reasons} == {it.listen for it in nodes}
        assert not list((tmp_path / "archive").glob("topic=*")), "nothing false is archived"

    run(tmp_path, test)


def test_what_a_node_answered_before_it_was_found_to_lie_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions are under way ahead of the one that is judged; the next node is not blamed."""

    async def test(lab: Secure) -> None:
        honest, liar = await network(lab, 2)
        async with lab.client("alice", honest) as alice:
            await alice.publish_many("news", MANY, copies=2, strict=True)
        liars = Liars(altered, monkeypatch)
        liars.add(liar)
        left, asked = blamed(monkeypatch), list[Any]()
        assert honest.gate is not None
        answered = honest.gate.queries._range

        def noted(message: Read, *given: Any) -> Pieces:
            asked.append((message.after, message.to))
            return answered(message, *given)

        monkeypatch.setattr(honest.gate.queries, "_range", noted)
        reader = batch(lab, liar, honest, minPartitions=1, columns="value")
        found = values(await apart(lambda: rows(reader)))
        assert sorted(found) == sorted([*TRUE, *MANY])
        assert left == [liar.listen]
        assert all(asked.count(it) == 1 for it in asked), "what nobody waits for is not asked again"

    run(tmp_path, test)


def test_what_a_node_lacks_is_taken_from_no_liar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(lab: Secure) -> None:
        honest, liar, lacking = await network(lab, 3)
        liars = Liars(unsigned, monkeypatch)
        liars.add(liar)

        def nothing(message: Read, *_: Any) -> Pieces:
            return Pieces(message.request, "news", [], [])

        assert lacking.gate is not None
        monkeypatch.setattr(lacking.gate.queries, "_range", nothing)
        left = blamed(monkeypatch)
        assert values(await apart(lambda: rows(batch(lab, lacking, liar, honest)))) == TRUE
        assert liars.lies
        assert left == [], "who has nothing does not lie"

    run(tmp_path, test)


def test_tasks_go_on_at_nodes_that_the_driver_has_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(lab: Secure) -> None:
        _, liar = await network(lab, 2)
        liars = Liars(altered, monkeypatch)
        liars.add(liar)
        assert values(await apart(lambda: rows(batch(lab, liar)))) == TRUE
        assert await apart(lambda: streamed(lab, liar)) == TRUE
        assert await apart(lambda: archived(lab, tmp_path / "archive", liar)) == TRUE
        assert liars.lies

    run(tmp_path, test)


Misfit = Callable[[Pieces], Pieces]


def _of_another_topic(found: Pieces) -> Pieces:
    return replace(found, topic="other")


def _twice(found: Pieces) -> Pieces:
    """What its publisher signed, and once was asked for."""
    return replace(found, pieces=[*found.pieces, *found.pieces])


def _garbage(found: Pieces) -> Pieces:
    return replace(found, pieces=[replace(it, record=b"garbage") for it in found.pieces])


@pytest.mark.parametrize("wrong", [_of_another_topic, _twice, _garbage])
@pytest.mark.parametrize("alone", [False, True])
def test_answers_that_do_not_fit_are_asked_elsewhere_and_fail_the_read_in_the_end(
    wrong: Misfit, alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "PATIENCE_SECONDS", 0.2 if alone else 30.0)
    answer, falsified = Session.answer, list[ClientMessage]()

    async def test(lab: Secure) -> None:
        *honest, liar = await network(lab, 1 if alone else 2)

        def said(session: Session, message: ClientMessage) -> Any:
            gate = session.connection.handler
            lies = isinstance(gate, Gate) and gate.host is liar.host
            if lies and isinstance(message, Pieces) and message.pieces:
                falsified.append(message)
                message = wrong(message)
            return answer(session, message)

        monkeypatch.setattr(Session, "answer", said)
        nodes = (liar, *honest)
        if alone:
            with pytest.raises(PlanariaError, match=r"asked for|no record|record of"):
                await apart(lambda: rows(batch(lab, *nodes)))
        else:
            assert values(await apart(lambda: rows(batch(lab, *nodes)))) == TRUE
        assert falsified

    run(tmp_path, test)


def test_the_option_is_true_or_false() -> None:
    assert ReadOptions.parse({"subscribe": "a"}).verify
    assert not ReadOptions.parse({"subscribe": "a", "verify": "no"}).verify
    with pytest.raises(UsageError, match="option verify"):
        ReadOptions.parse({"subscribe": "a", "verify": "perhaps"})


def test_a_record_that_two_answers_share_is_verified_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, check = Counter[int](), Verifier.check
    came: list[bytes] = []

    def decoded(data: bytes) -> Record:
        came.append(data)
        return decode_unnamed(data)

    def counted(verifier: Verifier, topic: str, record: Record) -> None:
        checked[record.first] += 1
        check(verifier, topic, record)

    async def test(lab: Secure) -> None:
        (node,) = await network(lab, 1)
        async with lab.client("alice", node) as alice:
            await alice.publish_many("news", MANY, copies=1)
        monkeypatch.setattr(Verifier, "check", counted)
        monkeypatch.setattr(fetch, "decode_unnamed", decoded)
        monkeypatch.setattr(fetch, "ROWS_FIRST", PACKED_PUBLICATIONS * 3 // 2)
        reader = batch(lab, node, minPartitions=1, columns="value")
        assert len(await apart(lambda: rows(reader))) == len(TRUE) + len(MANY)
        assert len(came) > len(set(came)) > 50, "some came twice"
        assert sum(checked.values()) <= len(checked) + 1, "two publishers begin with 0"

    run(tmp_path, test)


def test_a_record_of_another_topic_is_no_proof_however_lately_it_was_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client has one stream in all topics, so numbers fit."""
    answer, remembered = Session.answer, list[Pieces]()
    false = [b"other %d" % number for number in range(6)]

    async def test(lab: Secure) -> None:
        honest, liar = await network(lab, 2)
        for node in (honest, liar):
            for topic in ("a", "b"):
                node.host.command(Subscribe(topic))
        async with lab.client("alice", honest) as alice:
            await alice.publish_many("a", false, copies=2, strict=True)
            await alice.publish_many("b", TRUE, copies=2, strict=True)

        def said(session: Session, message: ClientMessage) -> Any:
            gate = session.connection.handler
            lies = isinstance(gate, Gate) and gate.host is liar.host
            if lies and isinstance(message, Pieces) and message.topic == "a":
                remembered.append(message)
            elif lies and isinstance(message, Pieces) and message.topic == "b":
                message = replace(message, pieces=remembered[-1].pieces)
            return answer(session, message)

        monkeypatch.setattr(Session, "answer", said)
        reader = batch(lab, liar, honest, subscribe="a,b", minPartitions=1)
        assert values(await apart(lambda: rows(reader))) == [*false, *TRUE]
        assert remembered

    run(tmp_path, test)
