"""Clients publish while a supervisor learns its members: what it does not know yet is no number."""

import asyncio
from collections.abc import Callable

import pytest

from gate_lab import INTERVAL, TOPIC, Lab, run, until
from planaria.core.node import Restarted, Subscribe
from planaria.network.client.messages import Put, Stored
from planaria.protocols.skipring import deposits, supervisor, topic_supervisor
from planaria.protocols.skipring.inquiry import Inquiry


@pytest.mark.parametrize("through", [1, 3])
def test_a_supervisor_that_has_just_begun_anew_does_not_say_how_many_members_there_are(
    through: int,
) -> None:
    async def publish(lab: Lab) -> None:
        client, chief = await lab.client(through), lab.nodes[0].supervisor
        assert chief is not None
        chief.topics.clear()
        lab.hosts[0].command(Restarted())
        first = lab.nodes[1].peer.topics[TOPIC].subscriber  # to ask, and told that it is alone
        first.label, first.pred, first.succ, first.shortcuts = 0, None, None, {}
        stored = await client.publish(b"one", copies=2)
        assert stored.copies == 2

    run(publish, 4, 3)


@pytest.mark.parametrize("through", [2, 5])
def test_who_publishes_during_a_takeover_waits_until_a_second_member_has_asked(
    through: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SETTLE_TIMEOUTS", 400)
    monkeypatch.setattr(topic_supervisor, "SETTLE_TIMEOUTS", 400)
    quiet: list[Inquiry] = []
    ask: Callable[[Inquiry, float, int], bool] = Inquiry.on_timeout
    monkeypatch.setattr(Inquiry, "on_timeout", lambda it, *how: it not in quiet and ask(it, *how))

    async def publish(lab: Lab) -> None:
        for host in lab.hosts[2:5]:
            host.command(Subscribe(TOPIC))
        await until(lambda: all(lab.member(at) for at in (2, 3, 4)))
        await until(lambda: all(len(it.supervisors) == 2 for it in lab.nodes))
        client, chiefs = await lab.client(through), [it.supervisor for it in lab.nodes[:2]]
        await until(lambda: sum(TOPIC in it.topics for it in chiefs if it) == 1)
        serving = [it is not None and TOPIC in it.topics for it in chiefs].index(True)
        other = chiefs[1 - serving]
        assert other is not None
        quiet.extend(lab.nodes[at].peer.topics[TOPIC].subscriber.inquiry for at in (3, 4))
        await lab.kill(serving)
        await until(lambda: TOPIC in other.topics)
        request = client.say(Put, TOPIC, client.seal(b"one").data, copies=2)
        await until(lambda: lab.delivered(2))
        await asyncio.sleep(5 * INTERVAL)
        assert client.answers(request) == [], "of three members the supervisor knows one"
        quiet.clear()
        assert (await client.answer(request, Stored)).copies == 2

    run(publish, 6, supervisors=2)


def test_a_member_alone_that_reaches_no_supervisor_takes_what_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deposits, "PATIENCE_SECONDS", 1.0)

    async def publish(lab: Lab) -> None:
        lab.hosts[1].command(Subscribe(TOPIC))
        await until(lambda: lab.member(1))
        client = await lab.client(1)
        await lab.kill(0)
        stored = await client.publish(b"one", copies=2)
        assert stored.copies == 1

    run(publish, 2)
