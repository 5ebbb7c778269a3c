"""BuildRing: the sorted ring of all members, from any references, labels and messages."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effects, Node
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.protocols.ring.messages import MESSAGES, Check, Introduce, Ref, Remove, speaker
from planaria.protocols.ring.sorted_ring import SortedRing, SortedRingState
from planaria.verify.coins import Coins
from planaria.verify.model import Constants, First, Flying, Model

GROUP = "ring"
RING = "planaria.protocols.ring.sorted_ring"
FOREVER = 1 << 30  # a silence that never comes
SILENT = 2  # timeouts in a row while a neighbour has none: at the end of a round, and the beginning
LOST_AGE = 2  # timeouts for which the lost are called
SPENT = (0, SILENT + 1, -2)  # counts of silence: fresh, or neighbours are dropped at once
AGES = (None, 0, LOST_AGE, -1)  # of a loss: none, fresh, and two at which nobody is called


class Member(Node):
    """A member of a sorted ring and of nothing else; each speaks for itself alone."""

    state_type = SortedRingState

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.ring = SortedRing(GROUP, id, id)

    def state(self) -> State:
        """The member's own."""
        return self.ring.state()

    def load(self, state: State) -> None:
        """Take these variables."""
        self.ring.load(state)

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """As the DHT does: nobody speaks in another's name."""
        if speaker(message) not in (None, sender):  # type: ignore[arg-type]
            return ()
        return self.ring.on_message(message)  # type: ignore[arg-type]

    def on_timeout(self) -> Effects:
        """One timeout."""
        return self.ring.on_timeout()


class SortedRingModel(Model):
    """Members 0 to n - 1 whose label is their id; references among them that connect all.

    `right`: every reference under its right label, on its right side. `sides`: on any side, or
    to oneself.
    `equal`: as `right`, and all have the same label. `wound`: those of them in
    which everybody has two neighbours who have it as theirs: every ring, however often it winds
    round the order. `labels`: under any label of
    0 to n (n is nobody's). `garbage`: as `right`, and one message in flight of any kind that may be
    false. `dead`: as `right`, and n is a member that died, whom anybody may still point at.
    `between`: the same, and it is not the last in the order but the second.
    `spent`: as `right`; the patience with neighbours may be spent already, or a count of silence
    negative, and each of them may be among those lost, since any time or none that there is.
    `handed`: as `between`, and each may remember any of the others, as one that it handed on.
    """

    name = "sorted-ring"
    messages = MESSAGES
    starts = (
        "right",
        "sides",
        "equal",
        "wound",
        "labels",
        "garbage",
        "dead",
        "between",
        "handed",
        "spent",
    )

    @property
    def names_dead(self) -> bool:
        """Is there somebody who died, whom others may point at?"""
        return self.start in ("dead", "between", "handed")

    @property
    def counts_silence(self) -> bool:
        """Is a neighbour dropped for its silence?"""
        return self.names_dead or self.start == "spent"

    @property
    def constants(self) -> Constants:
        """Silence never comes, unless it is what tells of the dead.

        What is handed to a dead neighbour is lost: the silent are called until others dropped it.
        A reference under a wrong label may walk in a circle: for twice as many hops as there are
        members.
        """
        small = {"SILENCE_MAX": FOREVER}
        if self.start == "garbage":
            small["HOPS_MAX"] = 2 * self.n
        if self.counts_silence:
            called = 8 if self.start in ("between", "handed") else LOST_AGE
            small = {"SILENCE_MAX": SILENT, "LOST_MAX": 2, "LOST_AGE_MAX": called}
        return {f"{RING}:{name}": value for name, value in small.items()}

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        refs = f"every weakly connected choice of left, right and ring among {self.n} members"
        return (
            refs
            + {
                "right": ", labels right, sides right",
                "sides": " or oneself, labels right, on any side",
                "equal": ", all under one label, sides right",
                "wound": ", all mutual and nobody at an end, labels right, sides right",
                "labels": f", each under any label of 0..{self.n}",
                "garbage": ", labels and sides right, and every single message in flight, "
                "but no Remove that cuts them in two",
                "dead": f" and dead member {self.n}, labels and sides right",
                "between": f" and dead member {self.n}, the second in the order, all right else",
                "handed": f" and dead member {self.n}, the second in the order, any handed on",
                "spent": ", labels and sides right, any patience with each, any age of loss",
            }[self.start]
        )

    def nodes(self, coins: Coins) -> list[Node]:
        """The members."""
        return [Member(id) for id in range(self.n)]

    def firsts(self) -> Iterator[First]:
        """Every choice of references, unless it leaves the members in two parts."""
        per_member = [list(self._places(id)) for id in range(self.n)]
        made = [{it: self._states(id, it) for it in all_} for id, all_ in enumerate(per_member)]
        garbage = list(self._garbage()) if self.start == "garbage" else []
        for places in product(*per_member):
            if not self._connected(places) or (self.start == "wound" and not _mutual(places)):
                continue
            for chosen in product(*(made[id][it] for id, it in enumerate(places))):
                states: dict[NodeId, State] = dict(enumerate(chosen))
                if self.start != "garbage":
                    yield First(states)
                for flying in garbage:
                    if self._harmless(places, flying):
                        yield First(states, (flying,))

    def choices(self) -> dict[NodeId, list[State]]:
        """Every place of every member, whether it connects them or not."""
        return {
            id: [state for it in self._places(id) for state in self._states(id, it)]
            for id in range(self.n)
        }

    def draw(self, choices: Mapping[NodeId, Sequence[State]], rng: Random) -> First:
        """Drawn again until it connects them."""
        while True:
            found = super().draw(choices, rng)
            states = [it for it in found.states.values() if isinstance(it, SortedRingState)]
            if self._connected([(it.left, it.right, it.ring) for it in states]):
                return found

    def _places(self, id: NodeId) -> Iterator[tuple[Ref | None, Ref | None, Ref | None]]:
        """Left, right and ring as a repair leaves them, or (labels) as a fault does."""
        others = [it for it in range(self.n + self.names_dead) if it != id]
        if self.start == "labels":
            refs = [None, *((label, it) for it in others for label in range(self.n + 1))]
            for place in product(refs, repeat=3):
                ring = Member(id).ring
                ring.left, ring.right, ring.ring = place
                if not ring.repair() and (ring.left, ring.right, ring.ring) == place:
                    yield place
            return
        named: list[Ref] = [(self._label(it), it) for it in others]
        if self.start == "sides":
            yield from product([None, (id, id), *named], repeat=3)
            return
        key = self._key
        below: list[Ref | None] = [None, *(it for it in named if key(it[1]) < key(id))]
        above: list[Ref | None] = [None, *(it for it in named if key(it[1]) > key(id))]
        for left, right in product(below, above):
            yield left, right, None
            if (left is None) != (right is None):
                yield from ((left, right, ring) for ring in (above if left is None else below)[1:])

    def _label(self, id: NodeId) -> int:
        if self.start in ("between", "handed"):
            return 1 if id == self.n else 2 * id
        return 0 if self.start == "equal" else id

    def _key(self, id: NodeId) -> tuple[int, NodeId]:
        return self._label(id), id

    def _connected(self, places: Sequence[tuple[Ref | None, ...]]) -> bool:
        """Do references among the living connect them all? The dead connect nobody."""
        near: dict[int, set[int]] = {id: set() for id in range(self.n)}
        for id, place in enumerate(places):
            for ref in place:
                if ref is not None and ref[1] < self.n:
                    near[id].add(ref[1])
                    near[ref[1]].add(id)
        found, waiting = {0}, [0]
        while waiting:
            fresh = near[waiting.pop()] - found
            found |= fresh
            waiting += fresh
        return len(found) == self.n

    def _garbage(self) -> Iterator[Flying]:
        members, labels = range(self.n), range(self.n + 1)
        for source, target in product(members, members):
            if source == target:
                continue
            for label, cyclic in product(labels, (False, True)):
                yield source, target, Introduce(GROUP, (label, source), cyclic, 0)
                for believed in labels:
                    yield source, target, Check(GROUP, (label, source), believed, cyclic)
                for id in members:
                    yield source, target, Introduce(GROUP, (label, id), cyclic, 1)
            yield source, target, Remove(GROUP, source)

    def _harmless(self, places: Sequence[tuple[Ref | None, ...]], flying: Flying) -> bool:
        """A word of one's own that one is no member cuts a reference: not the last one."""
        source, target, message = flying
        if not isinstance(message, Remove):
            return True
        kept = list(places)
        kept[target] = tuple(None if it and it[1] == source else it for it in places[target])
        return self._connected(kept)

    def plain(self, state: State) -> State:
        """While silence never comes nobody reads its counters; and too long is too long."""
        assert isinstance(state, SortedRingState)
        limit = SILENT + 1 if self.counts_silence else 0
        state.silence = {id: min(it, limit) for id, it in state.silence.items() if limit}
        return state

    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        """Sorted, closed, nobody about to be dropped, and nothing false in flight."""
        found = []
        for id, state in states.items():
            assert isinstance(state, SortedRingState)
            right = self._right(id)
            have = (state.left, state.right, state.ring)
            if have != right or state.label != self._label(id):
                found.append(Violation("sorted", id, f"{have}, should be {right}"))
            elif any(not 0 <= it <= SILENT for it in state.silence.values()):
                found.append(Violation("silence", id, f"{state.silence}"))
            elif not all(self._true((label, it)) for it, label in state.handed.items()):
                found.append(Violation("handed", id, f"{state.handed}"))
        for _, target, message in channel:
            if self._false(target, message):
                found.append(Violation("channel", target, f"{message}"))
        return found

    def _false(self, target: NodeId, message: Message) -> bool:
        if isinstance(message, Check):
            right = message.believed == self._label(target)
            return not (right and self._true(message.sender))
        if isinstance(message, Introduce):
            return not self._true(message.ref)
        return isinstance(message, Remove) and message.id < self.n

    def _true(self, ref: Ref) -> bool:
        return ref[0] == self._label(ref[1]) and ref[1] < self.n

    def _right(self, id: NodeId) -> tuple[Ref | None, Ref | None, Ref | None]:
        """The sorted ring from its definition."""
        left, right = self._ref(id - 1), self._ref(id + 1)
        end = self.n > 1 and id in (0, self.n - 1)
        return left, right, self._ref(self.n - 1 - id) if end else None

    def _ref(self, id: NodeId) -> Ref | None:
        return (self._label(id), id) if 0 <= id < self.n else None

    def _states(self, id: NodeId, place: tuple[Ref | None, ...]) -> list[SortedRingState]:
        """A member at this place, and (spent, handed) all that it may remember of the others."""
        left, right, ring = place
        named = {ref[1]: None for ref in place if ref is not None}
        counts = [*product(SPENT, AGES)] if self.start == "spent" else [(0, None)]
        states = []
        for counted in product(counts, repeat=len(named)):
            silence = {it: silent for it, (silent, _) in zip(named, counted, strict=True) if silent}
            lost = {it: age for it, (_, age) in zip(named, counted, strict=True) if age is not None}
            for handed in self._handed(id):
                it = SortedRingState(self._label(id), left, right, ring, silence, lost, handed)
                states.append(it)
        return states

    def _handed(self, id: NodeId) -> list[dict[NodeId, int | bytes]]:
        """Nobody, or (handed) every choice of the others."""
        others = [it for it in range(self.n + 1) if it != id] if self.start == "handed" else []
        choices = product((False, True), repeat=len(others))
        return [
            {it: self._label(it) for it, has in zip(others, all_, strict=True) if has}
            for all_ in choices
        ]


def _mutual(places: Sequence[tuple[Ref | None, ...]]) -> bool:
    """Has everybody two neighbours, each of whom has it as one of two?"""
    near = [[ref[1] for ref in place if ref is not None] for place in places]
    return all(
        len(mine) == 2 and all(id in near[other] for other in mine) for id, mine in enumerate(near)
    )
