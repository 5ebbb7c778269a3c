"""The clients of a live network, as its nodes tell of them, for the page."""

from collections.abc import Mapping

from planaria.core.ids import NodeId
from planaria.network.connected import ANONYMOUS, does, figures, together
from planaria.network.status import ClientStatus
from planaria.network.survey import Survey
from planaria.web.frames import ClientView

CLIENTS_MAX = 200  # that a page lists: the first of each node before the second of any


def client_views(survey: Survey, numbers: Mapping[NodeId, int]) -> list[ClientView]:
    """As many as a page lists, by node."""
    ranked = [
        (rank, numbers[id], connections)
        for id, seen in survey.nodes.items()
        for rank, connections in enumerate(together(seen.status.connected))
    ]
    first = sorted(ranked, key=lambda it: it[:2])[:CLIENTS_MAX]
    return [client_view(node, it) for _, node, it in sorted(first, key=lambda it: (it[1], it[0]))]


def client_view(node: int, connections: list[ClientStatus]) -> ClientView:
    """One client."""
    first = connections[0]
    return ClientView(
        id=f"{first.id} {first.address}",
        node=node,
        name=first.name or ANONYMOUS,
        address=first.address,
        connections=len(connections),
        figures=figures(connections),
        does=[*does(connections)],
        behind=any(one.behind or one.lost for it in connections for one in it.follows),
    )
