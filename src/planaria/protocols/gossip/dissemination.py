"""DISSEMINATE (paper 2, Figure 7), amended: which processes one process sends an event to.

It looks at the tables of the forwarder's own group alone (erratum 18), and takes them as they are.
"""

from collections.abc import Iterable
from random import Random

from planaria.core.ids import NodeId, is_node_id
from planaria.core.node import Effect, Send
from planaria.protocols.gossip.links import Links
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.messages import EVENT_HOPS_MAX, Event
from planaria.protocols.gossip.parameters import Parameters


def disseminate(
    event: Event,
    membership: Membership,
    links: Links,
    parameters: Parameters,
    rng: Random,
    *,
    publisher: bool,
) -> list[Effect]:
    """Send `event` to ln S + c members of the group and perhaps upwards.

    With probability g/S the process relays to exactly a superprocesses of each supertopic (erratum
    4); the publisher always does (section IV-C, erratum 20). An event that came `EVENT_HOPS_MAX`
    hops far goes no further.
    """
    if event.hops >= EVENT_HOPS_MAX:
        return []
    me, size = membership.me, membership.size
    known = list(membership.view)
    fanout = min(parameters.fanout(max(size, len(known) + 1)), len(known))
    effects = _sends(event, membership.group, _some(known, fanout, rng), me)
    if publisher or rng.random() < parameters.p_sel(size):
        tables: dict[str, list[NodeId]] = {}
        for id, (above, _) in links.contacts.items():
            tables.setdefault(above, []).append(id)
        for above, ids in tables.items():
            chosen = _some(ids, min(parameters.a, len(ids)), rng)
            effects += _sends(event, above, chosen, me)
    return effects


def _sends(event: Event, group: str, targets: Iterable[NodeId], me: NodeId) -> list[Effect]:
    topic, msg_id, payload, hops = event.topic, event.msg_id, event.payload, event.hops + 1
    copy = Event(group, topic, msg_id, payload, event.publisher, event.sequence, me, hops)
    return [Send(target, copy) for target in targets if is_node_id(target)]


def _some(ids: list[NodeId], count: int, rng: Random) -> list[NodeId]:
    """`count` different ones of `ids`, which is shuffled: a third of the price of `rng.sample`."""
    draw, left = rng.random, len(ids)
    for place in range(count):
        other = place + int(draw() * (left - place))
        ids[place], ids[other] = ids[other], ids[place]
    return ids[:count]
