"""Which network a query talks to: found once, beside the driver, and shipped to all tasks."""

from pathlib import Path

from planaria.network.context import Context, find_context
from planaria.spark.source.options import Network


def resolved(network: Network) -> Context:
    """The context that these options name; tasks elsewhere may know no context by that name."""
    return find_context(
        network.context,
        servers=network.servers,
        credentials=None if network.credentials is None else Path(network.credentials),
        insecure=network.insecure,
    )
