"""How faults are carried out, at nodes that only answer."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planaria.chaos.faults import WAKING, Faults
from planaria.chaos.judge import Judge
from planaria.chaos.target import Member, Target
from planaria.core.scenario import parse_schedule


class Answering:
    """Two nodes; the frames that the n-th rule met at each are told beforehand."""

    interval = 0.0
    invented = False

    def __init__(self, met: list[int]) -> None:
        self.running = [Member(f"n{it}", it, "", 0, None, supervises=False) for it in (1, 2)]
        self.met, self.ended = met, 0

    async def ask(
        self, member: Member, fault: str, seed: int = 0, **options: Any
    ) -> SimpleNamespace:
        if fault == "begin":
            return SimpleNamespace(affected=0, found={"number": 1})
        self.ended += 1
        return SimpleNamespace(affected=self.met[(self.ended - 1) // 2], found={})


@pytest.mark.parametrize(("text", "times"), [("for 0.2", 3), ("for 2", 1)])
def test_a_cut_of_milliseconds_that_no_frame_met_is_made_again(
    text: str, times: int, tmp_path: Path
) -> None:
    target = Answering([0, 0, 4, 9])
    faults = Faults(cast(Target, target), cast(Any, None), 7, tmp_path)
    action = parse_schedule(f"at 0 {text} partition groups=2", "test")[0]
    injection = asyncio.run(faults.carry_out(action))
    assert target.ended == 2 * times
    assert injection.affected == (8 if times > 1 else 0)


@pytest.mark.parametrize("asleep", [0, 3, WAKING])
def test_a_node_that_sleeps_is_corrupted_when_it_takes_part_again(
    asleep: int, tmp_path: Path
) -> None:
    target = Killing(tmp_path, "mobile")
    target.asleep = asleep
    faults = Faults(cast(Target, target), cast(Judge, target), 7, tmp_path)
    action = parse_schedule("at 0 corrupt count=1", "test")[0]
    assert asyncio.run(faults.carry_out(action)).affected == (asleep < WAKING)
    (victim,) = {name for what, name in target.said if what == "lost"}
    assert target.said.count(("corrupt", victim)) == min(asleep + 1, WAKING)


class Killing:
    """Two nodes that are killed and started; what they and the judge are told."""

    interval = 0.0
    invented = False
    asleep = 0  # questions for which a node does not take part
    handles: Sequence[int] = ()

    def __init__(self, home: Path, overlay: str) -> None:
        self.running = [Member(f"n{it}", it, "", 0, home, supervises=it == 1) for it in (1, 2)]
        self.members = {it.name: it for it in self.running}
        self.applications = SimpleNamespace(overlay=overlay, topic="t")
        self.said: list[tuple[str, str]] = []

    async def ask(
        self, member: Member, fault: str, seed: int = 0, **options: Any
    ) -> SimpleNamespace:
        self.said.append((fault, member.name))
        self.asleep -= 1
        return SimpleNamespace(affected=int(self.asleep < 0))

    def directory(self, member: Member) -> Path:
        assert member.directory is not None
        return member.directory

    async def census(self) -> None:
        self.said.append(("census", ""))

    async def kill(self, member: Member) -> None:
        self.said.append(("killed", member.name))

    async def start(self, member: Member) -> None:
        self.said.append(("started", member.name))

    def ended(self, member: Member) -> None:
        self.said.append(("ended", member.name))

    @asynccontextmanager
    async def destroying(self, victims: Sequence[Member]) -> AsyncIterator[None]:
        await self.census()
        yield
        self.said += [("lost", it.name) for it in victims]


@pytest.mark.parametrize(
    ("text", "overlay", "loses"),
    [
        ("restart node=1 state=none", "mobile", True),
        ("restart node=1 state=none", "ring", True),
        ("flip count=1 bits=1", "mobile", False),
        ("flip count=1 bits=1", "ring", True),
        ("truncate count=1 keep=0.5", "mobile", False),
        ("truncate count=1 keep=0.5", "ring", True),
        ("crash node=1", "mobile", False),
        ("restart node=1 state=kept", "mobile", False),
    ],
)
def test_the_judge_is_told_whose_process_ended_and_who_lost_its_store(
    text: str, overlay: str, loses: bool, tmp_path: Path
) -> None:
    """Damage to the files of rings costs `mobile` nothing."""
    target = Killing(tmp_path, overlay)
    faults = Faults(cast(Target, target), cast(Judge, target), 7, tmp_path)
    action = parse_schedule(f"at 0 {text}", "test")[0]
    (victim,) = asyncio.run(faults.carry_out(action)).victims
    assert target.said.index(("killed", victim)) + 1 == target.said.index(("ended", victim))
    assert [name for what, name in target.said if what == "lost"] == [victim] * loses
