"""The options of a node: from the command line, PLANARIA_…, a TOML file, and its own directory.

The first of these that says something counts. What a node last ran with stands in `DIR/node.toml`,
so that `planaria node --dir DIR` alone continues it.
"""

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

from planaria.core.errors import UsageError, unknown
from planaria.network.client.overlays import OVERLAYS, check_overlay
from planaria.network.contacts import format_address, parse_address
from planaria.network.context import parse_flag, parse_insecure, split_servers
from planaria.network.files import path_from, read_toml, toml_text, write_atomically
from planaria.network.host import INTERVAL_SECONDS
from planaria.network.identity import CERTIFICATE
from planaria.protocols.mobile.overlay import WALK_MAX

FILE = "node.toml"
PREFIX = "PLANARIA_"
INTERVAL_SECONDS_MIN, INTERVAL_SECONDS_MAX = 0.02, 60.0  # below, a busy machine is always late
LEVELS = ("debug", "info", "warning", "error")
ANYWHERE = 2  # how often --insecure must be said to listen on other interfaces than loopback


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one node is told. `insecure` counts how often that was said.

    `allow_chaos` holds for one run alone: no file and no variable says it.
    """

    dir: Path
    listen: str = "127.0.0.1:7400"
    advertise: tuple[str, ...] = ()
    join: tuple[str, ...] = ()
    overlay: tuple[str, ...] = OVERLAYS
    link: tuple[str, ...] = ()
    discover: bool = False
    walk: int = 0
    supervise: bool = False
    http: str | None = None
    keys: Path | None = None
    rights: Path | None = None
    insecure: int = 0
    cluster: str | None = None
    name: str | None = None
    durability: Literal["disk", "none"] = "disk"
    interval: float = INTERVAL_SECONDS
    log: Literal["debug", "info", "warning", "error"] = "info"
    allow_chaos: bool = False

    @property
    def credentials(self) -> Path | None:
        """The directory with key and certificate; None: the network is insecure."""
        return None if self.insecure else self.keys or self.dir


OPTIONS = tuple(it for it in Config.__struct_fields__ if it not in ("dir", "allow_chaos"))
_LISTS = ("advertise", "join", "overlay", "link")
_FLAGS = ("supervise", "discover")
_PATHS = ("dir", "keys", "rights")


def load_config(
    directory: Path | None,
    given: Mapping[str, object],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Config:
    """All options, each from its strongest source; raises UsageError with one line."""
    variables = _from_environment(environment)
    file = file or _path_in(environment, "config")
    asked = _from_file(file, ("dir", *OPTIONS)) if file is not None else {}
    named = directory or variables.get("dir") or asked.get("dir")
    if named is None:
        raise UsageError("a node needs a directory of its own: --dir DIR")
    home = Path(str(named)).absolute()
    values: dict[str, object] = {}
    own = home / FILE
    for layer in (_from_file(own, OPTIONS) if own.exists() else {}, asked, variables, dict(given)):
        _overlay(values, layer)
    try:
        config = convert({**values, "dir": str(home)}, Config, strict=False, dec_hook=path_from)
    except ValidationError as error:
        name = _path_of(error)
        raise UsageError(f"option {name} = {values.get(name)!r}: {_wanted(name, error)}") from None
    return _checked(config)


def save_config(config: Config, listen: str) -> None:
    """Keep the options for the next start, with the port that was bound; a name stays a name."""
    default = asdict(Config(dir=config.dir))
    door = format_address(parse_address(config.listen)[0], parse_address(listen)[1])
    values = {**asdict(config), "listen": door}
    plain: dict[str, Any] = {
        name: _plain(value)
        for name, value in values.items()
        if name in OPTIONS and (value != default[name] or name == "listen")
    }
    path = config.dir / FILE
    if not path.exists() or read_toml(path) != plain:  # spares the comments of an owner
        write_atomically(path, f"# Options of this node, as it last ran.\n{toml_text(plain)}")


def misspelt(environment: Mapping[str, str] = os.environ) -> list[str]:
    """A line for each variable that looks like an option of a node and is none."""
    known = [PREFIX + name.upper() for name in ("dir", "config", *OPTIONS)]
    others = [name for name in environment if name.startswith(PREFIX) and name not in known]
    near = {name: get_close_matches(name, known, n=1, cutoff=0.85) for name in sorted(others)}
    return [f"{name} is no option: did you mean {it[0]}?" for name, it in near.items() if it]


def is_loopback(address: str) -> bool:
    """Can only this machine reach it?"""
    host, _ = parse_address(address)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _overlay(values: dict[str, object], layer: Mapping[str, object]) -> None:
    """Put stronger values above weaker ones; keys and `insecure` are answers to one question."""
    if layer.get("keys") and layer.get("insecure"):
        raise UsageError("keys or insecure, not both: a network has TLS or it has not")
    if layer.get("keys"):
        values.pop("insecure", None)
    if layer.get("insecure"):
        values.pop("keys", None)
    values.update(layer)


def _path_in(environment: Mapping[str, str], name: str) -> Path | None:
    text = environment.get(PREFIX + name.upper(), "")
    return Path(text) if text else None


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("dir", *OPTIONS):
        text = environment.get(PREFIX + name.upper(), "").strip()
        try:
            if text:
                found[name] = _parsed(name, text)
        except UsageError as error:
            raise UsageError(f"{PREFIX}{name.upper()}: {error}") from None
    return found


def _parsed(name: str, text: str) -> object:
    """The value of an option as the environment has it."""
    if name in _LISTS:
        return list(split_servers(text))
    if name in _FLAGS:
        return parse_flag(text)
    if name == "insecure":
        return parse_insecure(text)
    return str(Path(text).absolute()) if name in _PATHS else text


def _from_file(path: Path, known: Sequence[str]) -> dict[str, object]:
    settings = read_toml(path)
    for key, value in settings.items():
        if key not in known:
            raise UsageError(f"{path}: {unknown('option', key, known)}")
        if key in _PATHS and isinstance(value, str):
            settings[key] = str((path.parent / Path(value).expanduser()).absolute())
        if key == "insecure":
            settings[key] = int(value) if isinstance(value, bool | int) else value
    return settings


def _checked(config: Config) -> Config:
    """Raises UsageError for what no node can run with."""
    named = (*config.advertise, *config.join, *config.link, *filter(None, [config.http]))
    for address in (config.listen, *named):
        parse_address(address)
    for name in config.overlay:
        check_overlay(name)
    if not 0 <= config.walk <= WALK_MAX:
        raise UsageError(f"walk {config.walk}: from 0 to {WALK_MAX}")
    if not INTERVAL_SECONDS_MIN <= config.interval <= INTERVAL_SECONDS_MAX:
        bounds = f"{INTERVAL_SECONDS_MIN} to {INTERVAL_SECONDS_MAX}"
        raise UsageError(f"interval of {config.interval} seconds: {bounds}")
    if parse_address(config.listen)[0] in ("0.0.0.0", "::") and not config.advertise:  # noqa: S104
        raise UsageError(
            f"others cannot dial {config.listen}: name the address to dial with --advertise"
        )
    if config.insecure and config.rights is not None:
        raise UsageError("rights need certificates: without them nobody knows who a client is")
    if config.insecure:
        _check_loopback(config)
    elif config.keys is None and not (config.dir / CERTIFICATE).exists():
        raise UsageError(
            f"no keys: name their directory with --keys (`planaria keys issue NAME` makes it), "
            f"put them into {config.dir}, or say --insecure"
        )
    return config


def _check_loopback(config: Config) -> None:
    for address in filter(None, (config.listen, config.http)):
        if config.insecure < ANYWHERE and not is_loopback(address):
            raise UsageError(
                f"--insecure on {address} lets anybody in who can reach it: use keys, or say "
                f"--insecure twice"
            )


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _wanted(name: str, error: ValidationError) -> str:
    """What an option should have been."""
    choices = [it for it in get_args(Config.__annotations__.get(name)) if isinstance(it, str)]
    return f"one of {', '.join(choices)}" if choices else str(error).partition(" - at ")[0]


def _path_of(error: ValidationError) -> str:
    """Which option an error is about: msgspec says `- at `$.name``."""
    return str(error).partition("`$.")[2].rstrip("`").partition("[")[0] or "?"
