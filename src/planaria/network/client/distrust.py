"""A client leaves nodes that hand it what nobody signed, until there is nobody else to ask."""

import asyncio

from planaria.network.client.channel import Channel
from planaria.network.client.errors import Untrusted
from planaria.network.client.places import Places
from planaria.network.client.verifying import Unsigned
from planaria.records.record import MalformedRecord


class Distrust:
    """Which nodes gave what was not signed, while a reader came no further; one that a fault made
    lie has time to heal, as long as patience lasts."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._far: object = None
        self._since = 0.0
        self._reasons: dict[str, str] = {}  # by address

    def leave(self, error: MalformedRecord, far: object) -> Untrusted | None:
        """Go on at another node; what to tell the application if all were tried for long.

        `far` is how far the reader has come, or what it asks for: all that is wrong meanwhile is
        one doubt, whatever places a liar names.
        """
        channel, now = self._channel, asyncio.get_running_loop().time()
        if far != self._far:
            self._far, self._since, self._reasons = far, now, {}
        self._reasons[channel.address] = str(error)
        tried = {*channel.servers} <= {*self._reasons}
        failed = tried and now - self._since > channel.access.patience
        channel.leave(f"it sent what is no record: {error}")
        return Untrusted(self._reasons) if failed else None

    def leave_at(self, error: MalformedRecord, places: Places) -> Untrusted | None:
        """The same for who reads topics from there on.

        What is no record at all is a doubt of its own: of which topic it should be nobody says.
        """
        if not isinstance(error, Unsigned):
            return self.leave(error, error)
        topic = error.place[0]
        return self.leave(error, (topic, {**places.topics.get(topic, {})}))
