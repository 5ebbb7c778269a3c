"""The overlays of the product by name: how to make one, and its options. Loads none until asked.

A driver adds what only it has: worlds, pictures and checkers are the simulator's.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import isabstract

from msgspec import Struct

from planaria.core.errors import UsageError, unknown
from planaria.core.overlay import Overlay


class Option(Struct, frozen=True):
    """A keyword argument of what makes an overlay; its default says its type.

    On a command line it is `--name`, and a boolean the pair `--name` and `--no-name`.
    """

    name: str
    default: int | float | str | bool
    help: str
    choices: tuple[str, ...] = ()


class Product(Struct, frozen=True):
    """An overlay of the product: `place` is `module:name` of what makes it."""

    place: str
    options: tuple[Option, ...] = ()

    def load(self) -> Callable[..., Overlay]:
        """What makes it; a class that lacks something is for a driver to complete."""
        module, _, name = self.place.partition(":")
        maker: Callable[..., Overlay] = getattr(import_module(module), name)
        return maker

    def make(self, **options: int | float | str | bool) -> Overlay:
        """One such overlay. Raises UsageError for a value that cannot be."""
        maker = self.load()
        if isabstract(maker):
            raise UsageError(f"{self.place} needs a driver that knows who is in reach of whom")
        return maker(**options)


STRATEGIES = ("flooding", "simple", "identity", "covering", "merging")

PRODUCTS: Mapping[str, Product] = {
    "ring": Product(
        "planaria.protocols.skipring.overlay:RingOverlay",
        (Option("supervisors", 1, "How many supervisors serve the topic, in turn."),),
    ),
    "gossip": Product(
        "planaria.protocols.gossip.overlay:gossip_overlay",
        (
            Option("g", 5.0, "Processes of a group that relay an event upwards."),
            Option("a", 1, "Superprocesses that a relay sends to."),
            Option("z", 3, "Size of a supertopic table."),
            Option("b", 3.0, "Views hold (b+1) ln S members."),
            Option("c", 5.0, "Events go to ln S + c members."),
        ),
    ),
    "content": Product(
        "planaria.protocols.content.overlay:ContentOverlay",
        (
            Option("strategy", "covering", "How filters are spread.", STRATEGIES),
            Option("hierarchical", False, "Spread filters towards the root only."),
            Option("rho", 4, "Timeouts between two renewals of a lease."),
        ),
    ),
    "mobile": Product(
        "planaria.protocols.mobile.overlay:MobileOverlay",
        (
            Option("layers", 1, "How many topics; every node is in all of them."),
            Option("connection-points", 0, "Links a node asks for; 0: all in range."),
            Option("echo", False, "Send a publication back to whom it came from, as Table 4 does."),
            Option("padding", 0, "Pad payloads to a multiple of this many bytes."),
            Option("walk", 0, "Hand a publication over so many times, on average, then flood it."),
        ),
    ),
    "dht": Product("planaria.protocols.dht.overlay:DhtOverlay"),
    "tree": Product(
        "planaria.protocols.tree.overlay:TreeOverlay",
        (Option("degree", 3, "Degree of the reference tree; above 3, a wide one."),),
    ),
}


def find_product(name: str) -> Product:
    """The overlay called `name`. Raises UsageError if there is none."""
    if name not in PRODUCTS:
        raise unknown("overlay", name, sorted(PRODUCTS))
    return PRODUCTS[name]
