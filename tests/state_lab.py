"""Whether state is a value: a node that is replaced by its bytes goes on as if nothing had been."""

from collections.abc import Collection
from copy import deepcopy

from planaria.core.node import Node, Notice
from planaria.core.overlay import Overlay
from planaria.core.state import State, decode_state, encode_state
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial
from toys import Log

FOREIGN = (b"", b"\0", b"\x01", b"\x02\xc1", b"\x01\x90", b"not a state of anything", b"\xff" * 99)


def goes_on_identically(overlay: Overlay, spec: Spec, at: Collection[int]) -> None:
    """Run a trial twice, in one of them replacing all nodes by their bytes at the intervals `at`.

    Messages, commands, effects and states must be the same from then on, for `spec.closure`
    intervals after the last replacement, faults of `spec` included.
    """
    left_alone, replaced = (Lockstep(deepcopy(overlay), spec) for _ in range(2))
    for interval in range(max(at) + spec.closure + 1):
        if interval in at:
            replaced.through_bytes()
            replaced.differs_nowhere_from(left_alone, interval)
        for run in (left_alone, replaced):
            run.interval()
        replaced.differs_nowhere_from(left_alone, interval)


def starts_fresh(overlay: Overlay, spec: Spec) -> None:
    """Restore each node of the start from cut and foreign bytes: as made, with a notice."""
    trial = Trial(deepcopy(overlay), spec)
    for node in trial.simulator.nodes.values():
        whole = node.snapshot()
        for data in [*FOREIGN, whole[:-1], whole[: len(whole) // 2], b"\x03" + whole[1:]]:
            fresh = spawn_like(trial, node)
            before = fresh.snapshot()
            (notice,) = fresh.restore(data)
            assert isinstance(notice, Notice)
            assert notice.kind == "fresh"
            assert fresh.snapshot() == before


def spawn_like(trial: Trial, node: Node) -> Node:
    """A new node in the place of `node`; the random stream of the run does not notice."""
    rng = trial.simulator.rng
    before = rng.getstate()
    fresh = trial.overlay.spawn(node.id, rng)
    rng.setstate(before)
    return fresh


class Lockstep:
    """A trial that is run interval by interval and compared with another."""

    def __init__(self, overlay: Overlay, spec: Spec) -> None:
        self.log = Log()
        self.trial = Trial(overlay, spec, [self.log])

    def interval(self) -> None:
        """Let one interval pass, with what the schedule has for it."""
        simulator, nemesis = self.trial.simulator, self.trial.nemesis
        end = simulator.tick + INTERVAL
        while (due := nemesis.next_tick) is not None and due <= end:
            simulator.run(max(0, due - simulator.tick))
            nemesis.advance()
        simulator.run(end - simulator.tick)

    def through_bytes(self) -> None:
        """Put a fresh node in the place of each, with the old one's state as bytes."""
        nodes = self.trial.simulator.nodes
        for id, node in list(nodes.items()):
            kind = type(node.state())
            assert kind is not State, f"{type(node).__name__} names no state"
            fresh = spawn_like(self.trial, node)
            assert list(fresh.restore(node.snapshot())) == []
            # Whoever is restored may number in another incarnation; the state itself goes on.
            fresh.load(decode_state(kind, node.snapshot()))
            nodes[id] = fresh

    def differs_nowhere_from(self, other: "Lockstep", interval: int) -> None:
        """Compare what happened since last time, and all states."""
        rows, theirs = self.log.plain(), other.log.plain()
        for mine, its in zip(rows, theirs, strict=False):
            assert mine == its, f"interval {interval}: after the bytes {mine}, without {its}"
        assert len(rows) == len(theirs), f"interval {interval}: {len(rows)} events, {len(theirs)}"
        self.log.rows.clear()
        other.log.rows.clear()
        states, others = self.trial.simulator.states(), other.trial.simulator.states()
        assert states.keys() == others.keys()
        for id, state in states.items():
            same = state == others[id] or encode_state(state) == encode_state(others[id])  # NaN
            assert same, f"interval {interval}, node {id}: {_difference(state, others[id])}"
        assert self.trial.simulator.rng.getstate() == other.trial.simulator.rng.getstate()


def _difference(state: State, other: State) -> str:
    """The first variable that is not the same."""
    for name in state.__struct_fields__:
        mine, its = getattr(state, name), getattr(other, name)
        if mine != its:
            if isinstance(mine, State) and type(mine) is type(its):
                return f"{name}.{_difference(mine, its)}"
            return f"{name} is {mine!r} after the bytes, {its!r} without"
    return "nothing"
