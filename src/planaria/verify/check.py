"""One search from beginning to end: explore, judge every state, look for what must not be."""

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct

from planaria import __version__
from planaria.verify.graph import NOBODY, Graph, Part
from planaria.verify.livelock import Component, livelocks, traps
from planaria.verify.model import Model, constants
from planaria.verify.space import Schedule, Space

STATES_MAX = 2_000_000
SHOWN = 3  # counterexamples of one kind
ROOMS = ("core", "filters", "protocols", "records", "simulator", "verify")  # whose code it runs


@cache
def code_version() -> str:
    """Changes with every line that can change what a search finds."""
    digest, package = blake2b(digest_size=6), Path(__file__).parent.parent
    for path in sorted(path for room in ROOMS for path in (package / room).rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()}"


class Finding(Struct):
    """Something that must not be: of which kind, how often, and one way there.

    `stem` and `loop` are numbers of states with the actions between them; `last` is the action
    after them that raised.
    """

    kind: str
    count: int
    detail: str
    stem: list[tuple[int, int]]
    loop: list[tuple[int, int]] = []
    last: int = NOBODY


class Result(Struct):
    """What was covered, exactly, and what was found."""

    model: str
    n: int
    covered: str
    schedule: str
    constants: dict[str, Any]
    starts: int
    states: int
    expanded: int
    transitions: int
    local_steps: int
    legitimate: int
    cut: int
    thinned: bool
    findings: list[Finding]
    between: int = 0  # states in bursts, visited and not kept; then only those without messages are

    @property
    def complete(self) -> bool:
        """Was every state reached expanded, and no step left out for want of room?"""
        return self.expanded == self.states and not self.cut


class Search:
    """A model under a schedule, and the graph of its states; `part`: from some starts alone.

    After a run: which states are bad, which are stuck, the steps out of legitimate states, states
    that are never so, and sets of states that a fair run can stay in.
    """

    def __init__(self, model: Model, schedule: Schedule, part: Part | None = None) -> None:
        self.model, self.schedule, self.part = model, schedule, part
        self.graph = Graph(Space(model, schedule))
        self.bad = bytearray()
        self.stuck: list[int] = []
        self.left: list[tuple[int, int, int]] = []
        self.broken: list[tuple[int, str]] = []
        self.components: list[Component] = []

    @property
    def key(self) -> str:
        """What this search is, to know it again on disk."""
        small = ", ".join(f"{name} = {value}" for name, value in self.model.constants.items())
        what = f"{self.model.name} n={self.model.n} {self.model.start} {self.schedule} {small}"
        share = "" if self.part is None else " starts {} to {}".format(*self.part)
        return f"{what}{share} {code_version()}"

    def run(
        self,
        most: int = STATES_MAX,
        tick: Callable[[Graph], bool] = lambda _: True,
        directory: Path | None = None,
    ) -> Result:
        """Search, with the model's small constants, and say what came of it."""
        graph = self.graph
        with constants(self.model.constants):
            if directory is None or not graph.resume(directory, self.key):
                graph.begin(self.part)
            graph.explore(most, tick)
            if directory is not None:
                graph.save(directory, self.key)
            self._judge()
            findings = [*self._troubles(), *self._closure(), *self._traps(), *self._livelocks()]
        return self._result(findings)

    def violations(self, number: int) -> list[Any]:
        """What is not legitimate in a state."""
        space, state = self.graph.space, self.graph.states[number]
        return self.model.violations(space.states(state), space.channel(state))

    def _judge(self) -> None:
        """Which states are bad; the same judge for all."""
        graph = self.graph
        self.bad = bytearray(len(graph))
        for number in range(len(graph)):
            self.bad[number] = bool(self.violations(number))

    def _result(self, findings: list[Finding]) -> Result:
        graph, space, model = self.graph, self.graph.space, self.model
        return Result(
            model.name,
            model.n,
            model.covered,
            str(self.schedule),
            dict(model.constants),
            graph.starts,
            len(graph),
            graph.expanded,
            graph.transitions,
            len(space.steps),
            len(graph) - sum(self.bad),
            space.cut,
            space.coins.thinned,
            findings,
        )

    def _finding(self, kind: str, count: int, detail: str, number: int) -> Finding:
        return Finding(kind, count, detail, self.graph.path(number))

    def _troubles(self) -> list[Finding]:
        """Exceptions, and steps that no step may be."""
        graph = self.graph
        found = []
        for it in graph.troubles[:SHOWN]:
            detail = f"{action_name(graph, it.action)}: {it.detail}"
            found.append(self._finding("exception", len(graph.troubles), detail, it.state))
            found[-1].last = it.action
        wrong = self.broken
        judged = () if type(self.model).broken is Model.broken else graph.states
        for number, state in enumerate(judged):
            if detail := self.model.broken(graph.space.states(state)):
                wrong.append((number, detail))
        return found + [
            self._finding("safety", len(wrong), detail, number) for number, detail in wrong[:SHOWN]
        ]

    def _closure(self) -> list[Finding]:
        """Legitimate states that a step leaves."""
        graph, bad = self.graph, self.bad
        self.left = left = [
            (s, action, t)
            for s in range(graph.expanded)
            if not bad[s]
            for action, targets in graph.actions(s)
            for t in targets
            if bad[t]
        ]
        found = []
        for s, action, t in left[:SHOWN]:
            detail = f"{action_name(graph, action)} leads to: {self.violations(t)[0]}"
            finding = self._finding("closure", len(left), detail, s)
            finding.stem.append((action, t))
            found.append(finding)
        return found

    def _traps(self) -> list[Finding]:
        good = bytearray(not it for it in self.bad)
        self.stuck = stuck = traps(self.graph, good)
        return [
            self._finding("trap", len(stuck), f"{self.violations(number)[0]}", number)
            for number in stuck[:SHOWN]
        ]

    def _livelocks(self) -> list[Finding]:
        self.components = found = livelocks(self.graph, self.bad)
        return [self._livelock(len(found), it) for it in found[:SHOWN]]

    def _livelock(self, count: int, component: Component) -> Finding:
        entry = min(component.states)
        size = f"fair for ever among {len(component.states):,} states"
        if not component.timeouts:
            size = f"messages that never end, among {len(component.states):,} states"
        finding = self._finding("livelock", count, f"{size}: {self.violations(entry)[0]}", entry)
        finding.loop = fair_loop(self.graph, component)
        return finding


def action_name(graph: Graph, action: int) -> str:
    """An action in words."""
    space = graph.space
    if action == NOBODY:
        return "start"
    if action < space.n:
        return f"timeout of {space.nodes[action].id}"
    source, target, message = space.messages[action - space.n]
    return f"{source} -> {target}: {message}"


def fair_loop(graph: Graph, component: Component) -> list[tuple[int, int]]:
    """A way round the component and back on which everything happens that must."""
    inside = set(component.states)
    at = home = min(component.states)
    missing = {
        action
        for s in component.states
        for action, targets in graph.actions(s)
        if all(t in inside for t in targets)
    }
    loop: list[tuple[int, int]] = []
    while missing:
        way = _walk(graph, inside, at, lambda action, _: action in missing)
        for action, _ in way:
            missing.discard(action)
        loop += way
        at = loop[-1][1]
    if at != home:
        loop += _walk(graph, inside, at, lambda _, target: target == home)
    return loop


def _walk(
    graph: Graph, inside: set[int], start: int, there: Callable[[int, int], bool]
) -> list[tuple[int, int]]:
    """The shortest way inside from `start` to a step that is wanted."""
    before: dict[int, tuple[int, int]] = {}
    queue = [start]
    for s in queue:
        for action, targets in graph.actions(s):
            if not all(t in inside for t in targets):
                continue
            for t in targets:
                if there(action, t):
                    way = [(action, t)]
                    while s != start:
                        action, previous = before[s]
                        way.append((action, s))
                        s = previous
                    return way[::-1]
                if t not in before and t != start:
                    before[t] = (action, s)
                    queue.append(t)
    raise AssertionError("an end component is connected")
