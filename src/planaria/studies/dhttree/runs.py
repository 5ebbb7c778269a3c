"""What one cell of the study of the tree over a DHT runs."""

from collections.abc import Sequence
from itertools import combinations
from math import ceil, log2

from planaria.core.chance import stream
from planaria.core.ids import stable_hash
from planaria.lab.tree import (
    Change,
    Directory,
    Parents,
    churn,
    degrees,
    edges,
    host_tree,
)
from planaria.literal.tree import (
    LiteralMaintenance,
    LiteralTree,
    binary_parents,
    lookup_counts,
)
from planaria.literal.tree import degrees as literal_degrees
from planaria.literal.tree import is_tree as literal_is_tree
from planaria.protocols.tree.legitimacy import is_tree
from planaria.protocols.tree.overlay import TreeOverlay
from planaria.protocols.tree.reference_tree import BinaryTree, WideTree
from planaria.protocols.tree.search import neighbours
from planaria.simulator.schedule import load_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.spark.grid import Cell
from planaria.spark.sweep import Result

FIGURE_1A = binary_parents(1, 15)
LITERAL_BITS_MAX = 8  # a reference tree that is written down; for networks that change often
SEARCH_BITS_MAX = 16  # as printed a search asks for half of the keys: 2^15 lookups
EXAMPLE = {  # section 3.5
    "start": (5, 9, 11, 13, 15),
    "h4 joined": (4, 5, 9, 11, 13, 15),
    "h13 failed": (4, 5, 9, 11, 15),
}
DRAWN = {  # the links that the text of section 3.5 names
    "start": ((5, 9), (9, 13), (11, 13), (13, 15)),
    "h4 joined": ((4, 9), (4, 5), (9, 13), (11, 13), (13, 15)),
    "h13 failed": ((4, 9), (4, 5), (9, 15), (11, 15)),
}


def run_churn(cell: Cell) -> Result:
    """Section 4.1: a network while hosts join and leave; its shape at the end."""
    hosts, bits, changes = (int(cell.parameters[name]) for name in ("hosts", "bits", "changes"))
    tree = BinaryTree(bits)
    steps = list(churn(tree, hosts, changes, stream(cell.seed, "churn", hosts, bits)))
    now = steps[-1].after
    counts = list(degrees(now).values())
    summary: dict[str, object] = {
        "one": counts.count(1) / hosts,
        "two": counts.count(2) / hosts,
        "three": counts.count(3) / hosts,
        "degree_max": max(counts),
        "tree": is_tree(_links(tree, now)),
        "printed_tree": _printed_tree(bits, now) if bits <= LITERAL_BITS_MAX else None,
        "tied": _tied(tree, sorted(now)),
    }
    return Result(summary | _areas(steps, changes))


def run_wide_churn(cell: Cell) -> Result:
    """The same on a reference tree of a larger degree: the areas only."""
    degree, hosts, changes = (int(cell.parameters[name]) for name in ("degree", "hosts", "changes"))
    tree = WideTree(degree, (1 << int(cell.parameters["bits"])) - 1)
    rng = stream(cell.seed, "wide churn", degree, hosts)
    return Result(_areas(list(churn(tree, hosts, changes, rng)), changes))


def _areas(changes: Sequence[Change], each: int) -> dict[str, object]:
    """Hosts in the reconfiguration area of a join and of a leave, and the ideal, on average."""
    found: dict[str, object] = {}
    for kind in ("join", "leave"):
        steps = [it for it in changes if it.kind == kind]
        found[kind] = sum(it.area for it in steps) / each
        found[f"{kind}_ideal"] = sum(it.neighbours for it in steps) / each
    return found


def run_sets(cell: Cell) -> Result:
    """Every `parts`-th set of hosts on all keys: ours beside the definitions and the print."""
    bits, part, parts = (int(cell.parameters[name]) for name in ("bits", "part", "parts"))
    tree, keys = BinaryTree(bits), range(1 << bits)
    right, printed = binary_parents(0, keys[-1]), binary_parents(1, keys[-1])
    found = dict.fromkeys(("sets", "owned", "trees", "different", "printed_trees"), 0)
    most = dict.fromkeys(("degree_max", "printed_degree_max", "lookups_max"), 0)
    for number in range(part + 1, 1 << len(keys), parts):
        hosts = [key for key in keys if number >> key & 1]
        ours = host_tree(tree, hosts)
        by_definition = LiteralTree(right, hosts)
        lost = LiteralTree(printed, hosts, keys)
        found["sets"] += 1
        found["owned"] += _owned(tree, hosts) == list(keys)
        found["trees"] += is_tree(_links(tree, ours))
        found["different"] += {frozenset(it) for it in edges(ours)} != by_definition.edges()
        found["printed_trees"] += literal_is_tree(hosts, lost.edges())
        most["degree_max"] = max(most["degree_max"], *degrees(ours).values())
        beside = max(literal_degrees(by_definition.edges()).values(), default=0)
        most["printed_degree_max"] = max(most["printed_degree_max"], beside)
        most["lookups_max"] = max(most["lookups_max"], *_lookups(tree, hosts))
    return Result({**found, **most})


def run_together(cell: Cell) -> Result:
    """Keys at which hosts join, or leave if they are there, at once; all sets of `size` hosts."""
    changed = [int(key) for key in str(cell.parameters["changed"]).split()]
    wrong = {True: 0, False: 0}
    cases = 0
    for hosts in combinations(range(1, 16), int(cell.parameters["size"])):
        leaving = [key for key in changed if key in hosts]
        if len(leaving) == len(hosts):
            continue
        cases += 1
        for amended in wrong:
            overlay = LiteralMaintenance(FIGURE_1A, hosts, on_keyset_change=amended)
            overlay.change([key for key in changed if key not in hosts], leaving)
            wrong[amended] += overlay.edges() != overlay.tree.edges()
    return Result(
        {"together": len(changed), "cases": cases, "printed": wrong[False], "amended": wrong[True]}
    )


def run_example(cell: Cell) -> Result:
    """Section 3.5: one host at one step."""
    step, host = str(cell.parameters["step"]), int(cell.parameters["host"])
    hosts = EXAMPLE[step]
    view = Directory(BinaryTree(4, first=1), hosts)
    mine = view.keyset(view.places.index(host))
    parents = host_tree(view.tree, hosts)
    beside = sorted(last for _, last in neighbours(mine, view).all())
    drawn = [link for link in DRAWN[step] if host in link]
    return Result(
        {
            "topmost": view.tree.topmost(mine),
            "printed_topmost": LiteralTree(FIGURE_1A, hosts).topmost(host),
            "parent": parents[host],
            "neighbours": " ".join(str(it) for it in beside),
            "links": len(beside),
            "drawn": sum({*link} <= {host, *beside} for link in drawn),
        }
    )


def run_cases(cell: Cell) -> Result:
    """The smallest cases in which what the paper says goes wrong."""
    size = int(cell.parameters["keys"])
    parents = {1: None, 6: 1, 2: 6, 4: 6, 3: 2, 5: 2}  # all that 3.2 asks for
    before = LiteralTree(binary_parents(1, size), EXAMPLE["start"]).edges()
    after = LiteralTree(binary_parents(1, size), EXAMPLE["h4 joined"]).edges()
    powers = [1 << power for power in range(64)]
    return Result(
        {
            "property_degree": max(
                literal_degrees(LiteralTree(parents, range(2, 7)).edges()).values()
            ),
            "links_dropped": len(before - after),
            "links_kept": len(before | after),
            "path_depth": _depth(host_tree(BinaryTree(64), powers)),
            "path_ideal": _ideal(len(powers)),
        }
    )


def run_wide(cell: Cell) -> Result:
    """Hosts on a reference tree of a larger degree, and how many have more neighbours than that."""
    degree, bits, hosts = (int(cell.parameters[name]) for name in ("degree", "bits", "hosts"))
    places = stream(cell.seed, "wide", degree, bits).sample(range(1 << bits), hosts)
    counts = degrees(host_tree(WideTree(degree, (1 << bits) - 1), places)).values()
    beyond = sum(count > degree for count in counts)
    return Result({"within": 1 - beyond / hosts, "kept": beyond == 0})


def run_lookups(cell: Cell) -> Result:
    """How many lookups a host makes to find its neighbours: ours, and as printed where feasible."""
    bits, hosts = int(cell.parameters["bits"]), int(cell.parameters["hosts"])
    rng = stream(cell.seed, "lookups", bits)
    places = sorted({rng.getrandbits(bits) for _ in range(hosts)})
    ours = _lookups(BinaryTree(bits), places)
    summary: dict[str, object] = {
        "ours": sum(ours) / len(ours),
        "ours_max": max(ours),
        "printed": None,
        "printed_max": None,
    }
    if bits <= SEARCH_BITS_MAX:
        printed = LiteralTree(binary_parents(0, (1 << bits) - 1), places)
        counts = lookup_counts(printed, printed.neighbours)
        summary |= {"printed": sum(counts) / len(counts), "printed_max": max(counts)}
    return Result(summary)


def run_depths(cell: Cell) -> Result:
    """How deep the tree of hosts with hashed 160-bit keys is."""
    hosts = int(cell.parameters["hosts"])
    places = [stable_hash("host", cell.seed, id) for id in range(hosts)]
    parents = host_tree(BinaryTree(160), places)
    return Result(
        {
            "depth": _depth(parents),
            "ideal": _ideal(hosts),
            "degree_max": max(degrees(parents).values()),
        }
    )


def run_live(cell: Cell) -> Result:
    """A trial of the real protocol over the real DHT."""
    start, nemesis = str(cell.parameters["start"]), str(cell.parameters["nemesis"])
    faults = () if nemesis == "none" else load_schedule(nemesis)
    outcome = Trial(TreeOverlay(), Spec(int(cell.parameters["n"]), cell.seed, start, faults)).run()
    figures = outcome.metrics
    return Result(
        {
            "healed": outcome.failure is None,
            "intervals": outcome.intervals,
            "tree": figures["tree"],
            "degree_max": figures["degree_max"],
            "hops": figures["lookup_hops_max"] / (log2(figures["hosts"]) + 1),
        },
        failed=outcome.failure is not None,
    )


def _links(tree: BinaryTree, parents: Parents) -> dict[int, list[int]]:
    """The neighbours of each host by its own search, so that both ends of a link are asked."""
    view = Directory(tree, list(parents))
    return {
        place: [last for _, last in neighbours(view.keyset(position), view).all()]
        for position, place in enumerate(view.places)
    }


def _owned(tree: BinaryTree, places: list[int]) -> list[int]:
    """The keys of all keysets, each as often as it is owned."""
    view = Directory(tree, places)
    pieces = [it for position in range(len(places)) for it in tree.pieces(view.keyset(position))]
    return sorted(key for low, high in pieces for key in range(low, high + 1))


def _lookups(tree: BinaryTree, places: list[int]) -> list[int]:
    found = []
    for position in range(len(places)):
        view = Directory(tree, places)
        neighbours(view.keyset(position), view)
        found.append(view.lookups)
    return found


def _printed_tree(bits: int, parents: Parents) -> bool:
    """Keys 1 to 2^m - 1 have a place, as in the paper; the DHT has key 0 as well."""
    last = (1 << bits) - 1
    printed = LiteralTree(binary_parents(1, last), parents, range(last + 1))
    return literal_is_tree(printed.hosts, printed.edges())


def _tied(tree: BinaryTree, places: list[int]) -> bool:
    """Are the topmost keys of both intervals of the smallest host equally deep?"""
    tops = [tree.depth(tree.top(*piece)) for piece in tree.pieces((places[-1], places[0]))]
    return len(tops) == 2 and tops[0] == tops[1]


def _depth(parents: Parents) -> int:
    depths: dict[int, int] = {}
    for host in parents:
        path = []
        here: int | None = host
        while here is not None and here not in depths:
            path.append(here)
            here = parents[here]
        depth = -1 if here is None else depths[here]
        for step, place in enumerate(reversed(path), 1):
            depths[place] = depth + step
    return max(depths.values())


def _ideal(hosts: int) -> int:
    """The depth of a balanced binary tree."""
    return ceil(log2(hosts + 1)) - 1
