"""Write the table, the stories and the pictures of docs/incidents.md by repeating all incidents.

    python docs/incidents_page.py

Only what stands between the markers changes, so that every figure on the page is one that was run.
"""

import runpy
from collections.abc import Sequence
from pathlib import Path

from planaria.cli.tables import counted
from planaria.lab.incidents.incidents import Row, Story, load, names, tell
from planaria.lab.incidents.picture import picture

PAGE = Path(__file__).with_name("incidents.md")
PICTURES = Path(__file__).parent / "pictures" / "incidents"

_recovery = runpy.run_path(str(Path(__file__).with_name("recovery_page.py")))
table, written = _recovery["table"], _recovery["written"]


def link(source: str) -> str:
    """A source, with its address."""
    repository, _, number = source.partition("#")
    return f"[{source}](https://github.com/{repository}/issues/{number})"


def overview(rows: Sequence[Row]) -> str:
    """A line for each incident."""
    heads = (
        "incident",
        "naive",
        "lost",
        "twice",
        "Planaria healed after",
        "lost",
        "twice",
        "besides",
    )
    lines = [
        (
            f"[`{it.name}`](#{it.name})",
            it.naive,
            it.naive_lost,
            it.naive_twice,
            counted(it.intervals, "interval") if it.healed else "not healed",
            it.lost,
            it.twice,
            ", ".join(check.name for check in it.checks if check.held) or "–",
        )
        for it in rows
    ]
    return str(table(heads, lines))


def story(one: Story) -> str:
    """What happened, the schedule, the picture, and what one sees in it."""
    incident, ours, theirs = one.incident, one.planaria, one.naive
    again = f", and {theirs.twice} come again" if theirs.twice else ""
    healed = counted(ours.outcome.intervals, "interval")
    seen = (
        f"The naive protocol (`{incident.naive}`) is {one.row.naive}: of {len(theirs.dues)} "
        f"deliveries {theirs.lost} never come{again}. Planaria ({incident.planaria}) is legitimate "
        f"{healed} after the last fault, with {ours.lost} of {len(ours.dues)} lost and "
        f"{ours.twice} twice."
    )
    besides = [f"Besides, {it.name}: {it.detail}." for it in one.checks]
    return "\n\n".join(
        [
            f"### {incident.name}",
            f"**{incident.title}.** {' '.join(incident.happened.split())}"
            f" ({', '.join(map(link, incident.source))})",
            f"Cause: {incident.cause}.",
            f"```text\n{incident.schedule.strip()}\n```",
            f"![Deliveries outstanding](pictures/incidents/{incident.name}.svg)",
            " ".join([seen, *besides]),
        ]
    )


def parts_of(stories: Sequence[Story]) -> dict[str, str]:
    """What stands between which markers."""
    return {
        "overview": overview([it.row for it in stories]),
        "stories": "\n\n".join(map(story, stories)) + "\n",
    }


def main() -> None:
    """Repeat all incidents, write the page and its pictures."""
    stories = [tell(load(name)) for name in names()]
    PAGE.write_text(written(PAGE.read_text(), parts_of(stories)))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for it in stories:
        (PICTURES / f"{it.incident.name}.svg").write_text(picture(it))


if __name__ == "__main__":
    main()
