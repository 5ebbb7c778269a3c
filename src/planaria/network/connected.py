"""What clients do at a node, in words, from its status."""

from collections.abc import Iterable, Sequence

from planaria.network.client.overlays import RING
from planaria.network.status import ClientStatus, FollowedStatus, PublishedStatus
from planaria.network.units import seconds_text, size_text

LINES_MAX = 8  # of what one client follows, and of what it publishes
ANONYMOUS = "anonymous"


def together(connected: Iterable[ClientStatus]) -> Iterable[list[ClientStatus]]:
    """The connections of each client: the library opens one for each subscription."""
    found: dict[tuple[str, str], list[ClientStatus]] = {}
    for one in connected:
        found.setdefault((one.id, one.address.rpartition(":")[0]), []).append(one)
    return found.values()


def figures(connections: Sequence[ClientStatus]) -> str:
    """Since when one client is there, and how much it was sent and has said."""
    waits = sum(it.unacknowledged for it in connections)
    unanswered = sum(it.unanswered for it in connections)  # one may be what is answered just now
    found = [
        f"for {seconds_text(max(it.seconds for it in connections))}",
        f"{size_text(sum(it.sent for it in connections))} to it",
        f"{size_text(sum(it.received for it in connections))} from it",
        *([f"{len(connections)} connections"] if len(connections) > 1 else []),
        *([f"{size_text(waits)} not taken yet"] if waits else []),
        *([f"{unanswered} requests unanswered"] if unanswered > 1 else []),
    ]
    return ", ".join(found)


def does(connections: Sequence[ClientStatus]) -> Iterable[str]:
    """What a client does, a line each."""
    follows = [one for it in connections for one in it.follows]
    publishes = [one for it in connections for one in it.publishes]
    yield from map(followed, follows[:LINES_MAX])
    more = sum(it.follows_total for it in connections) - len(follows[:LINES_MAX])
    if more:
        yield f"follows {more:,} more"
    yield from map(published, publishes[:LINES_MAX])
    more = sum(it.publishes_total for it in connections) - len(publishes[:LINES_MAX])
    if more:
        yield f"publishes {more:,} more streams"
    if not any(it.follows_total or it.publishes_total for it in connections):
        yield f"asks: {sum(it.requests for it in connections):,} requests"


def followed(one: FollowedStatus) -> str:
    """`follows news where x > 1, 12 behind`."""
    where = "" if one.where is None else f" where {one.where}"
    behind = ", not counted how far behind" if one.behind is None else f", {one.behind:,} behind"
    lost = f", {one.lost:,} lost" if one.lost else ""
    return (
        f"follows {one.pattern}{_in(one.overlay)}{where}{behind if one.behind != 0 else ''}{lost}"
    )


def published(one: PublishedStatus) -> str:
    """`publishes news: 12 in stream 7/ab…`."""
    publisher, _, incarnation = one.stream.partition("/")
    stream = f"{publisher}/{incarnation[:6]}"
    return f"publishes {one.topic}{_in(one.overlay)}: {one.publications:,} in stream {stream}"


def _in(overlay: str) -> str:
    return "" if overlay == RING else f" in {overlay}"
