"""Random schedules: a fault after the other, each of a kind and size drawn from the seed."""

from collections.abc import Callable, Mapping
from random import Random

from planaria.chaos.names import kinds, lasting
from planaria.core.chance import stream
from planaria.core.scenario import Action, Schedule, parse_schedule

OVERLAP = 0.2  # of the faults do not wait until what came before is healed
GAP = 1.0  # intervals between the starts of faults, if nobody waits

Words = Callable[[Random], str]

_WORDS: Mapping[str, Words] = {
    "partition": lambda rng: f"groups={rng.choice((2, 2, 3))}{rng.choice(('', ' one_way=yes'))}",
    "loss": lambda rng: f"rate={rng.choice((0.2, 0.4, 0.8))}",
    "duplicate": lambda rng: f"rate={rng.choice((0.3, 0.6, 1))}",
    "reorder": lambda rng: f"rate={rng.choice((0.2, 0.5))} intervals={rng.choice((1, 2, 4))}",
    "crash": lambda _: "count=1",
    "restart": lambda rng: f"count=1 state={rng.choice(('kept', 'stale', 'none'))}",
    "pause": lambda _: "count=1",
    "slow": lambda rng: f"count={rng.choice((1, 2))} factor={rng.choice((2, 4))}",
    "busy": lambda rng: f"count={rng.choice((1, 2))}",
    "skew": lambda rng: f"count=1 seconds={rng.choice((-1, 1)) * 10 ** rng.randint(2, 7)}",
    "forge": lambda rng: f"count={rng.choice((10, 100))}",
    "replay": lambda rng: f"count={rng.choice((10, 100))}",
    "corrupt": lambda rng: rng.choice(("count=1", "count=2", "share=1")),
    "scramble": lambda rng: f"share={rng.choice((0.5, 1))}",
    "flip": lambda rng: f"count=1 bits={rng.choice((1, 16, 1000))}",
    "truncate": lambda rng: f"count=1 keep={rng.choice((0, 0.1, 0.5, 0.9))}",
    "garbage": lambda rng: f"count={rng.choice((1, 2))}",
    "flood": lambda _: "count=1",
}
_LENGTHS = (0.2, 3, 6, 12)  # intervals; shorter and longer than the silence that ends a link


def draw(seed: int, faults: int) -> Schedule:
    """So many faults. Kinds come in turns, also from seed to seed: a few runs see all of them.

    Who was killed comes back with the next action.
    """
    rng, lines = stream(seed, "chaos"), list[str]()
    turn = seed * faults
    while len(lines) < faults:
        kind = _kind(turn)
        turn += 1
        length = rng.choice(_LENGTHS if kind == "partition" else _LENGTHS[1:])
        lines.append(f"at {len(lines) * GAP:g}{lasting(kind, length)} {kind} {_WORDS[kind](rng)}")
        if kind == "crash":
            lines.append(f"at {len(lines) * GAP:g} join count=1")
    return parse_schedule("\n".join(lines), "drawn")


def kinds_drawn() -> list[str]:
    """The kinds of faults that are drawn; `join` follows a crash."""
    return [kind for kind in kinds() if kind in _WORDS]


def _kind(turn: int) -> str:
    """The kind whose turn it is; each round has an order of its own."""
    known = kinds_drawn()
    number, place = divmod(turn, len(known))
    return stream(number, "round").sample(known, len(known))[place]


def overlapping(seed: int, number: int, action: Action) -> bool:
    """Does this fault not wait until the one before is healed?"""
    return stream(seed, "overlap", number, str(action)).random() < OVERLAP
