"""`planaria ls`: the topics of a running network, or its nodes."""

from typing import Any

import click
from msgspec import json

from planaria.cli.access import JSON, reaches_network, run
from planaria.cli.tables import aligned
from planaria.core.topics import check_filter, matches
from planaria.network.context import Context
from planaria.network.survey import Survey, Surveyor
from planaria.network.units import seconds_text, size_text


@click.command()
@click.argument("pattern", default="#")
@click.option("--nodes", is_flag=True, help="The nodes instead of the topics.")
@JSON
@reaches_network
def ls(context: Context, pattern: str, nodes: bool, as_json: bool) -> None:
    """List the topics that match PATTERN (all), or the nodes; --json: one object each."""
    pattern = check_filter(pattern)
    survey = run(_look(context, topics=not nodes))
    for node, words in survey.complaints:
        click.echo(f"not all is shown: {survey.called(node)}: {words}", err=True)
    rows = node_rows(survey) if nodes else topic_rows(survey, pattern)
    if as_json:
        for row in rows:
            click.echo(json.encode(row).decode())
        return
    for line in aligned([*_table(rows, nodes)], right=() if nodes else (1, 2, 3)):
        click.echo(line)


async def _look(context: Context, *, topics: bool) -> Survey:
    async with Surveyor(context) as surveyor:
        survey = await surveyor.look()
        if topics:
            await surveyor.list_topics(survey)
    return survey


def topic_rows(survey: Survey, pattern: str = "#") -> list[dict[str, Any]]:
    """Each topic, as all nodes together know it."""
    rows = []
    for topic in survey.topics():
        if not matches(pattern, topic):
            continue
        parts = {
            handle: seen.status.topics[topic]
            for handle, seen in survey.nodes.items()
            if topic in seen.status.topics
        }
        served = [handle for handle, its in parts.items() if its.served and its.members]
        rows.append(
            {
                "topic": topic,
                "members": sum(its.member for its in parts.values()),
                "publications": max(its.publications for its in parts.values()),
                "bytes": max(its.bytes for its in parts.values()),
                "supervisors": [survey.nodes[it].status.name for it in served],
                "doubtful": [
                    survey.nodes[handle].status.name
                    for handle, its in parts.items()
                    if not its.legitimate
                ],
            }
        )
    return rows


def node_rows(survey: Survey) -> list[dict[str, Any]]:
    """Each node that answered, then those that did not."""
    rows: list[dict[str, Any]] = [
        {
            "name": seen.status.name,
            "id": seen.status.id,
            "listen": list(seen.status.listen),
            "http": seen.status.http,
            "supervises": seen.status.supervises,
            "legitimate": seen.status.legitimate,
            "topics": seen.status.totals.topics,
            "clients": seen.status.clients,
            "uptime": round(seen.status.uptime, 1),
            "version": seen.status.version,
        }
        for seen in sorted(survey.nodes.values(), key=lambda it: it.status.name)
    ]
    rows += [
        {"name": None, "listen": list(one.addresses), "unreachable": one.reason}
        for one in survey.silent
    ]
    return rows


def _table(rows: list[dict[str, Any]], nodes: bool) -> list[list[str]]:
    if not nodes:
        found = [["topic", "members", "publications", "size", "supervisor", "state"]]
        for row in rows:
            doubtful = ",".join(row["doubtful"][:3])
            state = f"doubted by {doubtful}" if doubtful else "ok"
            figures = [str(row["members"]), f"{row['publications']:,}", size_text(row["bytes"])]
            found.append([row["topic"], *figures, ",".join(row["supervisors"]) or "-", state])
        return found
    found = [["node", "listen", "role", "state", "topics", "clients", "up", "version"]]
    for row in rows:
        if row["name"] is None:
            found.append(["-", row["listen"][0], "-", "unreachable", *"----"])
            continue
        role = "supervisor" if row["supervises"] else "node"
        state = "ok" if row["legitimate"] else "doubts"
        counts = [str(row["topics"]), str(row["clients"]), seconds_text(row["uptime"])]
        found.append([row["name"], row["listen"][0], role, state, *counts, row["version"]])
    return found
