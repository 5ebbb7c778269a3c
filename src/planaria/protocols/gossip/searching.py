"""REQCONTACT (paper 2, Figure 4): a walk over the neighbourhood until somebody knows."""

from collections.abc import Mapping
from random import Random

from planaria.core.ids import NodeId
from planaria.core.node import NOTHING, Effects, Send
from planaria.protocols.gossip.group import Group
from planaria.protocols.gossip.links import SEARCH_HOPS_MAX
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.messages import Contact, Found, Search

ANSWER_CONTACTS = 3  # contacts in one answer: a table's worth


def answer(
    search: Search, groups: Mapping[str, Group], neighbours: Membership, rng: Random
) -> Effects:
    """Tell the origin if I know another, else pass the search on until it expires."""
    origin, me = search.origin, neighbours.me
    neighbours.repair()
    for topic in search.wanted:
        if known := _known(topic, origin, groups, me, rng):
            return [Send(origin, Found(tuple(known[:ANSWER_CONTACTS])))]
    around = [id for id in neighbours.view if id not in (origin, me)]
    if not around or search.hops >= SEARCH_HOPS_MAX:
        return NOTHING
    return [Send(rng.choice(around), Search(origin, search.wanted, search.hops + 1))]


def _known(
    topic: str, origin: NodeId, groups: Mapping[str, Group], me: NodeId, rng: Random
) -> list[Contact]:
    """Others than `origin` in `topic`: myself and members that I know, or superprocesses."""
    group = groups.get(topic)
    if group is not None and me != origin:
        members = group.membership.members(rng, ANSWER_CONTACTS - 1, origin)
        return [(me, topic, 0), *((id, topic, age) for id, age in members)]
    tables = [contact for each in groups.values() for contact in each.links.table()]
    return [it for it in tables if it[1] == topic and it[0] != origin]
