"""How faults are carried out, at nodes that only answer."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planaria.chaos.faults import Faults
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
