"""When a client's publications leave: at once, or together if the network is slower than it."""

import asyncio
from typing import Any, cast

from planaria.network.client.messages import Put
from planaria.network.client.publishing import LINGERS_MAX, Receipt, Stream, Wish
from planaria.network.client.requests import Requests
from planaria.records.packing import LINGER_MICROSECONDS, PACKED_PUBLICATIONS
from planaria.records.record import Draft


class Asked:
    """A node that answers nothing. The loop never turns: no timer is due before the test ends."""

    error = None

    def __init__(self) -> None:
        self.puts: list[bytes] = []

    def begin(self, kind: type[Put], topic: str, data: bytes, *_: object) -> asyncio.Future[Any]:
        self.puts.append(data)
        return asyncio.get_running_loop().create_future()


def test_a_publication_waits_for_each_record_that_is_not_acknowledged_up_to_a_bound() -> None:
    async def publish() -> None:
        asked = Asked()
        stream = Stream("news", cast(Requests, asked), 1, bytes(12))

        def offer(count: int = 1) -> None:
            stream.offer([Draft(b"x")] * count, Receipt("news", count), Wish())

        def waits() -> int:
            assert stream.packer.last is not None
            return (stream.due - stream.packer.last) // LINGER_MICROSECONDS

        offer()
        assert stream.due == 0, "the first leaves at once"
        for unacknowledged in range(1, 2 * LINGERS_MAX):
            stream.flush()
            assert len(asked.puts) == unacknowledged
            offer()
            assert waits() == 1 + min(unacknowledged, LINGERS_MAX)
        stream.packer.acknowledge(stream.packer.next)
        assert waits() == 1, "all is acknowledged: it waits for the linger alone"
        sent = len(asked.puts)
        offer(PACKED_PUBLICATIONS)
        assert len(asked.puts) > sent, "a full record waits for nothing"
        stream.flush()

    asyncio.run(publish())
