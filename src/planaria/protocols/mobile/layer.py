"""One layer of one node: its neighbours, their orientation, its publications (sections 2 to 4).

Layers share nothing, they are told who is in reach; so what happens in one moves no other
(Definition 1). Everything is said again at every timeout, in one beat per link: the driver's clock
is the only clock, and whatever is lost is sent again.
"""

from collections.abc import Mapping
from random import Random
from typing import ClassVar

from planaria.core.ids import NodeId
from planaria.core.node import Effect, Notice, Send
from planaria.core.state import State, Stateful
from planaria.protocols.mobile.dissemination import Dissemination, DisseminationState, Outbox
from planaria.protocols.mobile.heights import Heights, HeightsState
from planaria.protocols.mobile.link import ASKED, CLOSING, SERIALS, UP, Link, reached
from planaria.protocols.mobile.messages import (
    STEM,
    Beat,
    Item,
    LinkDownOk,
    LinkUpKo,
    LinkUpOk,
    MobileMessage,
    RequestLinkDown,
    RequestLinkUp,
    Word,
)
from planaria.protocols.mobile.orientation import Orientation

DEGREE_MAX = 256  # links of one layer; a radio in a denser crowd says KO
# Timeouts without a beat until a neighbour counts as gone. A node slowed down eightfold beats
# every 8 intervals, and its beats take up to 4: slow is not gone.
SILENCE_MAX = 16
ASK_MAX = 12  # timeouts without an answer until a peer counts as deaf; it may take nine
REFUSED_MAX = 256  # peers that said no; those out of reach are forgotten at each timeout
REFUSED = 8  # timeouts until a peer that said KO, or nothing, is asked again
DRAIN_MAX = 64  # timeouts a leaver waits for its turn to hand over what it holds
CLOSE_MAX = 4  # timeouts a leaver waits for its neighbours' link_down_OK


class LayerState(State):
    """One member's links, who refused it, what it said of itself last, its turns, its parts."""

    links: dict[int, Link]
    refused: dict[int, int]
    leaving: int | None
    serial: int
    said: tuple[tuple[int, ...], int]
    turns: int
    copies: int
    orientation: HeightsState
    news: DisseminationState


class Layer(Stateful):
    """A member of one layer."""

    state_type: ClassVar[type[LayerState]] = LayerState
    orientation_type: ClassVar[type[Orientation]] = Heights

    def __init__(
        self,
        topic: str,
        id: NodeId,
        rng: Random,
        dissemination: Dissemination,
        connection_points: int = 0,
    ) -> None:
        self.topic = topic
        self.id = id
        self.orientation = self.orientation_type(id, rng)
        self.news = dissemination
        self.connection_points = connection_points  # f; 0 stands for all in reach
        self.links: dict[NodeId, Link] = {}
        self.refused: dict[NodeId, int] = {}
        self.leaving: int | None = None  # timeouts left to hand over what it holds
        # Of beats, for all links: a link that comes up again goes on counting, so that beats of
        # its former life are old.
        self.serial = 0
        self.said: tuple[Word, int] = ((), 0)  # of itself, and since which serial
        self.turns = 0
        self.copies = 0  # items sent, each to one neighbour

    # What the node asks for

    def neighbours(self) -> list[NodeId]:
        """N(i): the peers with which a link is up and has a direction."""
        oriented = self.orientation.oriented
        return [peer for peer, link in self.links.items() if link.state == UP and oriented(peer)]

    def publish(self, payload: bytes, rng: Random) -> Item:
        """To all members, from the next turn on."""
        return self.news.publish(payload, rng, self.outboxes())

    def leave(self) -> None:
        """Go in good order: first hand over, then say request_link_down."""
        if self.leaving is None:
            self.leaving = DRAIN_MAX

    def closed(self) -> bool:
        """Has every neighbour let this leaver go?"""
        return self.leaving is not None and self.leaving < 0 and not self.links

    def begin_anew(self, rng: Random) -> None:
        """The process ended and began again: keep publications, but neither links nor the lid.

        Neighbours may have sent since what it lacks now, and what it said in its former life must
        be known to be from there.
        """
        for peer in [*self.links, *self.orientation.peers()]:
            self.lose(peer)
            self.orientation.link_down(peer)
        self.refused = {}
        self.news.input = {id: [] for id in self.news.input}
        self.orientation.renew(rng)

    def lose(self, peer: NodeId) -> None:
        """The link is gone, with or without goodbye."""
        if self.links.pop(peer, None) is not None:
            self.orientation.link_down(peer)
            self.news.lose(peer)

    # Messages

    def on_message(self, message: MobileMessage) -> list[Effect]:
        """One message of this layer; whatever it says, the node's own variables come first."""
        self.repair()
        if message.sender == self.id:
            return []
        match message:
            case RequestLinkUp():
                return self._on_request_up(message)
            case LinkUpOk():
                self._on_ok(message)
            case LinkUpKo():
                self._refused(message.sender)
            case RequestLinkDown():
                self._refused(message.sender)
                return [Send(message.sender, LinkDownOk(self.topic, self.id))]
            case LinkDownOk():
                if self._state(message.sender) == CLOSING:
                    self.lose(message.sender)
            case Beat():
                return self._on_beat(message)
        return []

    def repair(self) -> None:
        """No link to oneself, and none of which only the orientation, or only the list, knows."""
        if self.leaving is not None:
            self.leaving = min(self.leaving, DRAIN_MAX)
        self.serial %= SERIALS
        self.lose(self.id)
        known = self.orientation.peers()
        links = self.links
        for peer, link in list(links.items()):
            if not link.repair(known=peer in known):
                self.lose(peer)
        for peer in known:  # asked at every message: a look, not a call
            if peer not in links or links[peer].state not in (UP, CLOSING):
                self.orientation.link_down(peer)
        self.orientation.repair()
        self.news.repair()

    def connect(self, peer: NodeId, link: Link) -> None:
        """Both ends agreed: the link is up, with all to come that the peer may lack."""
        link.state = UP
        self.links[peer] = link
        self.refused.pop(peer, None)

    def _state(self, peer: NodeId) -> str | None:
        link = self.links.get(peer)
        return None if link is None else link.state

    def _on_request_up(self, message: RequestLinkUp) -> list[Effect]:
        """OK, unless there is no room."""
        peer = message.sender
        if not self._accepts(peer):
            return [Send(peer, LinkUpKo(self.topic, self.id))]
        self.lose(peer)  # a second request is a peer that forgot us: begin anew
        if not self.orientation.link_up(peer, message.word):
            return [Send(peer, LinkUpKo(self.topic, self.id))]
        self.connect(peer, Link())
        return [Send(peer, LinkUpOk(self.topic, self.id, self.orientation.greet()))]

    def _accepts(self, peer: NodeId) -> bool:
        return self.leaving is None and (peer in self.links or len(self.links) < DEGREE_MAX)

    def _on_ok(self, message: LinkUpOk) -> None:
        link = self.links.get(message.sender)
        if link is None or link.state == CLOSING:
            return
        if link.state == UP:
            if self.orientation.knows(message.sender, message.word):
                self.orientation.hear(message.sender, message.word)
                return
            self.lose(message.sender)  # it forgot us and had a request of ours: begin anew
        if self.orientation.link_up(message.sender, message.word):
            self.connect(message.sender, Link())

    def _refused(self, peer: NodeId) -> None:
        self.lose(peer)
        if len(self.refused) < REFUSED_MAX:
            self.refused[peer] = REFUSED

    def _on_beat(self, beat: Beat) -> list[Effect]:
        """A neighbour's beat; from anybody else it is a link that only the other end has."""
        peer = beat.sender
        link = self.links.get(peer)
        if link is None:
            return self._one_sided(peer)
        if link.state != UP:
            return []
        link.quiet = 0
        # What a peer sent before it lost its memory does not say what it has.
        has = None if self.news.echo or not self.orientation.knows(peer, beat.word) else peer
        if link.in_order(beat.serial):
            self.orientation.hear(peer, beat.word, informed=self._informed(beat))
            link.outbox.acknowledged(beat.ack)
        effects: list[Effect] = []
        for item in beat.items:
            if has is not None and item.generation != STEM:
                link.outbox.drop(item.id)
            effects += self.news.receive(item, has, self.topic)
        link.got(beat.serial, beat.items)
        return effects if self.leaving is None else []

    def _informed(self, beat: Beat) -> bool:
        """Had the sender heard what this node says of itself now, when it sent this?"""
        word, since = self.said
        return (
            beat.heard is not None
            and reached(beat.heard, since)
            and word == self.orientation.greet()
        )

    def _one_sided(self, peer: NodeId) -> list[Effect]:
        if not self._accepts(peer):
            return [Send(peer, RequestLinkDown(self.topic, self.id))]
        self.links[peer] = Link()
        return [Send(peer, RequestLinkUp(self.topic, self.id, self.orientation.greet()))]

    # Time

    def on_timeout(self, reach: Mapping[NodeId, None], rng: Random) -> list[Effect]:
        """Forget the silent, ask for links, take a turn if it is one, and beat."""
        self.repair()
        lost = self.news.age(self.outboxes())
        self._forget(reach)
        effects = self._ask(reach, rng)
        if lost:
            effects.append(Notice(self.topic, "gap", {"lost": lost}))
        peers = self.neighbours()
        self._replay(peers)
        turn = self._takes_turn(rng)
        if turn:
            if peers:
                self.news.collect({peer: self.links[peer].outbox for peer in peers}, rng)
                self.turns += 1
            self.orientation.reverse()
        self.serial = (self.serial + 1) % SERIALS
        self._say()
        for peer, link in self.links.items():
            if link.state == UP:
                effects.append(Send(peer, self._beat(peer, link, turn=turn and peer in peers)))
        if self.leaving is not None:
            effects += self._go()
        return effects

    def _takes_turn(self, rng: Random) -> bool:
        """Does the node act now? A sink does, if it has neighbours."""
        return bool(self.orientation.peers()) and self.orientation.sink()

    def _say(self) -> None:
        """Remember since when this is said; what seems to be later, or very long ago, is now."""
        word, since = self.orientation.greet(), self.said[1]
        if word != self.said[0] or not reached(self.serial, since):
            self.said = (word, self.serial)

    def outboxes(self) -> list[Outbox]:
        """What each neighbour is still to get."""
        return [link.outbox for link in self.links.values()]

    def _forget(self, reach: Mapping[NodeId, None]) -> None:
        for peer in list(self.links):
            link = self.links[peer]
            link.quiet, link.stale = link.quiet + 1, link.stale + 1
            if peer not in reach:
                self.lose(peer)
                continue
            limit = {ASKED: ASK_MAX, UP: SILENCE_MAX, CLOSING: CLOSE_MAX}[link.state]
            if link.quiet > limit:
                self._refused(peer)
        waits = self.refused.items()
        self.refused = {p: left - 1 for p, left in waits if 1 < left <= REFUSED and p in reach}

    def _ask(self, reach: Mapping[NodeId, None], rng: Random) -> list[Effect]:
        """Request links to connection points until there are enough (3.1)."""
        if self.leaving is not None:
            return []
        free = [p for p in reach if p not in self.links and p not in self.refused]
        missing = self._missing()
        for peer in free if missing >= len(free) else rng.sample(free, missing):
            self.links[peer] = Link()
        request = RequestLinkUp(self.topic, self.id, self.orientation.greet())
        return [
            Send(peer, request)
            for peer, link in self.links.items()
            if link.state == ASKED and not link.quiet % 2  # an answer may take an interval
        ]

    def _missing(self) -> int:
        """How many connection points to ask. With f at least 2 no newcomer makes one critical."""
        wanted = self.connection_points or DEGREE_MAX
        return max(0, min(wanted, DEGREE_MAX) - len(self.links))

    def _replay(self, peers: list[NodeId]) -> None:
        """A link that has just got its direction is owed all recent publications."""
        for peer in peers:
            link = self.links[peer]
            if not link.replayed:
                link.replayed = True
                link.outbox = self.news.replay()

    def _beat(self, peer: NodeId, link: Link, *, turn: bool) -> Beat:
        items = self.news.batch(link.outbox, self.serial) if turn else ()
        self.copies += len(items)
        word = self.orientation.word(peer, whole=bool(items))
        ack = link.acknowledge()
        return Beat(self.topic, self.id, self.serial, ack, word, items, link.heard)

    def _go(self) -> list[Effect]:
        """A leaver that holds nothing any more, or waited long enough, says goodbye."""
        assert self.leaving is not None
        self.leaving -= 1
        up = [link for link in self.links.values() if link.state == UP]
        holds = (
            self.news.input
            or self.news.local
            or self.news.walking
            or any(link.outbox.waiting or link.outbox.sent for link in up)
        )
        if up and holds and self.leaving >= 0:
            return []
        self.leaving = -1
        for link in up:
            link.state, link.quiet = CLOSING, 0
        goodbye = RequestLinkDown(self.topic, self.id)
        closing = [peer for peer, link in self.links.items() if link.state == CLOSING]
        for peer in [peer for peer in self.links if peer not in closing]:
            self.lose(peer)
        return [Send(peer, goodbye) for peer in closing]
