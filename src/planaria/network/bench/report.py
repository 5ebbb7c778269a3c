"""What was measured, as tables and as JSON: each figure, and its ratio to every peer."""

import os
from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from planaria.network.bench.contenders import OURS, contender
from planaria.network.bench.measure import Plan, Round

FIGURES = ("deliveries_per_s", "cpu_us", "p50_ms", "p99_ms")
HEADS = ("deliveries/s", "CPU µs", "p50 ms", "p99 ms")


def ratios(results: Mapping[str, Round]) -> dict[str, dict[str, dict[str, float]]]:
    """Of each of our variants to each peer: figure by figure."""
    ours = [name for name in OURS if name in results]
    peers = [name for name in results if name not in ours]
    return {
        mine: {
            peer: {
                figure: _ratio(getattr(results[mine], figure), getattr(results[peer], figure))
                for figure in FIGURES
            }
            for peer in peers
        }
        for mine in ours
    }


def _ratio(mine: float, theirs: float) -> float:
    return mine / theirs if theirs else 0.0


def as_json(results: Mapping[str, Round], plan: Plan, load: float) -> dict[str, Any]:
    """All of it; `load` is that of the machine before the run."""
    return {
        "cores": os.cpu_count(),
        "load": load,
        "plan": to_builtins(plan),
        "systems": {name: to_builtins(it) for name, it in results.items()},
        "ratios": ratios(results),
    }


def rows(results: Mapping[str, Round]) -> list[list[str]]:
    """A line for each system, with a head."""
    table = [["1 → many", *HEADS, "lost", "on disk"]]
    for name, it in results.items():
        kept = "yes" if contender(name).durable else "no"
        table.append([name, *_figures(it), str(it.lost), kept])
    return table


def _figures(it: Round) -> list[str]:
    return [
        f"{it.deliveries_per_s:,.0f}", f"{it.cpu_us:.2f}", f"{it.p50_ms:.2f}", f"{it.p99_ms:.2f}",
    ]  # fmt: skip


def ratio_rows(results: Mapping[str, Round]) -> list[list[str]]:
    """A line for each pair, with a head: above 1 is good for the first figure, bad for the rest."""
    table = [["ratio of", "to", *HEADS]]
    for mine, peers in ratios(results).items():
        for peer, found in peers.items():
            table.append([mine, peer, *(f"{found[figure]:.2f}" for figure in FIGURES)])
    return table
