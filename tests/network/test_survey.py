"""Tools ask nodes over real sockets: they find all of them, and bear whatever nodes do."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from planaria.core.errors import UsageError
from planaria.network.client.asking import Access, Asker, Unreachable
from planaria.network.client.messages import AskStatus, AskTopics, AskVector, StatusIs, TopicsAre
from planaria.network.contacts import Contact
from planaria.network.context import Context
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


def asker(network: WatchedNetwork, seconds: float = 5.0) -> Asker:
    return Asker(network.nodes[0].hello.addresses[0], Access(network.context), seconds)


def test_many_questions_share_a_connection_and_each_gets_its_answer() -> None:
    async def ask(network: WatchedNetwork) -> None:
        async with asker(network) as one:
            kinds = [(AskStatus, StatusIs), (AskTopics, TopicsAre)] * 10
            found = await asyncio.gather(*(one.ask(kind, answer) for kind, answer in kinds))
        assert [type(it) for it in found] == [answer for _, answer in kinds]
        assert len({it.request for it in found}) == 20

    run(ask)


def test_a_refusal_a_wrong_answer_silence_and_a_hang_up_are_one_line_each() -> None:
    async def ask(network: WatchedNetwork) -> None:
        node = network.nodes[0]
        async with asker(network, 0.5) as one:
            with pytest.raises(Unreachable, match="this node answers tools alone"):
                await one.ask(AskVector, StatusIs, "news")
            with pytest.raises(Unreachable, match="answers StatusIs: another version"):
                await one.ask(AskStatus, TopicsAre)
            node.mute = True
            with pytest.raises(Unreachable, match="does not answer"):
                await one.ask(AskStatus, StatusIs)
            waiting = asyncio.ensure_future(one.ask(AskStatus, StatusIs))
            await asyncio.sleep(0.05)
            for connection in list(node._connections):
                connection.close("gone")
            with pytest.raises(Unreachable, match="hung up"):
                await waiting
            with pytest.raises(Unreachable, match="hung up"):
                await one.ask(AskStatus, StatusIs)

    run(ask)


def test_another_cluster_is_refused_with_its_reason() -> None:
    async def ask(network: WatchedNetwork) -> None:
        context = Context(network.context.servers, insecure=True, cluster="another")
        with pytest.raises(Unreachable, match="of cluster 'planaria', this node of 'another'"):
            async with Asker(context.servers[0], Access(context)):
                pass

    run(ask)


def test_tools_ask_over_tls_with_a_certificate_of_the_cluster(tmp_path: Path) -> None:
    found_cluster(tmp_path / "keys", "demo")
    found_cluster(tmp_path / "others", "other")
    node = Credentials(issue(tmp_path / "keys", "node"))
    mine = issue(tmp_path / "keys", "me", ("client",))
    theirs = issue(tmp_path / "others", "me", ("client",))

    async def main() -> None:
        id = node.identity.id
        watched = Watched(ring_node(handle_of(id), (), supervise=True), id, "node")
        watched.credentials = node
        watched.hello = type(watched.hello)(watched.hello.versions, id, "demo")
        door = await watched.start("127.0.0.1:0")
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
        Access(Context())


def test_a_look_finds_all_nodes_and_keeps_connections_for_the_next() -> None:
    async def look(network: WatchedNetwork) -> None:
        async with Surveyor(network.context) as surveyor:
            for _ in range(3):
                survey = await surveyor.look()
                assert set(survey.nodes) == {node.node.id for node in network.nodes}
                assert survey.silent == []
            clients = [
                it
                for it in network.nodes[0]._connections
                if it.theirs and it.theirs.role == "client"
            ]
            assert len(clients) == 1
        await until(
            lambda: (
                not any(
                    it.theirs and it.theirs.role == "client" for it in network.nodes[0]._connections
                )
            )
        )

    run(look)


def test_a_connection_that_was_lost_between_two_looks_is_opened_again() -> None:
    async def look(network: WatchedNetwork) -> None:
        async with Surveyor(network.context) as surveyor:
            await surveyor.look()
            for node in network.nodes:
                for connection in list(node._connections):
                    if connection.theirs and connection.theirs.role == "client":
                        connection.close("restarted")
            survey = await surveyor.look()
            assert set(survey.nodes) == {node.node.id for node in network.nodes}
            assert survey.silent == []

    run(look)


def test_who_is_known_and_gone_is_told_with_those_who_know_it() -> None:
    async def look(network: WatchedNetwork) -> None:
        id = secrets.token_bytes(16)
        network.nodes[1].contacts.learn(Contact(id, ("127.0.0.1:1", "127.0.0.1:2"), 5))
        async with Surveyor(network.context) as surveyor:
            survey = await surveyor.look()
        (gone,) = survey.silent
        assert (gone.node, gone.known_to) == (handle_of(id), (network.nodes[1].node.id,))
        assert "cannot reach 127.0.0.1:1: " in gone.reason
        assert "cannot reach 127.0.0.1:2: " in gone.reason

    run(look)


def test_an_answer_that_is_no_state_is_a_complaint() -> None:
    async def look(network: WatchedNetwork) -> None:
        liar = network.peers[0]
        true = liar.state_of
        liar.state_of = lambda number, topic: type(true(number, topic))(  # type: ignore[method-assign]
            number, [], b"\x01garbage", None
        )
        async with Surveyor(network.context) as surveyor:
            survey = await surveyor.look()
            await surveyor.examine(survey)
        assert [node for node, _ in survey.complaints] == [liar.node.id]
        assert "not a state of PeerState" in survey.complaints[0][1]

    run(look)
