"""Leased routing on a path of brokers: any entries, flags, clocks, and beliefs of what was told."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from types import MappingProxyType
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.node import Node
from planaria.core.overlay import Violation
from planaria.core.state import State, decode_state
from planaria.protocols.routing.leases import Lease
from planaria.protocols.routing.node import Broker, BrokerState
from planaria.protocols.routing.overlay import RoutingOverlay
from planaria.protocols.routing.workload import random_filter
from planaria.verify.coins import Coins
from planaria.verify.model import Flying, Model

HERE = "planaria.protocols.routing"
STAMPS = 64  # half of it is more messages than are sent within a lease
SMALL = {
    "announcer:STAMPS": STAMPS,
    "leases:STAMPS": STAMPS,
    "legitimacy:STAMPS": STAMPS,
    "link:STAMPS": STAMPS,
    "node:SESSIONS": 1,
    "link:SESSIONS": 1,
    "contact:BEATS_PER_PERIOD": 1,
}
FALSE_ID = 9
KINDS = ("right", "unset", "none", "false", "filter")


class LeasesModel(Model):
    """A path of n brokers, one client with one filter at a random one of them.

    Over each link in each direction there is the right entry, its flag set or not, none, a false
    one, or a false filter under the right id; clocks are at 0, about to overrun, or out of range.
    `announced`: each thinks that it announced what is right, nothing, or something false; otherwise
    what is right.
    """

    name = "leases"
    messages = RoutingOverlay.messages
    starts = ("entries", "announced")
    small = MappingProxyType({f"{HERE}.{name}": value for name, value in SMALL.items()})

    def __init__(self, n: int, start: str = "entries") -> None:
        super().__init__(n, start)
        self.overlay = RoutingOverlay("simple", degree=1, subscriptions=1, rho=1)
        self.made = [it for it in self.overlay.legitimate(n, Random(1)) if isinstance(it, Broker)]

    @property
    def covered(self) -> str:
        """The starts, in one sentence."""
        also = "" if self.start == "entries" else ", what was told right, nothing or false"
        return (
            f"a path of {self.n} brokers and one subscription: over each link each way the right "
            "entry, its flag set or not, none, a false one or a false filter; "
            f"three clocks{also}"
        )

    def nodes(self, coins: Coins) -> list[Node]:
        """The brokers; links and clients are given."""
        return [self.overlay.spawn(id, coins) for id in range(self.n)]

    def choices(self) -> dict[NodeId, list[State]]:
        """Every choice of entries, clocks and beliefs."""
        return {it.id: list(self._brokers(it)) for it in self.made}

    def _brokers(self, broker: Broker) -> Iterator[State]:
        near = list(broker.links)
        wrong = random_filter(Random(7))
        clocks = (0, self.overlay.timing.pi - 1, -5)
        announced = (None,) if self.start == "entries" else (None, {}, {FALSE_ID: wrong})
        for kinds in product(KINDS, repeat=len(near)):
            for clock, said in product(clocks, announced):
                state = decode_state(BrokerState, broker.snapshot())
                state.table.clock = clock
                for peer, kind in zip(near, kinds, strict=True):
                    _set(state, peer, kind, wrong)
                    if said is not None:
                        state.announcer.announced[peer] = dict(said)
                yield state

    def plain(self, state: State) -> State:
        """Totals and, without publications, beats and memories count for nothing."""
        assert isinstance(state, BrokerState)
        state.notifications_sent = state.announcer.sent = state.memory.age = 0
        state.contact.beats, state.contact.turn, state.contact.quiet = {}, 0, 0
        return state

    def shifted(self, states: list[State]) -> list[State]:
        """Numbers of messages count from everybody's last one."""
        last = {id: it.announcer.stamp for id, it in enumerate(states)}  # type: ignore[attr-defined]
        for state in states:
            assert isinstance(state, BrokerState)
            state.announcer.stamp = 0
            for peer, leases in state.table.entries.items():
                for lease in leases.values():
                    lease.stamp = (lease.stamp - last.get(peer, 0)) % STAMPS
            state.table.cancelled = {
                (peer, id): ((stamp - last.get(peer, 0)) % STAMPS, left)
                for (peer, id), (stamp, left) in state.table.cancelled.items()
            }
            for peer, link in state.links.items():
                link.stamps = [(it - last.get(peer, 0)) % STAMPS for it in link.stamps]
        return states

    def violations(
        self, states: Mapping[NodeId, State], channel: Sequence[Flying]
    ) -> list[Violation]:
        """As the product judges brokers, and no lease runs out before it is renewed.

        The product waits for that instead: `RoutingOverlay.calm`. Here renewals come every round,
        so only a lease without its flag whose clock overruns next can.
        """
        flying = [(target, message) for _, target, message in channel]
        return self.overlay.violations(states, flying) or [
            Violation("flag", id, f"the entries for {peer} may run out at the next timeout")
            for id, state in states.items()
            for peer, leases in state.table.entries.items()  # type: ignore[attr-defined]
            if peer >= 0
            and not 0 <= state.table.clock < self.overlay.timing.pi - 1  # type: ignore[attr-defined]
            and any(lease.flag != 1 for lease in leases.values())
        ]


def _set(state: BrokerState, peer: NodeId, kind: str, wrong: Any) -> None:
    """Let the entries behind one link be right, about to end, absent or false."""
    entries = state.table.entries
    right = entries.get(peer, {})
    if kind == "none":
        entries.pop(peer, None)
    elif kind == "unset":
        entries[peer] = {id: Lease(it.filter, 0) for id, it in right.items()}
    elif kind == "false":
        entries[peer] = {**right, FALSE_ID: Lease(wrong, 0)}
    elif kind == "filter":
        entries[peer] = {id: Lease(wrong) for id in (*right, FALSE_ID)}
    state.table.indexed = {
        (to, id): lease.filter for to, leases in entries.items() for id, lease in leases.items()
    }
