"""A publication can be followed by a reader of the code: from command or message to `Deliver`."""

import traceback
from collections import Counter
from typing import Any

import pytest

from planaria.core.node import Deliver
from planaria.protocols.publications import reader
from planaria.protocols.skipring.overlay import RingOverlay
from planaria.records import record
from planaria.simulator.schedule import parse_schedule
from planaria.simulator.trial import Spec, Trial
from planaria.simulator.worlds.registry import find_kind

CALLS_MAX = 8


@pytest.mark.parametrize("overlay", ["ring", "gossip", "content", "mobile"])
def test_at_most_eight_calls_lead_to_a_delivery(
    overlay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths: set[tuple[str, ...]] = set()
    one = Deliver.one

    def path() -> tuple[str, ...]:
        calls = [(it.filename, it.name) for it in traceback.extract_stack()[:-2]]
        driver = max(i for i, (file, _) in enumerate(calls) if "/simulator/" in file)
        return tuple(f"{file.rpartition('/')[2]}:{name}" for file, name in calls[driver + 1 :])

    def many(*given: Any, **named: Any) -> Deliver:
        paths.add(path())
        return Deliver(*given, **named)

    def single(*given: Any, **named: Any) -> Deliver:
        paths.add(path())
        return one(*given, **named)

    monkeypatch.setattr(reader, "Deliver", many)
    monkeypatch.setattr(Deliver, "one", single)
    faults = parse_schedule("at 5 publish count=3", "a few publications")
    Trial(find_kind(overlay).make(), Spec(n=4, seed=3, start="legitimate", faults=faults)).run()
    assert {it[0].rpartition(":")[2] for it in paths} >= {"on_command", "on_message"}
    assert max(map(len, paths)) <= CALLS_MAX, "\n".join(" > ".join(it) for it in paths)


def test_the_key_of_a_publication_is_hashed_once_at_each_node_it_comes_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By whoever publishes it and by each receiver; audits, at timeouts, hash again on purpose."""
    hashed: Counter[bytes] = Counter()
    whole = record.record_key

    def counting(data: bytes) -> bytes:
        key = whole(data)
        if {"on_message", "on_command"} & {it.name for it in traceback.extract_stack()}:
            hashed[key] += 1
        return key

    monkeypatch.setattr(record, "record_key", counting)
    faults = parse_schedule("at 5 publish count=3", "a few publications")
    Trial(RingOverlay(), Spec(n=4, seed=3, start="legitimate", faults=faults)).run()
    assert [*hashed.values()] == [4, 4, 4]
