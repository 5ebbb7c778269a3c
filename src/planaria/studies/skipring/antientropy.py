"""Bytes and one-way messages until two subscribers hold the same publications.

Both hold N publications; d more are held by one side only, half by each. Publications have 32-byte
payloads, random 63-bit publishers, 64-bit incarnations and one time. Every message is encoded with
core.codec, topic 'news' included; framing and TCP are not counted. `bytes` is everything on the
wire, the digest on a periodic message included; `bound` is what is left if the differing
publications are known: they themselves, and their 64-bit ids to name them.

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
from planaria.protocols.publications.publication import Publication, key
from planaria.protocols.publications.store import PublicationStore

TOPIC = "news"
STARTS_MAX = 12
METHODS = ("sketch", "descent", "Algorithm 5")
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


def reconcile(method: str, size: int, difference: int, seed: int) -> Reconciled:
    """One case: `size` publications held by both, `difference` by one of them."""
    chance = stream(seed, "antientropy", size, difference)
    everything = publications(chance, size + difference)
    common, rest = everything[:size], everything[size:]
    half = (difference + 1) // 2
    sides = [common + rest[:half], common + rest[half:]]
    payload = sum(len(encode(publication)) for publication in rest)
    wire = Wire()
    if method == "Algorithm 5":
        equal = _by_literal(sides, wire)
    else:
        one, two = (AntiEntropy(TOPIC, id, filled(side)) for id, side in enumerate(sides, 1))
        run_ours(one, two, wire, descend=method == "descent")
        equal = one.digest() == two.digest() and len(one.store) == len(everything)
    return Reconciled(
        wire.bytes,
        wire.messages,
        wire.rounds,
        wire.redundant,
        payload,
        payload + ID_BYTES * difference,
        equal,
    )


def publications(chance: Random, count: int) -> list[Publication]:
    """`count` publications of 200 publishers."""
    publishers = [chance.getrandbits(63) for _ in range(200)]
    incarnations = [chance.getrandbits(64) for _ in range(200)]
    found = []
    for number in range(count):
        who = chance.randrange(200)
        payload = chance.randbytes(32)
        found.append(Publication(publishers[who], incarnations[who], number, 0, 20_000, payload))
    return found


def filled(held: list[Publication]) -> PublicationStore:
    """A store that holds these."""
    store = PublicationStore()
    for publication in held:
        store.insert(publication)
    return store


def run_ours(one: AntiEntropy, two: AntiEntropy, wire: Wire, *, descend: bool) -> None:
    """Digests of `one` to `two` until both agree."""
    peers = {one.id: one, two.id: two}
    for _ in range(STARTS_MAX):
        if one.digest() == two.digest():
            return
        if descend:
            two._doubt(one.id)
        digest = one.digest()
        wire.bytes += len(encode(digest))
        wire.messages += 1
        base = wire.rounds + 1
        waiting: deque[tuple[Effect, int]] = deque()
        waiting.extend((effect, base + 1) for effect in two.on_digest(one.id, digest))
        while waiting:
            effect, depth = waiting.popleft()
            assert isinstance(effect, Send)
            wire.carry(effect.message, depth)
            answers, fresh = peers[effect.target].on_message(effect.message)
            wire.redundant += len(getattr(effect.message, "publications", ())) - len(fresh)
            waiting.extend((each, depth + 1) for each in answers)
        wire.rounds = max(wire.rounds, base)


def _by_literal(sides: list[list[Publication]], wire: Wire) -> bool:
    sizes = {key(p).hex(): len(encode(p)) for side in sides for p in side}
    texts = [[f"{int.from_bytes(key(p), 'big'):0128b}" for p in side] for side in sides]
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
