"""Draw docs/pictures/healing.svg: the same faults done to a ring and to a broker.

python docs/healing_picture.py
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from planaria.core.overlay import Overlay, Violation
from planaria.lab.contest.baselines import Star
from planaria.lab.contest.workload import Workload
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.engine import Simulator

PICTURE = Path(__file__).parent / "pictures" / "healing.svg"
MEMBERS, SEED = 16, 3
FAULTS = (6, 30)  # intervals after which every memory is arbitrary
INTERVALS = 54
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 300, 40, 48, 250
COLOURS = {"one broker, told once": "#d55e00", "Planaria's ring": "#0072b2"}


def overlays() -> dict[str, Overlay]:
    """What is broken: both have the same members, who all want one topic."""
    ids = tuple(range(MEMBERS))
    told_once = Workload(("news",), dict.fromkeys(ids, "news"), (), (), (ids[:8], ids[8:]))
    return dict(zip(COLOURS, (Star(told_once), RingOverlay()), strict=True))


def curve(overlay: Overlay) -> list[int]:
    """For how many members something is wrong at the end of each interval."""
    simulator, rng, found = Simulator(SEED), Random(SEED), list[int]()
    for node in overlay.legitimate(MEMBERS, simulator.rng):
        simulator.add(node)
    for interval in range(INTERVALS):
        if interval in FAULTS:
            for node in simulator.nodes.values():
                overlay.corrupt(node, [*simulator.nodes], rng)
        simulator.run_interval()
        found.append(concerned(overlay.violations(simulator.states(), simulator.channel())))
    return found


def concerned(violations: Sequence[Violation]) -> int:
    """What is wrong at no member in particular, a database say, concerns all of them."""
    nodes = {it.node for it in violations}
    return len(nodes) if nodes <= {*range(MEMBERS)} else MEMBERS


def drawn(curves: dict[str, list[int]]) -> str:
    """The picture as SVG."""
    across = (WIDTH - 2 * LEFT) / INTERVALS

    def place(interval: float, failing: float) -> tuple[float, float]:
        return LEFT + across * interval, BOTTOM - (BOTTOM - TOP) * failing / MEMBERS

    parts = [
        f'<rect x="{LEFT}" y="{BOTTOM - 8}" width="{across * INTERVALS:.0f}" height="16" '
        'fill="#009e73" opacity="0.25"/>',
        f'<text x="{LEFT}" y="{BOTTOM + 26}">0: legitimate, every invariant holds</text>',
        f'<text x="{LEFT}" y="{TOP - 28}">members for which something is wrong, '
        f"of {MEMBERS}</text>",
        f'<text x="{WIDTH - LEFT}" y="{BOTTOM + 26}" text-anchor="end">'
        f"{INTERVALS} intervals</text>",
    ]
    for at in FAULTS:
        x, _ = place(at, 0)
        parts += [
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{BOTTOM}" stroke="#888" '
            'stroke-dasharray="4 3"/>',
            f'<text x="{x + 4:.1f}" y="{TOP - 8}">all memories become arbitrary</text>',
        ]
    for number, (name, found) in enumerate(curves.items()):
        points = " ".join("{:.1f},{:.1f}".format(*place(at + 1, it)) for at, it in enumerate(found))
        colour = COLOURS[name]
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>',
            f'<text x="{LEFT}" y="{BOTTOM + 44 + 18 * number}" fill="{colour}">{name}: '
            f"wrong for {found[-1]} of {MEMBERS} at the end</text>",
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 24}" '
        'font-family="sans-serif" font-size="13">\n'
        + f'<rect width="{WIDTH}" height="{HEIGHT + 24}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn({name: curve(it) for name, it in overlays().items()}))
