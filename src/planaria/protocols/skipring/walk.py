"""How one supervisor is asked for its topics: page by page, pattern by pattern, again and again."""

from collections.abc import Sequence
from random import Random

from planaria.core.errors import UsageError
from planaria.core.state import State, Stateful
from planaria.core.topics import TOPIC_BYTES_MAX, check_filter, covers
from planaria.protocols.skipring.directory_messages import WALK_BITS

REST = 2  # timeouts between two walks; a walk of many pages is followed by a longer rest
REST_MAX = 16
PAGES_OF_REST = 4  # pages that make a rest longer by one timeout
PAGES_MAX = PAGES_OF_REST * REST_MAX  # then the rest is no longer for more
ANSWER_MAX = 4  # timeouts to wait for an answer; each time in vain the wait doubles
DOUBLINGS_MAX = 4
POSTPONED = -1  # the number of a question that is asked at the next timeout
SILENT_MAX = 2  # questions in vain, after which a supervisor is not waited for


class WalkState(State):
    """What is still to be asked, which answer is awaited, and for how long in vain."""

    patterns: list[str]
    after: str
    number: int
    waited: int
    rest: int
    pages: int
    silent: int


class Walk(Stateful):
    """Where one supervisor's topics have been read up to."""

    __slots__ = ("after", "number", "pages", "patterns", "rest", "silent", "waited")
    state_type = WalkState

    def __init__(self) -> None:
        self.patterns: list[str] = []  # still to be asked for, the present one first
        self.after = ""
        self.number = 0  # of the question whose answer is awaited
        self.waited = 0  # timeouts since that question
        self.rest = 0  # timeouts until the next walk
        self.pages = 0  # of this walk
        self.silent = 0  # questions in vain

    @property
    def quiet(self) -> bool:
        """Has the supervisor not answered for long?"""
        return self.silent >= SILENT_MAX

    def repair(self) -> None:
        """Put every variable back into its range; what cannot be asked is not asked."""
        if not all(is_filter(pattern) for pattern in self.patterns) or not is_sendable(self.after):
            self.patterns, self.after = [], ""
        self.waited = min(max(self.waited, 0), ANSWER_MAX << DOUBLINGS_MAX)
        self.rest = min(max(self.rest, 0), REST_MAX)
        self.pages = min(max(self.pages, 0), PAGES_MAX)
        self.silent = min(max(self.silent, 0), SILENT_MAX + DOUBLINGS_MAX)

    def due(self, patterns: Sequence[str]) -> bool:
        """Time passed: is there something to ask now? A new walk is for `patterns`."""
        if self.patterns and self.number == POSTPONED:
            return True
        if self.patterns:
            self.waited += 1
            if self.waited <= ANSWER_MAX << min(self.silent, DOUBLINGS_MAX):
                return False
            self.silent += 1
            return True
        self.rest -= 1
        return self.rest <= 0 and self.begin(patterns)

    def begin(self, patterns: Sequence[str]) -> bool:
        """Start from the first page; is there anything to ask?"""
        self.patterns, self.after, self.pages = list(patterns), "", 0
        return bool(patterns)

    def add(self, pattern: str) -> None:
        """A pattern is wanted: ask for it in this walk, or begin one soon."""
        self.rest = 0
        if self.patterns and not any(covers(it, pattern) for it in self.patterns):
            self.patterns.append(pattern)

    def question(self, rng: Random) -> tuple[str, str, int]:
        """Pattern, name to begin after, and a new number."""
        self.number, self.waited = rng.getrandbits(WALK_BITS), 0
        return self.patterns[0], self.after, self.number

    def turn(self, following: str | None) -> str | None:
        """A page was read: go on after `following`, or with the next pattern.

        Returns the pattern that is done with. Names only grow, so a walk ends.
        """
        self.silent = 0
        self.pages += 1
        if following is not None and following > self.after and is_sendable(following):
            self.after = following
            return None
        self.after = ""
        done = self.patterns.pop(0)
        if not self.patterns:
            self.rest = min(REST + self.pages // PAGES_OF_REST, REST_MAX)
        return done


def is_filter(pattern: str) -> bool:
    """Is it a filter, in the form in which filters are compared?"""
    try:
        return check_filter(pattern) == pattern
    except UsageError:
        return False


def is_sendable(text: str) -> bool:
    """Can it travel as a name? Memory can hold texts that no wire takes."""
    try:
        return len(text.encode()) <= TOPIC_BYTES_MAX
    except UnicodeEncodeError:
        return False
