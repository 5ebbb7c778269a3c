"""The acknowledged link against a naive twin: bounded, in order, and honest about what is open."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from planaria.core.message import Message
from planaria.network.frames import Kind, Reader
from planaria.network.link import ACKNOWLEDGED, BULK_BYTES_MAX, Link, Task
from planaria.protocols.publications.push import PUSH_BYTES_MAX, PUSH_FRAMES_MAX


class Said(Message, frozen=True, tag="network-test.said"):
    number: int


class TwoEnds(RuleBasedStateMachine):
    """One end sends, the other processes in any order of completion; frames are never lost."""

    def __init__(self) -> None:
        super().__init__()
        self.near = Link(control_bytes_max=100, bulk_bytes_max=300)
        self.far = Link()
        self.reader, self.wire = Reader(), b""
        self.number = 0
        self.open: dict[bool, list[tuple[Said, int]]] = {False: [], True: []}  # the naive twin
        self.tasks: list[Task] = []
        self.taken: dict[bool, list[int]] = {False: [], True: []}
        self.arrived: dict[bool, list[int]] = {False: [], True: []}

    @rule(size=st.integers(1, 250), bulk=st.booleans())
    def offer(self, size: int, bulk: bool) -> None:
        said = Said(self.number)
        limit = 300 if bulk else 100
        held = sum(it for _, it in self.open[bulk])
        fits = not held or held + size <= limit
        data = bytes([self.number % 256]) * size
        assert self.near.offer(data, said, bulk=bulk) == fits
        if fits:
            self.open[bulk].append((said, size))
            self.taken[bulk].append(self.number % 256)
            self.number += 1

    @rule()
    def write(self) -> None:
        self.wire += self.near.take()

    @precondition(lambda self: self.wire)
    @rule(part=st.floats(0.1, 1))
    def deliver(self, part: float) -> None:
        size = max(1, int(len(self.wire) * part))
        data, self.wire = self.wire[:size], self.wire[size:]
        for kind, body in self.reader.feed(data):
            self.arrived[kind == Kind.BULK].append(body[0])
            self.tasks.append(self.far.begin(kind, len(body)))

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.tasks) - 1))
        self.far.finish(self.tasks.pop(at))

    @rule()
    def acknowledge(self) -> None:
        for kind, body in Reader().feed(self.far.take()):
            assert kind == Kind.ACKNOWLEDGE
            assert self.near.on_acknowledge(body)
            for bulk in (False, True):
                done = self.far.processed[bulk]
                total = len(self.taken[bulk])
                keep = total - done
                self.open[bulk] = self.open[bulk][len(self.open[bulk]) - keep :] if keep else []

    @invariant()
    def what_is_open_is_known(self) -> None:
        expected = [said for bulk in (False, True) for said, _ in self.open[bulk]]
        assert list(self.near.unacknowledged()) == expected

    @invariant()
    def nothing_is_reordered_or_invented(self) -> None:
        for bulk in (False, True):
            assert self.arrived[bulk] == self.taken[bulk][: len(self.arrived[bulk])]


TestTwoEnds = TwoEnds.TestCase
TestTwoEnds.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_control_goes_before_bulk() -> None:
    link = Link()
    assert link.offer(b"bulk", Said(1), bulk=True)
    assert link.offer(b"upkeep", Said(2), bulk=False)
    kinds = [kind for kind, _ in Reader().feed(link.take())]
    assert kinds == [Kind.CONTROL, Kind.BULK]


def test_a_full_bulk_window_leaves_room_for_control() -> None:
    link = Link()
    while link.offer(bytes(1 << 18), Said(0), bulk=True):
        pass
    assert link.bulk.bytes <= BULK_BYTES_MAX
    assert link.offer(b"upkeep", Said(1), bulk=False)


def test_a_bulk_window_holds_two_answers_of_anti_entropy() -> None:
    """The next is asked for when the one before it has come, and that may not be on disk yet."""
    link = Link()
    frame = bytes(PUSH_BYTES_MAX + 1024)  # with what stands around its records
    for _ in range(2 * PUSH_FRAMES_MAX):
        assert link.offer(frame, Said(0), bulk=True)


def test_acknowledging_what_was_never_sent_is_noticed() -> None:
    link = Link()
    link.offer(b"one", Said(1), bulk=True)
    assert not link.on_acknowledge(ACKNOWLEDGED.pack(0, 1)), "it still waits for the socket"
    link.take()
    assert not link.on_acknowledge(ACKNOWLEDGED.pack(0, 2))
    assert not link.on_acknowledge(b"short")
    assert link.on_acknowledge(ACKNOWLEDGED.pack(0, 1))
    assert not link.on_acknowledge(ACKNOWLEDGED.pack(0, 0)), "counts never go back"


def test_a_busy_link_says_once_that_it_has_room_again() -> None:
    link = Link(bulk_bytes_max=10)
    assert link.offer(bytes(8), Said(1), bulk=True)
    assert not link.drained
    assert not link.offer(bytes(8), Said(2), bulk=True)
    assert not link.drained, "it is still full"
    link.take()
    assert link.on_acknowledge(ACKNOWLEDGED.pack(0, 1))
    assert link.drained
    assert not link.drained


def test_a_frame_that_waits_holds_up_the_count_of_those_behind_it() -> None:
    link = Link()
    first, second = link.begin(Kind.BULK, 1), link.begin(Kind.BULK, 1)
    link.finish(second)
    assert link.take() == b""
    link.finish(first)
    ((_, body),) = Reader().feed(link.take())
    assert ACKNOWLEDGED.unpack(body) == (0, 2)
