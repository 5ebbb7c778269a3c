"""What each cell about publications runs: two tries, two subscribers, a whole ring, a broadcast."""

from collections.abc import Callable, Sequence
from itertools import product
from random import Random

from msgspec import Struct

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Publish
from planaria.literal.trie import LiteralSubscriber
from planaria.protocols.skipring.labels import position
from planaria.protocols.skipring.legitimacy import held_publications
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.records.record import TIME_MAX
from planaria.simulator.engine import Simulator
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result
from planaria.studies.skipring.antientropy import reconcile
from planaria.studies.skipring.broadcast import broadcast, skip_ring
from planaria.studies.skipring.traffic import Traffic
from planaria.studies.skipring.tries import (
    OurTrie,
    literal_starts,
    start_literal,
    start_ours,
    subsets,
)

COMMON = 50  # publications that everybody holds before something happens
KEY_BITS = 24
BACKLOG_PATIENCE = 20  # intervals, beyond two for each subscriber
PAIR_BITS = 6
PAIRS = 200
STRIDE = 23  # every so many of the pairs of three-bit tries: no divisor of what they repeat by
# Figure 2: the first two below 0, then 100 and 101; the last is missing at v.
FIGURE_2 = {"u": ("000", "010", "100", "101"), "v": ("000", "010", "100")}


# Two tries


def tries(cell: Cell) -> Result:
    """Pairs of tries: of how many is it true, and with how many messages?"""
    rules, tried = str(cell.parameters["rules"]), str(cell.parameters["tried"])
    runs: dict[str, Callable[[str, int], list[tuple[bool, int]]]] = {
        "equal": _become_equal,
        "closer": _some_start_brings_something,
        "started by u": lambda rules, _: [_figure_2(rules, "u")],
        "started by v": lambda rules, _: [_figure_2(rules, "v")],
    }
    found = runs[tried](rules, cell.seed)
    good = sum(kept for kept, _ in found)
    messages = sum(count for _, count in found) / len(found)
    return Result({"pairs": len(found), "good": good, "messages": messages})


def _literal(rules: str, id: NodeId, keys: Sequence[str]) -> LiteralSubscriber:
    """As printed, or with the readings that can work (errata T1, T2)."""
    if rules == "printed":
        return LiteralSubscriber(id, keys, hashes="labels", dangling=True)
    return LiteralSubscriber(id, keys, hashes="hashes", dangling=False)


def _become_equal(rules: str, seed: int) -> list[tuple[bool, int]]:
    """Theorem 17 for two: all pairs of two bits, some of three, in at most twelve starts."""
    small = [(2, a, b) for a, b in product(subsets(2, 4), repeat=2) if a != b]
    large = [(3, a, b) for a, b in product(subsets(3, 3), repeat=2) if a != b]
    found = []
    for width, ours, theirs in (*small, *large[seed % STRIDE :: STRIDE]):
        if rules == "ours":
            left, right = OurTrie(width, ours), OurTrie(width, theirs)
            messages = start_ours(left, right)
            found.append(({*left.entries} == {*right.entries}, messages))
        elif rules == "printed":
            found.append((literal_starts(ours, theirs, "labels", dangling=True) is not None, 0))
        else:
            found.append((literal_starts(ours, theirs, "hashes") is not None, 0))
    return found


def _some_start_brings_something(rules: str, seed: int) -> list[tuple[bool, int]]:
    """Lemma 20: if v lacks something of u, v gets some of it by a start of u or of v."""
    chance = stream(seed, "closer")
    found: list[tuple[bool, int]] = []
    while len(found) < PAIRS:
        ours, theirs = (_some_keys(chance) for _ in range(2))
        if set(ours) - set(theirs):
            runs = [_start(rules, ours, theirs, first) for first in (True, False)]
            good = any(set(ours) & set(held) - set(theirs) for held, _ in runs)
            found.append((good, min(messages for _, messages in runs)))
    return found


def _some_keys(chance: Random) -> list[str]:
    count = chance.randrange(1, 6)
    return [f"{key:0{PAIR_BITS}b}" for key in chance.sample(range(1 << PAIR_BITS), count)]


def _start(
    rules: str, ours: Sequence[str], theirs: Sequence[str], first: bool
) -> tuple[list[str], int]:
    """What the second holds after one start, of the first or of the second, and its messages."""
    width = len(ours[0])
    if rules == "ours":
        left, right = OurTrie(width, ours), OurTrie(width, theirs)
        messages = start_ours(left, right) if first else start_ours(right, left)
        return [f"{key:0{width}b}" for key in right.entries], messages
    one, two = _literal(rules, 1, ours), _literal(rules, 2, theirs)
    messages = start_literal(one, two) if first else start_literal(two, one)
    return list(two.trie.keys), messages


def _figure_2(rules: str, starter: str) -> tuple[bool, int]:
    held, messages = _start(rules, FIGURE_2["u"], FIGURE_2["v"], starter == "u")
    return "101" in held, messages


# Two subscribers


def antientropy(cell: Cell) -> Result:
    """Two subscribers whose sets differ, over the wire."""
    method, packed = str(cell.parameters["method"]), int(cell.parameters["packed"])
    stored, differing = (int(cell.parameters[it]) // packed for it in ("stored", "differing"))
    run = reconcile(method, stored, differing, cell.seed, packed)
    names = ("bytes", "messages", "bound", "redundant", "equal")
    return Result({name: getattr(run, name) for name in names})


# A whole ring


class Spreading(Struct):
    """How a backlog spread: intervals until all held all, and how often the potential rose."""

    intervals: int | None
    rises: int


def backlog(cell: Cell) -> Result:
    """Publications that some lack, in a legitimate ring: when does everybody hold them all?"""
    rules, start = str(cell.parameters["rules"]), str(cell.parameters["start"])
    n = int(cell.parameters["n"])
    spread = (_our_ring if rules == "ours" else _literal_ring)(start, n, cell.seed)
    return Result(
        {
            "equal": spread.intervals is not None,
            "intervals": spread.intervals,
            "rises": spread.rises,
        }
    )


def _our_ring(start: str, n: int, seed: int) -> Spreading:
    overlay, simulator = RingOverlay(), Simulator(seed)
    peers = []
    for node in overlay.legitimate(n, simulator.rng):
        simulator.add(node)
        if isinstance(node, Peer):
            peers.append(node)
    order = sorted(peers, key=lambda peer: position(overlay.subscriber(peer).label or 0))
    first, *others = peers
    _say(overlay, first, COMMON)  # what it sends is lost: only anti-entropy is looked at
    for other in others:
        _copy(overlay, first, other)
    if start == "newcomer":
        newcomer = overlay.spawn(n, simulator.rng)
        assert isinstance(newcomer, Peer)
        simulator.add(newcomer)
        order.append(newcomer)
    else:
        _say(overlay, order[seed % n], 1)
    return _watch(
        n,
        simulator.run_interval,
        lambda: [{*held_publications(peer.state(), overlay.topic)} for peer in order],
    )


def _copy(overlay: RingOverlay, one: Peer, other: Peer) -> None:
    """Let `other` hold what `one` holds."""
    mine, yours = (peer.topics[overlay.topic].history.holdings for peer in (one, other))
    yours.append(mine.at(mine.places(0, TIME_MAX)))


def _say(overlay: RingOverlay, peer: Peer, count: int) -> None:
    for number in range(count):
        peer.on_command(Publish(overlay.topic, f"{peer.id} says {number}".encode()))


def _literal_ring(start: str, n: int, seed: int) -> Spreading:
    """Algorithm 5 with the readings that can work: everybody, in turn, asks a ring neighbour."""
    chance = stream(seed, "literal ring")
    keys = [f"{key:0{KEY_BITS}b}" for key in chance.sample(range(1 << KEY_BITS), COMMON + 1)]
    ring = [_literal("amended", id, keys[:COMMON]) for id in range(n)]
    if start == "newcomer":
        ring.append(_literal("amended", n, ()))
    else:
        ring[seed % n].trie.insert(keys[COMMON])

    def interval() -> None:
        for here in chance.sample(range(len(ring)), len(ring)):
            start_literal(ring[here], ring[(here + chance.choice((-1, 1))) % len(ring)])

    return _watch(n, interval, lambda: [{*one.trie.keys} for one in ring])


def _watch(
    n: int, interval: Callable[[], None], held: Callable[[], Sequence[set[object]]]
) -> Spreading:
    potential, rises = _potential(held()), 0
    for passed in range(1, 2 * n + BACKLOG_PATIENCE + 1):
        interval()
        now = _potential(held())
        rises, potential = rises + (now > potential), now
        if now == 0:
            return Spreading(passed, rises)
    return Spreading(None, rises)


def _potential(held: Sequence[set[object]]) -> int:
    """Section 5: what is stored at one end of a ring edge and missing at the other, in all."""
    return sum(len(held[i] ^ held[i - 1]) for i in range(len(held)))


def silence(cell: Cell) -> Result:
    """A ring whose members hold the same: do they keep it, and do they talk about it?"""
    n = int(cell.parameters["n"])
    overlay, simulator = RingOverlay(), Simulator(cell.seed)
    nodes = overlay.legitimate(n, simulator.rng)
    peers = [node for node in nodes if isinstance(node, Peer)]
    _say(overlay, peers[0], COMMON)
    for peer in peers[1:]:
        _copy(overlay, peers[0], peer)
    for node in nodes:
        simulator.add(node)
    traffic = Traffic(overlay.supervisors)
    simulator.watch(traffic)
    before = [held_publications(peer.state(), overlay.topic) for peer in peers]
    for _ in range(BACKLOG_PATIENCE):
        simulator.run_interval()
    after = [held_publications(peer.state(), overlay.topic) for peer in peers]
    periodic = traffic.by_tag["check"] + traffic.by_tag["introduce_shortcut"]
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    return Result({"changed": changed, "exchanges": traffic.between_peers - periodic})


# A broadcast


def spread(cell: Cell) -> Result:
    """One publication from a random origin to everybody."""
    n = int(cell.parameters["n"])
    origin = stream(cell.seed, "origin").randrange(n)
    found = broadcast(skip_ring(n), origin, str(cell.parameters["rule"]))
    return Result(
        {
            "reached": len(found.hops),
            "messages": found.messages,
            "hops_max": max(found.hops.values()),
            "hops_mean": sum(found.hops.values()) / max(1, n - 1),
            "hottest": found.hottest,
        }
    )
