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
    Joined,
    Leave,
    LinkDown,
    Node,
    Notice,
    Publish,
    Published,
    Send,
    Subscribe,
    Unsubscribe,
)
from planaria.core.state import State
from planaria.protocols.gossip.commands import published_topic, wanted_group
from planaria.protocols.gossip.dissemination import disseminate
from planaria.protocols.gossip.group import ALONE_AFTER, Group, in_force
from planaria.protocols.gossip.hierarchy import Hierarchy, is_group, is_wish
from planaria.protocols.gossip.links import Links
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.memory import SEEN_MAX, EventMemory, event_memory
from planaria.protocols.gossip.messages import (
    NEIGHBOURHOOD,
    SEQUENCE_MAX,
    Contact,
    ContactCheck,
    Event,
    Found,
    Gone,
    GossipMessage,
    Search,
    Shuffle,
    Subscription,
    Superprocesses,
    Unsubscription,
    speaker,
)
from planaria.protocols.gossip.parameters import Parameters
from planaria.protocols.gossip.searching import ANSWER_CONTACTS, answer
from planaria.protocols.gossip.state import GossipNodeState, Waiting

MSG_ID_BYTES = 16
OUTBOX_MAX = 64  # events waiting for a group to be found; a publisher is told when it is full
GROUPS_MAX = 64  # unrelated topics of one process: each costs a message per interval
MERGE_RATE = 1 / 16  # of the relays' rate: searches for members of the own group, after a split
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

    __slots__ = ("configuration", "rng", *GossipNodeState.__struct_fields__)

    state_type = GossipNodeState

    def __init__(self, id: NodeId, configuration: Configuration, rng: Random) -> None:
        super().__init__(id)
        self.configuration, self.rng = configuration, rng
        self.subscribed: list[str] = []
        self.publishing: list[str] = []
        self.joining: list[str] = []
        self.groups: dict[str, Group] = {}
        self.neighbours = Membership(id, NEIGHBOURHOOD)
        self.memory: EventMemory = event_memory()
        self.refused = 0
        self.outbox: list[Waiting] = []
        self.published = 0
        self.parasites = 0

    def load(self, state: State) -> None:
        """Take these variables, but no wish that no application can have."""
        super().load(state)
        self.subscribed = [topic for topic in self.subscribed if is_group(topic)]
        self.publishing = [topic for topic in self.publishing if is_group(topic)]
        self.groups = {topic: group for topic, group in self.groups.items() if is_group(topic)}

    # Inputs

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """Events first: they are many. Everything else repairs the table that it touches.

        Nobody speaks for another: what a process says of itself must come from it.
        """
        if type(message) is Event:
            for generation in self.memory.generations:  # most copies are of events that I had
                if message.msg_id in generation:
                    return NOTHING
            return self._on_event(message, sender)
        if speaker(message) not in (None, sender):
            return NOTHING
        match message:
            case Search():
                self.neighbours.me = self.id
                return answer(message, self.groups, self.neighbours, self.rng)
            case Found():
                return self._on_contacts(message.contacts)
            case Superprocesses():
                return self._on_superprocesses(message)
            case Gone():
                return self._on_gone(message)
            case GossipMessage():
                return self._on_membership(message)
        return NOTHING

    def on_timeout(self) -> Effects:
        """One interval of every table; then the searches, over the neighbourhood."""
        self._repair()
        rng, configuration = self.rng, self.configuration
        effects: list[Effect] = []
        self.memory.on_timeout()
        if self.refused > 0:
            detail = {"copies": self.refused, "remembered": SEEN_MAX}
            effects.append(Notice("#", "refused", detail))
        self.refused = 0
        effects += self.neighbours.on_timeout(NEIGHBOURS, rng, (), configuration.contacts)
        for topic, group in self.groups.items():
            parameters = configuration.of(topic)
            group.intervals = min(max(0, group.intervals) + 1, ALONE_AFTER)
            contacts = group.links.table()
            effects += group.membership.on_timeout(parameters, rng, contacts)
            size = group.membership.size
            effects += group.links.on_timeout(configuration.hierarchy, parameters, size, rng)
            effects += self._searches(topic, group)
        return [*effects, *self._joined(), *self._flush()]

    def on_command(self, command: Command) -> Effects:
        """SUBSCRIBE, UNSUBSCRIBE and PUBLISH of the application; LinkDown is a hint."""
        match command:
            case Subscribe():
                self.join(self.subscribed, wanted_group(command))
                self.joining = list(dict.fromkeys([*self.joining, command.pattern]))
                return self._joined()
            case Unsubscribe():
                return self._leave([wanted_group(command)])
            case Leave():
                return self._leave([*self.subscribed, *self.publishing])
            case Publish():
                return self._publish(published_topic(command), command.payload)
            case LinkDown(peer):
                self.neighbours.forget(peer)
                for group in self.groups.values():
                    group.membership.forget(peer)
                    group.links.drop(peer)
        return NOTHING

    # Interests

    def interested(self, topic: str) -> bool:
        """Did the application subscribe to `topic` or to one that includes it?"""
        includes = self.configuration.hierarchy.includes
        return any(includes(each, topic) for each in self.subscribed)

    def join(self, interests: list[str], topic: str) -> None:
        """Begin to look for a group; a topic is among those subscribed or `publishing`."""
        if topic not in interests:
            if len({*self.subscribed, *self.publishing, topic}) > GROUPS_MAX:
                raise CapacityExceeded(f"{GROUPS_MAX} topics of one process: leave one first")
            interests.append(topic)
        self._repair()

    def _joined(self) -> list[Effect]:
        """Tell the application which of its subscriptions are in force since the last time."""
        if not self.joining:
            return []
        joined = in_force(self.joining, self.groups, self.configuration.hierarchy)
        self.joining = [pattern for pattern in self.joining if pattern not in joined]
        return [Joined(pattern) for pattern in joined]

    def _leave(self, topics: Sequence[str]) -> list[Send]:
        before = dict(self.groups)
        self.subscribed = [topic for topic in self.subscribed if topic not in topics]
        self.publishing = [topic for topic in self.publishing if topic not in topics]
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
        if self.joining:
            wished = [it for it in dict.fromkeys(self.joining) if is_wish(it, self.subscribed)]
            self.joining = wished[:GROUPS_MAX]
        if self.outbox:
            self.outbox = [it for it in self.outbox if _is_sound(it)][:OUTBOX_MAX]

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
        match message:
            case Shuffle():
                if group is not None:
                    self._merge(group, message.contacts)
                return membership.on_shuffle(message, parameters, rng, contacts)
            case Subscription():
                return membership.on_subscription(message, parameters, rng, contacts)
            case Unsubscription():
                membership.on_unsubscription(message, parameters)
            case ContactCheck() if message.sender != self.id:
                others = tuple(membership.members(rng, message.need, message.sender))
                return [Send(message.sender, Superprocesses(topic, self.id, others))]
        return NOTHING

    def _not_mine(self, message: GossipMessage) -> Effects:
        """Whoever believes that I am in that group shall know better."""
        if isinstance(message, Shuffle | ContactCheck) and message.sender != self.id:
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
        rate = parameters.p_sel(size) * MERGE_RATE if group.is_found else 1.0
        if self.rng.random() < rate:
            found = [*found, Search(self.id, (topic,), 0)]
        around = list(self.neighbours.view)
        return [Send(self.rng.choice(around), search) for search in found] if around else []

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
            self.join(self.publishing, topic)
        nonce = self.rng.getrandbits(64)
        hashed = stable_hash(self.id, self.published, nonce, bits=8 * MSG_ID_BYTES)
        msg_id = hashed.to_bytes(MSG_ID_BYTES, "big")
        waiting = Waiting(topic, msg_id, payload, self.published)
        said = Published(topic, msg_id, self.id, self.published)
        self.published += 1
        group = self.groups.get(topic)
        if group is None or not group.is_found:
            self.outbox.append(waiting)
            return [said]
        return [said, *self._send(waiting)]

    def _flush(self) -> list[Effect]:
        """Send the events whose group has been found, or given up as empty."""
        effects, still = list[Effect](), list[Waiting]()
        for waiting in self.outbox:
            group = self.groups.get(waiting.topic)
            if self.memory.full or (group is not None and not group.is_found):
                still.append(waiting)
            elif waiting.msg_id not in self.memory:
                effects += self._send(waiting)
        self.outbox = still
        return effects

    def _send(self, waiting: Waiting) -> list[Effect]:
        """Let an event of mine begin its way."""
        topic, msg_id, payload = waiting.topic, waiting.msg_id, waiting.payload
        event = Event(topic, topic, msg_id, payload, self.id, waiting.sequence, self.id, 0)
        return self._accept(event, publisher=True)

    def _on_event(self, event: Event, sender: NodeId | None) -> Effects:
        """RECEIVE for the first time (Figure 5); a parasite is dropped.

        A sender that takes me for a member of a group in which I am not shall know better.
        """
        gone: list[Effect] = []
        if event.group not in self.groups and sender not in (None, self.id):
            gone.append(Send(sender, Gone(event.group, self.id)))
        includes = self.configuration.hierarchy.includes
        if not any(includes(topic, event.topic) for topic in self.groups):
            self.parasites += 1
            return gone
        if self.memory.full:
            self.refused += 1
            return gone
        return gone + self._accept(event, publisher=False)

    def _accept(self, event: Event, *, publisher: bool) -> list[Effect]:
        self.memory.put(event.msg_id, None)
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
            effects.append(Deliver.one(*found))
        return effects


def _is_sound(waiting: Waiting) -> bool:
    """Can this be an event of mine, as far as its own fields say?"""
    numbered = len(waiting.msg_id) == MSG_ID_BYTES and 0 <= waiting.sequence <= SEQUENCE_MAX
    return numbered and is_group(waiting.topic)
