"""`planaria inspect`: all that a running network knows of one node, or of one topic."""

from typing import Any

import click
from msgspec import convert, json, to_builtins

from planaria.cli.access import JSON, reaches_network, run
from planaria.cli.tables import aligned, counted, filled, visible
from planaria.core.errors import UsageError, unknown
from planaria.core.ids import NodeId
from planaria.network.connected import ANONYMOUS, does, figures, together
from planaria.network.context import Context
from planaria.network.doctor import findings
from planaria.network.status import ClientStatus
from planaria.network.survey import Seen, Survey, Surveyor
from planaria.network.units import seconds_text, size_text

PREFIX_MIN = 4  # characters of an id that name a node


@click.command()
@click.argument("what", metavar="NODE|TOPIC")
@click.option("--topic", "is_topic", is_flag=True, help="It is a topic, also if a node has it.")
@JSON
@reaches_network
def inspect(context: Context, what: str, is_topic: bool, as_json: bool) -> None:
    """Show one node (by name, address, handle or the first of its id) or one topic in detail."""
    found = run(_inspect(context, what, is_topic))
    if as_json:
        click.echo(json.encode(found).decode())
    else:
        lines = topic_text(found) if "members" in found else node_text(found)
        click.echo("\n".join(lines))


async def _inspect(context: Context, what: str, is_topic: bool) -> dict[str, Any]:
    async with Surveyor(context) as surveyor:
        survey = await surveyor.look()
        await surveyor.list_topics(survey)
        seen = None if is_topic else find_node(survey, what)
        if seen is not None:
            return {"address": seen.address, "clock": seen.clock, **to_builtins(seen.status)}
        if what not in survey.topics():
            names = [it.status.name for it in survey.nodes.values()]
            raise unknown("node or topic", what, [*names, *survey.topics()])
        await surveyor.examine(survey, [what])
        return topic_details(survey, what, surveyor.secret)


def find_node(survey: Survey, what: str) -> Seen | None:
    """The node that is called so; raises UsageError if several are."""
    found = [
        seen
        for handle, seen in survey.nodes.items()
        if what in (seen.status.name, str(handle), seen.address, *seen.status.listen)
        or (len(what) >= PREFIX_MIN and seen.status.id.startswith(what.lower()))
    ]
    if len(found) > 1:
        ids = ", ".join(it.status.id[:8] for it in found)
        raise UsageError(f"{what!r} names {len(found)} nodes: say which by its id ({ids})")
    return found[0] if found else None


def topic_details(survey: Survey, topic: str, secret: bytes) -> dict[str, Any]:
    """The topic at each node that takes part in it, and what is wrong with it at this moment."""

    def called(node: NodeId | None) -> str | None:
        return None if node is None else survey.called(node)

    members, databases = [], []
    for seen in survey.nodes.values():
        its, parts = seen.status.topics.get(topic), seen.topics.get(topic)
        if parts and parts.supervisor and topic in parts.supervisor.topics:
            entries = parts.supervisor.topics[topic].database.entries
            databases.append({"node": seen.called, "members": [called(it) for it in entries]})
        if its is None or parts is None or parts.peer is None or topic not in parts.peer.topics:
            continue
        one = parts.peer.topics[topic].subscriber
        members.append(
            {
                "node": seen.called,
                "label": one.label,
                "pred": called(one.pred[1]) if one.pred else None,
                "succ": called(one.succ[1]) if one.succ else None,
                "shortcuts": {slot: called(it) for slot, it in sorted(one.shortcuts.items())},
                "supervisor": called(its.supervisor),
                "publications": its.publications,
                "records": its.records,
                "bytes": its.bytes,
                "evidence_intervals": its.evidence_intervals,
                "doubts": its.doubts,
            }
        )
    members.sort(key=lambda it: (it["label"] is None, it["label"] or 0))
    wrong = [to_builtins(it) for it in findings(survey, secret) if it.topic == topic]
    return {"topic": topic, "members": members, "databases": databases, "findings": wrong}


def topic_text(found: dict[str, Any]) -> list[str]:
    """What people read of a topic."""
    rows = [["label", "member", "before", "after", "publications", "size", "doubts"]]
    for it in found["members"]:
        label = "-" if it["label"] is None else str(it["label"])
        beside = [_name(it["pred"]), _name(it["succ"])]
        figures = [f"{it['publications']:,}", size_text(it["bytes"])]
        rows.append([label, it["node"], *beside, *figures, "; ".join(it["doubts"]) or "-"])
    lines = [f"topic {visible(found['topic'])}: {counted(len(found['members']), 'member')}"]
    lines += [
        f"served by {it['node']}, which records {counted(len(it['members']), 'member')}"
        for it in found["databases"]
    ]
    lines += aligned(rows, right=(0, 4, 5), wrapped=6)
    for it in found["findings"]:
        words = f"{it['invariant']} at {it['where']}: {it['detail']} (at this moment)"
        lines += filled(visible(words), "  ")
    return lines


def node_text(found: dict[str, Any]) -> list[str]:
    """What people read of a node."""
    store, process, totals = found["store"], found["process"], found["totals"]
    wire = ", ".join(map(str, found["wire"]))
    rows = [
        ["node", f"{found['name']}, id {found['id']}, handle {found['handle']}"],
        ["listens", f"{', '.join(found['listen'])}; http {found['http'] or 'off'}"],
        ["runs", f"{found['version']}, wire {wire}, {seconds_text(found['uptime'])}"],
        ["cluster", f"{found['cluster']}, {'TLS' if found['secure'] else 'insecure'}"],
        ["clock", f"{found['clock']:+.3f} s from here"],
        ["state", "knows of nothing wrong" if found["legitimate"] else "has doubts"],
        *(["doubt", doubt] for doubt in found["doubts"]),
        ["evidence", f"neighbours heard of within {found['evidence_age']:.1f} s"],
        ["topics", f"{totals['topics']}, {totals['publications']:,} publications"],
        ["links", f"{found['links_total']}, {found['links_busy']} full"],
        ["clients", str(found["clients"])],
        *client_rows(convert(found["connected"], list[ClientStatus])),
        ["dropped", f"{found['drops']} messages; {found['malformed']} could not be read"],
        ["queued", f"{found['queues']['messages']} messages"],
        ["memory", f"{size_text(process['resident_bytes'])}, process {process['pid']}"],
    ]
    if store:
        words = f"{store['path']}, {size_text(store['bytes'])}"
        rows.append(
            ["store", words + (f", CANNOT WRITE: {store['stalled']}" * bool(store["stalled"]))]
        )
    supervises = "supervises" if found["supervises"] else "asks"
    rows += [
        [supervises, f"{it['handle']} {' '.join(it['addresses'])}"] for it in found["supervisors"]
    ]
    topics = [["topic", "label", "members", "publications", "doubts"]]
    for name, its in found["topics"].items():
        label = "-" if its["label"] is None else str(its["label"])
        members = "-" if its["members"] is None else str(its["members"])
        topics.append([name, label, members, f"{its['publications']:,}", "; ".join(its["doubts"])])
    return [*aligned(rows, wrapped=1), "", *aligned(topics, right=(1, 2, 3))]


def client_rows(connected: list[ClientStatus]) -> list[list[str]]:
    """What people read of the clients of a node."""
    rows = []
    for connections in together(connected):
        first = connections[0]
        rows.append(["", f"{first.name or ANONYMOUS} {first.address}: {figures(connections)}"])
        rows += [["", f"  {words}"] for words in does(connections)]
    return rows


def _name(called: str | None) -> str:
    """The name alone of `name (address)`."""
    return "-" if called is None else called.partition(" ")[0]
