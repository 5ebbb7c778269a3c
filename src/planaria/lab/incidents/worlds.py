"""Planaria in the place of the naive protocols: the product's overlays, with the incident's fault.

Only what hits them is special: which process may crash, what happens to a disk, who forges.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import ClassVar

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Node
from planaria.lab.incidents.disk_ring import DiskRing, Disks
from planaria.network.store.opening import FILE
from planaria.protocols.skipring.arbitrary import any_message
from planaria.protocols.skipring.messages import speaker
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.worlds.mobile import MovingOverlay

PAGE = 4096  # bytes, of the store's file
ATTACKER = 0


class Ring(RingOverlay):
    """The ring with two supervisors, of which a schedule may crash or restart one by name."""

    def __init__(self) -> None:
        super().__init__(supervisors=2)

    def may_crash(self, node: Node) -> bool:
        """Anybody."""
        return True


class AttackedRing(Ring):
    """A ring in which one member speaks in the names of others."""

    def forge(self, ids: Sequence[NodeId], rng: Random) -> tuple[NodeId, Message]:
        """Any message in the name of another than the attacker, supervisors most of all."""
        peers = [id for id in ids if id not in self.supervisors]
        while True:
            message = any_message(self.topic, peers, self.supervisors, rng)
            if speaker(message) not in (None, ATTACKER):
                return rng.choice([id for id in ids if id != ATTACKER]), message

    def link_of(self, message: Message, ids: Sequence[NodeId], rng: Random) -> NodeId | None:
        """The link of the attacker, who was let into the network."""
        return ATTACKER


class DamagedDiskRing(DiskRing):
    """A ring on disks of its own; the disk of a peer that restarts is damaged meanwhile."""

    def __init__(self) -> None:
        self.directory = TemporaryDirectory(prefix="planaria-incident-")
        super().__init__(Path(self.directory.name))

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A process begins; what its predecessor left on disk is no longer what it wrote."""
        if id in self.databases:
            self.databases.pop(id).close()
            self.harm(self.root / str(id) / FILE, stream(id, "harm"))
        return super().spawn(id, rng)

    def harm(self, file: Path, rng: Random) -> None:
        """Flip a bit in every third publication."""
        data = bytearray(file.read_bytes())
        for found in [*re.finditer(rb"publication \d", data)][::3]:
            data[rng.randrange(*found.span())] ^= 1 << rng.randrange(8)
        file.write_bytes(data)

    def observer(self) -> Disks:
        """The driver that puts on disk what peers persist."""
        return Disks(self)

    def close(self) -> None:
        """Remove the disks."""
        super().close()
        self.directory.cleanup()


class GarbledDiskRing(DamagedDiskRing):
    """The file of a peer that restarts does not even look like one."""

    def harm(self, file: Path, rng: Random) -> None:
        """Write noise over the first pages."""
        data = bytearray(file.read_bytes())
        data[: 2 * PAGE] = rng.randbytes(2 * PAGE)
        file.write_bytes(data)


class StarOverlay(MovingOverlay):
    """The mobile overlay on a star: everybody in reach of one."""

    starts: ClassVar[tuple[str, ...]] = ("legitimate", "corrupt")

    def __init__(self) -> None:
        super().__init__("star")
