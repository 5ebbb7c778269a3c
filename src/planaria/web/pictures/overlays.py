"""Which picture the states of an overlay make, by what the states are."""

from collections.abc import Mapping, Sequence

from planaria.core.ids import NodeId
from planaria.core.state import State
from planaria.protocols.content.node import ContentBrokerState
from planaria.protocols.dht.node import DhtNodeState
from planaria.protocols.gossip.state import GossipNodeState
from planaria.protocols.mobile.node import MobileState
from planaria.protocols.tree.node import TreeHostState
from planaria.web.pictures.gossip import gossip_picture
from planaria.web.pictures.mobile import mobile_picture
from planaria.web.pictures.picture import Named, Picture, Place, circle_places
from planaria.web.pictures.ring import dht_picture, ring_picture, subscribers
from planaria.web.pictures.tree import broker_picture, tree_picture


def picture_of(
    ids: Sequence[NodeId],
    states: Mapping[NodeId, State],
    named: Named = str,
    topic: str = "",
    places: Mapping[NodeId, Place] | None = None,
    before: Mapping[NodeId, Place] | None = None,
) -> Picture:
    """The picture of any overlay; of a strange one, its nodes in a circle.

    `ids` are all nodes that are to be seen, also those that have no state; `places` where nodes
    are, where that is known, and `before` where they were drawn.
    """
    if members := subscribers(states, topic):
        return ring_picture(ids, members, named)
    if processes := {id: it for id, it in states.items() if isinstance(it, GossipNodeState)}:
        return gossip_picture(ids, processes, named, topic)
    if brokers := {id: it for id, it in states.items() if isinstance(it, ContentBrokerState)}:
        hosts = {id: it.host.place for id, it in brokers.items()}
        return broker_picture(ids, brokers, hosts, named)
    if trees := {id: it.place for id, it in states.items() if isinstance(it, TreeHostState)}:
        return tree_picture(ids, trees, named)
    if rings := {id: it.dht for id, it in states.items() if isinstance(it, DhtNodeState)}:
        return dht_picture(ids, rings, named)
    if nodes := {id: it for id, it in states.items() if isinstance(it, MobileState)}:
        return mobile_picture(ids, nodes, named, topic, places, before)
    return Picture(places=circle_places(ids))
