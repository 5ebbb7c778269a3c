"""Gossip membership and supertopic links: processes of one group, or of two on two levels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Effects, Node, Send
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.protocols.gossip.group import Group
from planaria.protocols.gossip.hierarchy import Hierarchy
from planaria.protocols.gossip.legitimacy import violations
from planaria.protocols.gossip.links import Links
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.messages import MESSAGES, NEIGHBOURHOOD, GossipMessage
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.gossip.sketch import exact
from planaria.protocols.gossip.state import GossipNodeState
from planaria.verify.coins import Coins
from planaria.verify.model import Constants, Flying, Model

HERE = "planaria.protocols.gossip"
ABOVE, BELOW = "a", "a/b"
DEAD = 9
ALONE_AFTER = 2  # intervals
OLD = 3  # the oldest that news may be
OLDER = 5  # that of contacts of two in a group, who pass on what is older than either just heard
SMALL: Constants = {
    "membership:AGE_MAX": OLD,
    "membership:SLOWEST": 1,
    "membership:PATIENCE": 2,
    "membership:RETRY": 2,
    "membership:RENDEZVOUS": 1e9,  # calls are made whenever they may be: no coin decides
    "sketch:SKETCH_AGE_MAX": OLD,
    "sketch:ROUND_TRIP": 1,
    "links:SLOWEST": 1,
    "links:CHECK_AGE": 1,
    "links:WIDEN_PERIOD": 1,
    "links:GAP_MAX": 1,
    "links:LACKING_SLOW": 2,
    "links:LACKING_MAX": 3,
    "links:WALKS": 1,
    "searching:SEARCH_HOPS_MAX": 2,
    "group:ALONE_AFTER": ALONE_AFTER,
    "node:ALONE_AFTER": ALONE_AFTER,
    "node:MERGE_RATE": 1.0,
}


class RestingProcess(GossipNode):
    """A process whose memberships are right, and that says nothing of its neighbourhood.

    What it would say of it names the living, whom all know. Of its group it speaks: its supertopic
    table travels with that.
    """

    __slots__ = ()

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """As any process, without the words of the neighbourhood."""
        return _of_groups(super().on_message(message, sender))

    def on_timeout(self) -> Effects:
        """As any process, without the words of the neighbourhood."""
        return _of_groups(super().on_timeout())


def _of_groups(effects: Effects) -> Effects:
    return [it for it in effects if not (isinstance(it, Send) and _around(it.message))]


def _around(message: Message) -> bool:
    return isinstance(message, GossipMessage) and message.group == NEIGHBOURHOOD


class GossipModel(Model):
    """Processes 0 to n - 1; 0 and 1 are everybody's contacts.

    `group`: all in one group; nobody, one of them or a dead one in each view, heard of just now.
    `levels`: the first half in a topic, the others in one below it; so too the supertopic tables.
    `any-group`, `any-levels`: any of them in each, heard of just now or long ago, and any sketch.
    `resting`: as `levels`, of processes that know each other; nobody, one of them or a dead one in
    each supertopic table, heard of just now or long ago. Who is in a view was heard of just now.
    """

    name = "gossip"
    messages = MESSAGES
    starts = ("group", "levels", "any-group", "any-levels", "resting")
    small = MappingProxyType({f"{HERE}.{name}": value for name, value in SMALL.items()})

    def __init__(self, n: int, start: str = "group") -> None:
        super().__init__(n, start)
        self.any = start.startswith("any")
        self.levels = start in ("levels", "any-levels", "resting")
        self.old = OLDER if start == "resting" else OLD
        contacts = tuple(range(min(n, 2)))
        self.hierarchy = Hierarchy()
        self.configuration = Configuration(self.hierarchy, contacts=contacts)

    @property
    def constants(self) -> Constants:
        """Contacts grow older where they are told of by others as well."""
        ages = ("links:LINK_AGE_MAX", "legitimacy:LINK_AGE")
        return {**self.small, **{f"{HERE}.{it}": self.old for it in ages}}

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        if self.start == "resting":
            named = "one of them or a dead one, heard of now or long ago, in each supertopic table"
            groups = "two groups, one topic below the other, at rest"
            return f"{self.n} processes of {groups}; nobody, {named}"
        views = "any of them and a dead one, heard of now or long ago, in each view"
        if not self.any:
            views = "nobody, one of them or a dead one in each view"
        groups = "two groups, one topic below the other" if self.levels else "one group"
        tables = " and supertopic table" if self.levels else ""
        sketches = "; sketches empty, right or with the dead" if self.any else "; sketches right"
        return f"{self.n} processes of {groups}; {views}{tables}{sketches}"

    def nodes(self, coins: Coins) -> list[Node]:
        """The processes."""
        made = RestingProcess if self.start == "resting" else GossipNode
        return [made(id, self.configuration, coins) for id in range(self.n)]

    def topic(self, id: NodeId) -> str:
        """What a process is interested in."""
        return BELOW if self.levels and id >= (self.n + 1) // 2 else ABOVE

    def choices(self) -> dict[NodeId, list[State]]:
        """Every choice of tables."""
        made = self._resting if self.start == "resting" else self._processes
        return {id: list(made(id)) for id in range(self.n)}

    def _processes(self, id: NodeId) -> Iterator[State]:
        topic, others = self.topic(id), [it for it in range(self.n) if it != id]
        right = exact(range(self.n))
        near = [*others, DEAD] if self.any else others
        named = [*others, DEAD]
        tables = self._tables(named) if topic == BELOW else [{}]
        sketches = [{}, right, exact([*range(self.n), DEAD])] if self.any else [right]
        for met, view, table, sketch in product(_one(near), self._tables(named), tables, sketches):
            node = GossipNode(id, self.configuration, Coins())
            node.subscribed = [topic]
            node.neighbours = Membership(id, NEIGHBOURHOOD, dict(met), sketch=dict(right))
            links = {it: (ABOVE, age) for it, age in table.items()}
            group = Membership(id, topic, dict(view), sketch=dict(sketch))
            node.groups = {topic: Group(group, Links(id, topic, links))}
            yield node.state()

    def _resting(self, id: NodeId) -> Iterator[State]:
        """Every supertopic table, where all know all."""
        topic, named = self.topic(id), [*(it for it in range(self.n) if it != id), DEAD]
        tables = [{}, *({it: age} for it in named for age in (0, self.old))]
        for table in tables if topic == BELOW else [{}]:
            node = GossipNode(id, self.configuration, Coins())
            node.subscribed = [topic]
            links = Links(id, topic, {it: (ABOVE, age) for it, age in table.items()})
            node.groups = {topic: Group(Membership(id, topic), links, ALONE_AFTER)}
            state = node.state()
            assert isinstance(state, GossipNodeState)
            self._rest(state)
            yield state

    def _rest(self, state: GossipNodeState) -> None:
        """Have a process know everybody, heard of just now."""
        groups = {topic: group.membership for topic, group in state.groups.items()}
        for topic, held in {NEIGHBOURHOOD: state.neighbours, **groups}.items():
            members = [it for it in range(self.n) if topic in (NEIGHBOURHOOD, self.topic(it))]
            held.view = dict.fromkeys((it for it in members if it != held.me), 0)
            held.sketch, held.size = exact(members), len(members)
            held.asked, held.remembered, held.denied = {}, {}, {}

    def _tables(self, named: Sequence[NodeId]) -> list[dict[NodeId, int]]:
        """Every table: of each of `named` no news, or new, or old; or new of one at most."""
        if not self.any:
            return _one(named)
        found = []
        for heard in product((None, 0, OLD), repeat=len(named)):
            ages = zip(named, heard, strict=True)
            found.append({id: age for id, age in ages if age is not None})
        return found

    def plain(self, state: State) -> State:
        """No event is under way: nothing of their memory counts."""
        assert isinstance(state, GossipNodeState)
        state.memory.age, state.parasites, state.refused = 0, 0, 0
        if self.start == "resting":
            self._rest(state)
        return state

    def forbidden(self, before: State, after: State, effects: Iterable[Effect]) -> str:
        """At rest nobody is lost from a view or a sketch, and nobody comes into one."""
        if self.start != "resting":
            return ""
        assert isinstance(before, GossipNodeState)
        assert isinstance(after, GossipNodeState)
        held = [
            [(set(it.view), set(it.sketch), it.size) for it in _memberships(state)]
            for state in (before, after)
        ]
        return "" if held[0] == held[1] else f"not at rest: {held[0]}, then {held[1]}"

    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        """As the product judges it, but that a contact about to be given up is not legitimate.

        The product waits for that instead: `GossipOverlay.calm`.
        """
        flying = [(target, message) for _, target, message in channel]
        z = Parameters().z
        found = violations(states, flying, lambda _: z, self.hierarchy.supers)
        for id, state in states.items():
            assert isinstance(state, GossipNodeState)
            for group in state.groups.values():
                old = [it for it, (_, age) in group.links.contacts.items() if age >= self.old]
                found += [Violation("links", id, f"{it} was not heard of for long") for it in old]
        return found


def _memberships(state: GossipNodeState) -> list[Membership]:
    return [state.neighbours, *(group.membership for group in state.groups.values())]


def _one(named: Sequence[NodeId]) -> list[dict[NodeId, int]]:
    """Nobody, or one of `named`, heard of just now."""
    return [{}, *({id: 0} for id in named)]
