"""The page of the study of the tree over a DHT."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from planaria.studies.charts import Point, draw, lines
from planaria.studies.study import Block, Figure, Prose, Shown, Table, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPERS = {"two": 2.0, "three": 3.0}  # section 4.2.2
NAMES = {1: "one neighbour", 2: "two", 3: "three"}


def page(tables: Mapping[str, Table]) -> Sequence[Block]:
    """Section by section: what the paper says, what we get, why they differ."""
    return [
        Prose(
            "<p>Hosts own intervals of keys of a distributed hash table. Each sits at its topmost "
            "key of a reference tree that everybody can compute, and finds its parent and its "
            "children by lookups. The paper's DHT is an abstract component that is always right; "
            "its Figures 3 and 4 are repeated here in that setting, and the same tree was run over "
            "Planaria's own DHT, from arbitrary states, under churn and crashes.</p>"
        ),
        *_example(tables),
        *_degrees(tables),
        *_area(tables),
        *_costs(tables),
        *_live(),
    ]


def _example(tables: Mapping[str, Table]) -> list[Block]:
    dropped = said(tables, "drop when h4 joins")
    topmost = said(tables, "topmost key of h5")
    return [
        Figure(
            "figure2",
            "Figure 2: the worked example of section 3.5. Each host with its topmost key; "
            "left to right by key, top down by depth.",
            _draw_example(tables["example"]),
        ),
        Prose(
            f"<p>The three networks are those of Figure 2. The text beside them errs twice: after "
            f"h4 joined, h5's topmost key is {topmost['measured']:g}, not "
            f"{topmost['paper']:g} (6 belongs to h9), and 'no further modifications are needed' "
            f"leaves out {dropped['measured']:g} link, the one between h5 and h9, without whose "
            "end h4, h5 and h9 are a cycle.</p>"
            "<p>Two hosts that join at once break the printed rule, by which only those named in "
            "a symmetric difference look again: "
            f"{said(tables, 'two changes', 'literal')['literal']:g} of the cases tried end wrong, "
            "none if a host also looks again when its keyset changes. One change at a time always "
            "ends right. The property of section 3.2 is not enough for the bound on neighbours "
            "either: six keys that have it give a host "
            f"{said(tables, '3.2', 'literal')['literal']:g}. It takes "
            "subtrees that are intervals, as in Figure 1(a).</p>"
        ),
    ]


def _degrees(tables: Mapping[str, Table]) -> list[Block]:
    rows = tables["figure3"]
    series = {
        name: [
            Point(row["hosts"], row["fraction"], row["low"], row["high"])
            for row in rows
            if row["degree"] == degree
        ]
        for degree, name in NAMES.items()
    }
    sizes = sorted({row["hosts"] for row in rows})
    series["ideal: one"] = [Point(n, (n + 1) // 2 / n) for n in sizes]
    series["ideal: two"] = [Point(n, (2 - n % 2) / n) for n in sizes]
    last = {row["degree"]: row["fraction"] for row in rows if row["hosts"] == max(sizes)}
    return [
        Figure(
            "figure3",
            "Figure 3: share of hosts by number of neighbours, with 95 % intervals; dashed, what a "
            "balanced binary tree of as many hosts has. Nobody has more than three.",
            lines(series, x="hosts", y="share of hosts", dashed=("ideal: one", "ideal: two")),
        ),
        Prose(
            "<p>The paper reads off it that most hosts are leaves or have three neighbours, and "
            "that the tree is very close to an ideal balanced one. The first is true. The second "
            "is true of the depth (section 4.2.1 has no number for it), not of the shape: "
            f"{last[2]:.0%} of {max(sizes)} hosts have two neighbours, where a balanced tree has "
            "one or two hosts of that kind. Hashed keys leave gaps of very different sizes.</p>"
            "<p>With the reference tree's keys 1 to 2<sup>m</sup> − 1, as printed, a host at key 0 "
            "behind a host at the last key owns no key of the tree and is lost; "
            f"{said(tables, 'after churn', 'literal')['literal']:.1%} of the networks "
            "are trees then; all of Planaria's are, because key 0 has a place.</p>"
        ),
    ]


def _area(tables: Mapping[str, Table]) -> list[Block]:
    average = [said(tables, f"area of a {kind}, at most")["measured"] for kind in ("join", "leave")]
    ratio = said(tables, "area over the ideal")["measured"]
    return [
        _area_of(tables, "join", "Figure 4, top: hosts in the reconfiguration area of a join"),
        _area_of(tables, "leave", "Figure 4, bottom: the same of a leave"),
        Prose(
            f"<p>'Between two and three' is the area without the host that came or went: "
            f"{average[0]:.2f} for a join, {average[1]:.2f} for a leave, at any number of hosts. "
            "By the paper's own definition (the least subtree with both ends of every link that "
            "came or went) the newcomer counts, and the average is one higher. In the ideal case "
            f"the area is the host and its neighbours; it is {ratio:.2f} times that.</p>"
        ),
    ]


def _area_of(tables: Mapping[str, Table], change: str, caption: str) -> Figure:
    series: dict[str, list[Point]] = {}
    for row in tables["figure4"]:
        if row["change"] == change:
            name = row["counting"].replace("_", " ") + " itself"
            series.setdefault(name, []).append(
                Point(row["hosts"], row["area"], row["low"], row["high"])
            )
    ideal = [row for row in tables["ideal"] if row["change"] == change]
    series["ideal, without host"] = [Point(row["hosts"], row["ideal"]) for row in ideal]
    ends = ideal[0]["hosts"], ideal[-1]["hosts"]
    stated = {f"paper: {words}": [Point(n, at) for n in ends] for words, at in PAPERS.items()}
    return Figure(
        f"figure4-{change}",
        f"{caption}; dashed, the paper's 'between two and three'.",
        lines(series | stated, x="hosts", y="hosts in the area", dashed=tuple(stated)),
    )


def _costs(tables: Mapping[str, Table]) -> list[Block]:
    rows = tables["lookups"]
    series = {
        "as printed": [
            Point(it["bits"], it["printed"]) for it in rows if it["printed"] is not None
        ],
        "ours": [Point(it["bits"], it["ours"]) for it in rows if it["bits"] <= 16],
    }
    widest = max(row["bits"] for row in rows)
    return [
        Figure(
            "lookups",
            "Lookups of one search for neighbours, 30 hosts, by length of keys.",
            lines(series, x="bits of a key", y="lookups", log="y"),
        ),
        Prose(
            "<p>The paper does not count lookups. Its depth-first search for children asks for "
            "about every key of the subtree, four times as many for two more bits. The tree of "
            "hosts is the Cartesian tree of the hosts by depth of topmost key, so each neighbour "
            f"is the owner of a key that is known beforehand: at most "
            f"{max(it['ours_max'] for it in rows)} lookups, at {widest} bits too.</p>"
            "<p>For degrees above three the paper argues that nobody exceeds the degree 'with high "
            "probability'. That is so of a host, not of a network:</p>"
        ),
        Shown(
            "wide",
            "120 hosts on reference trees of larger degree: share of hosts within the degree, and "
            "of networks in which all are.",
        ),
    ]


def _live() -> list[Block]:
    return [
        Prose(
            "<p>Nothing in the paper says what happens while the DHT is wrong. Planaria's tree was "
            "therefore run as it is, over its DHT, with the variables of both and all messages "
            "arbitrary at first (corrupt), with everybody joining at once (fresh), and with joins, "
            "leaves and crashes.</p>"
        ),
        Shown("recovery", "Intervals until the tree is the one right tree, and stays so."),
    ]


def _draw_example(rows: Table) -> str:
    steps = list(dict.fromkeys(row["step"] for row in rows))

    def plot(axes: "Axes") -> None:
        for place, step in enumerate(steps):
            hosts = {row["host"]: row for row in rows if row["step"] == step}
            spots = {
                host: (place * 18 + row["topmost"], -_height(host, hosts))
                for host, row in hosts.items()
            }
            for host, row in hosts.items():
                if row["parent"] is not None:
                    ends = spots[host], spots[row["parent"]]
                    axes.plot(*zip(*ends, strict=True), "-", color="#999999", zorder=1)
            for host, (x, y) in spots.items():
                axes.plot(x, y, "o", markersize=21, color="#0072B2", zorder=2)
                axes.annotate(
                    f"h{host}", (x, y), ha="center", va="center", color="white", fontsize=9
                )
                top = hosts[host]["topmost"]
                axes.annotate(f"{top}", (x + 1.1, y + 0.17), fontsize=8, color="#555555")
            axes.annotate(escape(step), (place * 18 + 9, 0.55), ha="center")
        axes.set_ylim(-2.6, 0.9)
        axes.axis("off")

    return draw(plot, width=8.4, height=2.8)


def _height(host: int, hosts: Mapping[int, Mapping[str, Any]]) -> int:
    above = hosts[host]["parent"]
    return 0 if above is None else 1 + _height(above, hosts)
