"""A client is told that its publication is too old if all members say so, and keep saying so."""

import pytest

from gate_lab import TOPIC, Lab, run
from planaria.network.client.messages import Failed, Put
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring import deposits
from planaria.records.record import TIME_MAX


def test_what_the_topic_no_longer_keeps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deposits, "PATIENCE_SECONDS", 1.0)

    async def publish(lab: Lab) -> None:
        client = await lab.client(1)
        refused = await client.ask(Put, Failed, TOPIC, client.seal(b"old", at=1_000).data)
        assert refused.code == "usage"
        assert "older than what the topic keeps" in refused.reason

    run(publish, 2, 1, retention={TOPIC: Retention(age=3600)})


def test_a_member_that_takes_any_time_for_too_old_by_a_fault_costs_its_client_nothing() -> None:
    """A client is refused for good as 'usage': the member repairs its window within an interval."""

    async def publish(lab: Lab) -> None:
        client = await lab.client(0)
        horizon = lab.nodes[0].peer.topics[TOPIC].history.horizon
        horizon.lo = TIME_MAX
        assert (await client.publish(b"now", copies=2)).copies == 2

    run(publish, 2, 2)
