"""Arbitrary states of directories and of subscriptions with wildcards."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from planaria.core.chance import any_integer
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.protocols.skipring.arbitrary import any_raw_id
from planaria.protocols.skipring.directory import KEPT_MAX, WANTED_MAX, Directory
from planaria.protocols.skipring.directory_messages import (
    WALK_BITS,
    AskMembers,
    AskTopics,
    Members,
    Topics,
)
from planaria.protocols.skipring.sought import REFRESH, Sought
from planaria.protocols.skipring.walk import ANSWER_MAX, REST_MAX, SILENT_MAX, Walk
from planaria.protocols.skipring.wildcards import AUDIT_EVERY, Wildcards

T = TypeVar("T")

NAMES = ("ghost", "news/ghost", "", "a//b", "news/+", "$SYS/x", "x" * 2000)
FILTERS = ("#", "+/#", "news/+", "ghost", "", "a/#/b")


def corrupt_directory(
    directory: Directory, topics: Sequence[str], ids: Sequence[NodeId], rng: Random
) -> None:
    """Any topics, true and false, named at any time; any questions, asked of anybody."""
    turn = directory.turn = any_integer(rng, 0, KEPT_MAX)
    names, filters = (*topics, *NAMES), (*topics, *FILTERS)
    directory.known = {name: any_integer(rng, 0, turn) for name in _some(names, rng)}
    directory.wanted = {it: any_integer(rng, 0, WANTED_MAX) for it in _some(filters, rng)}
    directory.heard = {it: [any_raw_id(ids, rng)] for it in _some(filters, rng)}
    asked = [*directory.supervisors, *(any_raw_id(ids, rng) for _ in range(2))]
    directory.walks = {id: any_walk(filters, names, rng) for id in _some(asked, rng)}
    directory.sought = {name: any_sought(turn, ids, rng) for name in _some(names, rng)}


def any_walk(filters: Sequence[str], names: Sequence[str], rng: Random) -> Walk:
    """Somewhere on the way, or resting, or waiting in vain."""
    walk = Walk()
    walk.patterns = _some(filters, rng) if rng.random() < 0.7 else []
    walk.after = rng.choice(("", *names))
    walk.number = any_integer(rng, 0, 1 << WALK_BITS)
    walk.waited, walk.rest = any_integer(rng, 0, ANSWER_MAX), any_integer(rng, 0, REST_MAX)
    walk.pages, walk.silent = any_integer(rng, 0, 8), any_integer(rng, 0, SILENT_MAX)
    return walk


def any_sought(turn: int, ids: Sequence[NodeId], rng: Random) -> Sought:
    """Anybody as members, told and asked for at any time."""
    sought = Sought()
    sought.members = [any_raw_id(ids, rng) for _ in range(rng.randrange(4))]
    sought.count, sought.tries = any_integer(rng, 0, 9), any_integer(rng, 0, 2)
    sought.answered, sought.asked = any_integer(rng, -1, turn), any_integer(rng, -1, turn)
    sought.settled = sought.count % 2 == 0
    sought.looked = any_integer(rng, turn, turn - REFRESH)
    return sought


def corrupt_wildcards(wildcards: Wildcards, rng: Random) -> None:
    """All but the application's intent: which patterns, and which topics by name."""
    wildcards.audit = any_integer(rng, 0, AUDIT_EVERY)
    patterns = (*wildcards.patterns, *FILTERS)
    wildcards.awaited = {it: any_integer(rng, 0) for it in _some(patterns, rng)}
    wildcards.joined = {**wildcards.joined, **dict.fromkeys(_some(NAMES, rng), True)}


def any_directory_message(topics: Sequence[str], ids: Sequence[NodeId], rng: Random) -> Message:
    """A message of any kind with any content that a wire takes."""
    names = [*topics, *NAMES]
    walk, sender, name = rng.getrandbits(WALK_BITS), rng.choice(ids), rng.choice(names)
    members = [rng.choice(ids) for _ in range(rng.randrange(4))]
    return rng.choice(
        [
            AskTopics(sender, rng.choice((*names, "#")), rng.choice(names), walk),
            Topics(sender, walk, _some(names, rng), rng.choice((None, name))),
            AskMembers(sender, name),
            Members(sender, name, members, rng.randrange(9), walk % 2 == 0),
        ]
    )


def _some(values: Sequence[T], rng: Random) -> list[T]:
    return rng.sample(values, rng.randrange(len(values) + 1))
