"""The flat gossip membership of one group (paper 2, its reference [10]), self-stabilizing.

A partial view of (b+1) ln S members. A newcomer's subscription is forwarded until somebody keeps
it; then, in every interval, each member exchanges a few entries with the one it has not heard of
for longest. Entries move rather than multiply, so everybody stays known by about as many as it
knows. Ages travel with entries and only a process itself sets its own back to 0: the dead, the
departed and the invented die out, whatever the tables held. Whoever found a member silent, or was
told by it that it is none, believes no news of it from before: else a few processes with slow links
hand it round for long.
"""

from collections.abc import Iterable, Sequence
from random import Random

from msgspec import field

from planaria.core.ids import NODE_ID_MAX, NodeId, is_node_id
from planaria.core.node import Send
from planaria.core.state import State
from planaria.protocols.gossip import sketch as sketches
from planaria.protocols.gossip.messages import (
    AGE_MAX,
    SLOWEST,
    Contacts,
    Shuffle,
    Subscription,
    Unsubscription,
)
from planaria.protocols.gossip.parameters import Parameters

SHUFFLE_ENTRIES = 5  # moved per exchange: enough to mix, few enough that a lost answer is no harm
PATIENCE = 2 * SLOWEST  # intervals to answer
RETRY = 3  # intervals until the silent are asked again: one lost message is no death
REMEMBERED_MAX = 8  # silent members called again now and then: a partition may have been the cause
RENDEZVOUS = 5.0  # such calls per interval in a whole group, whatever its size
SUBSCRIPTION_HOPS_MAX = 32  # a subscription that nobody kept so long is kept by whoever has it
COPIES_MAX = 16  # copies of one subscription that a contact forwards


class Membership(State):
    """What process `me` knows of its group: a component, its owner passes messages and time on."""

    me: int
    group: str
    view: dict[int, int] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)
    sketch: sketches.Sketch = field(default_factory=dict)
    remembered: dict[int, int] = field(default_factory=dict)  # intervals since found silent
    denied: dict[int, int] = field(default_factory=dict)  # intervals since they said: not here
    size: int = 1

    def repair(self) -> None:
        """Drop what no table may hold: myself, impossible ids and hashes; recount the group.

        Whoever has an impossible age, or too many beside it, stays until it was asked: it may be
        the only live member in the view.
        """
        self.view = good = self._possible(self.view)
        self.asked = {id: n for id, n in self.asked.items() if id in good and 0 <= n <= PATIENCE}
        if self.remembered:
            silent = self._possible(self.remembered)
            kept = [(id, n) for id, n in silent.items() if id not in good]
            self.remembered = dict(kept[-REMEMBERED_MAX:])
        if self.denied:
            denied = [(id, n) for id, n in self.denied.items() if 0 <= n < AGE_MAX]
            self.denied = dict(denied[-REMEMBERED_MAX:])
        self.sketch = sketches.repair(self.sketch)
        self.size = sketches.estimate(self.sketch)

    def _possible(self, table: dict[NodeId, int]) -> dict[NodeId, int]:
        if not table:
            return table
        ages = table.values()
        if (
            self.me not in table
            and 0 <= min(ages) <= max(ages) <= AGE_MAX
            and 0 <= min(table) <= max(table) <= NODE_ID_MAX
        ):
            return table
        return {
            id: age if 0 <= age <= AGE_MAX else AGE_MAX
            for id, age in table.items()
            if id != self.me and is_node_id(id)
        }

    def on_timeout(
        self, parameters: Parameters, rng: Random, contacts: Contacts, known: Sequence[NodeId] = ()
    ) -> list[Send]:
        """Grow older, give up on the silent, exchange entries with the one heard of longest ago.

        Of a view that is too long the surplus is asked too: the dead in it are found out together.
        `known` are processes to call for want of any other, and sometimes anyway.
        """
        self.sketch = sketches.grow_old(self.sketch, self.me)
        self.repair()
        for id in [id for id, waited in self.asked.items() if waited >= PATIENCE]:
            self.forget(id)
        self.asked = {id: waited + 1 for id, waited in self.asked.items()}
        self.view = {id: min(age + 1, AGE_MAX) for id, age in self.view.items()}
        silent = self.remembered.items()
        self.remembered = {id: min(since + 1, AGE_MAX) for id, since in silent}
        self.denied = {id: since + 1 for id, since in self.denied.items()}
        targets = [id for id, waited in self.asked.items() if waited % RETRY == 0]
        rested = [id for id in self.view if id not in self.asked]
        surplus = max(0, len(self.view) - parameters.view(self.size))
        if surplus:
            partners = sorted(rested, key=self.view.__getitem__, reverse=True)[: 1 + surplus]
        else:
            partners = [max(rested, key=self.view.__getitem__)] if rested else []
        self.asked.update(dict.fromkeys(partners, 0))
        targets += partners
        absent = [id for id in dict.fromkeys([*known, *self.remembered]) if id != self.me]
        if absent and (not self.view or rng.random() * self.size < RENDEZVOUS):
            targets.append(rng.choice(absent))
        return [Send(target, self._request(target, rng, contacts)) for target in targets]

    def on_shuffle(
        self, message: Shuffle, parameters: Parameters, rng: Random, contacts: Contacts
    ) -> list[Send]:
        """Exchange entries: what I give away makes room for what I get."""
        sender = message.sender
        self.repair()
        if sender == self.me:
            return []
        self.denied.pop(sender, None)
        sketches.merge(self.sketch, message.sketch)
        self.size = sketches.estimate(self.sketch)
        room = parameters.view(self.size)
        self._shed(sender, room)
        if message.swapped is not None:
            self.heard(sender)
            given = [*message.swapped, sender]
            self._take(message.entries, room, given)
            return []
        mine = self._sample(rng, sender, SHUFFLE_ENTRIES)
        answer = self._shuffle(mine, contacts, tuple(id for id, _ in message.entries))
        given = [id for id, _ in mine]
        self._take([(sender, 0), *message.entries], room, given)
        self.heard(sender)
        return [Send(sender, answer)]

    def on_subscription(
        self, message: Subscription, parameters: Parameters, rng: Random, contacts: Contacts
    ) -> list[Send]:
        """Keep the newcomer with probability 1/(1+|view|), or if there is room; else pass it on.

        Its first contact passes a copy to everybody it knows and answers with part of its view.
        """
        self.repair()
        subject, others = message.subject, [id for id in self.view if id != message.subject]
        if subject == self.me:
            return []
        onward = Subscription(self.group, subject, min(message.hops + 1, SUBSCRIPTION_HOPS_MAX))
        if message.hops == 0:
            copies = others if len(others) <= COPIES_MAX else rng.sample(others, COPIES_MAX)
            answer = self._shuffle(self._sample(rng, subject, SHUFFLE_ENTRIES), contacts, ())
            self._keep(subject, parameters, rng)
            return [Send(subject, answer), *(Send(id, onward) for id in copies)]
        room = len(self.view) < parameters.view(self.size)
        stop = message.hops >= SUBSCRIPTION_HOPS_MAX or not others
        if room or stop or rng.random() * (1 + len(self.view)) < 1:
            self._keep(subject, parameters, rng)
            return []
        return [Send(rng.choice(others), onward)]

    def on_unsubscription(self, message: Unsubscription, parameters: Parameters) -> None:
        """The subject leaves in good order: forget it and take one of its heirs in its place."""
        self.repair()
        if message.subject in self.view:
            self.drop(message.subject)
            fresh = [each for each in message.heirs if each[0] not in self.view]
            self._take(fresh[:1], parameters.view(self.size), [])

    def leave(self) -> list[Send]:
        """Unsubscribe: tell those I know; whoever else knows me is told when it next calls."""
        self.repair()
        heirs = tuple(self.view.items())[:SHUFFLE_ENTRIES]
        return [Send(id, Unsubscription(self.group, self.me, heirs)) for id in self.view]

    def call(self, target: NodeId, rng: Random, contacts: Contacts) -> Send:
        """Introduce myself to `target`, believed to be in the group: as a newcomer, or a friend."""
        self.repair()
        if not self.view:
            return Send(target, Subscription(self.group, self.me, 0))
        return Send(target, self._request(target, rng, contacts))

    def heard(self, id: NodeId) -> None:
        """A message of `id` itself about this group arrived."""
        if id in self.view:
            self.view[id] = 0
        self.asked.pop(id, None)

    def drop(self, id: NodeId) -> None:
        """`id` is not in the group."""
        self.view.pop(id, None)
        self.asked.pop(id, None)
        self.sketch.pop(sketches.rank(id), None)
        self.remembered.pop(id, None)
        self.denied.pop(id, None)
        self.denied[id] = 0
        if len(self.denied) > REMEMBERED_MAX:
            del self.denied[next(iter(self.denied))]

    def forget(self, id: NodeId) -> None:
        """`id` is out of reach; it may come back."""
        known = self.view.pop(id, None) is not None
        known |= self.remembered.pop(id, None) is not None
        if known:
            self.remembered[id] = 0
        self.asked.pop(id, None)

    def members(self, rng: Random, count: int, without: NodeId) -> list[tuple[NodeId, int]]:
        """Up to `count` members that I know, with their ages."""
        self.repair()
        return self._sample(rng, without, count)

    def _request(self, target: NodeId, rng: Random, contacts: Contacts) -> Shuffle:
        entries = [(self.me, 0), *self._sample(rng, target, SHUFFLE_ENTRIES - 1)]
        return self._shuffle(entries, contacts, None)

    def _shuffle(
        self,
        entries: list[tuple[NodeId, int]],
        contacts: Contacts,
        swapped: tuple[NodeId, ...] | None,
    ) -> Shuffle:
        known = tuple(self.sketch.items())
        return Shuffle(self.group, self.me, tuple(entries), known, contacts, swapped)

    def _sample(self, rng: Random, without: NodeId, count: int) -> list[tuple[NodeId, int]]:
        view = self.view
        ids = [id for id, age in view.items() if id != without and age < AGE_MAX]
        chosen = ids if len(ids) <= count else rng.sample(ids, count)
        return [(id, view[id]) for id in chosen]

    def _keep(self, id: NodeId, parameters: Parameters, rng: Random) -> None:
        """Put `id` into the view, at the cost of another one if the view is full.

        Whoever loses its place is remembered: the newcomer may be a lie, and it the only live one.
        """
        if id not in self.view and len(self.view) >= parameters.view(self.size):
            loser = rng.choice(list(self.view))
            age = self.view.pop(loser)
            self.asked.pop(loser, None)
            self.remembered[loser] = age
        self.view[id] = 0
        self.remembered.pop(id, None)
        self.denied.pop(id, None)

    def _shed(self, sender: NodeId, room: int) -> None:
        """`sender` lives: of a view that is too long, the oldest other one may go."""
        if len(self.view) > room:
            others = [id for id in self.view if id != sender]
            if others:
                oldest = max(others, key=self.view.__getitem__)
                del self.view[oldest]
                self.asked.pop(oldest, None)

    def _take(self, entries: Iterable[tuple[NodeId, int]], room: int, given: list[NodeId]) -> None:
        """Put `entries` into the view, in free places first, then in those of `given`.

        News of others is one older than they say: otherwise it would not age on its way. News of
        one that was found silent since then is no news; nor is it of one that said, since then or
        while the news was on its way, that it is no member.
        """
        view, silent, denied = self.view, self.remembered, self.denied
        given = [id for id in given if id in view]
        for id, stated in entries:
            age = stated + 1
            if id in view:
                view[id] = min(age, view[id])
                continue
            if id == self.me or age > silent.get(id, AGE_MAX):
                continue
            if id in denied and age + SLOWEST > denied[id]:
                continue
            if len(view) >= room:
                while given and given[0] not in view:
                    given.pop(0)
                if not given:
                    return
                del view[given.pop(0)]
            view[id] = age
