"""What the `ring` overlay adds to `planaria sim`: its options and its picture."""

from planaria.protocols.registry import PRODUCTS
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.shape import draw
from planaria.simulator.trial import Trial
from planaria.simulator.worlds.registry import Kind, Option, Output


def _picture(trial: Trial) -> str:
    return draw(trial.simulator.states(), TOPIC)


RING = Kind(
    make=RingOverlay,
    options=(
        *PRODUCTS["ring"].options,
        Option("pace", 1, "Intervals between two words of a calm topic, up to 16."),
        Option("histories", True, "Corrupt and forge publications too, not the ring alone."),
    ),
    outputs=(Output("svg", "Draw the ring with its shortcuts.", _picture),),
)
