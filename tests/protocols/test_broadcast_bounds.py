"""The broadcast at its bounds: tables that are full, and divisions that are remembered."""

import pytest

from broadcast_lab import BASE, Cluster, publish, record
from planaria.core.forgetting import Forgetful
from planaria.protocols.skipring import broadcast as module
from planaria.protocols.skipring.arcs import INSIDE
from planaria.protocols.skipring.broadcast import Seen
from planaria.protocols.skipring.labels import position


def test_a_ring_of_full_tables_still_serves_everybody_with_one_message_a_node() -> None:
    for n in (3, 16, 64):
        cluster = Cluster(n)
        for node in cluster.nodes.values():
            node.seen = Forgetful[bytes, Seen](0, 2)
        cluster.run(BASE)
        assert (cluster.messages, cluster.reach()) == (n - 1, 1.0)


def test_hand_offs_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(record(payload=bytes(1000)).data)
    monkeypatch.setattr(module, "HANDED_BYTES_MAX", 20 * size)
    cluster = Cluster(64)
    node, here = cluster.nodes[BASE], cluster.view(BASE)
    for number in range(50):
        publish(node, here, record(payload=number.to_bytes(1000, "big")))
        held = [node.handed.get(entry) for entry in node.handed]
        assert sum(len(it.record) for it in held if it is not None) <= 20 * size
        last = record(payload=number.to_bytes(1000, "big"))
        assert any(entry[1] == last.key for entry in node.handed), "the newest is the likeliest"


def test_a_view_divides_an_arc_once_and_anew_for_other_neighbours() -> None:
    here = Cluster(16).view(BASE)
    whole = (position(0), position(0), INSIDE)
    assert here.divide(whole) is here.divide(whole)
    fewer = here.beside(here.neighbours[1:])
    assert [it.id for it in fewer.divide(whole)] != [it.id for it in here.divide(whole)]
    for at in range(3 * module.SPLITS_MAX):
        here.divide((at, at + 7, INSIDE))
    assert len(here._splits) <= module.SPLITS_MAX
