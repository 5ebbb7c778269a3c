"""Lookups under way: asked again when no answer comes, given up after a while.

Time is counted in the host's own timeouts. A question keeps its nonce when it is repeated, so an
answer to any repetition counts, and one to an older question about the same key does not.
"""

from msgspec import Struct

from planaria.core.state import State, Stateful
from planaria.protocols.ring.sorted_ring import SILENCE_MAX

PENDING_MAX = 256  # questions of one host at a time; a search of the tree has at most a few
GAP_MAX = 16  # timeouts between two repetitions, after 2, 4 and 8: not long after the ring is right
HOP_MAX = SILENCE_MAX / 2  # timeouts that a hop may take: a slower neighbour is dropped as silent
NONCES = 1 << 32


class Pending(Struct):
    """A question under way."""

    nonce: int
    age: int = 0
    tries: int = 1


def patience(levels: int) -> int:
    """How often a question is asked over `levels` of fingers: until every hop there, and the way
    back, may have taken `HOP_MAX` timeouts."""
    tries, waited = 1, 2
    while waited < HOP_MAX * (levels + 2):
        tries += 1
        waited += _gap(tries)
    return tries


class LookupsState(State):
    """The questions under way, by key, and the nonce of the last one."""

    pending: dict[int, Pending]
    nonce: int


class Lookups(Stateful):
    """The questions of one host, by key below `keys`."""

    __slots__ = ("keys", "nonce", "pending")

    state_type = LookupsState

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.pending: dict[int, Pending] = {}
        self.nonce = 0

    def begin(self, key: int) -> int | None:
        """The nonce of a new question; None if it is under way already, or there are too many."""
        if key in self.pending or len(self.pending) >= PENDING_MAX:
            return None
        self.nonce = (self.nonce + 1) % NONCES
        self.pending[key] = Pending(self.nonce)
        return self.nonce

    def end(self, key: int, nonce: int) -> bool:
        """An answer came: is it to my question?"""
        asked = self.pending.get(key)
        if asked is None or asked.nonce != nonce:
            return False
        del self.pending[key]
        return True

    def age(self, tries_max: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Time passes: the questions (key, nonce) to repeat, and the keys given up."""
        repeat: list[tuple[int, int]] = []
        lost: list[int] = []
        for key, asked in list(self.pending.items()):
            asked.age += 1
            sound = 0 < asked.tries <= tries_max and 0 <= asked.nonce < NONCES
            sound = sound and 0 <= key < self.keys
            if sound and 0 <= asked.age < _gap(asked.tries):
                continue
            asked.age, asked.tries = 0, asked.tries + 1
            if sound and asked.tries <= tries_max:
                repeat.append((key, asked.nonce))
            else:
                del self.pending[key]
                lost.append(key)
        return repeat, lost


def _gap(tries: int) -> int:
    """Timeouts to wait for an answer to the question asked for the `tries`-th time."""
    return min(1 << min(tries, GAP_MAX), GAP_MAX)
