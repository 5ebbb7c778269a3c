"""Rights at real gates: what a file and what a charter keep clients from, and nothing more."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

import pytest

from planaria.core.errors import PlanariaError, UsageError
from planaria.core.node import Notice
from planaria.network.charters import seal
from planaria.network.client.client import Client
from planaria.network.client.messages import (
    TOKEN_BYTES,
    AskState,
    ChartersAre,
    PutCharter,
    PutNew,
    StateIs,
    Stored,
)
from planaria.network.config import load_config
from planaria.network.context import Context
from planaria.network.survey import Surveyor
from planaria.protocols.skipring.charter import Charter
from planaria.records.record import Draft
from secure_lab import Secure, run

RIGHTS = """
[[allow]]
who = ["alice"]
rights = ["publish", "subscribe"]
topics = ["weather/#"]

[[allow]]
who = ["carol"]
rights = ["subscribe"]
topics = ["#"]

[[allow]]
who = ["carol"]
rights = ["supervise"]
topics = ["weather/known"]

[[deny]]
who = ["carol"]
rights = ["subscribe"]
topics = ["weather/secret", "weather/known"]
"""


async def refused(work: object, right: str, topic: str) -> None:
    """It must be refused with one line that names the right and the topic."""
    with pytest.raises(PlanariaError) as error:
        await work  # type: ignore[misc]
    said = str(error.value)
    assert f"has no right to {right} on {topic!r}" in said
    assert "\n" not in said


async def subscribed(client: Client, *patterns: str) -> None:
    async with client.subscribe(*patterns) as events:
        await events.ready()


def test_a_file_binds_the_clients_of_its_node(tmp_path: Path) -> None:
    file = tmp_path / "rights.toml"
    file.write_text(RIGHTS)

    async def test(lab: Secure) -> None:
        node = await lab.node(rights=file)
        async with lab.client("alice", node) as alice, lab.client("carol", node) as carol:
            await alice.publish("weather/oslo", b"mild")
            await refused(alice.publish("news", b"no"), "publish", "news")
            await refused(carol.publish("weather/oslo", b"no"), "publish", "weather/oslo")
            await refused(subscribed(alice, "#"), "subscribe", "#")
            await refused(subscribed(alice, "news"), "subscribe", "news")
            await refused(carol.read("weather/secret"), "subscribe", "weather/secret")
            await refused(subscribed(carol, "weather/secret"), "subscribe", "weather/secret")
            await alice.publish("weather/secret", b"hush")
            await alice.publish("weather/known", b"hm")
            assert await carol.topics("#") == ["weather/known", "weather/oslo"]
            assert len(await alice.topics("#")) == 3
            assert {*(await carol.status())["topics"]} == {"weather/known", "weather/oslo"}
            async with carol.subscribe("#", since="all", notices=True) as events:
                found = [await anext(events) for _ in range(2)]
            notices = [it for it in found if isinstance(it, Notice)]
            refusals = [it.topic for it in notices if it.kind == "refused"]
            assert refusals == ["weather/known"], "of others it is not told that they exist"
            assert [it.topic for it in found if not isinstance(it, Notice)] == ["weather/oslo"]

    run(tmp_path, test)


def test_a_file_is_obeyed_anew_when_it_changes_also_by_tails(tmp_path: Path) -> None:
    file = tmp_path / "rights.toml"
    file.write_text(RIGHTS)

    async def test(lab: Secure) -> None:
        node = await lab.node(rights=file)
        async with (
            lab.client("alice", node) as alice,
            lab.client("carol", node) as carol,
            carol.subscribe("#", since="all") as events,
        ):
            await events.ready()
            await alice.publish("weather/secret", b"hush")
            await alice.publish("weather/oslo", b"mild")
            assert (await anext(events)).payload == b"mild"
            file.write_text(RIGHTS.replace("weather/secret", "weather/oslo"))
            assert (await anext(events)).payload == b"hush"
            await alice.publish("weather/oslo", b"cold")
            await alice.publish("weather/rome", b"warm")
            assert (await anext(events)).payload == b"warm"

    run(tmp_path, test)


def test_a_look_into_the_network_and_charters_need_their_own_rights(tmp_path: Path) -> None:
    file = tmp_path / "rights.toml"
    file.write_text(RIGHTS)

    async def test(lab: Secure) -> None:
        node = await lab.node(rights=file)
        async with lab.client("alice", node) as alice:
            await alice.publish("weather/oslo", b"mild")
        context = Context((node.listen,), lab.people["alice"])
        async with Surveyor(context) as surveyor:
            await surveyor.look()
            question = (node.host.node.id, AskState, StateIs, "weather/oslo")
            await refused(surveyor.ask(*question), "supervise", "weather/oslo")
            file.write_text(RIGHTS.replace('"publish"', '"publish", "supervise"'))
            while True:  # the file is read again at each timeout
                with suppress(PlanariaError):
                    found = await surveyor.ask(*question)
                    break
                await asyncio.sleep(0.02)
            assert found.peer is not None

    run(tmp_path, test)


def test_only_who_has_the_right_may_hand_in_a_charter_whoever_signed_it(tmp_path: Path) -> None:
    file = tmp_path / "rights.toml"
    file.write_text(f'{RIGHTS}[[allow]]\nwho = ["boss"]\nrights = ["admin"]\ntopics = ["news"]\n')

    async def test(lab: Secure) -> None:
        node = await lab.node(rights=file)

        async def hand_in(name: str, topic: str) -> None:
            sealed = seal(Charter(topic, 1, 0, int(time.time())), lab.admin)
            async with lab.client(name, node) as client:
                await client.requests.ask(PutCharter, ChartersAre, sealed)

        await refused(hand_in("alice", "weather/oslo"), "admin", "weather/oslo")
        await refused(hand_in("boss", "weather/oslo"), "admin", "weather/oslo")
        assert [*node.ring.charters.kept] == []
        await hand_in("boss", "news")
        assert [*node.ring.charters.kept] == ["news"]

    run(tmp_path, test)


def test_a_charter_binds_the_clients_of_all_nodes_also_of_those_that_are_no_members(
    tmp_path: Path,
) -> None:
    async def test(lab: Secure) -> None:
        first, second = await lab.node(), await lab.node()
        lab.charter("pay", 1, (("publish", ("alice",)), ("subscribe", ("alice", "boss"))))
        async with lab.client("alice", second) as alice, lab.client("carol", second) as carol:
            # The very first request of a node that has never heard of the topic.
            await refused(carol.publish("pay", b"no"), "publish", "pay")
            await refused(carol.publish("pay/2026", b"no"), "publish", "pay/2026")
            await refused(subscribed(carol, "pay"), "subscribe", "pay")
            await refused(carol.read("pay"), "subscribe", "pay")
            async with carol.subscribe("#") as events:
                await events.ready()
                await alice.publish("pay", b"much")
                await alice.publish("news", b"old")
                assert (await anext(events)).topic == "news"
                lab.charter("pay", 2, (("publish", ("alice",)),))
                event = await anext(events)
                assert (event.topic, event.payload) == ("pay", b"much"), "as soon as it may"
        async with lab.client("alice", first) as alice:
            lab.charter("pay", 3, (("publish", ("boss",)),))
            await refused(alice.publish("pay", b"no"), "publish", "pay")

    run(tmp_path, test)


def test_no_answer_of_a_supervisor_is_no_permission(tmp_path: Path) -> None:
    async def test(lab: Secure) -> None:
        first, second = await lab.node(), await lab.node()
        context = Context((second.listen,), lab.people["carol"])
        async with Surveyor(context) as surveyor:
            await surveyor.look()
            await first.stop(leave=False)
            fields = ("pay", bytes(TOKEN_BYTES), [Draft(b"perhaps")])
            with pytest.raises(PlanariaError, match="no supervisor says who may publish on 'pay'"):
                await surveyor.ask(second.host.node.id, PutNew, Stored, *fields)

    run(tmp_path, test)


def test_rights_without_certificates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rights need certificates"):
        load_config(tmp_path, {"insecure": 1, "rights": "x.toml"}, environment={})
