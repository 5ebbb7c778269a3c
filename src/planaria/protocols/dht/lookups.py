"""Lookups under way: asked again when no answer comes, given up after a while.

Time is counted in the host's own timeouts. A question keeps its nonce when it is repeated, so an
answer to any repetition counts, and one to an older question about the same key does not.
"""

from msgspec import Struct

from planaria.core.node import Stateful

PENDING_MAX = 256  # questions of one host at a time; a search of the tree has at most a few
TRIES_MAX = 4  # repeated after 2, 4 and 8 timeouts, given up after 16 more: 30 in all, as every
# one of log N hops may take one or two where links are slow
NONCES = 1 << 32


class Pending(Struct):
    """A question under way."""

    nonce: int
    age: int = 0
    tries: int = 1


class Lookups(Stateful):
    """The questions of one host, by key."""

    __slots__ = ("nonce", "pending")

    variables = ("pending", "nonce")

    def __init__(self) -> None:
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

    def age(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Time passes: the questions (key, nonce) to repeat, and the keys given up."""
        repeat: list[tuple[int, int]] = []
        lost: list[int] = []
        for key, asked in list(self.pending.items()):
            asked.age += 1
            sound = 0 < asked.tries <= TRIES_MAX and 0 <= asked.nonce < NONCES
            if sound and 0 <= asked.age < 1 << asked.tries:
                continue
            asked.age, asked.tries = 0, asked.tries + 1
            if sound and asked.tries <= TRIES_MAX:
                repeat.append((key, asked.nonce))
            else:
                del self.pending[key]
                lost.append(key)
        return repeat, lost
