"""What is laid down for topics, asked of a running network, and in words for people."""

from typing import Any

from planaria.network.charters import judge
from planaria.network.client.messages import AskCharters, ChartersAre
from planaria.network.client.overlays import RING
from planaria.network.survey import Survey, Surveyor
from planaria.network.units import seconds_text
from planaria.protocols.publications.retention import Retention
from planaria.protocols.skipring.charter import Charter, rank_of


async def charters_of(surveyor: Surveyor, survey: Survey, pattern: str) -> dict[str, list[Charter]]:
    """The charters that supervisors keep, verified here too, of each topic the highest first."""
    authority = surveyor.access.credentials.authority if surveyor.access.credentials else None
    admit, ranked = judge(authority), dict[str, dict[Any, Charter]]()
    for node in supervisors_of(survey):
        after: str | None = ""
        while after is not None:
            answer = await surveyor.ask(node, AskCharters, ChartersAre, pattern, after)
            for judged in filter(None, map(admit, answer.sealed)):
                charter = judged.charter
                ranked.setdefault(charter.topic, {})[rank_of(charter)] = charter
            after = answer.next
    return {
        name: [ranked[name][rank] for rank in sorted(ranked[name], reverse=True)]
        for name in sorted(ranked)
    }


def supervisors_of(survey: Survey) -> list[int]:
    """The handles of those that say of themselves that they supervise."""
    return [handle for handle, seen in survey.nodes.items() if seen.status.supervises]


def line_of(charter: Charter) -> str:
    """A charter for people."""
    age, count, each = limits_of(charter.retention)
    limits = f"keeps {age}, count {count}, per publisher {each}"
    if charter.overlay != RING:
        limits = f"is in {charter.overlay}"
    rights = "".join(f", {right} by {' '.join(who)}" for right, who in charter.allow)
    return f"{charter.topic} version {charter.version}: {limits}{rights}"


def limits_of(kept: Retention) -> list[str]:
    """How long, how many, how many of each publisher."""
    age = "forever" if kept.age is None else seconds_text(kept.age)
    return [age, *("all" if it is None else f"{it:,}" for it in (kept.count, kept.per_publisher))]
