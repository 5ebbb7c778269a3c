"""Tools ask nodes over real sockets: they find all of them, and bear whatever nodes do."""

import asyncio
import gc
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from planaria.cli.ls import topic_rows
from planaria.core.errors import UsageError
from planaria.network import survey as surveys
from planaria.network.client.access import Access, shown
from planaria.network.client.asking import Asker, Unanswered
from planaria.network.client.errors import Unreachable
from planaria.network.client.messages import (
    AskState,
    AskStatus,
    AskTopics,
    AskVector,
    StateIs,
    StatusIs,
    TopicsAre,
)
from planaria.network.contacts import Contact
from planaria.network.context import Context
from planaria.network.gate.session import Session
from planaria.network.identity import found_cluster, handle_of, issue
from planaria.network.survey import Surveyor
from planaria.network.tls import Credentials
from watched import Watched, WatchedNetwork, ring_node, until


def run(test: Callable[[WatchedNetwork], Awaitable[None]], n: int = 2) -> None:
    async def main() -> None:
        network = WatchedNetwork(n)
        try:
            await network.start()
            await until(network.legitimate)
            await test(network)
        finally:
            await network.stop()

    asyncio.run(main())


def access(context: Context) -> Access:
    return Access(*shown(context, None))


def asker(network: WatchedNetwork, seconds: float = 5.0) -> Asker:
    return Asker(network.nodes[0].address, access(network.context), seconds)


def test_many_questions_share_a_connection_and_each_gets_its_answer() -> None:
    async def ask(network: WatchedNetwork) -> None:
        async with asker(network) as one:
            statuses = [one.ask(AskStatus, StatusIs) for _ in range(10)]
            topics = [one.ask(AskTopics, TopicsAre) for _ in range(10)]
            first, second = await asyncio.gather(asyncio.gather(*statuses), asyncio.gather(*topics))
        assert [type(it) for it in first] == [StatusIs] * 10
        assert [type(it) for it in second] == [TopicsAre] * 10
        assert len({it.request for it in (*first, *second)}) == 20

    run(ask)


def test_a_refusal_a_wrong_answer_silence_and_a_hang_up_are_one_line_each() -> None:
    async def ask(network: WatchedNetwork) -> None:
        node = network.nodes[0]
        async with asker(network, 0.5) as one:
            with pytest.raises(Unanswered, match="wildcard"):
                await one.ask(AskVector, StatusIs, "news/#")
            with pytest.raises(Unanswered, match="answers StatusIs: another version"):
                await one.ask(AskStatus, TopicsAre)
            node.gate.mute = True
            with pytest.raises(Unanswered, match="does not answer"):
                await one.ask(AskStatus, StatusIs)
            waiting = asyncio.ensure_future(one.ask(AskStatus, StatusIs))
            await asyncio.sleep(0.05)
            for connection in list(node.gate.sessions):
                connection.close("gone")
            with pytest.raises(Unanswered, match="hung up"):
                await waiting
            with pytest.raises(Unanswered, match="hung up"):
                await one.ask(AskStatus, StatusIs)

    run(ask)


def test_a_node_that_is_slow_to_answer_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 16 nodes each took its two seconds for the charters of 300 topics after the other."""
    monkeypatch.setattr(surveys, "QUESTIONS_MAX", 1)

    async def ask(network: WatchedNetwork) -> None:
        slow, other, *_ = (node.id for node in network.nodes)
        async with Surveyor(network.context) as surveyor:
            await surveyor.look()
            network.nodes[0].gate.mute = True
            unanswered = [
                asyncio.ensure_future(surveyor.ask(slow, AskStatus, StatusIs)) for _ in range(2)
            ]
            await asyncio.sleep(0.05)
            for _ in range(3):
                assert await surveyor.ask(other, AskStatus, StatusIs)
            assert not any(it.done() for it in unanswered)
            assert len(surveyor._askers[slow]._waiting) == 1, "one at a time"
            for it in unanswered:
                it.cancel()
            await asyncio.gather(*unanswered, return_exceptions=True)

    run(ask)


def test_who_accepts_and_says_nothing_is_given_up() -> None:
    async def main() -> None:
        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            context = Context((f"127.0.0.1:{port}",), insecure=True)
            asyncio.get_running_loop().set_exception_handler(lambda _, it: wrong.append(it))
            with pytest.raises(Unanswered, match="no answer"):
                await Asker(context.servers[0], access(context), 0.3).open()
            gc.collect()  # a future whose error nobody took would say so now
            await asyncio.sleep(0.1)

    wrong: list[object] = []
    asyncio.run(main())
    assert wrong == []


def test_another_cluster_is_refused_with_its_reason() -> None:
    async def ask(network: WatchedNetwork) -> None:
        context = Context(network.context.servers, insecure=True, cluster="another")
        with pytest.raises(Unanswered, match="of cluster 'planaria', the other of 'another'"):
            async with Asker(context.servers[0], access(context)):
                pass

    run(ask)


def test_tools_ask_over_tls_with_a_certificate_of_the_cluster(tmp_path: Path) -> None:
    found_cluster(tmp_path / "keys", "demo")
    found_cluster(tmp_path / "others", "other")
    node = Credentials(issue(tmp_path / "keys", "node", ("node", "supervise")))
    mine = issue(tmp_path / "keys", "me", ("client",))
    theirs = issue(tmp_path / "others", "me", ("client",))

    async def main() -> None:
        id = node.identity.id
        watched = Watched(ring_node(handle_of(id), (), supervise=True), id, "node", node)
        door = await watched.start()
        try:
            async with Surveyor(Context((door,), credentials=mine)) as surveyor:
                survey = await surveyor.look()
                status = survey.nodes[handle_of(id)].status
                assert (status.secure, status.certificate_expires) == (True, node.identity.expires)
            with pytest.raises(Unreachable, match="cannot trust"):
                async with Surveyor(Context((door,), credentials=theirs)) as surveyor:
                    await surveyor.look()
            with pytest.raises(Unreachable):
                async with Surveyor(Context((door,), insecure=True)) as surveyor:
                    await surveyor.look()
        finally:
            await watched.stop()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_who_is_told_no_credentials_and_not_insecure_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="no credentials"):
        Surveyor(Context())


def test_a_look_finds_all_nodes_and_keeps_connections_for_the_next() -> None:
    async def look(network: WatchedNetwork) -> None:
        async with Surveyor(network.context) as surveyor:
            for _ in range(3):
                survey = await surveyor.look()
                assert set(survey.nodes) == {node.id for node in network.nodes}
                assert survey.silent == []
            assert [node.clients for node in network.nodes] == [1] * 3
        await until(lambda: not any(node.clients for node in network.nodes))

    run(look)


def test_a_connection_that_was_lost_between_two_looks_is_opened_again() -> None:
    async def look(network: WatchedNetwork) -> None:
        async with Surveyor(network.context) as surveyor:
            await surveyor.look()
            for node in network.nodes:
                for connection in list(node.gate.sessions):
                    connection.close("restarted")
            survey = await surveyor.look()
            assert set(survey.nodes) == {node.id for node in network.nodes}
            assert survey.silent == []

    run(look)


def test_who_is_known_and_gone_is_told_with_those_who_know_it() -> None:
    async def look(network: WatchedNetwork) -> None:
        id = secrets.token_bytes(16)
        network.nodes[1].host.contacts.learn(Contact(id, ("127.0.0.1:1", "127.0.0.1:2"), 5))
        async with Surveyor(network.context) as surveyor:
            survey = await surveyor.look()
        (gone,) = survey.silent
        assert (gone.node, gone.known_to) == (handle_of(id), (network.nodes[1].id,))
        assert "cannot reach 127.0.0.1:1: " in gone.reason
        assert "cannot reach 127.0.0.1:2: " in gone.reason

    run(look)


def test_a_server_that_is_a_known_node_and_gone_is_told_once() -> None:
    async def look(network: WatchedNetwork) -> None:
        id, gone = secrets.token_bytes(16), "127.0.0.1:1"
        network.nodes[1].host.contacts.learn(Contact(id, (gone,), 5))
        servers = (gone, *network.context.servers, "127.0.0.1:2")
        async with Surveyor(replace(network.context, servers=servers)) as surveyor:
            silent = (await surveyor.look()).silent
        assert {(it.node, it.addresses) for it in silent} == {
            (handle_of(id), (gone,)),
            (None, ("127.0.0.1:2",)),
        }
        assert len(silent) == 2

    run(look)


def test_an_answer_that_is_no_state_is_a_complaint() -> None:
    async def look(network: WatchedNetwork) -> None:
        liar = network.peers[0]

        def garbage(session: Session, message: AskState) -> None:
            session.answer(StateIs(message.request, [], b"\x01garbage", None))

        liar.gate.showing.ask_state = garbage  # type: ignore[method-assign]
        async with Surveyor(network.context) as surveyor:
            survey = await surveyor.look()
            await surveyor.examine(survey)
        assert [node for node, _ in survey.complaints] == [liar.id]
        assert "not a state of PeerState" in survey.complaints[0][1]

    run(look)


def test_topics_that_no_status_has_room_for_are_examined_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planaria.network.introspection.TOPICS_SHOWN", 2)
    topics = tuple(f"t/{at}" for at in range(7))

    async def main() -> None:
        network = WatchedNetwork(2, topics=topics)
        try:
            await network.start()
            await until(network.legitimate)
            async with Surveyor(network.context) as surveyor:
                survey = await surveyor.look()
                assert len(survey.topics()) < len(topics)
                await surveyor.examine(survey)
            assert survey.complaints == []
            assert [row["members"] for row in topic_rows(survey)] == [2] * len(topics)
            for node in network.nodes:
                assert set(survey.nodes[node.id].topics) == set(topics)
                assert set(survey.nodes[node.id].status.topics) == set(topics)
        finally:
            await network.stop()

    asyncio.run(main())


def test_a_node_that_does_not_show_all_of_its_topics_is_a_complaint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planaria.network.introspection.TOPICS_SHOWN", 1)

    async def main() -> None:
        network = WatchedNetwork(1, topics=("a", "b", "c"))
        try:
            await network.start()
            await until(network.legitimate)
            one = network.peers[0]
            monkeypatch.setattr(one.gate.showing, "_status", lambda _: one.monitor.shown())
            async with Surveyor(network.context) as surveyor:
                survey = await surveyor.look()
                await surveyor.list_topics(survey)
            assert survey.complaints == [(one.id, "it shows 1 of its 3 topics")]
            assert len(survey.nodes[network.supervisors[0].id].status.topics) == 3
        finally:
            await network.stop()

    asyncio.run(main())
