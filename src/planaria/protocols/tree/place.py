"""A host's place in the tree: search, compare, notify (paper 3, section 3.4, amended).

A host searches for its neighbours when its keyset changes (the amendment without which two changes
at once leave a cycle), when a neighbour set that names it changes (the paper's notification of the
symmetric difference), when a neighbour is lost, and now and then for no reason at all, because any
of its variables may be false. Both ends of a link say so at each timeout: whoever disagrees looks
again.
"""

from msgspec import Struct

from planaria.core.ids import NodeId, is_node_id
from planaria.core.node import Effect, Send
from planaria.core.state import State, Stateful
from planaria.protocols.dht.keys import Keyset
from planaria.protocols.dht.member import DhtMember, Located, Unlocated
from planaria.protocols.tree.messages import Link, TreeMessage, Unlink
from planaria.protocols.tree.reference_tree import ReferenceTree
from planaria.protocols.tree.search import KnownKeysets, Neighbours, neighbours

REFRESH_PERIOD = 16  # timeouts between searches for no reason
SEARCHES_MAX = 4  # between two timeouts; what asks for more waits for the next one
LOOKUPS_MAX = 512  # of one search: six do for a binary tree, some hundred for the widest
SUSPECT_AGE_MAX = 4  # timeouts for which a lost neighbour is not taken back unless it speaks
CLAIMS_MAX = 64  # hosts that wait to hear that they are no neighbours
NEIGHBOURS_MAX = 4_096  # a binary tree has 3; for wider ones few is likely, not certain


class TreeLink(Effect, frozen=True, gc=False):
    """The link to `neighbour` in the tree came up, or is no more."""

    neighbour: NodeId
    up: bool


class Answer(Struct, frozen=True):
    """A keyset that a lookup of the running search found."""

    owner: int
    predecessor: int


class TreePlaceState(State):
    """The neighbours, the running search and its reasons, and who waits to hear of it."""

    parent: int | None
    children: tuple[int, ...]
    searched: Keyset | None
    searching: Keyset | None
    answers: list[Answer]
    asked: list[int]
    dirty: bool
    age: int
    searches: int
    suspects: dict[int, int]
    claims: list[int]


class TreePlace(Stateful):
    """A component on top of a `DhtMember`: its owner passes messages, time and answers on."""

    __slots__ = (
        "age",
        "answers",
        "asked",
        "children",
        "claims",
        "dht",
        "dirty",
        "parent",
        "searched",
        "searches",
        "searching",
        "suspects",
        "tree",
    )

    state_type = TreePlaceState

    def __init__(self, dht: DhtMember, tree: ReferenceTree) -> None:
        self.dht, self.tree = dht, tree
        self.parent: NodeId | None = None
        self.children: tuple[NodeId, ...] = ()
        self.searched: Keyset | None = None  # my keyset when I searched last
        self.searching: Keyset | None = None  # my keyset when the running search began
        self.answers: list[Answer] = []
        self.asked: list[int] = []
        self.dirty = False
        self.age = 0
        self.searches = 0
        self.suspects: dict[NodeId, int] = {}
        self.claims: list[NodeId] = []

    @property
    def neighbours(self) -> list[NodeId]:
        """The hosts beside me, the parent first."""
        return neighbours_in(self)

    # Inputs

    def on_timeout(self) -> list[Effect]:
        """Tell the neighbours that they are; search if there is a reason, or none for long."""
        self.age += 1
        self.searches = 0
        self.suspects = {
            id: age + 1 for id, age in self.suspects.items() if 0 <= age < SUSPECT_AGE_MAX
        }
        self._repair()
        if self.dht.leaving:
            return self._adopt(None, ())
        effects: list[Effect] = [Send(id, Link(self.dht.id)) for id in self.neighbours]
        if self.searching is not None and not self._waiting():
            self.searching, self.dirty = None, True  # its lookups are gone, or never were
        if not 0 <= self.age < REFRESH_PERIOD:
            self.dirty = True
        return effects + self.review()

    def on_message(self, message: TreeMessage, sender: NodeId | None) -> list[Effect]:
        """A neighbour, or somebody who thinks so, says what it thinks; others cannot for it."""
        self._repair()
        if sender is None or sender != message.sender or sender == self.dht.id:
            return []
        near = sender in self.neighbours
        if isinstance(message, Link):
            self.suspects.pop(sender, None)
            if self.dht.leaving:
                return [Send(sender, Unlink(self.dht.id))]
            if not near and sender not in self.claims and len(self.claims) < CLAIMS_MAX:
                self.claims.append(sender)
        if near == isinstance(message, Unlink):
            self.dirty = True
        return self.review()

    def on_link_down(self, peer: NodeId) -> list[Effect]:
        """A send to `peer` failed: it is no neighbour until it speaks or some time has passed."""
        self._repair()
        if peer not in self.neighbours:
            return []
        self.suspects[peer] = 0
        self.dirty = True
        above = None if self.parent == peer else self.parent
        return self._adopt(above, tuple(id for id in self.children if id != peer)) + self.review()

    def on_answer(self, answer: Located | Unlocated) -> list[Effect]:
        """A lookup of mine ended: go on with the search, or give it up."""
        self._repair()
        self.asked.remove(answer.key)
        if self.searching is None:
            return []
        if isinstance(answer, Unlocated):
            self.searching, self.dirty = None, True
            return []
        self.answers.append(Answer(answer.owner, answer.predecessor))
        return self._go_on(self.searching)

    def review(self) -> list[Effect]:
        """Search, if there is a reason and no search is under way.

        Hosts ask after every input, so also what came for the DHT alone finds sound neighbours.
        """
        self._repair()
        mine = self.dht.keyset
        if self.searching is not None or mine is None or not 0 <= self.searches < SEARCHES_MAX:
            return []
        if not self.dirty and mine == self.searched:
            return []
        self.searching, self.answers, self.asked = mine, [], []
        self.dirty, self.age = False, 0
        self.searches += 1
        return self._go_on(mine)

    def leave(self) -> list[Effect]:
        """The host has left: so have its links."""
        self._repair()
        self.searching, self.asked, self.searched = None, [], None
        return self._adopt(None, ())

    # Rules

    def _go_on(self, mine: Keyset) -> list[Effect]:
        """As far as the answers go; then look up what is missing, or adopt what was found."""
        keyset = self.dht.host_keys.keyset
        known = KnownKeysets(
            self.tree, [mine, *(keyset(it.owner, it.predecessor) for it in self.answers)]
        )
        found = neighbours(mine, known)
        if not known.wanted:
            return self._finish(mine, found)
        if len(self.answers) >= LOOKUPS_MAX:
            self.searching, self.dirty = None, True
            return []
        effects: list[Effect] = []
        for key in dict.fromkeys(known.wanted):
            if key not in self.asked:
                self.asked.append(key)
                effects += self.dht.lookup(key)
        return effects

    def _finish(self, mine: Keyset, found: Neighbours) -> list[Effect]:
        """Adopt what was found, unless things changed meanwhile."""
        self.searching = None
        ids = {self.dht.host_keys.key(it.owner): it.owner for it in self.answers}
        above = None if found.parent is None else ids.get(found.parent[1])
        below = tuple(ids[last] for _, last in found.children if last in ids)
        if mine != self.dht.keyset or any(id in self.suspects for id in (above, *below)):
            # The keyset is new, or the DHT has not noticed yet that somebody is gone.
            self.dirty = True
            return []
        self.searched = mine
        effects = self._adopt(above, below)
        beside = self.neighbours
        refused = [id for id in self.claims if id not in beside]
        self.claims = []
        effects += [Send(id, Unlink(self.dht.id)) for id in refused]
        return effects + self.review()

    def _adopt(self, above: NodeId | None, below: tuple[NodeId, ...]) -> list[Effect]:
        """Take these neighbours; tell all who are in the symmetric difference of old and new."""
        before = self.neighbours
        self.parent, self.children = above, below
        after = self.neighbours
        effects: list[Effect] = []
        for id in before:
            if id not in after:
                effects += [TreeLink(id, up=False), Send(id, Unlink(self.dht.id))]
        for id in after:
            if id not in before:
                effects += [TreeLink(id, up=True), Send(id, Link(self.dht.id))]
        return effects

    def _repair(self) -> None:
        """Put my own variables right: nobody is beside itself, or twice, or is nobody."""
        me = self.dht.id
        if self.parent is not None and (self.parent == me or not is_node_id(self.parent)):
            self.parent, self.dirty = None, True
        if self.children:
            others = (me, self.parent)
            own = [id for id in self.children if id not in others and is_node_id(id)]
            fine = tuple(dict.fromkeys(own))
            if fine != self.children or len(fine) > NEIGHBOURS_MAX:
                self.children, self.dirty = fine[:NEIGHBOURS_MAX], True
        if self.claims:
            claims = [id for id in self.claims if id != me and is_node_id(id)]
            self.claims = claims[:CLAIMS_MAX]
        if self.searching is not None and not self._can_go_on(self.searching):
            self.searching, self.dirty = None, True

    def _can_go_on(self, searching: Keyset) -> bool:
        """Is the running search about keys that there are, its answers about hosts?"""
        return all(0 <= place < self.dht.space.size for place in searching) and all(
            is_node_id(it.owner) and is_node_id(it.predecessor) for it in self.answers
        )

    def _waiting(self) -> bool:
        """Is a lookup of the running search under way?"""
        return any(key in self.dht.lookups.pending for key in self.asked)


def neighbours_in(place: TreePlace | TreePlaceState) -> list[NodeId]:
    """The hosts beside the one at this place, the parent first."""
    return [*([] if place.parent is None else [place.parent]), *place.children]
