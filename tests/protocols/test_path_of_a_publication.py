"""One publication can be followed from command to Deliver: who calls whom on its way."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from planaria.core.node import Deliver, Effect, Publish, Send
from planaria.protocols.skipring.broadcast_messages import Arc
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.delays import INTERVAL
from planaria.simulator.trial import Spec, Trial

CALLS_MAX = 8  # in a node, from its door to the effect


class Path:
    """The calls within which the first effect of some kind came to be, outermost first.

    Whoever returns it first made it. Calls that came back before are nobody's way to it.
    """

    def __init__(self, wanted: Callable[[Effect], bool]) -> None:
        self.wanted = wanted
        self.driver: list[str] = []
        self.node: list[str] = []

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """Called by Python for every call and return."""
        if event != "return" or self.node:
            return
        values = value if isinstance(value, list) else [value]
        if not any(isinstance(it, Effect) and self.wanted(it) for it in values):
            return
        above: FrameType | None = frame
        while above is not None:
            module, name = above.f_globals["__name__"], above.f_code.co_qualname
            if not name.endswith("comp>"):  # a comprehension is part of its function
                if module.startswith("planaria.protocols."):
                    self.node.insert(0, name)
                elif module.startswith("planaria.simulator."):
                    self.driver.insert(0, name)
            above = above.f_back


def followed(act: Callable[[], None], wanted: Callable[[Effect], bool]) -> Path:
    path, before = Path(wanted), sys.getprofile()
    sys.setprofile(path)
    try:
        act()
    finally:
        sys.setprofile(before)
    return path


def test_publication_is_followed_from_command_to_delivery_through_few_calls() -> None:
    overlay = RingOverlay()
    simulator = Trial(overlay, Spec(2, 1, "legitimate")).simulator

    def sent(effect: Effect) -> bool:
        return isinstance(effect, Send) and isinstance(effect.message, Arc)

    def delivered(effect: Effect) -> bool:
        return isinstance(effect, Deliver)

    sending = followed(lambda: simulator.command(0, Publish(overlay.topic, b"news")), sent)
    assert sending.driver[-1:] == ["Simulator.command"]
    assert sending.node[0] == "Peer.on_command"
    assert sending.node[-1].startswith("Broadcast.")
    assert len(sending.node) <= CALLS_MAX, sending.node
    receiving = followed(lambda: simulator.run(2 * INTERVAL), delivered)
    assert receiving.driver[-2:] == ["Simulator.run", "Simulator._run_bucket"]
    assert receiving.node[0] == "Peer.on_message"
    assert len(receiving.node) <= CALLS_MAX, receiving.node
