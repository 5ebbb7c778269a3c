"""Bytes and one-way messages until two subscribers hold the same publications.

    python benchmarks/antientropy.py [--json] [--seeds 5] [--sizes 1000 100000]

Accounting. Both hold N publications; d more are held by one side only, half by each. Publications
have 32-byte payloads, random 63-bit publishers, 64-bit incarnations and one epoch. Every message is
encoded with core.codec, topic 'news' included; framing and TCP are not counted.
`bytes` is everything on the wire, M1 (the digest on a periodic message) included. `overhead` is
`bytes` less the d publications themselves as they are encoded, once each: the same for all rows.
`bound` is what naming the differing publications costs if they are known: d ids of 64 bits.
Messages are one-way and include M1; `rounds` is the longest chain of answers.
Algorithm 5 is given the readings that can work (hash of hashes, `else` bound to the outer `if`),
alternate starts from both sides, and at most 12 starts; a '*' marks rows that were not equal then.
As printed (hash over labels, `else` under the inner `if`) it never asks for a missing node.
"""

import argparse
import json
from collections import deque
from random import Random
from statistics import mean
from typing import Any

from msgspec.msgpack import encode

from planaria.core.chance import stream
from planaria.core.codec import Codec
from planaria.core.message import Message
from planaria.core.node import Effect, Send
from planaria.literal.trie import LiteralSubscriber, Publish
from planaria.protocols.publications.antientropy import AntiEntropy
from planaria.protocols.publications.publication import Publication, key
from planaria.protocols.publications.store import PublicationStore

TOPIC = "news"
STARTS_MAX = 12
DIFFERENCES = (1, 10, 100, 1_000, 10_000)


def publications(chance: Random, count: int) -> list[Publication]:
    publishers = [chance.getrandbits(63) for _ in range(200)]
    incarnations = [chance.getrandbits(64) for _ in range(200)]
    found = []
    for number in range(count):
        who = chance.randrange(200)
        payload = chance.randbytes(32)
        found.append(Publication(publishers[who], incarnations[who], number, 0, 20_000, payload))
    return found


class Wire:
    """Counts what is sent and how long the longest chain of answers is."""

    def __init__(self) -> None:
        self.codec = Codec()
        self.bytes = self.messages = self.rounds = 0

    def carry(self, message: Message, depth: int, extra: int = 0) -> None:
        self.bytes += len(self.codec.encode(message)) + extra
        self.messages += 1
        self.rounds = max(self.rounds, depth)


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
            answers, _ = peers[effect.target].on_message(effect.message)
            waiting.extend((each, depth + 1) for each in answers)
        wire.rounds = max(wire.rounds, base)


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
            else:
                wire.carry(message, depth, len(TOPIC) + 1)
            other = one if target is two else two
            waiting.extend((other, each, depth + 1) for each in target.on_message(message))


def case(size: int, difference: int, seed: int) -> dict[str, dict[str, Any]]:
    """All rows of one case."""
    chance = stream(seed, "antientropy", size, difference)
    everything = publications(chance, size + difference)
    common, rest = everything[:size], everything[size:]
    half = (difference + 1) // 2
    sides = [common + rest[:half], common + rest[half:]]
    costs = {key(p).hex(): len(encode(p)) for p in everything}
    payload = sum(costs[key(p).hex()] for p in rest)
    rows: dict[str, dict[str, Any]] = {"bound": row(payload + 8 * difference, 0, 0, payload, True)}
    for name, descend in (("sketch", False), ("descent", True)):
        one, two = (AntiEntropy(TOPIC, id, filled(side)) for id, side in enumerate(sides, 1))
        wire = Wire()
        run_ours(one, two, wire, descend=descend)
        equal = one.digest() == two.digest() and len(one.store) == len(everything)
        rows[name] = row(wire.bytes, wire.messages, wire.rounds, payload, equal)
    texts = [[f"{int.from_bytes(key(p), 'big'):0128b}" for p in side] for side in sides]
    left, right = (
        LiteralSubscriber(id, side, hashes="hashes", dangling=False)
        for id, side in enumerate(texts, 1)
    )
    wire = Wire()
    run_literal(left, right, wire, costs)
    equal = left.trie.keys == right.trie.keys
    rows["Algorithm 5"] = row(wire.bytes, wire.messages, wire.rounds, payload, equal)
    return rows


def filled(held: list[Publication]) -> PublicationStore:
    store = PublicationStore()
    for publication in held:
        store.insert(publication)
    return store


def row(size: int, messages: int, rounds: int, payload: int, equal: bool) -> dict[str, Any]:
    return {
        "bytes": size,
        "overhead": size - payload,
        "messages": messages,
        "rounds": rounds,
        "equal": equal,
    }


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds, and the worst number of messages and bytes."""
    return {
        "bytes": round(mean(run["bytes"] for run in runs)),
        "bytes_max": max(run["bytes"] for run in runs),
        "overhead": round(mean(run["overhead"] for run in runs)),
        "messages": round(mean(run["messages"] for run in runs), 1),
        "messages_max": max(run["messages"] for run in runs),
        "rounds_max": max(run["rounds"] for run in runs),
        "equal": sum(run["equal"] for run in runs) / len(runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--differences", type=int, nargs="+", default=list(DIFFERENCES))
    options = parser.parse_args()
    table = []
    for size in options.sizes:
        for difference in (d for d in options.differences if d <= size):
            runs = [case(size, difference, seed) for seed in range(options.seeds)]
            for name in runs[0]:
                found = summary([run[name] for run in runs])
                table.append({"N": size, "d": difference, "rule": name, **found})
    if options.json:
        print(json.dumps(table, indent=1))
        return
    print(__doc__)
    head = f"{'N':>7} {'d':>6} {'rule':<12} {'bytes':>10} {'(max)':>10} {'overhead':>10}"
    print(head + f" {'messages':>9} {'(max)':>7} {'rounds':>7}")
    for line in table:
        mark = "" if line["equal"] == 1 else "*"
        print(
            f"{line['N']:>7} {line['d']:>6} {line['rule'] + mark:<12} {line['bytes']:>10}"
            f" {line['bytes_max']:>10} {line['overhead']:>10} {line['messages']:>9}"
            f" {line['messages_max']:>7} {line['rounds_max']:>7}"
        )


if __name__ == "__main__":
    main()
