"""What stabilization alone does not give, shown to be there: checks that really run."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NodeId
from planaria.core.node import Deliver
from planaria.lab.incidents import writer
from planaria.network.store.database import Database
from planaria.protocols.skipring.deposits import Entrust
from planaria.protocols.skipring.messages import SetData
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.records.packing import UNSETTLED_BYTES_MAX, Packer
from planaria.records.record import INCARNATION_BYTES, Draft, seal
from planaria.simulator.delays import INTERVAL
from planaria.simulator.engine import Entry, Simulator

ACKNOWLEDGED = 40  # commits until the process is killed
SETTLE = 12  # intervals for a record to reach all
CLIENT = (1 << 41, bytes(INCARNATION_BYTES))  # a publisher outside the ring


class Safeguard(Struct, frozen=True):
    """Something that must hold, and what was found."""

    name: str
    held: bool
    detail: str


def kill() -> Safeguard:
    """Kill a process that appends to a store: what it said to be on disk is there."""
    with TemporaryDirectory(prefix="planaria-incident-") as directory:
        command = [sys.executable, "-m", writer.__name__, directory]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603  ours
            assert child.stdout is not None
            try:
                said = [child.stdout.readline() for _ in range(ACKNOWLEDGED)]
            finally:
                child.kill()
            said += child.stdout.read().splitlines(keepends=True)
        acknowledged = {int(line) for line in said if line.endswith("\n")}
        with Database(Path(directory)) as database:
            found = database.topic(TOPIC).read({}, limit=10**6).publications()
            kept = {int(one.payload) for one in found}
    lost = len(acknowledged - kept)
    detail = f"{lost} publications are missing that were acknowledged before the kill"
    return Safeguard("kill -9", not lost and len(acknowledged) >= ACKNOWLEDGED, detail)


def back_pressure() -> Safeguard:
    """Publish where nobody acknowledges: the publisher is refused, and goes on when it can."""
    packer, draft, refused = Packer(*CLIENT), Draft(bytes(1 << 16)), False
    offered = 0
    while not refused and offered < 2 * UNSETTLED_BYTES_MAX:
        try:
            packer.offer(draft)
            offered += len(draft.payload)
        except CapacityExceeded:
            refused = True
    bounded = packer.bytes <= UNSETTLED_BYTES_MAX
    while packer.take(packer.due or 0, time=0) is not None:
        pass
    packer.acknowledge(packer.next)
    packer.offer(draft)
    detail = f"refused after {offered >> 20} MiB that nobody acknowledged, and accepted again"
    return Safeguard("back-pressure", refused and bounded, detail)


class Deliveries:
    """Counts what each node hands to its application."""

    kinds = ("effect",)

    def __init__(self) -> None:
        self.counts: Counter[NodeId] = Counter()

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Count a delivery."""
        if isinstance(effect, Deliver):
            self.counts[node] += len(effect.publications)


def published_again() -> Safeguard:
    """Publish a record through one node, and, not knowing of it, through another one again."""
    overlay, simulator, deliveries = RingOverlay(), Simulator(1), Deliveries()
    simulator.watch(deliveries)
    for node in overlay.legitimate(6, simulator.rng):
        simulator.add(node)
    record = seal(CLIENT, 0, [Draft(b"once")], time=0)
    for member in (1, 4):
        simulator.command(member, Entrust(TOPIC, record, (member,), spread=True))
        simulator.run(SETTLE * INTERVAL)
    counts = deliveries.counts
    once = dict.fromkeys(range(6), 1)
    detail = f"sent through 2 nodes, delivered {counts.total()} times to 6 subscribers"
    return Safeguard("published again elsewhere", counts == once, detail)


def spoken_for() -> Safeguard:
    """Configure a member in the supervisor's name: nothing changes, unless it is the supervisor."""
    overlay, simulator = RingOverlay(), Simulator(1)
    nodes = overlay.legitimate(4, simulator.rng)
    victim, supervisor = nodes[2], overlay.supervisors[0]
    forged = SetData(TOPIC, supervisor, 1 << 40, None, None, None, 1, probe=False)
    before = victim.snapshot()
    effects = [victim.on_message(forged, sender) for sender in (1, None)]
    unmoved = victim.snapshot() == before and not any(effects)
    victim.on_message(forged, supervisor)
    detail = "ignored from a member and from nobody, obeyed from the supervisor itself"
    return Safeguard("spoken in another's name", unmoved and victim.snapshot() != before, detail)


SAFEGUARDS: Mapping[str, Callable[[], Safeguard]] = {
    "kill -9": kill,
    "back-pressure": back_pressure,
    "published again elsewhere": published_again,
    "spoken in another's name": spoken_for,
}
