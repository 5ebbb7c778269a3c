"""A client leaves nodes that hand it what nobody signed, until there is nobody else to ask."""

import asyncio

from planaria.network.client.channel import Channel
from planaria.network.client.errors import Untrusted
from planaria.network.client.verifying import Place, Unsigned
from planaria.records.record import MalformedRecord


class Distrust:
    """Which nodes gave what was not signed, at one place; one that a fault made lie has time to
    heal, as long as patience lasts."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._place: Place | None = None
        self._since = 0.0
        self._reasons: dict[str, str] = {}  # by address

    def leave(self, error: MalformedRecord) -> Untrusted | None:
        """Go on at another node; what to tell the application if all were tried for long."""
        channel, now = self._channel, asyncio.get_running_loop().time()
        failure = None
        if isinstance(error, Unsigned):
            if error.place != self._place:
                self._place, self._since, self._reasons = error.place, now, {}
            self._reasons[channel.address] = str(error)
            tried = {*channel.servers} <= {*self._reasons}
            if tried and now - self._since > channel.access.patience:
                failure = Untrusted(self._reasons)
        channel.leave(f"it sent what is no record: {error}")
        return failure
