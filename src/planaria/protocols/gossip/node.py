"""A process of the gossip overlay: the groups it is interested in, and how it finds them.

Besides the paper's two tables per topic it keeps a small neighbourhood of arbitrary processes (the
paper's `neighborhood(p)`), over which searches walk, and a sketch of each group's size. The event
path trusts no table: an event that reaches the wrong process is counted, dropped and answered.
"""

from collections.abc import Mapping, Sequence
from random import Random

from msgspec import Struct

from planaria.core.errors import CapacityExceeded
from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message
from planaria.core.node import (
    NOTHING,
    Command,
    Deliver,
    Effect,
    Effects,
    LinkDown,
    Node,
    Notice,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.core.topics import check_topic
from planaria.protocols.gossip.dissemination import disseminate
from planaria.protocols.gossip.group import SETTLE, Group
from planaria.protocols.gossip.hierarchy import Hierarchy, group_of
from planaria.protocols.gossip.links import SEARCH_HOPS_MAX, Links
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.memory import SEEN_MAX, EventMemory
from planaria.protocols.gossip.messages import (
    NEIGHBOURHOOD,
    SEQUENCE_MAX,
    Check,
    Contact,
    Event,
    Found,
    Gone,
    GossipMessage,
    Search,
    Shuffle,
    Subscription,
    Superprocesses,
    Unsubscription,
)
from planaria.protocols.gossip.parameters import Parameters

MSG_ID_BYTES = 16
OUTBOX_MAX = 64  # events waiting for a group to be found; a publisher is told when it is full
GROUPS_MAX = 64  # unrelated topics of one process: each costs a message per interval
MERGE_RATE = 1 / 16  # of the relays' rate: searches for members of the own group, after a split
ANSWER_CONTACTS = 3  # contacts in one answer: a table's worth
NEIGHBOURS = Parameters()


class Configuration(Struct, frozen=True):
    """What all processes agree on: the hierarchy, the dials per topic, whom a newcomer may ask."""

    hierarchy: Hierarchy
    parameters: Mapping[str, Parameters] = {}
    default: Parameters = Parameters()
    contacts: tuple[NodeId, ...] = ()

    def of(self, topic: str) -> Parameters:
        """The dials of `topic`."""
        return self.parameters.get(topic, self.default)


class GossipNode(Node):
    """A process interested in topics: it subscribed to them, or it publishes on them."""

    __slots__ = (
        "configuration",
        "groups",
        "memory",
        "neighbours",
        "outbox",
        "parasites",
        "published",
        "publishing",
        "rng",
        "subscribed",
    )
    variables = (
        "subscribed",
        "publishing",
        "groups",
        "neighbours",
        "memory",
        "outbox",
        "published",
    )

    def __init__(self, id: NodeId, configuration: Configuration, rng: Random) -> None:
        super().__init__(id)
        self.configuration, self.rng = configuration, rng
        self.subscribed: list[str] = []
        self.publishing: list[str] = []
        self.groups: dict[str, Group] = {}
        self.neighbours = Membership(id, NEIGHBOURHOOD)
        self.memory = EventMemory()
        self.outbox: list[Event] = []
        self.published = 0
        self.parasites = 0

    # Inputs

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Events first: they are many. Everything else repairs the table that it touches."""
        if type(message) is Event:
            return NOTHING if self.memory.has(message.msg_id) else self._on_event(message)
        if type(message) is Search:
            return self._on_search(message)
        if type(message) is Found:
            return self._on_contacts(message.contacts)
        if not isinstance(message, GossipMessage):
            return NOTHING
        if type(message) is Gone:
            return self._on_gone(message)
        if type(message) is Superprocesses:
            return self._on_superprocesses(message)
        return self._on_membership(message)

    def on_timeout(self) -> Effects:
        """One interval of every table; then the searches, over the neighbourhood."""
        self._repair()
        rng, configuration = self.rng, self.configuration
        effects: list[Effect] = []
        if refused := self.memory.on_timeout():
            effects.append(Notice("#", "refused", {"copies": refused, "remembered": SEEN_MAX}))
        effects += self.neighbours.on_timeout(NEIGHBOURS, rng, (), configuration.contacts)
        for topic, group in self.groups.items():
            parameters = configuration.of(topic)
            group.intervals = min(max(0, group.intervals) + 1, SETTLE)
            contacts = group.links.table()
            effects += group.membership.on_timeout(parameters, rng, contacts)
            size = group.membership.size
            effects += group.links.on_timeout(configuration.hierarchy, parameters, size, rng)
            effects += self._searches(topic, group)
        effects += self._flush()
        return effects

    def on_command(self, command: Command) -> Effects:
        """SUBSCRIBE, UNSUBSCRIBE and PUBLISH of the application; LinkDown is a hint."""
        if isinstance(command, Subscribe):
            self._join(self.subscribed, group_of(command.pattern))
        elif isinstance(command, Unsubscribe):
            return self._leave(group_of(command.pattern))
        elif isinstance(command, Publish):
            return self._publish(check_topic(command.topic), command.payload)
        elif isinstance(command, LinkDown):
            self.neighbours.forget(command.peer)
            for group in self.groups.values():
                group.membership.forget(command.peer)
                group.links.drop(command.peer)
        return NOTHING

    # Interests

    def interested(self, topic: str) -> bool:
        """Did the application subscribe to `topic` or to one that includes it?"""
        includes = self.configuration.hierarchy.includes
        return any(includes(each, topic) for each in self.subscribed)

    def _join(self, interests: list[str], topic: str) -> None:
        if topic not in interests:
            if len(self.subscribed) + len(self.publishing) >= GROUPS_MAX:
                raise CapacityExceeded(f"at most {GROUPS_MAX} topics of one process")
            interests.append(topic)
        self._repair()

    def _leave(self, topic: str) -> list[Send]:
        before = dict(self.groups)
        for interests in (self.subscribed, self.publishing):
            if topic in interests:
                interests.remove(topic)
        self._repair()
        gone = [group for each, group in before.items() if each not in self.groups]
        return [send for group in gone for send in group.membership.leave()]

    def _repair(self) -> None:
        """Be in exactly the groups of the application's interests.

        A subscription to a topic needs no second one below it; a publisher on a topic below needs
        to be in that group too, else the members there would not hear of its events.
        """
        subscribed = self.configuration.hierarchy.maximal(self.subscribed)
        due = list(dict.fromkeys([*subscribed, *self.publishing]))[:GROUPS_MAX]
        if list(self.groups) != due:
            old = self.groups
            self.groups = {topic: old.get(topic) or self._new(topic) for topic in due}
        for topic, group in self.groups.items():
            group.belongs(self.id, topic)
        self.neighbours.me, self.neighbours.group = self.id, NEIGHBOURHOOD
        if not 0 <= self.published < SEQUENCE_MAX:
            self.published = 0
        if self.outbox:
            mine = [event for event in self.outbox if self._could_be_mine(event)]
            self.outbox = mine[:OUTBOX_MAX]

    def _could_be_mine(self, event: Event) -> bool:
        made = (event.publisher, event.sender, event.hops) == (self.id, self.id, 0)
        sound = len(event.msg_id) == MSG_ID_BYTES and 0 <= event.sequence <= SEQUENCE_MAX
        return made and sound

    def _new(self, topic: str) -> Group:
        return Group(Membership(self.id, topic), Links(self.id, topic))

    # Membership and links

    def _on_membership(self, message: GossipMessage) -> Effects:
        topic, rng = message.group, self.rng
        group = self.groups.get(topic)
        if group is None and topic != NEIGHBOURHOOD:
            return self._not_mine(message)
        if group is None:
            self.neighbours.me, self.neighbours.group = self.id, NEIGHBOURHOOD
        else:
            group.belongs(self.id, topic)
        membership = self.neighbours if group is None else group.membership
        parameters = NEIGHBOURS if group is None else self.configuration.of(topic)
        contacts = () if group is None else group.links.table()
        if isinstance(message, Shuffle):
            if group is not None:
                self._merge(group, message.contacts)
            return membership.on_shuffle(message, parameters, rng, contacts)
        if isinstance(message, Subscription):
            return membership.on_subscription(message, parameters, rng, contacts)
        if isinstance(message, Unsubscription):
            membership.on_unsubscription(message, parameters)
        elif isinstance(message, Check) and message.sender != self.id:
            others = tuple(membership.members(rng, message.need, message.sender))
            return [Send(message.sender, Superprocesses(topic, self.id, others))]
        return NOTHING

    def _not_mine(self, message: GossipMessage) -> Effects:
        """Whoever believes that I am in that group shall know better."""
        if isinstance(message, Shuffle | Check) and message.sender != self.id:
            return [Send(message.sender, Gone(message.group, self.id))]
        return NOTHING

    def _on_gone(self, message: Gone) -> Effects:
        subject, topic = message.subject, message.group
        if topic in self.groups:
            self.groups[topic].membership.drop(subject)
        for group in self.groups.values():
            group.links.drop(subject, topic)
        return NOTHING

    def _on_superprocesses(self, message: Superprocesses) -> Effects:
        for topic, group in self.groups.items():
            group.belongs(self.id, topic)
            offered = group.links.on_answer(message.sender, message.group, message.others)
            self._merge(group, offered, rotate=True)
        return NOTHING

    def _on_contacts(self, contacts: tuple[Contact, ...]) -> Effects:
        """An answer to a search: members of my groups are called, superprocesses are merged."""
        effects: list[Effect] = []
        for own, group in self.groups.items():
            group.belongs(self.id, own)
            self._merge(group, contacts)
        for id, topic, _ in contacts[:ANSWER_CONTACTS]:
            group_found = self.groups.get(topic)
            if group_found is not None and id != self.id:
                table = group_found.links.table()
                effects.append(group_found.membership.call(id, self.rng, table))
        return effects

    def _merge(self, group: Group, contacts: Sequence[Contact], *, rotate: bool = False) -> None:
        if contacts:
            configuration = self.configuration
            z = configuration.of(group.links.topic).z
            group.links.merge(contacts, configuration.hierarchy, z, self.rng, rotate=rotate)

    # Searches

    def _searches(self, topic: str, group: Group) -> list[Send]:
        hierarchy, parameters = self.configuration.hierarchy, self.configuration.of(topic)
        size = group.membership.size
        found = group.links.searches(hierarchy, parameters, size, self.rng)
        rate = parameters.p_sel(size) * MERGE_RATE if group.settled else 1.0
        if self.rng.random() < rate:
            found = [*found, Search(self.id, (topic,), 0)]
        around = list(self.neighbours.view)
        return [Send(self.rng.choice(around), search) for search in found] if around else []

    def _on_search(self, message: Search) -> Effects:
        """REQCONTACT: answer the origin if I know another, else pass it on until it expires."""
        origin = message.origin
        self.neighbours.repair()
        known = self._knows(message.wanted, origin)
        if known:
            return [Send(origin, Found(tuple(known)))]
        around = [id for id in self.neighbours.view if id not in (origin, self.id)]
        if not around or message.hops >= SEARCH_HOPS_MAX:
            return NOTHING
        onward = Search(origin, message.wanted, message.hops + 1)
        return [Send(self.rng.choice(around), onward)]

    def _knows(self, wanted: tuple[str, ...], origin: NodeId) -> list[Contact]:
        """Others than `origin` in the first of `wanted` of which I know any, nearest first."""
        for topic in wanted:
            group = self.groups.get(topic)
            known: list[Contact] = []
            if group is not None and self.id != origin:
                members = group.membership.members(self.rng, ANSWER_CONTACTS - 1, origin)
                known = [(self.id, topic, 0), *((id, topic, age) for id, age in members)]
            else:
                for each in self.groups.values():
                    table = each.links.table()
                    known += [it for it in table if it[1] == topic and it[0] != origin]
            if known:
                return known[:ANSWER_CONTACTS]
        return []

    # Events

    def _publish(self, topic: str, payload: bytes) -> Effects:
        """PUBLISH: the publisher marks its event as received (erratum 19), then disseminates.

        Raises CapacityExceeded while too many events wait, or are remembered.
        """
        self._repair()
        if self.memory.full:
            raise CapacityExceeded(f"{SEEN_MAX} events must still be remembered: publish later")
        if len(self.outbox) >= OUTBOX_MAX:
            raise CapacityExceeded(f"{OUTBOX_MAX} events wait for their group: publish later")
        if topic not in self.groups:
            self._join(self.publishing, topic)
        nonce = self.rng.getrandbits(64)
        hashed = stable_hash(self.id, self.published, nonce, bits=8 * MSG_ID_BYTES)
        msg_id = hashed.to_bytes(MSG_ID_BYTES, "big")
        event = Event(topic, topic, msg_id, payload, self.id, self.published, self.id, 0)
        self.published += 1
        group = self.groups.get(topic)
        if group is None or not group.settled:
            self.outbox.append(event)
            return NOTHING
        return self._accept(event, publisher=True)

    def _flush(self) -> list[Effect]:
        """Send the events whose group has been found, or given up as empty."""
        effects: list[Effect] = []
        waiting = []
        for event in self.outbox:
            group = self.groups.get(event.topic)
            if self.memory.full or (group is not None and not group.settled):
                waiting.append(event)
            elif not self.memory.has(event.msg_id):
                effects += self._accept(event, publisher=True)
        self.outbox = waiting
        return effects

    def _on_event(self, event: Event) -> Effects:
        """RECEIVE for the first time (Figure 5); a parasite is dropped.

        A sender that takes me for a member of a group in which I am not shall know better.
        """
        gone: list[Effect] = []
        if event.group not in self.groups and event.sender != self.id:
            gone.append(Send(event.sender, Gone(event.group, self.id)))
        includes = self.configuration.hierarchy.includes
        if not any(includes(topic, event.topic) for topic in self.groups):
            self.parasites += 1
            return gone
        if self.memory.full:
            self.memory.refuse()
            return gone
        return gone + self._accept(event, publisher=False)

    def _accept(self, event: Event, *, publisher: bool) -> list[Effect]:
        self.memory.add(event.msg_id)
        effects: list[Effect] = []
        includes = self.configuration.hierarchy.includes
        for topic, group in self.groups.items():
            if includes(topic, event.topic):
                group.belongs(self.id, topic)
                parameters = self.configuration.of(topic)
                effects += disseminate(
                    event,
                    group.membership,
                    group.links,
                    parameters,
                    self.rng,
                    publisher=publisher,
                )
        if self.interested(event.topic):
            found = (event.topic, event.msg_id, event.payload, event.publisher, event.sequence)
            effects.append(Deliver(*found))
        return effects
