"""What a node of `mobile` forgets first when it has more publications than it can keep."""

from random import Random

import pytest

from planaria.core.node import Notice, Publish, Subscribe
from planaria.lab.mobile.figures import TOPIC
from planaria.protocols.mobile import dissemination
from planaria.protocols.mobile.dissemination import Dissemination, Outbox
from planaria.protocols.mobile.messages import ITEM_ID_BYTES, Item
from planaria.protocols.mobile.node import MobileNode


def test_what_all_neighbours_have_is_forgotten_before_what_one_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dissemination, "STORE_MAX", 4)
    news, outbox = Dissemination(), Outbox()
    items = [Item(bytes([number] * ITEM_ID_BYTES), 1, b"x") for number in range(9)]
    for item in items[:7]:
        news.receive(item, 2, TOPIC)
    for waits in (0, 1):
        outbox.waiting[items[waits].id] = 1
    news.input = {items[3].id: []}
    assert news.age([outbox]) == 0
    assert [*news.store] == [items[it].id for it in (0, 1, 3, 6)]
    for item in items[7:]:
        news.receive(item, 2, TOPIC)
    assert news.age([outbox]) == 1, "all but one wait"
    assert [*news.store] == [items[it].id for it in (1, 3, 7, 8)]
    for number in range(20):
        news.receive(Item(bytes([100 + number] * ITEM_ID_BYTES), 1, b"x"), 2, TOPIC)
    assert len(news.store) == 8, "twice as many between two timeouts"


def test_a_node_that_forgets_what_a_neighbour_lacks_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dissemination, "STORE_MAX", 4)
    node = MobileNode(1, Random(0))
    node.on_command(Subscribe(TOPIC))
    layer = node.layers[TOPIC]
    for number in range(4):
        node.on_command(Publish(TOPIC, b"%d" % number))
    assert not [it for it in node.on_timeout() if isinstance(it, Notice)]
    for number in range(3):
        layer.news.receive(Item(bytes([number] * ITEM_ID_BYTES), 1, b"x"), 2, TOPIC)
    assert Notice(TOPIC, "gap", {"lost": 3}) in node.on_timeout()
