"""Bytes and one-way messages until two subscribers hold the same publications.

Both hold N publications; d more are held by one side only, half by each. Publications have 32-byte
payloads, random 62-bit publishers and one time, and each is a record of its own unless records are
asked for that hold more. Every message is encoded with core.codec, topic 'news' included; framing
and TCP are not counted. `bytes` is everything on the wire, the digest on a periodic message
included; `bound` is what is left if the differing publications are known: their records, and
64-bit ids to name them.

Algorithm 5 is given the readings that can work (hash of hashes, `else` bound to the outer `if`),
alternate starts from both sides, and at most `STARTS_MAX` starts.
"""

from collections import deque
from random import Random

from msgspec import Struct
from msgspec.msgpack import encode

from planaria.core.chance import stream
from planaria.core.codec import to_wire
from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.literal.trie import LiteralSubscriber, Publish, unpack
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.holdings import Holdings
from planaria.records.memory import MemoryStore
from planaria.records.record import INCARNATION_BYTES, TIME_MAX, Draft, Record, seal

TOPIC = "news"
ALL = TIME_MAX  # the cut of a digest that leaves nothing alone
STARTS_MAX = 12
OUR_METHODS = ("sketch", "descent")
METHODS = (*OUR_METHODS, "Algorithm 5")
ID_BYTES = 8


class Wire:
    """Counts what is sent, how long the longest chain of answers is, and what was sent in vain."""

    def __init__(self) -> None:
        self.bytes = self.messages = self.rounds = self.redundant = 0

    def carry(self, message: Message, depth: int, extra: int = 0) -> None:
        """Count a message and `extra` bytes that the message class does not hold."""
        self.bytes += len(to_wire(message)) + extra
        self.messages += 1
        self.rounds = max(self.rounds, depth)


class Reconciled(Struct, frozen=True):
    """What it took until both held the same; `equal` says if they did."""

    bytes: int
    messages: int
    rounds: int
    redundant: int  # publications sent to somebody who held them
    payload: int  # bytes of the differing publications themselves
    bound: int
    equal: bool


def reconcile(
    method: str, size: int, difference: int, seed: int, publications: int = 1
) -> Reconciled:
    """One case: `size` records held by both, `difference` by one of them, of `publications`."""
    chance = stream(seed, "antientropy", size, difference)
    everything = records(chance, size + difference, publications)
    common, rest = everything[:size], everything[size:]
    half = (difference + 1) // 2
    sides = [common + rest[:half], common + rest[half:]]
    payload = sum(len(record.data) for record in rest)
    wire = Wire()
    if method == "Algorithm 5":
        equal = _by_literal(sides, wire)
    else:
        one, two = (AntiEntropy(TOPIC, id, filled(side)) for id, side in enumerate(sides, 1))
        run_ours(one, two, wire, descend=method == "descent")
        equal = (
            one.digest(0, ALL) == two.digest(0, ALL)
            and len(one.holdings) == len(everything) * publications
        )
    return Reconciled(
        wire.bytes,
        wire.messages,
        wire.rounds,
        wire.redundant,
        payload,
        payload + ID_BYTES * difference,
        equal,
    )


def records(chance: Random, count: int, publications: int = 1) -> list[Record]:
    """`count` records of 200 publishers, each of so many publications."""
    publishers = [chance.getrandbits(62) for _ in range(200)]
    incarnations = [chance.randbytes(INCARNATION_BYTES) for _ in range(200)]
    found = []
    for number in range(0, count * publications, publications):
        who = chance.randrange(200)
        drafts = [Draft(chance.randbytes(32)) for _ in range(publications)]
        found.append(seal((publishers[who], incarnations[who]), number, drafts, time=20_000))
    return found


def filled(held: list[Record]) -> Holdings:
    """What holds these."""
    holdings = Holdings(MemoryStore())
    holdings.append(held)
    return holdings


def run_ours(one: AntiEntropy, two: AntiEntropy, wire: Wire, *, descend: bool) -> None:
    """Digests of `one` to `two` until both agree."""
    peers = {one.id: one, two.id: two}
    for _ in range(STARTS_MAX):
        if one.digest(0, ALL) == two.digest(0, ALL):
            return
        if descend:
            two._doubt(one.id)
        digest = one.digest(0, ALL)
        wire.bytes += len(encode(digest))
        wire.messages += 1
        base = wire.rounds + 1
        waiting: deque[tuple[Effect, int]] = deque()
        waiting.extend((effect, base + 1) for effect in two.on_digest(one.id, digest))
        while waiting:
            effect, depth = waiting.popleft()
            assert isinstance(effect, Send)
            wire.carry(effect.message, depth)
            peer = peers[effect.target]
            known = len(peer.holdings.store.index.shown)
            answers = peer.on_message(effect.message)
            pushed = len(getattr(effect.message, "records", ()))
            wire.redundant += pushed - (len(peer.holdings.store.index.shown) - known)
            waiting.extend((each, depth + 1) for each in answers)
        wire.rounds = max(wire.rounds, base)


def _by_literal(sides: list[list[Record]], wire: Wire) -> bool:
    sizes = {it.key.hex(): len(it.data) for side in sides for it in side}
    texts = [[f"{int.from_bytes(it.key, 'big'):0128b}" for it in side] for side in sides]
    one, two = (
        LiteralSubscriber(id, side, hashes="hashes", dangling=False)
        for id, side in enumerate(texts, 1)
    )
    run_literal(one, two, wire, sizes)
    return one.trie.keys == two.trie.keys


def run_literal(
    one: LiteralSubscriber, two: LiteralSubscriber, wire: Wire, sizes: dict[str, int]
) -> None:
    """Starts of Algorithm 5 in turn until both agree; a pushed key costs its publication."""
    for start in range(STARTS_MAX):
        if one.trie.keys == two.trie.keys:
            return
        starter, peer = (one, two) if start % 2 == 0 else (two, one)
        base = wire.rounds
        waiting: deque[tuple[LiteralSubscriber, Message, int]] = deque()
        waiting.extend((peer, message, base + 1) for message in starter.publish_timeout())
        while waiting:
            target, message, depth = waiting.popleft()
            if isinstance(message, Publish):
                pushed = sum(sizes[each.hex()[2:]] for each in message.keys)
                wire.carry(Publish([]), depth, pushed)
                wire.redundant += sum(target.trie.search(unpack(each)) for each in message.keys)
            else:
                wire.carry(message, depth, len(TOPIC) + 1)
            other = one if target is two else two
            waiting.extend((other, each, depth + 1) for each in target.on_message(message))
