"""What a message is about."""

import pytest

from planaria.core.message import Message, topic_of
from planaria.protocols.dht.member import GROUP
from planaria.protocols.gossip.messages import Found
from planaria.protocols.ring.messages import Introduce
from planaria.protocols.skipring.messages import Unsubscribe


@pytest.mark.parametrize(
    ("message", "topic"),
    [
        (Unsubscribe("news", 1), "news"),
        (Introduce("news", (1, 1), False, 0), "news"),
        (Introduce(GROUP, (1, 1), False, 0), "$SYS/dht"),
        (Found(()), None),
    ],
)
def test_a_message_is_about_its_topic_or_that_of_its_group(
    message: Message, topic: str | None
) -> None:
    assert topic_of(message) == topic
