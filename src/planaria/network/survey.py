"""Looks at a whole network: walks from the servers that it is told to all nodes they know.

What it sees was true at slightly different moments. Connections stay open from look to look.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from time import monotonic, time

from msgspec import MsgspecError, Struct, json

from planaria.core.errors import MalformedState
from planaria.core.ids import NodeId
from planaria.core.state import State, decode_state
from planaria.network.client.access import Access, shown
from planaria.network.client.asking import Answer, Asker, Unanswered
from planaria.network.client.errors import Unreachable
from planaria.network.client.messages import (
    AskState,
    AskStatus,
    ClientMessage,
    StateIs,
    StatusIs,
)
from planaria.network.context import Context
from planaria.network.identity import handle_of
from planaria.network.overlays.registry import PARTS
from planaria.network.status import Shown, Status
from planaria.protocols.skipring.peer import PeerState
from planaria.protocols.skipring.supervisor import SupervisorState

NODES_MAX = 4096  # that one look visits
VISITS_MAX = 64  # nodes that are reached at a time
QUESTIONS_MAX = 64  # at a time, to one node
REACH_SECONDS = 3.0  # for one node to be reached, and again for each answer


class Parts(Struct, frozen=True):
    """A node's parts in one topic."""

    peer: PeerState | None = None
    supervisor: SupervisorState | None = None


class Seen(Struct):
    """What one node said. `clock` is how far its clock is ahead of ours, give or take `trip`."""

    status: Status
    address: str
    clock: float = 0.0
    trip: float = 0.0
    topics: dict[str, Parts] = {}
    parts: dict[str, State] = {}  # in other overlays than `ring`

    @property
    def called(self) -> str:
        """What people call the node."""
        return f"{self.status.name or self.status.id[:8]} ({self.address})"


class Silent(Struct, frozen=True):
    """A node of which others know, or a server, that does not answer."""

    addresses: tuple[str, ...]
    reason: str
    node: NodeId | None = None
    known_to: tuple[NodeId, ...] = ()


class Survey(Struct):
    """All that one look saw, and when."""

    time: float
    nodes: dict[NodeId, Seen]
    silent: list[Silent]
    complaints: list[tuple[NodeId, str]]  # answers that could not be used

    def called(self, node: NodeId | None) -> str:
        """What people call a node, seen or not."""
        if node is None:
            return "-"
        return self.nodes[node].called if node in self.nodes else str(node)

    def topics(self) -> list[str]:
        """The topics of all nodes that were seen."""
        return sorted({topic for seen in self.nodes.values() for topic in seen.status.topics})


class Surveyor:
    """Looks at a network as often as it is asked to."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.access = Access(*shown(context, None))
        self._askers: dict[NodeId, Asker] = {}
        self._visits = asyncio.Semaphore(VISITS_MAX)
        # Each node has its own: who is slow, or must first ask others, holds up nobody else.
        self._questions = defaultdict[NodeId, asyncio.Semaphore](
            lambda: asyncio.Semaphore(QUESTIONS_MAX)
        )

    async def __aenter__(self) -> "Surveyor":
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(asker.close() for asker in self._askers.values()))

    @property
    def secret(self) -> bytes:
        """The cluster's secret, by which supervisors are ordered; empty without TLS."""
        return self.access.credentials.secret if self.access.credentials else b""

    async def look(self) -> Survey:
        """Ask every node that can be reached how it is; raises Unreachable if there is none."""
        survey = Survey(time(), {}, [], [])
        servers = [Silent((address,), "") for address in self.context.servers]
        known = [Silent((it.address,), "", handle) for handle, it in self._askers.items()]
        tried: set[NodeId] = set()
        level = [*known, *servers]
        while level:
            found = await asyncio.gather(*(self._visit(one, survey) for one in level))
            survey.silent += [one for one in found if one is not None]
            tried |= {one.node for one in level if one.node is not None}
            level = _next(survey, tried)
        if not survey.nodes:
            raise Unreachable({one.addresses[0]: one.reason for one in survey.silent})
        survey.silent = _named_once(survey)
        return survey

    async def list_topics(self, survey: Survey) -> None:
        """Ask for the topics too that are too many for one status."""
        await asyncio.gather(*(self._rest(survey, handle) for handle in survey.nodes))

    async def examine(self, survey: Survey, topics: Sequence[str] | None = None) -> None:
        """Ask for the states of all topics too, or of some, wherever they may be."""
        await self.list_topics(survey)
        asked = [
            self._state(survey, handle, topic)
            for handle, seen in survey.nodes.items()
            for topic in (seen.status.topics if topics is None else topics)
            if topic in seen.status.topics
        ]
        asked += [
            self._part(survey, handle, overlay)
            for handle, seen in survey.nodes.items()
            for overlay in seen.status.overlays
        ]
        await asyncio.gather(*asked)

    async def ask(
        self, node: NodeId, kind: type[ClientMessage], answer: type[Answer], *fields: object
    ) -> Answer:
        """Ask a node that was seen; raises Unanswered."""
        async with self._questions[node]:
            return await self._askers[node].ask(kind, answer, *fields)

    async def _visit(self, one: Silent, survey: Survey) -> Silent | None:
        """Ask one node how it is; what comes back is who does not answer."""
        reasons = []
        for address in one.addresses:
            try:
                async with self._visits:
                    await self._ask_status(one.node, address, survey)
                return None
            except (Unanswered, MsgspecError) as error:
                reasons.append(str(error))
        return Silent(one.addresses, "; ".join(reasons), one.node, one.known_to)

    async def _ask_status(self, node: NodeId | None, address: str, survey: Survey) -> None:
        kept = None if node is None else self._askers.pop(node, None)
        if kept is not None:
            try:
                return await self._ask(kept, survey)
            except Unanswered:
                await kept.close()  # the node may have started again since
        asker = Asker(address, self.access, REACH_SECONDS)
        await asker.open()
        try:
            await self._ask(asker, survey)
        except BaseException:
            await asker.close()
            raise

    async def _ask(self, asker: Asker, survey: Survey) -> None:
        before, wall = monotonic(), time()
        status = json.decode((await asker.ask(AskStatus, StatusIs)).status, type=Status)
        trip = monotonic() - before
        handle = handle_of(asker.node)
        if self._askers.setdefault(handle, asker) is not asker:
            await asker.close()  # one more address of a node that has answered
        ahead = status.time - (wall + trip / 2)
        survey.nodes.setdefault(handle, Seen(status, asker.address, ahead, trip))

    async def _rest(self, survey: Survey, handle: NodeId) -> None:
        """The topics that a node's status has no room for, page by page."""
        status, after = survey.nodes[handle].status, ""
        while len(status.topics) < status.totals.topics:
            try:
                answer = await self.ask(handle, AskStatus, StatusIs, after)
                page = json.decode(answer.status, type=Shown).topics
            except (Unanswered, MsgspecError) as error:
                survey.complaints.append((handle, str(error)))
                return
            if not page:
                return  # it has left some meanwhile
            if min(page) <= after:
                shown, all = len(status.topics), status.totals.topics
                survey.complaints.append((handle, f"it shows {shown} of its {all} topics"))
                return
            status.topics.update(page)
            after = max(page)

    async def _state(self, survey: Survey, handle: NodeId, topic: str) -> None:
        try:
            answer = await self.ask(handle, AskState, StateIs, topic)
            survey.nodes[handle].topics[topic] = Parts(
                decode_state(PeerState, answer.peer) if answer.peer else None,
                decode_state(SupervisorState, answer.supervisor) if answer.supervisor else None,
            )
        except (Unanswered, MalformedState) as error:
            survey.complaints.append((handle, f"{topic}: {error}"))

    async def _part(self, survey: Survey, handle: NodeId, overlay: str) -> None:
        try:
            answer = await self.ask(handle, AskState, StateIs, "", overlay)
            if answer.part is not None and overlay in PARTS:
                state = decode_state(PARTS[overlay].state_type, answer.part)
                survey.nodes[handle].parts[overlay] = state
        except (Unanswered, MalformedState) as error:
            survey.complaints.append((handle, f"{overlay}: {error}"))


def _named_once(survey: Survey) -> list[Silent]:
    """The silent nodes, without the addresses of servers that turned out to be another's."""
    silent = [one for one in survey.silent if one.node not in survey.nodes]
    known = {address for seen in survey.nodes.values() for address in seen.status.listen}
    known.update(address for one in silent if one.node is not None for address in one.addresses)
    return [one for one in silent if one.node is not None or one.addresses[0] not in known]


def _next(survey: Survey, tried: set[NodeId]) -> list[Silent]:
    """The nodes that those seen know of and that were not tried yet."""
    addresses: dict[NodeId, dict[str, None]] = {}
    known_to: dict[NodeId, list[NodeId]] = {}
    for handle, seen in survey.nodes.items():
        for other, where in _mentioned(seen.status):
            if other not in tried and other not in survey.nodes and where:
                addresses.setdefault(other, {}).update(dict.fromkeys(where))
                known_to.setdefault(other, []).append(handle)
    room = max(0, NODES_MAX - len(survey.nodes) - len(survey.silent))
    return [
        Silent(tuple(where), "", other, tuple(known_to[other]))
        for other, where in list(addresses.items())[:room]
    ]


def _mentioned(status: Status) -> Iterable[tuple[NodeId, tuple[str, ...]]]:
    yield from ((it.handle, it.addresses) for it in status.contacts)
    yield from ((it.handle, it.addresses) for it in status.supervisors)
