"""Contexts: which network the tools talk to, by name, as one small TOML file each.

    servers = ["127.0.0.1:7400", "127.0.0.1:7401"]
    credentials = "keys/client"     # a directory made by `planaria keys issue`
    insecure = false
    cluster = "planaria"

Command line before environment before context: the one named by `--context`, by PLANARIA_CONTEXT,
that of a running `planaria up`, the one chosen with `planaria context use`, 127.0.0.1:7400.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from planaria.core.errors import UsageError, unknown
from planaria.network.contacts import parse_address
from planaria.network.files import path_from, read_toml, toml_text, write_atomically

DEFAULT_SERVER = "127.0.0.1:7400"
SERVERS_MAX = 1024  # of one context
CHOSEN = "chosen"  # the file that names the context in use
SUFFIX = ".toml"


class Context(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a network is, and as whom to speak to it. `name` says where this was read."""

    servers: tuple[str, ...] = (DEFAULT_SERVER,)
    credentials: Path | None = None
    insecure: bool = False
    cluster: str | None = None
    name: str = "default"


def find_context(
    name: str | None = None,
    *,
    servers: str | Sequence[str] | None = None,
    credentials: Path | None = None,
    insecure: bool | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Context:
    """The context to use: what is given here, before the environment, before the one named."""
    found = _named(name or environment.get("PLANARIA_CONTEXT") or None)
    if not name:
        found = _with(
            found,
            environment.get("PLANARIA_SERVERS"),
            Path(named) if (named := environment.get("PLANARIA_CREDENTIALS")) else None,
            _insecure(environment.get("PLANARIA_INSECURE")),
        )
    return _with(found, servers, credentials, insecure)


def split_servers(text: str | Sequence[str]) -> tuple[str, ...]:
    """The addresses in `a:1,b:2` or in a list; raises UsageError for one that is no address."""
    parts = text.split(",") if isinstance(text, str) else text
    parts = [*parts] if isinstance(parts, Iterable) else [parts]
    if not all(isinstance(part, str) for part in parts):
        raise UsageError(f"servers {text!r:.60}: text such as HOST:PORT,HOST:PORT, or a list of it")
    found = tuple(part.strip() for part in parts if part.strip())
    if not 0 < len(found) <= SERVERS_MAX:
        raise UsageError(f"{len(found)} servers: name 1 to {SERVERS_MAX}, as HOST:PORT,HOST:PORT")
    for one in found:
        parse_address(one)
    return found


def parse_flag(text: str | None) -> bool | None:
    """Yes or no as an environment variable says it; None if it says nothing."""
    if text is None or not text.strip():
        return None
    word = text.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise UsageError(f"{text!r} is neither yes nor no: write 1 or 0")


def parse_insecure(text: str | None) -> int | None:
    """How often an environment variable says `--insecure`; None if it says nothing."""
    if text is not None and text.isascii() and text.isdigit():
        return int(text)
    flag = parse_flag(text)
    return None if flag is None else int(flag)


def read_context(path: Path) -> Context:
    """The context in a file; paths in it are relative to it."""
    settings = read_toml(path)
    known = [field for field in Context.__struct_fields__ if field != "name"]
    for key in settings:
        if key not in known:
            raise UsageError(f"{path}: {unknown('key', key, known)}")
    found = _converted(path, settings)
    split_servers(found.servers)
    credentials = found.credentials
    if credentials is not None:
        credentials = (path.parent / credentials.expanduser()).resolve()
    name = path.stem if path.parent == contexts_directory() else str(path)
    return replace(found, credentials=credentials, name=name)


def write_context(path: Path, context: Context) -> None:
    """Write a context, readable by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, context_text(context))


def context_text(context: Context) -> str:
    """The context as TOML."""
    values: dict[str, str | bool | list[str]] = {"servers": list(context.servers)}
    if context.credentials is not None:
        values["credentials"] = str(context.credentials)
    if context.insecure:
        values["insecure"] = True
    if context.cluster is not None:
        values["cluster"] = context.cluster
    return toml_text(values)


# Contexts with a name


def contexts_directory() -> Path:
    """Where named contexts are kept."""
    return _home("XDG_CONFIG_HOME", ".config") / "contexts"


def context_path(name: str) -> Path:
    """The file of a named context; raises UsageError for a name that no file can have."""
    good = name and all(it.isalnum() or it in "-_." for it in name) and not name.startswith(".")
    if not good or len(name) > 64:
        raise UsageError(f"context {name!r}: up to 64 letters, digits, '-', '_' and '.'")
    return contexts_directory() / f"{name}{SUFFIX}"


def context_names() -> list[str]:
    """All contexts that have a name."""
    return sorted(path.stem for path in contexts_directory().glob(f"*{SUFFIX}"))


def chosen_context() -> str | None:
    """The name that `planaria context use` chose, if any."""
    path = contexts_directory() / CHOSEN
    return path.read_text().strip() or None if path.exists() else None


def choose_context(name: str | None) -> None:
    """Use this one from now on; None: none."""
    if name is not None:
        _check_there(name)
    path = contexts_directory() / CHOSEN
    if name is not None:
        write_atomically(path, name + "\n")
    elif path.exists():
        path.unlink()


def remove_context(name: str) -> None:
    """Forget a named context; if it was in use, none is."""
    _check_there(name)
    if chosen_context() == name:
        choose_context(None)
    context_path(name).unlink()


# Contexts that hold while a network runs


@contextmanager
def announced(context: Context) -> Iterator[None]:
    """Make `context` the default of all tools of this user until the block, or the process, ends.

    A lock on the file, not its presence, says that the network runs: a killed process holds none.
    """
    place = _running_directory()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    path, part = place / f"{os.getpid()}{SUFFIX}", place / f".{os.getpid()}.part"
    with part.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(context_text(context))
        file.flush()
        part.replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def running_contexts() -> list[Path]:
    """The files of networks that run now, the youngest first; those of the dead are removed."""
    found = []
    for path in _running_directory().glob(f"*{SUFFIX}"):
        try:
            with path.open() as file:
                age = path.stat().st_mtime_ns
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            found.append((age, path))
        except FileNotFoundError:
            continue  # it ended while we looked
    return [path for _, path in sorted(found, reverse=True)]


def _named(name: str | None) -> Context:
    if name is not None:
        if name.endswith(SUFFIX) or "/" in name:
            return read_context(Path(name))
        _check_there(name)
        return read_context(context_path(name))
    running = running_contexts()
    if running:
        return replace(read_context(running[0]), name="up")
    chosen = chosen_context()
    return Context() if chosen is None else _named(chosen)


def _check_there(name: str) -> None:
    """Raises UsageError for a name that no context has."""
    if not context_path(name).exists():
        known = context_names()
        made = f"no context {name!r}: `planaria context add {name} -s HOST:PORT` makes it"
        raise unknown("context", name, known) if known else UsageError(made)


def _with(
    context: Context,
    servers: str | Sequence[str] | None,
    credentials: Path | None,
    insecure: bool | None,
) -> Context:
    if servers:
        context = replace(context, servers=split_servers(servers))
    if credentials is not None:  # which say their cluster themselves
        context = replace(context, credentials=credentials, insecure=False, cluster=None)
    if insecure is not None:
        kept = None if flag_of("insecure", insecure) else context.credentials
        context = replace(context, insecure=insecure, credentials=kept)
    return context


def _insecure(text: str | None) -> bool | None:
    """Nodes may be told so twice, by the same variable."""
    times = parse_insecure(text)
    return None if times is None else times > 0


def _converted(path: Path, settings: dict[str, Any]) -> Context:
    try:
        return convert(settings, Context, dec_hook=path_from)
    except ValidationError as error:
        raise UsageError(f"{path}: {error}") from None


def _home(variable: str, usual: str) -> Path:
    named = os.environ.get(variable, "")
    return (Path(named) if named.startswith("/") else Path.home() / usual) / "planaria"


def _running_directory() -> Path:
    """Of this user alone; a place for all users could name another's servers."""
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    if named.startswith("/") and os.access(named, os.W_OK):
        return Path(named) / "planaria"
    return _home("XDG_STATE_HOME", ".local/state") / "running"


def flag_of(what: str, given: bool) -> bool:
    """Yes or no; raises UsageError for anything else, such as the word 'no', which is true."""
    if not isinstance(given, bool):
        raise UsageError(f"{what} {given!r:.60}: True or False")
    return given
