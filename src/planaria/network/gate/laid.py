"""What charters lay down for a topic, its own or that of the nearest topic above: overlay, rights.

A supervisor keeps all charters; others ask one, and believe the answer for a while. Where nobody
answers within two seconds, the topic counts as one of `ring`: a network without supervisors goes
on. Of rights nothing is assumed: until somebody has answered they are not known.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from planaria.core.errors import UsageError
from planaria.core.node import Command
from planaria.core.topics import ancestors, check_filter
from planaria.protocols.skipring.charter import Charter, rank_of
from planaria.protocols.skipring.charter_messages import HINTS_MAX
from planaria.protocols.skipring.charters import Charters, LaidDown, SeekOverlays

FRESH_SECONDS = 10.0  # for which an answer is believed
PATIENCE_SECONDS = 2.0  # for an answer
AGAIN_SECONDS = 0.5  # between questions for the same topic
TOPICS_MAX = 1 << 16  # remembered; then all are asked for anew
WAITING_MAX = 4096  # requests that wait for an answer
WAITING_BYTES_MAX = 64 << 20
RING = "ring"


class Laid(NamedTuple):
    """An overlay, and whether a charter says so."""

    overlay: str
    chartered: bool

    def agreed(self, topic: str, wanted: str) -> str:
        """The overlay that is meant; raises UsageError if a charter contradicts a wish."""
        if self.chartered and wanted not in ("", self.overlay):
            raise UsageError(f"{topic!r} is in {self.overlay} by its charter, not in {wanted}")
        return wanted or self.overlay


Act = Callable[[Laid], None]


class Waiting(NamedTuple):
    """Since when it is waited for a pattern, which charters count for it, and what is to be done
    then, with its bytes."""

    since: float
    names: list[str]
    acts: list[tuple[int, Act]]


class Overlays:
    """What is known of charters at one node, and who waits to know more."""

    def __init__(
        self, charters: Charters, command: Callable[[Command], None], clock: Callable[[], float]
    ) -> None:
        self._charters, self._command, self._clock = charters, command, clock
        self._known: dict[str, tuple[Charter | None, float]] = {}
        self._settled: dict[str, tuple[Laid, float]] = {}
        self._asked: dict[str, float] = {}  # names that were asked for a moment ago, and when
        self._waiting: dict[str, Waiting] = {}
        self._needed: dict[str, dict[str, None]] = {}  # which of them wait for a name
        self._count = self._bytes = 0

    def settled(self, pattern: str) -> Laid | None:
        """Where a pattern is, if that is known and nobody waits to know it."""
        found = self._settled.get(pattern)
        if found is not None and found[1] > self._clock():
            return found[0]
        if pattern in self._waiting:
            return None
        return self._find(pattern, _names(pattern), self._clock())

    def charters(self, topic: str) -> list[Charter] | None:
        """The charters of a topic and of those above it, the nearest first; None: not all known.

        What was told counts until a supervisor tells something newer.
        """
        names, now = _names(topic), self._clock()
        self._ask([name for name in names if not self._is_known(name, now)], now)
        if not self._charters.complete and any(name not in self._known for name in names):
            return None
        found = []
        for name in names:
            both = (self._charters.best(name), self._known.get(name, (None, 0.0))[0])
            charter = max((it for it in both if it is not None), key=rank_of, default=None)
            found += [] if charter is None else [charter]
        return found

    def look(self, patterns: Iterable[str]) -> dict[str, Laid]:
        """Where supervisors say that these are; nothing is assumed of those that none told of.

        They are asked for the rest in one question, which has room for the first of them.
        """
        now, found = self._clock(), dict[str, Laid]()
        asked: dict[str, None] = {}
        for pattern in patterns:
            names = _names(pattern)
            unknown = dict.fromkeys(name for name in names if not self._is_known(name, now))
            if not unknown:
                laid = self._find(pattern, names, now)
                found |= {} if laid is None else {pattern: laid}
            elif len(asked | unknown) <= HINTS_MAX:
                asked |= unknown
        self._ask([*asked], now)
        return found

    def when(self, pattern: str, act: Act, size: int = 0) -> bool:
        """Do something as soon as it is known where a pattern is; False if too many wait."""
        found = self.settled(pattern)
        if found is not None:
            act(found)
            return True
        if self._count >= WAITING_MAX or self._bytes + size > WAITING_BYTES_MAX:
            return False
        if pattern not in self._waiting:
            self._waiting[pattern] = Waiting(self._clock(), _names(pattern), [])
            for name in self._waiting[pattern].names:
                self._needed.setdefault(name, {})[pattern] = None
        self._waiting[pattern].acts.append((size, act))
        self._count += 1
        self._bytes += size
        return True

    def on_laid_down(self, effect: LaidDown) -> None:
        """A supervisor answers; of two charters the higher counts."""
        charters = {it.topic: it for it in effect.charters}
        until = self._clock() + FRESH_SECONDS
        for topic in effect.topics:
            mine, fresh = self._known.get(topic, (None, 0.0))
            its = charters.get(topic)
            if mine is not None and fresh > self._clock():
                its = mine if its is None or rank_of(mine) > rank_of(its) else its
            self._known[topic] = (its, until)
        needed = [self._needed.get(topic, {}) for topic in effect.topics]
        self._go_on(dict.fromkeys(pattern for patterns in needed for pattern in patterns))

    def _go_on(self, patterns: Iterable[str]) -> None:
        """Go on with those of them that can go on."""
        for pattern in patterns:
            waiting = self._waiting.get(pattern)
            found = waiting and self._find(pattern, waiting.names, waiting.since)
            if waiting and found and self._waiting.get(pattern) is waiting:
                self._wait_no_more(pattern)
                for _, act in waiting.acts:
                    act(found)

    def _wait_no_more(self, pattern: str) -> None:
        waiting = self._waiting.pop(pattern)
        self._count -= len(waiting.acts)
        self._bytes -= sum(size for size, _ in waiting.acts)
        for name in waiting.names:
            self._needed[name].pop(pattern, None)
            if not self._needed[name]:
                del self._needed[name]

    def on_timeout(self) -> None:
        """Go on with whatever can go on, in the order in which it came."""
        self._go_on(list(self._waiting))
        if len(self._known) > TOPICS_MAX or len(self._settled) > TOPICS_MAX:
            self._known, self._settled = {}, {}
        before = self._clock() - AGAIN_SECONDS
        self._asked = {name: when for name, when in self._asked.items() if when > before}

    def _find(self, pattern: str, names: list[str], since: float) -> Laid | None:
        """Look at what is known; ask for the rest, and wait for it no longer than patience."""
        now = self._clock()
        unknown = [name for name in names if not self._is_known(name, now)]
        if unknown and now - since <= PATIENCE_SECONDS:
            self._ask(unknown, now)
            return None
        charter = next((it for name in names if (it := self._charter(name, now))), None)
        found = Laid(RING, False) if charter is None else Laid(charter.overlay, True)
        self._settled[pattern] = (found, now + FRESH_SECONDS)
        return found

    def _ask(self, names: list[str], now: float) -> None:
        """Ask for those that nobody asked for a moment ago."""
        due = [it for it in names if now - self._asked.get(it, -AGAIN_SECONDS) >= AGAIN_SECONDS]
        if due and len(self._asked) < TOPICS_MAX:
            self._asked.update(dict.fromkeys(due, now))
            self._command(SeekOverlays(tuple(due)))

    def _is_known(self, name: str, now: float) -> bool:
        known = self._known.get(name)
        return self._charters.complete or (known is not None and known[1] > now)

    def _charter(self, name: str, now: float) -> Charter | None:
        mine, (theirs, until) = self._charters.best(name), self._known.get(name, (None, 0.0))
        both = [it for it in (mine, theirs if until > now else None) if it is not None]
        return max(both, key=rank_of, default=None)


def _names(pattern: str) -> list[str]:
    """The topics whose charters count for a pattern, the nearest first; none for `#` or garbage."""
    try:
        levels = check_filter(pattern).split("/")
    except UsageError:
        return []
    plain = [level for at, level in enumerate(levels) if not {"+", "#"} & {*levels[: at + 1]}]
    base = "/".join(plain)
    return [base, *ancestors(base)] if base else []
