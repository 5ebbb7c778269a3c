"""Deletes what a node holds of topics that it left because others keep them.

Not at once: who comes back within the hour finds its copy, and whatever only this node held has
been asked for by then.
"""

from collections.abc import Callable, Container

from planaria.network.memberships import RELEASED, Memberships
from planaria.network.store.database import Database

RELEASED_SECONDS = 3600.0  # for which a copy stays


class Releasing:
    """Watches the file of memberships for topics that were released."""

    def __init__(
        self,
        file: Memberships,
        database: Database,
        members: Callable[[], Container[str]],
        forget: Callable[[str], object],
        clock: Callable[[], float],
    ) -> None:
        """`members`: the topics that this node takes part in, or has not left yet.

        `forget`: nothing more is to be said of a topic until it is joined again.
        """
        self._file, self._database, self._members, self._clock = file, database, members, clock
        self._forget = forget
        self._since: dict[str, float] = {}

    def step(self) -> None:
        """Look once: give up what has been released for long, and erase some of that."""
        now, members = self._clock(), self._members()
        left = list(self._file.left.items())  # which a thread writes
        released = [topic for topic, how in left if how == RELEASED and topic not in members]
        self._since = {topic: self._since.get(topic, now) for topic in released}
        for topic, since in self._since.items():
            if now - since > RELEASED_SECONDS:
                self._database.abandon(topic)
                self._file.left.pop(topic, None)  # on disk it stays, in case of a crash meanwhile
                self._forget(topic)
        self._database.sweep()
