"""Who a client is to nodes, what it believes of them, and for how long it looks for one."""

import os
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from planaria.core.errors import UsageError
from planaria.network.client.verifying import Verifier
from planaria.network.connection import CLIENT, VERSIONS, Hello
from planaria.network.context import Context
from planaria.network.identity import CLUSTER, ID_BYTES
from planaria.network.tls import Credentials
from planaria.records.evidence import Sealer

PATIENCE_SECONDS = 30.0  # for which a client that had a node looks for another
SECONDS_MAX = 1e9  # of any wait: clocks and locks take no more, and nobody lives to see it


class Access(NamedTuple):
    """How a client shows itself to nodes, and how long it looks for one."""

    hello: Hello
    credentials: Credentials | None
    patience: float = PATIENCE_SECONDS
    verify: bool = True  # what nodes hand out, where there are keys

    def verifier(self) -> Verifier:
        """What reads records that nodes hand out."""
        return Verifier(self.credentials if self.verify else None)

    def sealer(self, purpose: bytes, topic: str) -> Sealer | None:
        """What adds to records the evidence of who made them, where there are keys."""
        return None if self.credentials is None else self.credentials.sealer(purpose, topic)


def shown(context: Context, name: str | None) -> tuple[Hello, Credentials | None]:
    """How to show ourselves in a network; raises UsageError if that was not said."""
    if context.credentials is None and not context.insecure:
        raise UsageError(
            "no credentials: give a directory that `planaria keys issue NAME --role client` made, "
            "or a context, or say insecure"
        )
    if context.credentials is None:
        given = os.urandom(ID_BYTES) if name is None else text_of("name", name).encode()
        id = blake2b(given, digest_size=ID_BYTES).digest()
        return Hello(VERSIONS, id, context.cluster or CLUSTER, (), CLIENT), None
    credentials = Credentials(context.credentials)
    who = credentials.identity
    if name is not None:
        raise UsageError(f"its certificate names this client {who.name!r}: give no other name")
    if CLIENT not in who.roles:  # or all nodes would refuse it, one by one
        raise UsageError(
            f"the certificate of {who.name!r} has not the role {CLIENT!r}: "
            f"issue one with `planaria keys issue NAME --role {CLIENT}`"
        )
    return Hello(VERSIONS, who.id, context.cluster or credentials.cluster, (), CLIENT), credentials


def text_of(what: str, given: str | Path) -> str:
    """A name or a path as text; raises UsageError for what is neither."""
    if not isinstance(given, str | Path):
        raise UsageError(f"{what} {given!r:.60}: give text, not {type(given).__name__}")
    return str(given)


def seconds_of(what: str, given: float) -> float:
    """For how long to wait; raises UsageError for what is no length of time."""
    if not (isinstance(given, int | float) and given >= 0):
        raise UsageError(f"{what} {given!r:.60}: give seconds, 0 or more")
    return min(given, SECONDS_MAX)
