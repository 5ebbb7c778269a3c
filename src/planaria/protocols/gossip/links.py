"""Supertopic links of one process in one group (paper 2, Figures 4 and 6), amended.

The supertopic table holds up to z processes for each nearest supertopic in which anybody is
interested. While a nearer supertopic, or another branch, has no contact, the search goes on and
widens with time; a contact covers its topic and all above it, which is what narrows the search
(errata 15, 16). A contact that nobody heard of for `LINK_AGE_MAX` intervals is dead; when all are,
the search starts again (erratum 17). Of a contact that said that it is none, news from before is
not believed.
"""

from collections.abc import Iterable
from random import Random

from msgspec import field

from planaria.core.ids import NodeId, is_node_id
from planaria.core.node import Send
from planaria.core.state import State
from planaria.core.topics import LEVELS_MAX
from planaria.protocols.gossip.hierarchy import BRANCHES_MAX, Hierarchy
from planaria.protocols.gossip.messages import SLOWEST, Contact, ContactCheck, Contacts, Search
from planaria.protocols.gossip.parameters import Parameters

CHECK_AGE = 8  # intervals after which a contact is asked whether it still is there
LINK_AGE_MAX = 24  # leaves 16 checks unanswered: a few lost ones and the slowest are no death
WIDEN_PERIOD = 4  # intervals without success before the next supertopic is searched for too
GAP_MAX = 16  # intervals between searches that found nothing for long
LACKING_SLOW = 64  # intervals after which the gaps do not grow any more
LACKING_MAX = 2 * LACKING_SLOW - 1  # the count goes round from here, in the same steps
WIDEST_AFTER = LACKING_SLOW - GAP_MAX  # two searches for all there is before they are in vain
ROTATION = 0.25  # of the answered checks bring in another superprocess: links must not be for ever
WALKS = 2  # searches started at once
SEARCH_HOPS_MAX = 16  # a search that met nobody who knows has expired
DENIED_MAX = 8  # contacts remembered that said that they are none
TOPICS_MAX = LEVELS_MAX  # that one message searches for


class Links(State):
    """The supertopic table sTable of process `me` for its group `topic`, and its search."""

    me: int
    topic: str
    contacts: dict[int, tuple[str, int]] = field(default_factory=dict)
    denied: dict[int, tuple[str, int]] = field(default_factory=dict)  # and how long ago
    lacking: int = 0

    def repair(self, hierarchy: Hierarchy, z: int) -> None:
        """Keep what a table may hold: others, alive, in a nearest supertopic, z of each."""
        ancestors = hierarchy.ancestors(self.topic)
        good = {
            id: (topic, age)
            for id, (topic, age) in self.contacts.items()
            if topic in ancestors and id != self.me and is_node_id(id) and 0 <= age <= LINK_AGE_MAX
        }
        nearest = hierarchy.nearest([topic for topic, _ in good.values()])[:BRANCHES_MAX]
        count = dict.fromkeys(nearest, 0)
        self.contacts = {}
        for id, (topic, age) in good.items():
            if topic in count and count[topic] < z:
                count[topic] += 1
                self.contacts[id] = (topic, age)
        self.lacking = max(0, min(self.lacking, LACKING_MAX))
        if self.denied:
            denied = [it for it in self.denied.items() if 0 <= it[1][1] <= LINK_AGE_MAX]
            self.denied = dict(denied[-DENIED_MAX:])

    def merge(
        self,
        offered: Iterable[Contact],
        hierarchy: Hierarchy,
        z: int,
        rng: Random,
        *,
        rotate: bool = False,
    ) -> None:
        """MERGE: favourites stay, the silent are replaced, contacts in nearer topics take over.

        With `rotate` a full table now and then gives a favourite's place to a newcomer. News of
        others is one older than they say: otherwise it would not age on its way. What somebody
        denied since then, or while the news was on its way, is no news.
        """
        ancestors = hierarchy.ancestors(self.topic)
        changed = False
        for id, topic, stated in offered:
            age = stated + 1
            if topic not in ancestors or id == self.me or not 0 < age <= LINK_AGE_MAX:
                continue
            if self._is_denied(id, topic, age):
                continue
            known = self.contacts.get(id)
            if known is not None and known[0] == topic:
                if age < known[1]:
                    self.contacts[id] = (topic, age)
            elif known is None or hierarchy.includes(known[0], topic):
                self._make_room(topic, age, z, rng if rotate else None)
                self.contacts[id] = (topic, age)
                changed = True
        if changed:
            self.repair(hierarchy, z)

    def wanted(self, hierarchy: Hierarchy) -> list[str]:
        """The supertopics to search for: not covered by a contact, as far up as time allows."""
        widest = self.lacking >= WIDEST_AFTER  # supertopics may be farther than the count goes
        scope = 1 + self.lacking // WIDEN_PERIOD
        held = list(dict.fromkeys(topic for topic, _ in self.contacts.values()))
        return [
            topic
            for topic, distance in hierarchy.ancestors(self.topic).items()
            if (widest or distance <= scope)
            and not any(hierarchy.includes(topic, each) for each in held)
        ]

    def are_found(self, hierarchy: Hierarchy) -> bool:
        """Is there a contact for every supertopic, but for those that were searched for in vain?"""
        levels = max(hierarchy.ancestors(self.topic).values(), default=0)
        enough = min(WIDEN_PERIOD * (levels + 1), LACKING_SLOW)
        return self.lacking >= enough or not self.wanted(hierarchy)

    def on_timeout(
        self, hierarchy: Hierarchy, parameters: Parameters, size: int, rng: Random
    ) -> list[Send]:
        """KEEP_TABLE_UPDATED: grow older, check who was not heard of, ask for more if few."""
        self.contacts = {id: (topic, age + 1) for id, (topic, age) in self.contacts.items()}
        self.denied = {id: (topic, since + 1) for id, (topic, since) in self.denied.items()}
        self.repair(hierarchy, parameters.z)
        wanted = self.wanted(hierarchy)
        more = self.lacking + 1 if self.lacking < LACKING_MAX else LACKING_SLOW
        self.lacking = more if wanted else 0
        alive: dict[str, int] = {}
        for topic, _ in self.contacts.values():
            alive[topic] = alive.get(topic, 0) + 1
        short = rng.random() < parameters.p_sel(size)
        return [
            Send(id, ContactCheck(topic, self.me, max(1, parameters.z - alive[topic])))
            for id, (topic, age) in self.contacts.items()
            if age >= CHECK_AGE or (short and alive[topic] < parameters.tau)
        ]

    def searches(
        self, hierarchy: Hierarchy, parameters: Parameters, size: int, rng: Random
    ) -> list[Search]:
        """FIND_SUPER_CONTACT: g processes of a group search in an interval, fewer as time goes.

        In intervals that are counted, not drawn: whoever is alone would now and then wait for long.
        What one message cannot name goes in several, each on its own way: else the farthest of many
        supertopics would never be searched for.
        """
        gap = min(GAP_MAX, 1 << max(0, self.lacking // WIDEN_PERIOD - 1).bit_length())
        wanted = self.wanted(hierarchy)
        if not wanted or self.lacking % gap or rng.random() >= parameters.p_sel(size):
            return []
        starts = range(0, len(wanted), TOPICS_MAX)
        parts = [Search(self.me, tuple(wanted[at : at + TOPICS_MAX]), 0) for at in starts]
        return parts if len(parts) >= WALKS else parts * WALKS

    def on_answer(
        self, sender: NodeId, topic: str, others: Iterable[tuple[NodeId, int]]
    ) -> list[Contact]:
        """A superprocess lives; the contacts that its answer offers."""
        if sender not in self.contacts:
            return []
        self.denied.pop(sender, None)
        return [(sender, topic, 0), *((id, topic, age) for id, age in others)]

    def drop(self, id: NodeId, topic: str | None = None) -> None:
        """`id` is out of reach, or (with `topic`) says that it is not interested in it."""
        if id in self.contacts and topic in (None, self.contacts[id][0]):
            del self.contacts[id]
        if topic is not None:
            self.denied.pop(id, None)
            self.denied[id] = (topic, 0)
            if len(self.denied) > DENIED_MAX:
                del self.denied[next(iter(self.denied))]

    def table(self) -> Contacts:
        """The supertopic table as it travels with membership messages."""
        return tuple(
            (id, topic, age)
            for id, (topic, age) in self.contacts.items()
            if 0 <= age <= LINK_AGE_MAX and is_node_id(id)
        )[: 2 * BRANCHES_MAX]

    def _is_denied(self, id: NodeId, topic: str, age: int) -> bool:
        denied = self.denied.get(id)
        return denied is not None and denied[0] == topic and age + SLOWEST > denied[1]

    def _make_room(self, topic: str, age: int, z: int, rng: Random | None) -> None:
        """In a full table, a newcomer replaces the longest silent, or sometimes any."""
        rivals = [id for id, (held, _) in self.contacts.items() if held == topic]
        if len(rivals) < z:
            return
        oldest = max(rivals, key=lambda it: self.contacts[it][1])
        if self.contacts[oldest][1] > max(age, CHECK_AGE + 2):
            del self.contacts[oldest]
        elif rng is not None and rng.random() < ROTATION:
            del self.contacts[rng.choice(rivals)]
