"""`planaria node`: one node of a network as a process."""

import asyncio
import json
import logging
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from time import gmtime
from typing import Any

import click

from planaria.cli.streams import needed_stdin
from planaria.network.client.overlays import OVERLAYS
from planaria.network.config import LEVELS, Config, load_config, misspelt
from planaria.network.door import make_room
from planaria.network.host import CONNECTIONS_MAX
from planaria.network.live import LiveNode
from planaria.network.loop import run

BROKEN = 1
DIRECTORY = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)
ADDRESS = "HOST:PORT"


@click.command()
@click.option("--dir", "directory", type=DIRECTORY, help="The node's own directory.")
@click.option("--listen", metavar=ADDRESS, help="Where to listen [127.0.0.1:7400]; port 0: any.")
@click.option("--advertise", metavar=ADDRESS, multiple=True, help="Where others can dial it.")
@click.option("--join", metavar=ADDRESS, multiple=True, help="A node of the network; several.")
@click.option("--supervise/--no-supervise", default=None, help="Serve topics as a supervisor.")
@click.option(
    "--overlay",
    type=click.Choice(OVERLAYS),
    multiple=True,
    help="One that it takes part in; all, if not told.",
)
@click.option("--link", metavar=ADDRESS, multiple=True, help="A neighbour in mobile; several.")
@click.option("--discover/--no-discover", default=None, help="Find neighbours on this network.")
@click.option("--walk", type=int, help="Hops of a publication in mobile before all get it [0].")
@click.option("--http", metavar=ADDRESS, help="Where to answer /metrics, /healthz, /stablez.")
@click.option("--keys", type=DIRECTORY, help="Made by `planaria keys issue`; else --dir has them.")
@click.option("--rights", type=FILE, help="A TOML file: what its clients may do.")
@click.option(
    "--insecure", count=True, default=None, help="Without TLS; twice: not on loopback alone."
)
@click.option("--cluster", help="The network's name; certificates say it.")
@click.option("--name", help="What people call this node; certificates say it.")
@click.option("--durability", type=click.Choice(["disk", "none"]), help="Keep records on disk?")
@click.option("--interval", type=float, help="Seconds between timeouts [0.5].")
@click.option("--log", type=click.Choice(LEVELS), help="What to log on stderr [info].")
@click.option("--config", "file", type=click.Path(path_type=Path), help="A TOML file of options.")
@click.option("--allow-chaos", is_flag=True, default=None, help="Let `planaria chaos` break it.")
@click.option("--stop-with-stdin", is_flag=True, help="Leave when standard input ends.")
def node(directory: Path | None, file: Path | None, stop_with_stdin: bool, **options: Any) -> int:
    """Run one node: one identity, one directory, one port.

    Every option can also stand in a TOML file or in the environment (PLANARIA_LISTEN, …). A node
    that has run before continues with --dir alone. Prints one line of JSON when it serves.
    """
    if stop_with_stdin:
        needed_stdin()
    given = {key: value for key, value in options.items() if value not in (None, ())}
    for name in given.keys() & {"keys", "rights"}:
        given[name] = str(given[name].absolute())
    config = load_config(directory, given, file=file)
    _log_to_stderr(config)
    for line in misspelt():
        logging.getLogger("planaria.node").warning("%s", line)
    make_room(CONNECTIONS_MAX)
    return run(_serve(config, stop_with_stdin))


async def _serve(config: Config, stop_with_stdin: bool) -> int:
    """Run the node until it is told to stop; 1 if a part of it failed."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if stop_with_stdin:
        loop.add_reader(sys.stdin, _at_end, stop)
    live = LiveNode(config)
    stopped = asyncio.ensure_future(stop.wait())
    starting = asyncio.ensure_future(live.start())
    await _either(starting, stopped)
    try:
        if starting.done():
            starting.result()
            _say_ready(live)
            assert live.broken is not None
            await _either(stopped, live.broken)
    except BaseException:
        await live.stop(leave=False)
        raise
    starting.cancel()
    stopped.cancel()
    await live.stop(leave=stop.is_set())
    return 0 if stop.is_set() else BROKEN


async def _either(one: asyncio.Future[Any], other: asyncio.Future[Any]) -> None:
    await asyncio.wait({one, other}, return_when=asyncio.FIRST_COMPLETED)


def _at_end(stop: asyncio.Event) -> None:
    """Whoever started this process has closed its end, by its own will or by dying."""
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin)
        stop.set()


def _say_ready(live: LiveNode) -> None:
    ready = {
        "event": "ready",
        "id": live.id.hex(),
        "handle": live.host.node.id,
        "name": live.name,
        "listen": live.listen,
        "http": live.http,
    }
    with suppress(BrokenPipeError):  # whoever started it need not read on
        click.echo(json.dumps(ready))


def _log_to_stderr(config: Config) -> None:
    """Time, level and text on every line; without TLS every line says so."""
    mark = "insecure: " if config.insecure else ""
    form = logging.Formatter(
        f"%(asctime)s.%(msecs)03dZ %(levelname)-7s {mark}%(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    form.converter = gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(form)
    logging.getLogger().addHandler(handler)
    logging.getLogger("planaria").setLevel(config.log.upper())
