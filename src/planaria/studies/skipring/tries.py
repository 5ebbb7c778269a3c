"""Two tries made equal by Algorithm 5 as printed, or by the descent that covers regions."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import combinations

from planaria.core.message import Message
from planaria.literal.trie import Hashes, LiteralSubscriber
from planaria.protocols.publications.descent import Listing, answer, lacking, listing
from planaria.protocols.publications.trie import ROOT_LABEL, Trie

STARTS_MAX = 12
MESSAGES_MAX = 10_000  # of one start; each goes one level down, so this is a mistake


def subsets(width: int, size_max: int) -> list[tuple[str, ...]]:
    """All sets of at most `size_max` keys of `width` bits."""
    keys = [f"{key:0{width}b}" for key in range(2**width)]
    return [chosen for size in range(size_max + 1) for chosen in combinations(keys, size)]


def start_literal(starter: LiteralSubscriber, peer: LiteralSubscriber) -> int:
    """One start of Algorithm 5, until both are silent; returns the messages."""
    waiting: deque[tuple[LiteralSubscriber, Message]] = deque()
    waiting.extend((peer, message) for message in starter.publish_timeout())
    count = len(waiting)
    while waiting:
        target, message = waiting.popleft()
        answers = target.on_message(message)
        waiting.extend((peer if target is starter else starter, each) for each in answers)
        count += len(answers)
        assert count < MESSAGES_MAX
    return count


def literal_starts(
    ours: Iterable[str], theirs: Iterable[str], hashes: Hashes, *, dangling: bool = False
) -> int | None:
    """Starts, in turn from either side, until both hold the same; None if 12 do not suffice."""
    one = LiteralSubscriber(1, ours, hashes=hashes, dangling=dangling)
    two = LiteralSubscriber(2, theirs, hashes=hashes, dangling=dangling)
    for starts in range(STARTS_MAX + 1):
        if one.trie.keys == two.trie.keys:
            return starts
        start_literal(*((one, two) if starts % 2 == 0 else (two, one)))
    return None


class OurTrie:
    """A trie of `width` bits and the keys it indexes."""

    def __init__(self, width: int, keys: Iterable[str]) -> None:
        self.entries: dict[int, None] = {int(key, 2): None for key in keys}
        self.trie = Trie(width, self.entries)

    def take(self, keys: Iterable[int]) -> None:
        """Insert what is new."""
        for new in keys:
            if new not in self.entries:
                self.entries[new] = None
                self.trie.insert(new)


def start_ours(starter: OurTrie, peer: OurTrie) -> int:
    """One start of the region-covering descent; returns the messages."""
    if starter.trie.root_hash == peer.trie.root_hash:
        return 1
    sender, receiver = peer, starter  # the peer saw the starter's root and answers
    regions: Sequence[Listing] = [listing(peer.trie, ROOT_LABEL, 0)]
    messages = 2
    while regions:
        missing = [each for region in regions for each in lacking(receiver.trie, region)]
        regions = [ours for region in regions for ours in answer(receiver.trie, region, 0)]
        sender.take(missing)
        sender, receiver = receiver, sender
        messages += 1
        assert messages < MESSAGES_MAX
    return messages
