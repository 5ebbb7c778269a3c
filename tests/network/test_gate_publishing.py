"""Clients publish through any node: held on disk by as many members as they want, once."""

import os
import secrets
from functools import partial
from pathlib import Path

import pytest

from gate_lab import TOPIC, Lab, RawClient, run, until
from planaria.core.node import Deliver, Persist
from planaria.network.client.messages import Failed, Put, PutNew, Stored
from planaria.network.gate import publishing
from planaria.protocols.publications.retention import Retention
from planaria.records.record import PAYLOAD_BYTES_MAX, Draft


def test_publish_through_a_node_without_the_topic_is_held_by_two_members_on_disk(
    tmp_path: Path,
) -> None:
    async def publish(lab: Lab) -> None:
        client = await lab.client(3)
        stored = await client.publish(b"one", b"two", copies=2)
        assert (stored.copies, stored.members) == (2, 3)
        assert (stored.publisher, stored.incarnation) == client.stream
        assert (stored.first, stored.count) == (0, 2)
        held = [at for at in range(3) if len(lab.store(at))]
        assert len(held) >= 2
        for at in range(3):
            await until(lambda at=at: lab.delivered(at) == [b"one", b"two"])
        assert TOPIC not in lab.nodes[3].peer.topics, "no copy of the topic at its node"

    run(publish, 4, 3, disk=tmp_path)
