"""What a supervisor answers to those who ask for topics and members."""

from bisect import bisect_left, bisect_right
from random import Random

from planaria.core.errors import UsageError
from planaria.core.ids import is_node_id
from planaria.core.node import Send
from planaria.core.topics import check_topic, matches
from planaria.protocols.skipring.directory_messages import (
    MEMBERS_MAX,
    PAGE_MAX,
    AskMembers,
    AskTopics,
    Members,
    Topics,
)
from planaria.protocols.skipring.supervisor import Supervisor
from planaria.protocols.skipring.walk import is_filter

SCAN_MAX = 4096  # topics that one answer looks at
AUDIT_EVERY = 64  # timeouts


class Register:
    """The topics that one supervisor serves, as others may ask for them; all of it is derived."""

    __slots__ = ("_names", "_rng", "_seen", "_timeouts", "supervisor")

    def __init__(self, supervisor: Supervisor, rng: Random) -> None:
        self.supervisor = supervisor
        self._rng = rng
        self._names: list[str] = []  # of the topics served, in order
        self._seen: tuple[int, str] | None = None  # how many there were then, and the newest
        self._timeouts = 0

    def on_timeout(self) -> None:
        """Time passed: now and then the names are put in order anew, whatever seems to be so."""
        self._timeouts += 1
        if self._timeouts % AUDIT_EVERY == 0:
            self._seen = None

    def on_message(self, message: AskTopics | AskMembers) -> list[Send]:
        """Answer a question."""
        if isinstance(message, AskTopics):
            return self._on_ask_topics(message)
        return self._on_ask_members(message)

    def _on_ask_topics(self, message: AskTopics) -> list[Send]:
        """Name the topics that I serve, in order of their names; a bounded number of them."""
        if not is_filter(message.pattern):
            return []
        names, start = self._served(), literal(message.pattern)
        first = max(bisect_right(names, message.after), bisect_left(names, start))
        found: list[str] = []
        following = None
        for at in range(first, len(names)):
            if not names[at].startswith(start):
                break
            if len(found) == PAGE_MAX or at - first == SCAN_MAX:
                following = names[at - 1]
                break
            if matches(message.pattern, names[at]):
                found.append(names[at])
        return [Send(message.sender, Topics(self.supervisor.id, message.walk, found, following))]

    def _served(self) -> list[str]:
        """My topics in the order of names."""
        topics = self.supervisor.topics
        seen = (len(topics), next(reversed(topics), ""))
        if seen != self._seen:
            self._seen, self._names = seen, sorted(filter(is_topic, topics))
        return self._names

    def _on_ask_members(self, message: AskMembers) -> list[Send]:
        """Name some members of a topic that I may serve."""
        if not is_topic(message.topic):
            return []
        served = self.supervisor.topics.get(message.topic)
        entries = served.database.entries if served else []
        count = len(entries)
        drawn = [entries[at] for at in self._rng.sample(range(count), min(count, MEMBERS_MAX))]
        suspects = served.suspects if served else {}
        sound = [id for id in drawn if isinstance(id, int) and is_node_id(id)]
        members = [id for id in sound if id not in suspects] or sound
        settled = self.supervisor.settled(message.topic)
        answer = Members(self.supervisor.id, message.topic, members, count, settled)
        return [Send(message.sender, answer)]


def literal(pattern: str) -> str:
    """What every topic that matches begins with."""
    levels = pattern.split("/")
    wild = next((at for at, level in enumerate(levels) if level in ("+", "#")), len(levels))
    return "/".join(levels[:wild])


def is_topic(topic: str) -> bool:
    """Can one publish on it?"""
    try:
        check_topic(topic)
    except UsageError:
        return False
    return True
