"""Anti-entropy of two subscribers: any small stores, and exchanges left half-way by a fault."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from types import MappingProxyType

from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import Effect, Effects, Node, Send
from planaria.core.overlay import Violation
from planaria.core.state import State
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.antientropy_messages import MESSAGES
from planaria.protocols.publications.exchange import AntiEntropyState, Exchange
from planaria.protocols.publications.holdings import Holdings, HoldingsState
from planaria.protocols.publications.push import sound
from planaria.protocols.skipring.messages import Greeting
from planaria.records.memory import MemoryStore
from planaria.records.record import TIME_MAX, Draft, Record, seal
from planaria.verify.check import Search
from planaria.verify.coins import Coins
from planaria.verify.model import First, Flying, Model
from planaria.verify.space import Schedule

TOPIC = "news"
HERE = "planaria.protocols.publications.antientropy"
BOOKS = "planaria.protocols.publications.exchanges"
PATIENCE, LIFETIME = 5, 8
STRIKES = (-1, 1, 2, 7)  # below, up to the bound, and beyond


class SubscriberState(State):
    """What it holds, and its exchanges."""

    exchanges: AntiEntropyState
    holdings: HoldingsState


class Subscriber(Node):
    """One of two that greet each other with a digest, as ring neighbours do."""

    state_type = SubscriberState

    def __init__(self, id: NodeId) -> None:
        super().__init__(id)
        self.holdings = Holdings(MemoryStore())
        self.exchanges = AntiEntropy(TOPIC, id, self.holdings)

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        """A digest, or the next message of an exchange."""
        if isinstance(message, Greeting):
            assert message.digest is not None
            return self.exchanges.on_digest(message.sender[1], message.digest)
        return self.exchanges.on_message(message)

    def on_timeout(self) -> Effects:
        """Audit, then show what is held."""
        self.exchanges.on_timeout()
        other = 1 - self.id
        digest = self.exchanges.digest(0, TIME_MAX)
        return [Send(other, Greeting(TOPIC, (self.id, self.id), other, digest, 1))]


@cache
def record(number: int) -> Record:
    """One of a few publications."""
    return seal((number, bytes(12)), number, [Draft(bytes([number]))], time=3)


class AntiEntropyModel(Model):
    """Two subscribers with any of 2^n stores each: n is how many records there are.

    `stores`: nothing under way. `memory`: each believes anything of the other (how often digests
    differed without effect, at which version) and of an exchange with it. `stale`: one message of
    an exchange between any two other such stores is in flight.
    """

    name = "anti-entropy"
    messages = (*MESSAGES, Greeting)
    starts = ("stores", "memory", "stale")
    small = MappingProxyType(
        {f"{HERE}:NUMBER_MAX": 2, f"{BOOKS}:PATIENCE": PATIENCE, f"{BOOKS}:LIFETIME": LIFETIME}
    )

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        every = f"all {4**self.n} pairs of stores of up to {self.n} records"
        return (
            every
            + {
                "stores": "",
                "memory": ", each with any strikes and version, and any exchange or answer or none",
                "stale": ", and one message in flight of an exchange between any two such stores",
            }[self.start]
        )

    def nodes(self, coins: Coins) -> list[Node]:
        """The two."""
        return [Subscriber(0), Subscriber(1)]

    def firsts(self) -> Iterator[First]:
        """Every pair of stores, with what is remembered and in flight."""
        stale = list(self._stale()) if self.start == "stale" else []
        for one, other in product(*self.choices().values()):
            if self.start != "stale":
                yield First({0: one, 1: other})
            for flying in stale:
                yield First({0: one, 1: other}, (flying,))

    def choices(self) -> dict[NodeId, list[State]]:
        """Every store, with what is remembered."""
        return {id: self._subscribers(id) for id in (0, 1)}

    def _subscribers(self, id: NodeId) -> list[State]:
        found: list[State] = []
        for held in range(1 << self.n):
            one = Subscriber(id)
            one.holdings.append([record(it) for it in range(self.n) if held >> it & 1])
            if self.start != "memory":
                found.append(one.state())
                continue
            version = one.holdings.version
            for peers, (exchange, crossing) in product(
                self._beliefs(id, version), self._under_way(id)
            ):
                state = one.state()
                assert isinstance(state, SubscriberState)
                state.exchanges = AntiEntropyState(0, exchange, peers, crossing=crossing)
                found.append(state)
        return found

    def _beliefs(self, id: NodeId, version: int) -> list[dict[int, tuple[int, int]]]:
        return [{}, {1 - id: (5, 1)}, *({1 - id: (version, n)} for n in STRIKES)]

    def _under_way(self, id: NodeId) -> list[tuple[dict[int, Exchange], dict[int, bool]]]:
        """An exchange, an answer that is believed to be on its way, or both, or nothing."""
        begun = [
            Exchange(number, 0, TIME_MAX, started) for number in (0, 1) for started in (False, True)
        ]
        old = [Exchange(1, 0, TIME_MAX, True, age=age, life=age) for age in (-9, 5)]
        exchanges: list[dict[int, Exchange]] = [{}, *({1 - id: it} for it in (*begun, *old))]
        crossing = [{1 - id: passed} for passed in (False, True)]
        return [
            *((it, {}) for it in exchanges),
            *(({}, it) for it in crossing),
            (exchanges[2], crossing[0]),
        ]

    def _stale(self) -> Iterator[Flying]:
        """What is ever said between two such stores."""
        search = Search(AntiEntropyModel(min(self.n, 2), "memory"), Schedule())
        search.graph.begin()
        search.graph.explore(1 << 20)
        yield from search.graph.space.messages

    def plain(self, state: State) -> State:
        """An exchange that is too old is too old, and no answer is so long that it is cut."""
        assert isinstance(state, SubscriberState)
        state.exchanges.coming = {}
        for it in state.exchanges.exchanges.values():
            it.age, it.life = min(it.age, PATIENCE + 1), min(it.life, LIFETIME + 1)
        return state

    def forbidden(self, before: State, after: State, effects: Iterable[Effect]) -> str:
        """A step loses nothing."""
        lost = _held(before) - _held(after)
        return f"lost {len(lost)} records" if lost else ""

    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        """Both hold the same, and nothing is on its way that they lack."""
        one, other = (_held(state) for state in states.values())
        if one != other:
            return [Violation("publications", 0, f"differs in {len(one ^ other)} records")]
        coming = [it for _, _, message in channel for it in getattr(message, "records", ())]
        lacking = [it for it in sound(coming) if it.place not in one]
        return [Violation("publications", None, "more on its way")] if lacking else []


def _held(state: State) -> frozenset[int]:
    assert isinstance(state, SubscriberState)
    assert state.holdings.store is not None
    return frozenset(state.holdings.store.shown)
