"""An incident as a picture: what the naive protocol and Planaria still owed, moment by moment."""

from planaria.core.scenario import LASTING, WORKLOAD
from planaria.lab.incidents.incidents import Run, Story
from planaria.simulator.pictures.backlog import Fault, Line, draw

HEALING = 20  # intervals shown between the schedule and the last publications
AFTERWARDS = 8  # intervals shown of those


def picture(story: Story) -> str:
    """The SVG of a story; the wait between healing and the last publications is cut short."""
    faults = [it for it in story.incident.faults if it.kind not in WORKLOAD]
    after = max(it.at + it.duration for it in story.incident.faults) + HEALING
    lines = [
        Line(f"naive: {story.incident.naive}", "#d55e00", _shifted(story.naive, after)),
        Line("Planaria", "#0072b2", _shifted(story.planaria, after)),
    ]
    shown = [Fault(it.kind, it.at, it.duration if it.kind in LASTING else 0.0) for it in faults]
    mark = (after, "everybody publishes once more")
    return draw("Deliveries outstanding", lines, shown, after + AFTERWARDS, mark)


def _shifted(run: Run, after: float) -> list[tuple[float, float | None]]:
    """The same with the last publications at `after`, whenever this run had come so far."""

    def moved(time: float) -> float:
        return time - run.after + after if time >= run.after else min(time, after)

    return [(moved(since), None if when is None else moved(when)) for since, when in run.dues]
