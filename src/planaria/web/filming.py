"""Films a live network for a trace: what the dashboard would show, second by second.

Rows tell what nodes heard and said. What they believed, what was wrong and who did not answer is
seen by looking at all of them: the same looks and the same judge as those of the dashboard.
"""

import asyncio
from collections.abc import Iterator
from time import time_ns

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.core.trace import Row
from planaria.network.client.overlays import RING
from planaria.web.frames import BROKEN, DOUBTS, SILENT, Frame
from planaria.web.snapshots import START, Album, Shown
from planaria.web.watching import Watcher

SECOND = 1000  # milliseconds
NOWHERE = NodeId(-1)
LEGITIMATE = "legitimate"


class Taken(Struct, frozen=True):
    """One look: when, in milliseconds since 1970, what it shows, and for how long nodes run."""

    tick: int
    frame: Frame
    uptimes: dict[NodeId, float]


class Film:
    """Looks once a second while `run` runs; one topic of one overlay is drawn."""

    def __init__(self, watcher: Watcher, topic: str = "", overlay: str = RING) -> None:
        self._watcher, self._topic, self._overlay = watcher, topic, overlay
        self.taken: list[Taken] = []

    async def run(self) -> None:
        """Look again and again; a look that no node answers shows nothing."""
        while True:
            await asyncio.sleep(1)
            await self.take()

    async def take(self) -> bool:
        """Look once; False if no node answers."""
        if not await self._watcher.look():
            return False
        frame = self._watcher.frame(self._topic, self._overlay)
        assert frame is not None
        self._topic, self._overlay = frame.topic, frame.overlay  # the same to the end
        self.taken.append(Taken(time_ns() // 1_000_000, frame, self._watcher.uptimes()))
        return True

    @property
    def began(self) -> int:
        """When the first look was."""
        return self.taken[0].tick

    @property
    def drawn(self) -> str:
        """What it shows, in words."""
        return f"{self._overlay} {self._topic}".strip()

    def names(self) -> dict[NodeId, str]:
        """What people call the nodes."""
        return {NodeId(int(it.id)): it.name for one in self.taken for it in one.frame.nodes}

    def rows(self) -> Iterator[Row]:
        """Who was there, who went, who came back, and what was wrong: as a simulation tells it."""
        before: dict[NodeId, float] = {}
        gone: set[NodeId] = set()
        for one in self.taken:
            for id, uptime in one.uptimes.items():
                if id in gone or uptime < before.get(id, 0.0):
                    yield _row(one.tick, id, "restart")
                elif id not in before:
                    yield _row(one.tick, id, "start")
            lost = {*before} - {*one.uptimes}
            for id in sorted(lost - gone):
                yield _row(one.tick, id, "stop")
            before, gone = {**before, **one.uptimes}, lost
            yield _row(one.tick, NOWHERE, "verdict", ", ".join(_broken(one.frame)) or LEGITIMATE)

    def album(self) -> str:
        """The pictures: one of the beginning, and for each second the last that was taken."""
        album, began = Album(), self.began
        pictures = {START: self.taken[0].frame}
        for one in self.taken[1:]:
            pictures[max(0, one.tick - began - 1) // SECOND] = one.frame
        frame = pictures[START]
        for at in range(START, max(pictures) + 1):
            frame = pictures.get(at, frame)
            album.keep(at, _shown(frame))
        return album.text()


def _row(tick: int, node: NodeId, kind: str, words: str | None = None) -> Row:
    return Row(tick, node, kind, None, None, words, None, 0, None)


def _broken(frame: Frame) -> list[str]:
    return [it.name for it in frame.lamps if it.state == BROKEN]


def _shown(frame: Frame) -> Shown:
    """A frame with the ids of its nodes in place of their numbers."""
    ids = [NodeId(int(node.id)) for node in frame.nodes]
    there = [(id, node) for id, node in zip(ids, frame.nodes, strict=True) if node.state != SILENT]
    return Shown(
        lines=[(ids[a], ids[b], kind) for a, b, kind in frame.edges],
        places={id: (node.x, node.y) for id, node in zip(ids, frame.nodes, strict=True)},
        ends=[(ids[a], ids[b], words) for a, b, words in frame.ends],
        marks={id: node.mark for id, node in there if node.mark},
        roles={id: node.role for id, node in there},
        regions=frame.regions,
        figures={id: node.figures for id, node in there},
        wrong={id: "; ".join(node.doubts) for id, node in there if node.state == DOUBTS},
        broken=_broken(frame),
        wide=frame.wide,
    )
