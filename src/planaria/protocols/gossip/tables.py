"""Tables given from the outside: for the paper's own experiment, and for legitimate first states.

Views and supertopic tables are drawn uniformly, as in section VII-A; sketches are exact.
"""

from collections.abc import Mapping, Sequence
from random import Random

from planaria.core.ids import NodeId
from planaria.protocols.gossip import sketch
from planaria.protocols.gossip.group import ALONE_AFTER
from planaria.protocols.gossip.membership import Membership
from planaria.protocols.gossip.node import NEIGHBOURS, GossipNode
from planaria.protocols.gossip.parameters import Parameters


def give_tables(nodes: Sequence[GossipNode], rng: Random) -> None:
    """Give each of `nodes` the tables that it would have after long enough a time."""
    groups: dict[str, list[NodeId]] = {}
    for node in nodes:
        node.on_timeout()  # makes the groups of its interests; what it says is not sent
        for topic in node.groups:
            groups.setdefault(topic, []).append(node.id)
    everybody = [node.id for node in nodes]
    all_sketched = sketch.exact(everybody)
    sketched = {topic: sketch.exact(members) for topic, members in groups.items()}
    for node in nodes:
        _fill(node.neighbours, everybody, all_sketched, NEIGHBOURS, rng)
        for topic, group in node.groups.items():
            parameters = node.configuration.of(topic)
            _fill(group.membership, groups[topic], sketched[topic], parameters, rng)
            group.intervals = ALONE_AFTER
        _link(node, groups, rng)


def _fill(
    membership: Membership,
    members: Sequence[NodeId],
    sketched: sketch.Sketch,
    parameters: Parameters,
    rng: Random,
) -> None:
    membership.sketch = dict(sketched)
    membership.size = sketch.estimate(membership.sketch)
    membership.asked, membership.remembered, membership.denied = {}, {}, {}
    count = min(parameters.view(len(members)), len(members) - 1)
    chosen = rng.sample(members, min(count + 1, len(members)))
    membership.view = dict.fromkeys([id for id in chosen if id != membership.me][:count], 0)


def _link(node: GossipNode, groups: Mapping[str, Sequence[NodeId]], rng: Random) -> None:
    hierarchy = node.configuration.hierarchy
    for topic, group in node.groups.items():
        occupied = {
            above: [id for id in groups[above] if id != node.id]
            for above in hierarchy.ancestors(topic)
            if above in groups
        }
        group.links.contacts, group.links.denied, group.links.lacking = {}, {}, 0
        for above in hierarchy.nearest([above for above, ids in occupied.items() if ids]):
            z = node.configuration.of(topic).z
            ids = rng.sample(occupied[above], min(z, len(occupied[above])))
            group.links.contacts.update(dict.fromkeys(ids, (above, 0)))
