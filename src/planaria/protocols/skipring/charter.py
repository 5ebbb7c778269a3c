"""What is laid down for a topic: one small signed record with a version, the same everywhere.

Two charters of a topic are ordered by (version, hash), so that all nodes settle on one of them in
whatever order they come. Who may sign is not decided here: a `Judge` says of sealed bytes what
they lay down, or that they are nothing. An authority voids what an admin signed from some second
on with a record of the same kind, of which the earliest is the highest. Such a record may also say
how far each stream of its holder counts, so that nothing can be dated back to before that second.

Who may publish is judged at the time of a publication, which may be long past. So a charter tells
the whole history of that right, in terms: a charter that takes it back ends a term.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, MsgspecError, Struct, msgpack
from msgspec.structs import replace

from planaria.core.errors import UsageError
from planaria.core.topics import check_topic
from planaria.protocols.publications.retention import Retention
from planaria.records.record import INCARNATION_BYTES

SEALED_BYTES_MAX = 4096  # a charter, a certificate and a signature take less than 1,500
VERSION_MAX = 1 << 62
STEP_MAX = 1000  # by which a version may exceed the one before: a typo must not be the last word
HASH_BYTES = 16
OPEN = VERSION_MAX  # the end of a term that has none
GRACE_SECONDS = 10  # by which a right outlives the charter that ends it: all have heard of it then
SLACK_SECONDS = 60  # by which a clock may be behind whose owner was just given a right
ANYBODY, NODES = "*", "@nodes"  # in the place of a name: everybody, and every node
VOID = "$void/"  # the name of a record that voids: this and the admin's id

Number = Annotated[int, Meta(ge=1, le=VERSION_MAX)]
Second = Annotated[int, Meta(ge=0, le=VERSION_MAX)]
Right = Literal["publish", "subscribe", "supervise", "admin"]
Allowed = tuple[tuple[Right, tuple[str, ...]], ...]
Term = tuple[str, Second, Second]  # who may publish, from which second on, and before which
# Of each stream that counts, by its incarnation, the number before which it does.
Ends = tuple[tuple[Annotated[bytes, Meta(max_length=INCARNATION_BYTES)], Second], ...]


class Charter(Struct, frozen=True, array_like=True):
    """What a topic is like, from `version` on; `previous` is the version that it replaces."""

    topic: str
    version: Number
    previous: Annotated[int, Meta(ge=0, le=VERSION_MAX)]
    time: Second
    overlay: Literal["ring", "gossip", "content", "mobile"] = "ring"
    retention: Retention = Retention()
    allow: Allowed = ()  # who has a right; one that is not named here is everybody's
    terms: tuple[Term, ...] = ()  # who might publish when; none: everybody ever
    ends: Ends | None = None  # of a record that voids: what counts; None: all before its second


class Sealed(Struct, frozen=True, array_like=True):
    """A charter as its admin signed it: `signer` is a certificate, or a key where there is none."""

    body: bytes
    signer: bytes
    signature: bytes


class Judged(NamedTuple):
    """What sealed bytes lay down, and the id of who signed them."""

    charter: Charter
    admin: bytes


Judge = Callable[[bytes], Judged | None]
Rank = tuple[int, bytes]

NO_RANK: Rank = (0, b"")


def nobody(_: bytes) -> Judged | None:
    """Judge where nobody may lay down anything."""
    return None


def encode_charter(charter: Charter) -> bytes:
    """The bytes that are signed."""
    return msgpack.encode(charter)


def decode_sealed(data: bytes) -> tuple[Sealed, Charter] | None:
    """What is in sealed bytes, if it could be a charter at all; who signed it is not looked at."""
    if len(data) > SEALED_BYTES_MAX:
        return None
    try:
        sealed = msgpack.decode(data, type=Sealed)
        charter = msgpack.decode(sealed.body, type=Charter)
    except (MsgspecError, ValueError, RecursionError):
        return None
    return (sealed, charter) if is_sound(charter) else None


def is_sound(charter: Charter) -> bool:
    """Is it of a topic, and no further from the one before than a version may be?"""
    if charter.topic.startswith(VOID):
        return voided_since(charter) is not None
    try:
        check_topic(charter.topic)
    except UsageError:
        return False
    return charter.previous < charter.version <= charter.previous + STEP_MAX


def allowed(charter: Charter, right: str) -> tuple[str, ...] | None:
    """The names of those who have a right by a charter; None if it says nothing about that."""
    return next((who for one, who in charter.allow if one == right), None)


def with_publishers(charter: Charter, who: Sequence[str]) -> Charter:
    """The charter with the terms by which these alone may publish from its time on.

    Terms that ended before anything that the topic keeps are left out.
    """
    end, age = charter.time + GRACE_SECONDS, charter.retention.age
    oldest = 0 if age is None else charter.time - 2 * age
    before = charter.terms or ((ANYBODY, 0, OPEN),)
    terms = [
        (name, since, until if name in who else min(until, end)) for name, since, until in before
    ]
    going_on = {name for name, _, until in terms if until == OPEN}
    start = max(0, charter.time - SLACK_SECONDS)
    terms += [(name, start, OPEN) for name in who if name not in going_on]
    return replace(charter, terms=tuple(term for term in terms if term[2] > oldest))


def rank_of(charter: Charter) -> Rank:
    """By what charters of one topic are ordered; the highest counts."""
    return charter.version, blake2b(encode_charter(charter), digest_size=HASH_BYTES).digest()


def next_charter(
    topic: str, before: Charter | None, time: int, version: int | None = None
) -> Charter:
    """The charter that follows `before`, to be changed as wished; raises UsageError.

    Settings that are not changed stay as they are.
    """
    check_topic(topic)
    previous = before.version if before else 0
    version = previous + 1 if version is None else version
    if not previous < version <= previous + STEP_MAX:
        raise UsageError(
            f"version {version} of {topic!r}: from {previous + 1} to {previous + STEP_MAX}"
        )
    if before is None:
        return Charter(topic, version, previous, time)
    settings = (before.overlay, before.retention, before.allow, before.terms)
    return Charter(topic, version, previous, time, *settings)


def voiding(admin: bytes, since: int, ends: Ends | None = None) -> Charter:
    """The record by which an authority voids what `admin` signed from the second `since` on.

    With `ends`, also whatever it published in other streams, or from these numbers on.
    """
    version = VERSION_MAX - since
    return Charter(f"{VOID}{admin.hex()}", version, version - 1, since, ends=ends)


def voided_since(charter: Charter) -> int | None:
    """From which second on a voiding record voids; None: it is none."""
    since = VERSION_MAX - charter.version
    plain = voiding_name(charter) is not None and charter.time == since
    return since if plain and charter.previous == charter.version - 1 else None


def voiding_name(charter: Charter) -> bytes | None:
    """The id of the admin whom a record is about."""
    try:
        return bytes.fromhex(charter.topic.removeprefix(VOID))
    except ValueError:
        return None
