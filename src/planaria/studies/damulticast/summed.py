"""How the sweeps of daMulticast are summed up: measures of groups are called `T1 sent`."""

from collections.abc import Mapping, Sequence

from planaria.studies.facts import Kind, Summed, exact, fraction, mean, most, named, share

KINDS: Mapping[str, Kind] = {
    "sent": mean,
    "up_sent": mean,
    "up_received": mean,
    "each": exact,
    "of_all": fraction,
    "of_alive": fraction,
    "p_all": share,
    "got": share,
    "up_any": share,
    "messages": mean,
    "joined": most,
    "reach": fraction,
}
_OF_GROUP = {
    "sent": "{0}_sent",
    "up_sent": "{0}_up_sent",
    "up_received": "{0}_up_received",
    "each": "{0}_sent / nullif({0}_reached, 0)",
    "of_all": "{0}_reached / {0}_members",
    # With nobody alive, all the live have it.
    "of_alive": "coalesce({0}_reached / nullif({0}_alive, 0), 1.0)",
    "p_all": "{0}_reached = {0}_alive",
    "got": "{0}_reached > 0",
    "up_any": "{0}_up_sent > 0",
}


def of_events(groups: Sequence[str], by: Sequence[str], *more: str) -> Summed:
    """Events: of each group, and of all together; `more` are columns of all."""
    measures = {
        f"{group} {name}": text.format(group)
        for group in groups
        for name, text in _OF_GROUP.items()
    }
    sent = " + ".join(f"{group}_sent + {group}_up_sent" for group in groups)
    everybody = " and ".join(f"{group}_reached = {group}_alive" for group in groups)
    reached, members = (
        " + ".join(f"{group}_{it}" for group in groups) for it in ("reached", "members")
    )
    together = {"messages": sent, "p_all": everybody, "reach": f"({reached}) / ({members})"}
    together |= named(*more)
    return Summed(by, measures | {f"all {name}": text for name, text in together.items()})


def of_nodes(groups: Sequence[str], names: Sequence[str], by: Sequence[str]) -> Summed:
    """Means that are columns, and the parasites of all groups."""
    measures = {f"{group} {name}": f"{group}_{name}" for group in groups for name in names}
    wasted = " + ".join(f"{group}_parasites" for group in groups)
    return Summed(by, measures | {"all parasites": wasted})


def columns(by: Sequence[str], *names: str) -> Summed:
    """A sweep whose measures are columns."""
    return Summed(by, named(*names))
