"""Draws the groups of gossip: topics below the topics they belong to, and who knows whom."""

from collections.abc import Mapping, Sequence
from math import sqrt

from msgspec.structs import replace

from planaria.core.ids import NodeId
from planaria.protocols.gossip.group import Group
from planaria.protocols.gossip.hierarchy import Hierarchy, filter_of
from planaria.protocols.gossip.state import GossipNodeState
from planaria.web.pictures.picture import (
    SUPER,
    VIEW,
    Named,
    Picture,
    Region,
    disc_places,
    listed,
    row_places,
)

REGIONS_MAX = 64  # a page with more circles tells nothing
FILLED = 0.72  # of a region is for its nodes, the rest for their names


def gossip_picture(
    ids: Sequence[NodeId],
    processes: Mapping[NodeId, GossipNodeState],
    named: Named,
    chosen: str = "",
) -> Picture:
    """Each process in the most special of its groups, views and links of all or of one group."""
    hierarchy = Hierarchy()
    homes = {id: _home(it, hierarchy) for id, it in processes.items()}
    regions = _regions([it for it in homes.values() if it is not None], hierarchy)
    found = Picture(regions=regions, wide=True)
    for region in found.regions:
        inside = [id for id in ids if homes.get(id) == region.name]
        size = (FILLED * region.wide, FILLED * region.high)
        found.places |= disc_places(inside, (region.x, region.y), *size)
    found.places |= row_places([id for id in ids if id not in found.places])
    found.regions = [_worded(it) for it in found.regions]
    for id, process in processes.items():
        for topic, group in process.groups.items():
            if chosen in ("", filter_of(topic)):
                _draw(found, id, group)
        found.figures[id] = _figures(process, named)
    return found


def _draw(found: Picture, id: NodeId, group: Group) -> None:
    for other in group.membership.view:
        found.join(id, other, VIEW)
    for other in group.links.contacts:
        found.join(id, other, SUPER)


def _figures(process: GossipNodeState, named: Named) -> dict[str, str]:
    figures = {"knows": listed(named(id) for id in process.neighbours.view)}
    for topic, group in process.groups.items():
        view, above = group.membership.view, group.links.contacts
        words = f"{listed(map(named, view))}; about {group.membership.size:,} in all"
        if above:
            words += (
                f"; above: {listed(f'{named(id)} ({filter_of(above[id][0])})' for id in above)}"
            )
        figures[f"in {filter_of(topic)}"] = words
    return figures


def _home(process: GossipNodeState, hierarchy: Hierarchy) -> str | None:
    groups = sorted(process.groups, key=lambda it: (-len(hierarchy.ancestors(it)), it))
    return groups[0] if groups else None


def _regions(homes: Sequence[str], hierarchy: Hierarchy) -> list[Region]:
    """The groups in rows, the general above the special, each as large as it has nodes."""
    counts = {name: homes.count(name) for name in sorted(set(homes))[:REGIONS_MAX]}
    above = {name: [it for it in hierarchy.ancestors(name) if it in counts] for name in counts}
    rows: dict[int, list[str]] = {}
    for name in counts:
        rows.setdefault(len(above[name]), []).append(name)
    order = [name for depth in sorted(rows) for name in rows[depth]]
    numbers = {name: at for at, name in enumerate(order)}
    found = []
    for at, depth in enumerate(sorted(rows)):
        weights = [1 + sqrt(counts[name]) for name in rows[depth]]
        left, high = -1.0, 1 / len(rows)
        for name, weight in zip(rows[depth], weights, strict=True):
            width = 2 * weight / sum(weights)
            x, y = round(left + width / 2, 4), round(-1 + (2 * at + 1) * high, 4)
            nearest = [numbers[it] for it in hierarchy.nearest(above[name])]
            found.append(Region(name, x, y, round(0.44 * width, 4), round(0.78 * high, 4), nearest))
            left += width
    return found


def _worded(region: Region) -> Region:
    return replace(region, name=filter_of(region.name))
