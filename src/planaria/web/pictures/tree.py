"""Draws the tree over the DHT, and what each broker knows is wanted behind each of its links."""

from collections.abc import Mapping, Sequence

from planaria.core.ids import NodeId
from planaria.filters.wording import to_sql
from planaria.protocols.routing.node import BrokerState
from planaria.protocols.tree.place import TreePlaceState
from planaria.web.pictures.picture import (
    BELOW,
    LINK,
    ROOT,
    TREE,
    Named,
    Picture,
    Place,
    listed,
    row_places,
)

TOP, BOTTOM = -0.9, 0.8


def tree_picture(
    ids: Sequence[NodeId], hosts: Mapping[NodeId, TreePlaceState], named: Named
) -> Picture:
    """Every host below the one that it takes for its parent; those in circles are in a row."""
    parents = {id: it.parent if it.parent in hosts else None for id, it in hosts.items()}
    found = Picture(places=_places(parents), wide=True)
    found.places |= row_places([id for id in ids if id not in found.places], BELOW)
    for id, it in hosts.items():
        for child in it.children:
            found.join(id, child, TREE if parents.get(child) == id else LINK)
        if it.parent is None:
            found.roles[id] = ROOT
        else:
            beside = hosts.get(it.parent)
            agreed = beside is not None and id in beside.children
            found.join(id, it.parent, TREE if agreed else LINK)
        found.figures[id] = {
            "parent": "none: it is the root" if it.parent is None else named(it.parent),
            "children": listed(map(named, it.children)),
        }
    return found


def broker_picture(
    ids: Sequence[NodeId],
    brokers: Mapping[NodeId, BrokerState],
    hosts: Mapping[NodeId, TreePlaceState],
    named: Named,
) -> Picture:
    """The tree, with how many conditions a broker knows behind each link, and which."""
    found = tree_picture(ids, hosts, named)
    for id, broker in brokers.items():
        for destination, leases in broker.table.entries.items():
            wanted = [to_sql(it.filter) for it in leases.values()]
            if destination >= 0:
                if destination in hosts[id].children or destination == hosts[id].parent:
                    found.ends[id, destination] = str(len(wanted))
                found.figures[id][f"wanted behind {named(destination)}"] = listed(wanted)
        own = [to_sql(it) for filters in broker.clients.values() for it in filters.values()]
        found.figures[id]["wanted here"] = listed(own) if own else "nothing"
        if own:
            found.marks[id] = f"wants {len(own)}"
    return found


def _places(parents: Mapping[NodeId, NodeId | None]) -> dict[NodeId, Place]:
    """Roots at the top, leaves side by side, everybody else over the middle of its children."""
    children: dict[NodeId | None, list[NodeId]] = {}
    for id in sorted(parents):
        children.setdefault(parents[id], []).append(id)
    depths: dict[NodeId, int] = {}
    order: list[NodeId] = []  # each before its children
    pending = [(id, 0) for id in reversed(children.get(None, []))]
    while pending:
        id, depth = pending.pop()
        depths[id] = depth
        order.append(id)
        pending += [(it, depth + 1) for it in reversed(children.get(id, []))]
    leaves = [id for id in order if id not in children]
    across = {id: (2 * at + 1) / len(leaves) - 1 for at, id in enumerate(leaves)}
    for id in reversed(order):
        below = [across[it] for it in children.get(id, [])]
        across[id] = across.get(id) if not below else sum(below) / len(below)  # type: ignore[assignment]
    step = (BOTTOM - TOP) / max(1, *depths.values(), 1)
    return {id: (round(across[id], 4), round(TOP + depths[id] * step, 4)) for id in order}
