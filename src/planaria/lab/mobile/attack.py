"""The strongest guess at a publisher that we know: all that k nodes see of a flood, and when.

A flood is decided by who has a turn when: a turn sends what came before it, and a neighbour's next
turn cannot come before it has heard. So from the log of all turns one can replay what every flood
would look like to the observers, and compare. That is more than an observer can know; `learnt` is
one that knows the graph and the protocol, and of the turns only those of its own neighbours.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from planaria.core.ids import NodeId
from planaria.lab.mobile.anonymity import Ends, Graph, Link

# What observers were sent: (sender, which of the sender's turns, observer), in order.
Seen = tuple[tuple[NodeId, int, NodeId], ...]
Weights = dict[NodeId, float]


class Log(Struct):
    """Who had a turn, in order, and who is beside whom; links must not change meanwhile."""

    turns: Sequence[NodeId]
    neighbours: Graph

    def numbers(self) -> list[int]:
        """Of each turn: which one of its node's it is, from 1."""
        counts = dict.fromkeys(self.neighbours, 0)
        found = []
        for id in self.turns:
            counts[id] += 1
            found.append(counts[id])
        return found


class Watch(Struct, frozen=True):
    """Some nodes that watch; `silent` ones send nothing on, and so see what others bring later."""

    observers: tuple[NodeId, ...]
    silent: bool = False


class Flood(Struct, frozen=True):
    """Where one began, and what the observers saw of it."""

    source: NodeId
    seen: Seen


def replay(log: Log, numbers: Sequence[int], watch: Watch, start: int) -> Seen:
    """What observers see of the flood that begins with the turn `start`."""
    waiting: dict[NodeId, list[NodeId]] = {log.turns[start]: []}  # holder -> who sent it
    have = dict(waiting)
    seen: list[tuple[NodeId, int, NodeId]] = []
    for turn in range(start, len(log.turns)):
        id = log.turns[turn]
        if id not in waiting:
            continue
        senders = waiting.pop(id)
        mute = watch.silent and id in watch.observers
        for peer in log.neighbours[id]:
            if mute or peer in senders:
                continue
            if peer in watch.observers and id not in watch.observers:
                seen.append((id, numbers[turn], peer))
            if peer in waiting:
                waiting[peer].append(id)
            elif peer not in have:
                have[peer] = waiting[peer] = [id]
        if not waiting:
            break
    return tuple(seen)


def floods(log: Log, watch: Watch, part: tuple[float, float] = (0.5, 0.6)) -> list[Flood]:
    """All floods of honest nodes that are first seen in some part of the log.

    A window of what is seen, not of when it began: else guesses at its edges are too easy.
    """
    numbers = log.numbers()
    when = {key: turn for turn, key in enumerate(zip(log.turns, numbers, strict=True))}
    window = range(*(int(share * len(log.turns)) for share in part))
    found = []
    for start in range(window.stop):
        if log.turns[start] not in watch.observers:
            seen = replay(log, numbers, watch, start)
            if seen and when[seen[0][:2]] in window:
                found.append(Flood(log.turns[start], seen))
    return found


Guess = Callable[[Seen], NodeId | None]


def by_turns(known: Sequence[Flood], ends: Ends) -> Guess:
    """The guess of one who knows all turns: it sees where floods that look exactly like this one
    may have begun, and who may have walked there."""
    table = _table(known, ends, _exactly)
    return lambda seen: _likeliest(table.get(_exactly(seen)[0], {}))


def by_lessons(lessons: Sequence[Flood], ends: Ends) -> Guess:
    """The guess of one who sees the turns of its neighbours only, and has simulated `lessons` with
    other orders of turns on the same graph."""
    table = _table(lessons, ends, _beginnings)

    def guess(seen: Seen) -> NodeId | None:
        looks = [look for look in _beginnings(seen) if look in table]
        return _likeliest(table[looks[-1]]) if looks else None

    return guess


def by_link(ends: Ends) -> dict[Link, NodeId]:
    """The guess for a publication that walked into an observer's hands: who is likeliest to come
    over that link."""
    best: dict[Link, tuple[float, NodeId]] = {}
    for publisher, reached in ends.items():
        for end, mass in reached.items():
            if not isinstance(end, int):
                best[end] = max(best.get(end, (0.0, publisher)), (mass, publisher))
    return {link: publisher for link, (_, publisher) in best.items()}


def success(judged: Sequence[Flood], ends: Ends, guess: Guess) -> float:
    """The share of publications whose publisher is named, if everybody floods equally often."""
    right = sum(ends[publisher][link] for link, publisher in by_link(ends).items())
    came, times = _came(ends), Counter(flood.source for flood in judged)
    for flood in judged:
        named = guess(flood.seen)
        right += (
            sum(mass for publisher, mass in came[flood.source] if publisher == named)
            / (times[flood.source])
        )
    return right / max(1, len(ends))


def knowing_when(log: Log, watch: Watch, moments: int) -> float:
    """The same for one who knows all turns and when it was published, and nothing walks."""
    numbers, right, total = log.numbers(), 0, 0
    for now in range(len(log.turns) // 2, len(log.turns) // 2 + moments):
        looks: dict[Seen, None] = {}
        for id in log.neighbours:
            if id not in watch.observers:
                start = next(i for i in range(now, len(log.turns)) if log.turns[i] == id)
                looks[replay(log, numbers, watch, start)] = None
                total += 1
        right += len(looks)
    return right / max(1, total)


def _exactly(seen: Seen) -> list[Seen]:
    """All turns, in no order: what is sent later may arrive earlier."""
    return [tuple(sorted(seen))]


def _beginnings(seen: Seen) -> list[Seen]:
    """Over which links it came, and how many turns after the first, as heights tell: the first
    arrival, the first two, ..., all of them."""
    first = seen[0][1]
    whole = tuple((sender, number - first, observer) for sender, number, observer in seen)
    return [whole[:length] for length in range(1, len(whole) + 1)]


def _table(
    lessons: Sequence[Flood], ends: Ends, looks: Callable[[Seen], list[Seen]]
) -> dict[Seen, Weights]:
    """What is seen -> publisher -> how likely."""
    came = _came(ends)
    table: dict[Seen, Weights] = {}
    times = Counter(flood.source for flood in lessons)
    for flood in lessons:
        for look in looks(flood.seen):
            weights = table.setdefault(look, {})
            for publisher, mass in came.get(flood.source, ()):
                share = mass / times[flood.source]
                weights[publisher] = weights.get(publisher, 0.0) + share
    return table


def _likeliest(weights: Weights) -> NodeId | None:
    return max(sorted(weights), key=weights.__getitem__, default=None)


def _came(ends: Ends) -> dict[NodeId, list[tuple[NodeId, float]]]:
    """Where a flood began -> who published, and how likely."""
    came: dict[NodeId, list[tuple[NodeId, float]]] = {}
    for publisher, reached in ends.items():
        for end, mass in reached.items():
            if isinstance(end, int):
                came.setdefault(end, []).append((publisher, mass))
    return came
