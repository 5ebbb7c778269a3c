"""One end of an acknowledged link: what waits, what is on its way, what the other end has done.

No socket in here: bytes come in, bytes go out. Control frames go before bulk frames and have a
window of their own, so that a full stream of publications never delays upkeep. Nothing is queued
beyond a window: who is behind is told so and catches up by itself later.
"""

from collections import deque
from struct import Struct as Layout

from planaria.core.message import Message
from planaria.network.frames import HEAD, Kind, frame

CONTROL_BYTES_MAX = 1 << 18  # not yet acknowledged
BULK_BYTES_MAX = 1 << 22  # two answers of anti-entropy: one on its way, one not yet on disk
BULK_BYTES_WRITTEN = 1 << 17  # at a time: control frames wait behind no more than that
OWED_BYTES_MAX = 1 << 18  # processed and not acknowledged; then the other end is told at once
CONTROL_WEIGHT = 4  # of a byte of control in what is owed: so its window is never full for that
ACKNOWLEDGED = Layout(">QQ")  # control and bulk frames processed since the connection began


class Window:
    """The frames of one kind that are not yet acknowledged, oldest first; `bytes_max` in all."""

    __slots__ = ("acknowledged", "bytes", "bytes_max", "kind", "sent", "waiting")

    def __init__(self, kind: Kind, bytes_max: int) -> None:
        self.kind, self.bytes_max = kind, bytes_max
        self.bytes = 0
        self.acknowledged = 0  # frames
        self.waiting: deque[tuple[bytes, Message]] = deque()  # not yet handed to the socket
        self.sent: deque[tuple[int, Message]] = deque()  # size and content

    def offer(self, data: bytes, message: Message) -> bool:
        """Take a message to send; False, and nothing taken, if the window is full.

        A window that is empty takes any one message, however large.
        """
        if self.bytes and self.bytes + len(data) > self.bytes_max:
            return False
        self.bytes += len(data)
        self.waiting.append((data, message))
        return True

    def take(self, bytes_max: int) -> list[bytes]:
        """Heads and bodies of frames for the socket: what waits, until it is so much."""
        frames: list[bytes] = []
        size, waiting = 0, self.waiting
        while waiting and size < bytes_max:
            data, message = waiting.popleft()
            length = len(data)
            self.sent.append((length, message))
            frames += (HEAD.pack(length + 1, self.kind), data)
            size += length
        return frames

    def acknowledge(self, count: int) -> bool:
        """The other end has processed `count` frames in all; False if that cannot be."""
        if not self.acknowledged <= count <= self.acknowledged + len(self.sent):
            return False
        for _ in range(count - self.acknowledged):
            self.bytes -= self.sent.popleft()[0]
        self.acknowledged = count
        return True

    def unacknowledged(self) -> list[Message]:
        """What may not have arrived, in the order of sending."""
        return [message for _, message in (*self.sent, *self.waiting)]


class Task:
    """A frame that is being processed."""

    __slots__ = ("bulk", "done", "size")

    def __init__(self, bulk: bool, size: int) -> None:
        self.bulk, self.size, self.done = bulk, size, False


class Link:
    """Both windows of one connection, and the counts of what came in over it."""

    __slots__ = ("_acknowledged", "_open", "bulk", "busy", "control", "owed", "processed")

    def __init__(
        self, control_bytes_max: int = CONTROL_BYTES_MAX, bulk_bytes_max: int = BULK_BYTES_MAX
    ) -> None:
        self.control = Window(Kind.CONTROL, control_bytes_max)
        self.bulk = Window(Kind.BULK, bulk_bytes_max)
        self.busy = False  # was a message refused since the window last was half empty?
        self.processed = [0, 0]  # control, bulk
        self.owed = 0  # bytes processed and not yet acknowledged, those of control weighed
        self._acknowledged = [0, 0]
        self._open: tuple[deque[Task], deque[Task]] = (deque(), deque())

    def offer(self, data: bytes, message: Message, *, bulk: bool) -> bool:
        """Send a message when the socket takes it; False if its window is full."""
        taken = (self.bulk if bulk else self.control).offer(data, message)
        self.busy = self.busy or not taken
        return taken

    def begin(self, kind: int, size: int) -> "Task":
        """A frame came in and is being processed; tell `finish` when that is done."""
        task = Task(kind == Kind.BULK, size)
        self._open[task.bulk].append(task)
        return task

    def finish(self, task: "Task") -> None:
        """It is processed, and committed where that was asked. Counted in the order of arrival."""
        task.done = True
        bulk = task.bulk
        waiting, weight = self._open[bulk], 1 if bulk else CONTROL_WEIGHT
        while waiting and waiting[0].done:
            self.owed += waiting.popleft().size * weight
            self.processed[bulk] += 1

    def on_acknowledge(self, body: bytes) -> bool:
        """The other end says how far it is; False if it cannot be so far: hang up."""
        if len(body) != ACKNOWLEDGED.size:
            return False
        control, bulk = ACKNOWLEDGED.unpack(body)
        return self.control.acknowledge(control) and self.bulk.acknowledge(bulk)

    @property
    def drained(self) -> bool:
        """Was it busy, and has it room again? Asked once, it is no longer busy."""
        free = all(2 * window.bytes <= window.bytes_max for window in (self.control, self.bulk))
        if not self.busy or not free:
            return False
        self.busy = False
        return True

    def take(self) -> bytes:
        """What to write now: acknowledgements, then control, then some bulk."""
        frames = []
        if self.processed != self._acknowledged:
            self._acknowledged, self.owed = list(self.processed), 0
            frames.append(frame(Kind.ACKNOWLEDGE, ACKNOWLEDGED.pack(*self.processed)))
        if self.control.waiting:
            frames += self.control.take(CONTROL_BYTES_MAX)
        if self.bulk.waiting:
            frames += self.bulk.take(BULK_BYTES_WRITTEN)
        return b"".join(frames)

    def unacknowledged(self) -> tuple[Message, ...]:
        """What may not have arrived, upkeep first."""
        return (*self.control.unacknowledged(), *self.bulk.unacknowledged())
