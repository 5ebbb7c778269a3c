"""A trace: what happened at nodes, row by row, in a simulation and on a network alike."""

from typing import NamedTuple

from planaria.core.ids import NodeId


class Row(NamedTuple):
    """One row, without the run it belongs to.

    `tick` is the time of whoever traces: a simulator's ticks, or milliseconds since 1970.
    """

    tick: int
    node: NodeId
    kind: str
    src: NodeId | None
    dst: NodeId | None
    message_type: str | None
    message_id: int | None
    cause_id: int
    bytes: int | None
    topic: str | None = None
