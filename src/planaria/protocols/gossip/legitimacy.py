"""Which promise of the gossip overlay fails, where. Judges by plain sets, shares no protocol code.

The reference is the application's wish alone: who is alive and interested in what. Legitimate:

- groups: a process is in exactly the groups of its interests;
- views: name live members of the same group, and the group's graph of views is strongly connected,
  so that an event can get from everyone to everyone;
- links: name live processes in the nearest supertopics in which anybody is interested, at least one
  in each, with ages that a table may hold;
- size: the estimate is right within the error of a sketch, is again when the process next looks at
  its sketch, and would be if all that is known or on its way in the group came together in one
  place: what is false lives on in the sketches of others;
- neighbourhood: all processes are strongly connected, so that searches can find anyone, and know
  how many they are, so that they stay so;
- channel: no message in flight names a process that is dead or not in the group it names, or denies
  one that is;
- events: whoever sent one on remembers it, and none came further than there are processes: each
  sends it on once, so it goes in circles.

A process may have given up waiting for an answer that is on its way: only an overlay that was
legitimate for longer than any wait (`GossipOverlay.calm`) stays so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.overlay import Channel, Violation
from planaria.core.state import State
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.messages import (
    NEIGHBOURHOOD,
    Event,
    Found,
    Gone,
    Search,
    Shuffle,
    Subscription,
    Superprocesses,
    Unsubscription,
)
from planaria.protocols.gossip.sketch import rank
from planaria.protocols.gossip.state import GossipNodeState

COUNTED = 128  # members up to which a sketch counts; the dead among them are not yet forgotten
SIZE_FACTOR_COUNTED = 1.5
SIZE_FACTOR = 1.75  # beyond: more than five standard deviations of a sketch of 128
LINK_AGE = 24  # a contact that is older is dropped at once
HASHES = 1 << 63  # a sketch's hashes are uniform below

Supers = Callable[[str], Iterable[str]]
Contacts = Callable[[str], int]


def violations(
    states: Mapping[NodeId, State], channel: Channel, contacts_max: Contacts, supers: Supers
) -> list[Violation]:
    """Every invariant that fails.

    `supers` gives a topic's direct supertopics, `contacts_max` how many contacts in each it may
    have.
    """
    processes = {id: it for id, it in sorted(states.items()) if isinstance(it, GossipNodeState)}
    reference = Reference(processes, contacts_max, supers)
    found: list[Violation] = []
    for id, process in processes.items():
        found += reference.process(id, process)
    for topic in sorted(reference.members):
        found += reference.connected(topic, f"group {topic!r}")
    found += reference.connected(NEIGHBOURHOOD, "neighbourhood")
    for target, message in channel:
        if target in processes:
            found += reference.message(target, message)
            reference.hear(message)
    found += reference.sketched()
    return found


class Reference:
    """Who is in which group, from the wishes of the live processes."""

    def __init__(
        self, processes: Mapping[NodeId, GossipNodeState], contacts_max: Contacts, supers: Supers
    ) -> None:
        self.contacts_max, self.supers = contacts_max, supers
        self.processes = processes
        self.wishes: dict[NodeId, list[str]] = {}
        self.members: dict[str, list[NodeId]] = {}
        for id, process in processes.items():
            subscribed = process.subscribed
            due = [
                topic
                for topic in subscribed
                if not any(other in self.above(topic) for other in subscribed)
            ]
            self.wishes[id] = list(dict.fromkeys([*due, *process.publishing]))
            for topic in self.wishes[id]:
                self.members.setdefault(topic, []).append(id)

        self.sets = {topic: frozenset(ids) for topic, ids in self.members.items()}
        self.sets[NEIGHBOURHOOD] = frozenset(processes)
        self.hashes: dict[str, set[int]] = {topic: set() for topic in self.sets}

    def above(self, topic: str) -> list[str]:
        """All supertopics of `topic`."""
        found: list[str] = []
        pending = list(self.supers(topic))
        while pending:
            each = pending.pop()
            if each not in found:
                found.append(each)
                pending += self.supers(each)
        return found

    def nearest(self, topic: str, me: NodeId) -> list[str]:
        """The supertopics in which somebody else is interested and that include no other such."""
        occupied = [
            above
            for above in self.above(topic)
            if [it for it in self.members.get(above, []) if it != me]
        ]
        return [it for it in occupied if not any(it in self.above(other) for other in occupied)]

    def is_member(self, id: NodeId, topic: str) -> bool:
        """Is `id` alive and in the group of `topic`?"""
        return id in self.sets.get(topic, frozenset())

    def process(self, id: NodeId, process: GossipNodeState) -> Iterator[Violation]:
        """What is wrong with the tables of one process."""
        if sorted(process.groups) != sorted(self.wishes[id]):
            yield Violation("groups", id, f"in {list(process.groups)}, wants {self.wishes[id]}")
            return
        yield from self.membership(id, NEIGHBOURHOOD, process.neighbours)
        for topic, group in process.groups.items():
            yield from self.membership(id, topic, group.membership)
            yield from self.links(id, topic, group.links.contacts)

    def membership(self, id: NodeId, topic: str, held: Membership) -> Iterator[Violation]:
        """What is wrong with one view and sketch."""
        size = len(self.sets[topic])
        sketched = {*held.sketch, rank(id)}  # whatever it holds, it counts itself at its timeout
        self.hashes[topic].update(sketched)
        yield from self.view(id, topic, held.view, size)
        factor = _factor(size)
        for estimate in dict.fromkeys([held.size, _estimate(held.sketch), _estimate(sketched)]):
            if not size / factor <= estimate <= size * factor:
                detail = f"{topic!r} has {size} members, estimated {estimate}"
                yield Violation("size", id, detail)

    def view(
        self, id: NodeId, topic: str, view: Mapping[NodeId, int], size: int
    ) -> Iterator[Violation]:
        """What is wrong with one view."""
        members = self.sets.get(topic, frozenset())
        if id not in view and view.keys() <= members and (view or size == 1):
            return
        for other in view:
            if other == id or other not in members:
                yield Violation("view", id, f"{other} is not another live member of {topic!r}")
        if size > 1 and not view:
            yield Violation("view", id, f"knows nobody of the {size} in {topic!r}")

    def links(
        self, id: NodeId, topic: str, contacts: Mapping[NodeId, tuple[str, int]]
    ) -> Iterator[Violation]:
        """What is wrong with one supertopic table."""
        due = self.nearest(topic, id)
        held: dict[str, int] = {}
        for other, (above, age) in contacts.items():
            held[above] = held.get(above, 0) + 1
            if not 0 <= age <= LINK_AGE:
                yield Violation("links", id, f"{other} in {above!r} is {age} intervals old")
            elif above not in due:
                yield Violation("links", id, f"{topic!r} to {above!r}, nearest are {due}")
            elif other == id or not self.is_member(other, above):
                yield Violation("links", id, f"{other} is not a live member of {above!r}")
        z = self.contacts_max(topic)
        for above in due:
            if not 1 <= held.get(above, 0) <= z:
                detail = f"{topic!r} has {held.get(above, 0)} of {z} contacts in {above!r}"
                yield Violation("links", id, detail)

    def known(self, id: NodeId, topic: str) -> Mapping[NodeId, int]:
        """The view of `id` in a group; empty if it has none."""
        process = self.processes[id]
        if topic == NEIGHBOURHOOD:
            return process.neighbours.view
        return process.groups[topic].membership.view if topic in process.groups else {}

    def connected(self, topic: str, name: str) -> Iterator[Violation]:
        """Can everyone in the group reach everyone over views?"""
        members = list(self.processes) if topic == NEIGHBOURHOOD else self.members[topic]
        if not members:
            return
        forward: dict[NodeId, list[NodeId]] = {}
        backward: dict[NodeId, list[NodeId]] = {id: [] for id in members}
        for id in members:
            forward[id] = [other for other in self.known(id, topic) if other in backward]
            for other in forward[id]:
                backward[other].append(id)
        for graph, verb in ((forward, "reaches"), (backward, "is reached by")):
            reached = _reachable(graph, members[0])
            if len(reached) < len(members):
                detail = f"{verb} {len(reached)} of the {len(members)} in {name}"
                yield Violation("connected", members[0], detail)

    def message(self, target: NodeId, message: Message) -> Iterator[Violation]:
        """What is false in a message in flight."""
        for id, topic in _claims(message):
            if not self.is_member(id, topic):
                detail = f"{type(message).__name__} names {id}, not in {topic!r}"
                yield Violation("channel", target, detail)
        denial = message if isinstance(message, Gone | Unsubscription) else None
        if denial and self.is_member(denial.subject, denial.group):
            detail = f"{type(message).__name__} denies {denial.subject}, in {denial.group!r}"
            yield Violation("channel", target, detail)
        if isinstance(message, Event):
            yield from self.event(target, message)

    def event(self, target: NodeId, event: Event) -> Iterator[Violation]:
        """What is wrong with an event in flight."""
        if event.hops > len(self.processes):
            detail = f"{event.msg_id.hex()[:8]} was sent on {event.hops} times, in circles"
            yield Violation("events", target, detail)
        sender = self.processes.get(event.sender)
        had = sender is None or any(event.msg_id in it for it in sender.memory.generations)
        if not had:
            detail = f"{event.msg_id.hex()[:8]}: {event.sender}, who sent it, does not remember it"
            yield Violation("events", target, detail)

    def hear(self, message: Message) -> None:
        """Note whom a message in flight counts as members of its group."""
        if isinstance(message, Shuffle) and message.group in self.hashes:
            self.hashes[message.group].update(hashed for hashed, _ in message.sketch)

    def sketched(self) -> Iterator[Violation]:
        """What would be too large if all that is known of a group came together."""
        for topic, hashes in self.hashes.items():
            size, estimate = len(self.sets[topic]), _estimate(hashes)
            if estimate > size * _factor(size):
                detail = f"{topic!r} has {size} members, all sketches together {estimate}"
                yield Violation("size", None, detail)


def _estimate(hashes: Iterable[int]) -> int:
    """How many members the smallest of `hashes` say that there are."""
    possible = sorted(hashed for hashed in hashes if 0 <= hashed < HASHES)[:COUNTED]
    if len(possible) < COUNTED:
        return max(1, len(possible))
    return max(COUNTED, (COUNTED - 1) * HASHES // (possible[-1] + 1))


def _factor(size: int) -> float:
    return SIZE_FACTOR_COUNTED if size < COUNTED else SIZE_FACTOR


def _claims(message: Message) -> Iterator[tuple[NodeId, str]]:
    """Which processes a message says are in which group."""
    match message:
        case Shuffle():
            yield message.sender, message.group
            yield from ((id, message.group) for id, _ in message.entries)
            yield from ((id, topic) for id, topic, _ in message.contacts)
        case Subscription():
            yield message.subject, message.group
        case Superprocesses():
            yield message.sender, message.group
            yield from ((id, message.group) for id, _ in message.others)
        case Unsubscription():
            yield from ((id, message.group) for id, _ in message.heirs)
        case Found():
            yield from ((id, topic) for id, topic, _ in message.contacts)
        case Search():
            yield message.origin, NEIGHBOURHOOD
        case Event():
            yield message.sender, NEIGHBOURHOOD


def _reachable(graph: Mapping[NodeId, list[NodeId]], start: NodeId) -> dict[NodeId, None]:
    reached = {start: None}
    pending = [start]
    while pending:
        for other in graph[pending.pop()]:
            if other not in reached:
                reached[other] = None
                pending.append(other)
    return reached
