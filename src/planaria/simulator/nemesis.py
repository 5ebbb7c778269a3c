"""Carries out fault schedules and keeps the books: what was injected, and what it affected.

A fault that affected nothing did not test anything; `ineffective` names it.
"""

from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from planaria.core.chance import stream
from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Node, Restarted
from planaria.core.overlay import Overlay
from planaria.core.scenario import ANYBODY
from planaria.core.workload import Ask, ask_of
from planaria.simulator.applications import put
from planaria.simulator.damage import damage, slots_of, values_of
from planaria.simulator.delays import INTERVAL
from planaria.simulator.doors import PowerCut
from planaria.simulator.engine import ENVIRONMENT, Entry, Simulator
from planaria.simulator.links import (
    Duplication,
    FullLinks,
    Loss,
    Partition,
    Reordering,
    Rule,
    SlowNodes,
)
from planaria.simulator.schedule import LIVE, Action, Schedule, parse_schedule

REMEMBERED_MAX = 1000  # messages kept for `replay`: enough to be stale, few enough to be free


class Injection(Struct):
    """One action of a schedule, once carried out; `refused` counts what nodes said no to."""

    action: str
    tick: int
    injected: int = 0
    affected: int = 0
    refused: int = 0

    @property
    def kind(self) -> str:
        """What kind of action it was."""
        return parse_schedule(self.action)[0].kind


class Memory:
    """Remembers recent messages so that `replay` can send them again, much later."""

    kinds = ("deliver",)

    def __init__(self) -> None:
        self.messages: deque[tuple[NodeId, Message]] = deque(maxlen=REMEMBERED_MAX)

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Keep what is delivered."""
        if entry.message is not None:
            self.messages.append((entry.target, entry.message))


class Nemesis:
    """Applies a schedule to a simulator at the right ticks; `advance` is called tick by tick."""

    def __init__(self, simulator: Simulator, overlay: Overlay, schedule: Schedule) -> None:
        live = next((action.kind for action in schedule if action.kind in LIVE), None)
        if live is not None:
            raise UsageError(f"{live!r} needs a running network: planaria chaos")
        self.simulator = simulator
        self.overlay = overlay
        self.report: list[Injection] = []
        self.departed: dict[NodeId, bytes] = {}
        self._rng = stream(simulator.seed, "fault")
        self._repeated: Counter[str] = Counter()
        self._pending = deque(sorted(schedule, key=lambda action: action.at))
        self._ending: list[tuple[int, Callable[[], None]]] = []
        self._stale: dict[NodeId, bytes] = {}
        self._first: dict[NodeId, dict[str, str]] = {}
        self._memory = Memory()
        self._published = 0
        self._next_id = max(simulator.nodes, default=-1) + 1
        if any(action.kind == "replay" for action in schedule):
            simulator.watch(self._memory)
        if any(action.kind == "damage" for action in schedule):
            nodes = simulator.nodes
            self._first = {id: values_of(slots_of(overlay, nodes[id])) for id in nodes}
        if any(action.kind == "powercut" for action in schedule):
            simulator.persisted = {}
        if any(action["state"] == "stale" for action in schedule if action.kind == "restart"):
            self._stale = {id: node.snapshot() for id, node in simulator.nodes.items()}

    @property
    def next_tick(self) -> int | None:
        """When there is something to do again; None when the schedule is over."""
        ticks = [tick for tick, _ in self._ending]
        if self._pending:
            ticks.append(_ticks(self._pending[0].at))
        return min(ticks, default=None)

    def advance(self) -> None:
        """Carry out what is due at the simulator's present tick."""
        now = self.simulator.tick
        for due in [end for end in self._ending if end[0] <= now]:
            self._ending.remove(due)
            due[1]()
        while self._pending and _ticks(self._pending[0].at) <= now:
            action = self._pending.popleft()
            injection = Injection(str(action), now)
            self.report.append(injection)
            # A stream for each action: a schedule with one action less leaves the others as they
            # were, which is what makes shrinking work.
            repetition = self._repeated[injection.action]
            self._repeated[injection.action] += 1
            self._rng = stream(self.simulator.seed, "fault", injection.action, repetition)
            self.simulator.note("fault", ENVIRONMENT, injection.action)
            getattr(self, f"_{action.kind}")(action, injection)

    def ineffective(self) -> list[str]:
        """The actions carried out that changed nothing: a test that relies on them is void."""
        return [injection.action for injection in self.report if not injection.affected]

    # Links

    def _rule(self, action: Action, injection: Injection, rule: Rule) -> None:
        self.simulator.rules.append(rule)
        injection.injected += 1

        def end() -> None:
            self.simulator.rules.remove(rule)
            injection.affected += rule.affected

        self._until(action, end)

    def _partition(self, action: Action, injection: Injection) -> None:
        groups: list[list[NodeId]] = [[] for _ in range(int(action.number("groups")))]
        members = sorted(self.simulator.nodes)
        self._rng.shuffle(members)
        for number, id in enumerate(members):
            groups[number % len(groups)].append(id)
        self._rule(action, injection, Partition(groups, one_way=bool(action["one_way"])))

    def _loss(self, action: Action, injection: Injection) -> None:
        self._rule(action, injection, Loss(action.number("rate"), self._rng))

    def _duplicate(self, action: Action, injection: Injection) -> None:
        self._rule(action, injection, Duplication(action.number("rate"), self._rng))

    def _reorder(self, action: Action, injection: Injection) -> None:
        ticks = max(2, _ticks(action.number("intervals")))
        self._rule(action, injection, Reordering(action.number("rate"), self._rng, ticks))

    def _slow(self, action: Action, injection: Injection) -> None:
        victims, factor = self._choose(action), action.number("factor")
        for id in victims:
            self.simulator.slowness[id] = factor
        self._rule(action, injection, SlowNodes(victims, factor))
        self._until(action, lambda: self._forget(self.simulator.slowness, victims))

    def _busy(self, action: Action, injection: Injection) -> None:
        rule = FullLinks(self._choose(action), self.simulator)
        self._rule(action, injection, rule)
        self._until(action, rule.end)

    # Nodes

    def _pause(self, action: Action, injection: Injection) -> None:
        victims = self._choose(action)
        injection.injected = len(victims)
        for id in victims:
            self.simulator.pause(id)

        def end() -> None:
            injection.affected += sum(self.simulator.resume(id) for id in victims)

        self._until(action, end)

    def _skew(self, action: Action, injection: Injection) -> None:
        victims = self._choose(action)
        for id in victims:
            self.simulator.clock_skew[id] = int(action.number("seconds"))
        injection.injected = len(victims)
        injection.affected = sum(self.simulator.nodes[id].reads_clock for id in victims)
        self._until(action, lambda: self._forget(self.simulator.clock_skew, victims))

    def _crash(self, action: Action, injection: Injection) -> None:
        for id in self._choose(action, self.overlay.may_crash):
            node = self.simulator.remove(id)
            self.departed[id] = node.snapshot()
            injection.injected += 1
            injection.affected += 1

    def _restart(self, action: Action, injection: Injection) -> None:
        """A process comes back under its own id, before anybody noticed that it was away."""
        for id in self._choose(action, self.overlay.may_crash):
            last = self.simulator.nodes[id].snapshot()
            state = {"kept": last, "stale": self._stale.get(id, last), "none": None}
            self._revive(id, str(action["state"]), state[str(action["state"])])
            injection.injected += 1
            # With its state kept a restart changes no variable, only the phase of its timeouts.
            changed = self.simulator.nodes[id].snapshot() != last
            injection.affected += action["state"] == "kept" or changed

    def _powercut(self, action: Action, injection: Injection) -> None:
        """The next time that a victim persists, it comes back with what was on disk just before,
        or just after; what it was about to send or deliver is lost."""
        victims = self._choose(action, self.overlay.may_crash)
        disk = self.simulator.persisted
        assert disk is not None  # a schedule with power cuts keeps it

        def cut(id: NodeId) -> None:
            injection.affected += 1
            self._revive(id, "persisted", disk.get(id))

        for id in victims:
            happen = partial(cut, id)
            self.simulator.power_cuts[id] = PowerCut(action["moment"] == "after", happen)
            injection.injected += 1
        self._until(action, lambda: self._forget(self.simulator.power_cuts, victims))

    def _revive(self, id: NodeId, how: str, state: bytes | None) -> None:
        self.simulator.remove(id)
        node = self.overlay.spawn(id, self.simulator.rng)
        self.simulator.note("restart", id, how)
        self.simulator.add(node)
        if state is not None:
            self.simulator.perform(id, node.restore(state))
            self.simulator.command(id, Restarted())

    def _join(self, action: Action, injection: Injection) -> None:
        for _ in range(int(action.number("count"))):
            self.simulator.add(self.overlay.spawn(self._next_id, self.simulator.rng))
            self._next_id += 1
            injection.injected += 1
            injection.affected += 1

    # Applications

    def _leave(self, action: Action, injection: Injection) -> None:
        for id in self._choose(action, lambda node: self.overlay.leave(node) is not None):
            node = self.simulator.nodes[id]
            command, before = self.overlay.leave(node), node.snapshot()
            assert command is not None
            self.simulator.command(id, command)
            injection.injected += 1
            injection.affected += node.snapshot() != before

    def _subscribe(self, action: Action, injection: Injection) -> None:
        self._ask(ask_of(action), injection)

    def _unsubscribe(self, action: Action, injection: Injection) -> None:
        self._ask(ask_of(action), injection)

    def _publish(self, action: Action, injection: Injection) -> None:
        ask = ask_of(action)
        for _ in range(ask.count):
            self._ask(ask, injection)
            self._published += 1

    def _ask(self, ask: Ask, injection: Injection) -> None:
        """Ask the node that is named, or others until one can."""
        done = put(self.simulator, ask, self.overlay, self._rng, self._published)
        injection.injected += done is not None
        injection.affected += done is True
        injection.refused += done is not True

    # State and channels

    def _corrupt(self, action: Action, injection: Injection) -> None:
        ids = sorted({*self.simulator.nodes, *self.departed})
        for id in self._choose(action):
            node = self.simulator.nodes[id]
            before = node.snapshot()
            self.overlay.corrupt(node, ids, self._rng)
            self.simulator.note("fault", id, action.kind)
            injection.injected += 1
            injection.affected += node.snapshot() != before

    def _damage(self, action: Action, injection: Injection) -> None:
        ids = sorted({*self.simulator.nodes, *self.departed})
        for id in self._choose(action):
            node, before = self.simulator.nodes[id], self._first.get(id, {})
            hit = damage(self.overlay, node, ids, self._rng, before)
            self.simulator.note("fault", id, " ".join([action.kind, *hit]))
            injection.injected += 1
            injection.affected += bool(hit)

    def _forge(self, action: Action, injection: Injection) -> None:
        ids = sorted({*self.simulator.nodes, *self.departed})
        for _ in range(int(action.number("count"))):
            target, message = self.overlay.forge(ids, self._rng)
            self._inject(injection, target, message)

    def _replay(self, action: Action, injection: Injection) -> None:
        past = list(self._memory.messages)
        if past:
            for _ in range(int(action.number("count"))):
                self._inject(injection, *self._rng.choice(past))

    def _scramble(self, action: Action, injection: Injection) -> None:
        """Messages in flight are lost, doubled, misdirected or replaced by others."""
        ids, share = sorted(self.simulator.nodes), action.number("share")

        def change(entry: Entry) -> list[Entry]:
            injection.injected += 1
            if self._rng.random() >= share:
                return [entry]
            target, message = self.overlay.forge(ids, self._rng)
            sender = self.overlay.link_of(message, ids, self._rng)
            source = ENVIRONMENT if sender is None else sender
            forged = Entry(target, message, source, entry.number, entry.cause)
            lost: list[Entry] = []
            return self._rng.choice([lost, [entry, entry], [forged], [entry, forged]])

        injection.affected = self.simulator.rewrite_channel(change)

    # Helpers

    def _inject(self, injection: Injection, target: NodeId, message: Message) -> None:
        delay = 1 + int(self._rng.random() * INTERVAL)
        sender = self.overlay.link_of(message, list(self.simulator.nodes), self._rng)
        self.simulator.inject(target, message, delay, sender)
        injection.injected += 1
        injection.affected += target in self.simulator.nodes

    def _choose(
        self, action: Action, eligible: Callable[[Node], bool] = lambda _: True
    ) -> list[NodeId]:
        """The victims: `count` of them, or the `share` of all that may be chosen, at least one.

        Or the one that is named, if it is there and may be chosen.
        """
        nodes = self.simulator.nodes
        candidates = [id for id in sorted(nodes) if eligible(nodes[id])]
        if action.arguments.get("node", ANYBODY) != ANYBODY:
            return [id for id in candidates if id == action["node"]]
        count = int(action.number("count"))
        if not count:
            count = max(1, round(action.number("share") * len(candidates)))
        return sorted(self._rng.sample(candidates, min(count, len(candidates))))

    def _until(self, action: Action, end: Callable[[], None]) -> None:
        self._ending.append((self.simulator.tick + max(1, _ticks(action.duration)), end))

    @staticmethod
    def _forget(table: dict[NodeId, Any], ids: list[NodeId]) -> None:
        for id in ids:
            table.pop(id, None)


def _ticks(intervals: float) -> int:
    return round(intervals * INTERVAL)
