"""Clients publish as fast as the links of their node take it, and wait for no slow one."""

import pytest

from gate_lab import TOPIC, Lab, run, until
from planaria.network.client.client import connect

PAYLOADS = [b"%4d" % number + bytes(1 << 13) for number in range(300)]
WINDOW = 1 << 17  # a twentieth of all of them


def narrow(lab: Lab) -> None:
    """Let the links between nodes take little at a time."""
    for host in lab.hosts:
        for link in host.links.values():
            link.link.bulk.bytes_max = WINDOW


def test_what_clients_publish_is_dropped_on_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    # A stall of the machine would count as a slow link, of which the next test is.
    monkeypatch.setattr("planaria.network.pace.PACE_SECONDS", 30.0)

    async def publish(lab: Lab) -> None:
        narrow(lab)
        async with connect(lab.hosts[0].hello.addresses[0], insecure=True) as client:
            ack = await client.publish_many(TOPIC, PAYLOADS, copies=1)
            assert ack is not None
            assert ack.count == len(PAYLOADS)
        for at in range(3):
            await lab.gets(at, PAYLOADS)
        assert [host.dropped for host in lab.hosts] == [0, 0, 0]
        assert not lab.gates[0].publishing._paced

    run(publish, 3, 3)


def test_a_link_that_takes_nothing_is_waited_for_only_for_a_while() -> None:
    async def publish(lab: Lab) -> None:
        narrow(lab)
        slow = lab.hosts[2]
        for link in slow.links.values():
            assert link._transport is not None
            link._transport.pause_reading()
        async with connect(lab.hosts[0].hello.addresses[0], insecure=True) as client:
            await client.publish_many(TOPIC, PAYLOADS, copies=1)
        await lab.gets(1, PAYLOADS)
        assert len(lab.delivered(2)) < len(PAYLOADS)
        for link in slow.links.values():
            assert link._transport is not None
            link._transport.resume_reading()
        await until(lambda: not len(lab.gates[0].publishing))

    run(publish, 3, 3)
