"""How little a topic keeps does not decide what its readers get."""

from collections.abc import Callable
from time import time

import pytest
from msgspec.structs import replace

from gate_lab import TOPIC, Lab, numbered, run, until
from planaria.network.client.messages import Lack, Put, Stored
from planaria.network.gate import recent
from planaria.network.gate.recent import Recent
from planaria.protocols.publications.retention import Retention
from planaria.records.batches import Slice
from records_lab import A, B, record


@pytest.mark.parametrize("fresh", [False, True])
def test_what_is_let_go_before_it_could_be_read_is_read_all_the_same(*, fresh: bool) -> None:
    """A node handles many publications before it reads for a tail."""

    async def publish(lab: Lab) -> None:
        writer, reader, now = await lab.client(0), await lab.client(0), int(time())
        known = [] if fresh else [writer.seal(b"known", at=now - 1)]
        for one in known:
            await writer.ask(Put, Stored, TOPIC, one.data)
        tail, tails = await reader.tail(notices=True), lab.gates[0].tails
        await until(lambda: len(reader.payloads(tail)) == len(known))
        soon: list[Callable[[], None]] = []
        usual, tails._soon = tails._soon, soon.append
        for at, payload in enumerate(numbered(20)):
            await writer.ask(Put, Stored, TOPIC, writer.seal(payload, at=now + at).data)
        assert len(lab.store(0)) == 2
        tails._soon = usual
        for pump in soon:
            pump()
        await until(lambda: len(reader.payloads(tail)) == len(known) + 20)
        assert reader.payloads(tail)[len(known) :] == numbered(20)
        assert not any(it.lacks for it in reader.pieces(tail))
        assert len(tails._recent)
        reader.close()
        await until(lambda: not len(tails))
        assert not len(tails._recent)

    run(publish, 1, 1, retention={TOPIC: Retention(count=2)})


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("members", [1, 2])
def test_what_comes_within_a_second_is_stored_and_read_however_little_is_kept(
    count: int, members: int
) -> None:
    async def publish(lab: Lab) -> None:
        writer, reader, now = await lab.client(0), await lab.client(members - 1), int(time())
        tail = await reader.tail(notices=True)
        asked = [
            writer.say(Put, TOPIC, writer.seal(payload, at=now).data, copies=members)
            for payload in numbered(40)
        ]
        for request in asked:
            assert (await writer.answer(request, Stored)).copies == members
        await until(lambda: len(reader.payloads(tail)) >= 40)
        assert reader.payloads(tail) == numbered(40)
        assert not any(it.lacks for it in reader.pieces(tail))
        assert len(lab.store(0)) == count

    run(publish, 2, members, retention={TOPIC: Retention(count=count)})


def test_what_came_lately_is_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    one = record(A, 0, 4, time=100)
    monkeypatch.setattr(recent, "RECENT_BYTES_MAX", 3 * len(one.data))
    known, every = Recent(), [Lack(*A, 0, 99, True), Lack(*B, 0, 99, True)]
    made = [record(of, first, 4, time=100) for of in (A, B) for first in (0, 4)]
    parts = [Slice(it, it.first, it.end) for it in made]
    known.add("news", parts[:2])
    known.add("weather", parts[2:3])
    assert known.of("news", every, 0) == parts[:2]
    assert known.of("weather", every, 0) == parts[2:3]
    assert known.of("news", [Lack(*A, 3, 5, True)], 0) == [
        replace(parts[0], lo=3, hi=4),
        replace(parts[1], lo=4, hi=5),
    ]
    assert known.of("news", every, 101) == []
    known.add("news", parts[3:])
    assert known.of("news", every, 0) == [parts[1], parts[3]]
    assert len(known) == 3
