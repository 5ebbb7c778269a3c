"""What the clients of a node may do: by the node's file of rights, and by the topics' charters.

The file restricts what this node does for its own clients. A charter restricts it at every node;
one that lays down nothing about a right leaves that to the nearest topic above, and else to all.
While no supervisor has said what is laid down for a topic, nothing is done on it.
"""

from planaria.core.errors import UsageError
from planaria.core.topics import check_filter, has_wildcard
from planaria.network.gate.laid import Overlays
from planaria.network.gate.session import Session, Unsure
from planaria.network.rights import PUBLISH, RIGHTS, SUBSCRIBE, SUPERVISE, RightsFile
from planaria.protocols.skipring.charter import ANYBODY, Charter, allowed

VERDICTS_MAX = 1 << 16  # remembered until the next timeout


class Warden:
    """Judges the clients of one node. Without certificates nobody can be told from anybody else,
    and all may do everything."""

    def __init__(self, overlays: Overlays, file: RightsFile | None) -> None:
        self._overlays, self._file = overlays, file
        self._verdicts: dict[tuple[str, str, str], str] = {}

    def on_timeout(self) -> None:
        """Judge anew: the file or a charter may have changed."""
        self._verdicts.clear()
        if self._file is not None:
            self._file.look()

    def refusal(self, session: Session, right: str, topic: str) -> str | None:
        """Why a client may not do that on a topic: empty if it may, None if that is not known."""
        name = session.name
        if name is None:
            return ""
        found: str | None = self._verdicts.get((name, right, topic))
        if found is None:
            found = self._judge(name, right, topic)
            if found is not None and len(self._verdicts) < VERDICTS_MAX:
                self._verdicts[name, right, topic] = found
        return found

    def check(self, session: Session, right: str, topic: str) -> None:
        """Raises UsageError if a client may not do that, Unsure if that is not known."""
        found = self.refusal(session, right, topic)
        if found is None:
            raise Unsure(f"no supervisor says who may {right} on {topic!r}: ask another node")
        if found:
            raise UsageError(found)

    def check_put(self, session: Session, topic: str) -> None:
        """Raises UsageError if a client may not publish on a topic, Unsure if that is not known."""
        self.check(session, PUBLISH, topic)

    def check_pattern(self, session: Session, right: str, pattern: str) -> None:
        """Raises UsageError if a client may not ask for that pattern at this node at all.

        Each of its topics is judged by itself when something of it is to be told.
        """
        name, file = session.name, self._file
        if name is None or file is None:
            return
        judge = file.rights.allows_all if has_wildcard(pattern) else file.rights.allows
        if not judge(name, right, pattern):
            raise UsageError(_no_right(name, right, pattern, "at this node"))

    def readable(self, session: Session, pattern: str) -> str:
        """A pattern that a client may subscribe to, in MQTT form; raises UsageError."""
        canonical = check_filter(pattern)
        self.check_pattern(session, SUBSCRIBE, canonical)
        return canonical

    def check_named(self, session: Session, pattern: str) -> None:
        """Refuse one topic that a client may not read; of many, those are left out."""
        if not has_wildcard(pattern):
            self.check(session, SUBSCRIBE, pattern)

    def unreadable(self, session: Session, topic: str) -> str | None:
        """Why a client may not read a topic, as `refusal` says it."""
        return self.refusal(session, SUBSCRIBE, topic)

    def restricts(self, session: Session) -> bool:
        """Are there topics of which a client may not even hear?"""
        return session.name is not None and self._file is not None

    def may_hear(self, session: Session, topic: str) -> bool:
        """May a client know that there is such a topic? It may if it has any right on it here.

        Of `a/#` it may if it may of `a`; of other patterns, if it has a right on all of it.
        """
        name, file = session.name, self._file
        if name is None or file is None:
            return True
        base = topic.removesuffix("/#")
        judge = file.rights.allows_all if has_wildcard(base) else file.rights.allows
        return any(judge(name, right, base) for right in RIGHTS)

    def may_watch(self, session: Session, pattern: str) -> bool:
        """May a client see who else follows this, or publishes on it? It needs the right to
        supervise all of it, by the node's file and by charters; what is not known yet is refused.
        """
        try:
            self.check_pattern(session, SUPERVISE, pattern)
        except UsageError:
            return False
        name, file = session.name, self._file
        if name and file and file.rights.denies_part(name, SUPERVISE, pattern):
            return False
        return self.refusal(session, SUPERVISE, pattern) == ""

    def _judge(self, name: str, right: str, topic: str) -> str | None:
        if self._file is not None and not self._file.rights.allows(name, right, topic):
            return _no_right(name, right, topic, "at this node")
        charters = self._overlays.charters(topic)
        if charters is None:
            return None
        who = _laid_down(charters, right)
        if who is None or name in who or ANYBODY in who:
            return ""
        return _no_right(name, right, topic, "by its charter")


def _laid_down(charters: list[Charter], right: str) -> tuple[str, ...] | None:
    """Who has a right by the nearest charter that speaks of it; None: none does."""
    return next((who for it in charters if (who := allowed(it, right)) is not None), None)


def _no_right(name: str, right: str, topic: str, where: str) -> str:
    return f"{name!r} has no right to {right} on {topic!r} {where}"
