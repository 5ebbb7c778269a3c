"""What is broken, one after the other, and how it is told."""

from typing import NamedTuple


class Chapter(NamedTuple):
    """One fault, as a schedule says it and as people do."""

    action: str
    title: str


STORY = (
    Chapter("at 0 restart count=3 state=kept", "kill -9 three nodes, start them again"),
    Chapter("at 0 for 8 partition groups=2", "cut the network in two for 4 s"),
    Chapter("at 0 restart node=0 state=none", "wipe the disk of a supervisor"),
    Chapter("at 0 flip count=1 bits=64", "flip 64 bits in a store"),
    Chapter("at 0 corrupt count=3", "scramble the memory of three running nodes"),
)
