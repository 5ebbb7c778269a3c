"""The animation of a run: what the page is given to draw."""

import json
import re

import pytest

from planaria.lab.mobile.variants import oriented
from planaria.simulator.pictures.mobile import animation
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.mobile import MovingOverlay
from planaria.simulator.worlds.mobile_measures import PICTURE_NODES_MAX, PICTURES_MAX


def drawn(overlay: MovingOverlay) -> dict[str, list[dict[str, object]]]:
    """The data in the page."""
    found = re.search(r"const DATA = (.*), NS = ", animation(overlay.world))
    assert found
    return json.loads(found[1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("orientation", ["heights", "edge-bits"])
def test_animation_shows_every_second_of_motion_and_each_publication(orientation: str) -> None:
    overlay = oriented(orientation, "waypoint:12:8", publications=2, moving=20)
    assert Trial(overlay, Spec(12, 3, "fresh")).run().failure is None
    data = drawn(overlay)
    seconds = [it["second"] for it in data["pictures"]]
    assert seconds == list(range(1, len(seconds) + 1))
    assert len(seconds) > 20
    last = data["pictures"][-1]
    assert isinstance(last["places"], dict)
    assert isinstance(last["links"], list)
    reach, places = overlay.world.motion, overlay.world.places()
    assert {tuple(sorted(link)) for link in last["links"]} == {
        (a, b) for a in places for b in places if a < b and reach.reaches(a, b, len(seconds))
    }
    assert [len(it["arrivals"]) for it in data["publications"]] == [12, 12]  # type: ignore[arg-type]


def test_animation_is_bounded() -> None:
    overlay = MovingOverlay(f"path:{PICTURE_NODES_MAX + 1}")
    Trial(overlay, Spec(1, 1, "legitimate")).simulator.run(500)
    assert drawn(overlay)["pictures"] == []
    overlay = MovingOverlay("path:2")
    Trial(overlay, Spec(1, 1, "legitimate")).simulator.run(100 * (PICTURES_MAX + 50))
    assert len(drawn(overlay)["pictures"]) == PICTURES_MAX
