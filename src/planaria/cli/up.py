"""`planaria up`: a whole network on this machine, in one command."""

import asyncio
import json
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import click
from msgspec.structs import asdict

from planaria.cli.dashboard import served
from planaria.cli.tables import aligned
from planaria.core.errors import UsageError
from planaria.network.context import announced, read_context
from planaria.network.files import read_toml, toml_text, write_atomically
from planaria.network.local import NODES_MAX, Child, LocalNetwork, Started
from planaria.network.store.directory import IN_USE, Directory

FILE = "up.toml"
DEFAULTS = {"nodes": 8, "supervisors": 2, "port": 7400}
BROKEN = 1
AGAIN_SECONDS = 0.05  # between looks whether a killed node is to be started again
DASHBOARD_OFFSET = 20  # from the dashboard's port to the first node's


@click.command()
@click.option("--nodes", type=click.IntRange(1, NODES_MAX), help="How many [8].")
@click.option("--supervisors", type=click.IntRange(1, NODES_MAX), help="How many of them [2].")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep everything here and continue it the next time; without: forget it at the end.",
)
@click.option("--port", type=click.IntRange(0, 65000), help="The first port [7400]; 0: any.")
@click.option("--allow-chaos", is_flag=True, help="Let `planaria chaos` break its nodes.")
@click.option("--dashboard", is_flag=True, help="Draw it in a browser; prints the address.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def up(
    nodes: int | None,
    supervisors: int | None,
    directory: Path | None,
    port: int | None,
    allow_chaos: bool,
    dashboard: bool,
    as_json: bool,
) -> int:
    """Run a network of real processes until Ctrl-C; every other command finds it meanwhile.

    A node that is killed stays dead, so that one can watch the others; `planaria node --dir DIR`
    brings it back.
    """
    given = {"nodes": nodes, "supervisors": supervisors, "port": port}
    with _home(directory) as home:
        lock = Directory(home)
        lock.mark(IN_USE)
        try:
            plan = _remembered(home, given)
            network = LocalNetwork(
                home, plan["nodes"], plan["supervisors"], plan["port"], chaos=allow_chaos
            )
            return asyncio.run(_run(network, dashboard, as_json))
        finally:
            lock.release()


@contextmanager
def _home(directory: Path | None) -> Iterator[Path]:
    """The directory that was named, or one that is gone afterwards."""
    if directory is not None:
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="planaria-up-") as named:
        yield Path(named)


def _remembered(home: Path, given: dict[str, int | None]) -> dict[str, int]:
    """What is given now, was given the last time, or is usual."""
    path = home / FILE
    before = read_toml(path) if path.exists() else {}
    plan = {
        name: next(it for it in (given[name], before.get(name), usual) if isinstance(it, int))
        for name, usual in DEFAULTS.items()
    }
    if given["supervisors"] is None:
        plan["supervisors"] = min(plan["supervisors"], plan["nodes"])
    if plan["supervisors"] > plan["nodes"]:
        raise UsageError(f"{plan['supervisors']} supervisors among {plan['nodes']} nodes: fewer")
    write_atomically(path, toml_text(plan))
    return plan


async def _run(network: LocalNetwork, dashboard: bool, as_json: bool) -> int:
    """Start all, wait for a signal or the end of all of them, stop all."""
    signals: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, signals.put_nowait, None)
    stopped = asyncio.ensure_future(signals.get())
    working = asyncio.ensure_future(_work(network, dashboard, as_json))
    try:
        await asyncio.wait({stopped, working}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return 0 if stopped.done() else BROKEN
    finally:
        working.cancel()
        stopping = asyncio.ensure_future(network.stop())
        again = asyncio.ensure_future(signals.get())  # who is told twice waits for nobody
        await asyncio.wait({stopping, again}, return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
        stopping.cancel()
        await network.kill()


async def _work(network: LocalNetwork, dashboard: bool, as_json: bool) -> None:
    """Run the network; returns when all its processes have ended, with chaos never."""
    started = await network.start()
    context = read_context(network.context)
    with announced(context):
        async with AsyncExitStack() as stack:
            address = None
            if dashboard:  # beside a first port of your own choice, so that two networks can run
                port = network.port - DASHBOARD_OFFSET if network.port else 0
                address = await stack.enter_async_context(served(context, f"127.0.0.1:{port}"))
            _print(network, started, address, as_json)
            await asyncio.gather(*[_watch(network, child) for child in network.children])


async def _watch(network: LocalNetwork, child: Child) -> None:
    """Say that a process has ended; nobody starts it again, unless chaos asks for it."""
    while True:
        assert child.process is not None
        code = await child.process.wait()
        click.echo(
            f"{child.name} ended ({code}): planaria node --dir {child.directory} brings it back",
            err=True,
        )
        if not network.chaos:
            return
        while not child.again.exists():
            await asyncio.sleep(AGAIN_SECONDS)
        try:
            await network.restart(child)
        except UsageError as error:
            click.echo(str(error), err=True)
        else:
            click.echo(f"{child.name} runs again", err=True)


def _print(
    network: LocalNetwork, started: Sequence[Started], address: str | None, as_json: bool
) -> None:
    if as_json:
        nodes = [{**asdict(one), "dir": str(one.dir)} for one in started]
        ready = {"event": "ready", "context": str(network.context), "nodes": nodes}
        click.echo(json.dumps(ready if address is None else {**ready, "dashboard": address}))
        return
    rows = [("node", "pid", "address", "status page", "role")]
    for one in started:
        role = "supervisor" if one.supervisor else "member"
        rows.append((one.name, str(one.pid), one.listen, one.http or "-", role))
    places = [("files", str(network.directory)), ("context", str(network.context))]
    if address is not None:
        places.append(("dashboard", address))
    for line in (*aligned(rows), "", *aligned(places)):
        click.echo(line)
    click.echo("Every planaria command finds this network while it runs. Ctrl-C ends it.")
