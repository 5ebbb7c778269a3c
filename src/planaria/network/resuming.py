"""Joins again what a node took part in before it was stopped: some topics at a time.

A topic that is being joined speaks in every interval, and a calm one hardly ever. A thousand at
once would keep a process, and whoever it joins, too busy to let anybody in.
"""

import logging
from collections.abc import Callable, Mapping

from planaria.core.errors import PlanariaError
from planaria.core.node import Command, Subscribe, Unsubscribe
from planaria.network.memberships import MATCHED, SERVED

AT_A_TIME = 64  # topics that are being joined
AT_LEAST = 8  # topics per interval, also while no supervisor answers for others

log = logging.getLogger("planaria.node")


class Resuming:
    """What is still to be joined: topics and patterns, those matched by a pattern last."""

    def __init__(self, names: Mapping[str, str], command: Callable[[Command], None]) -> None:
        self.left = dict(sorted(names.items(), key=lambda it: it[1] == MATCHED))
        self._command = command

    def step(self, joining: int) -> list[str]:
        """Join as many as there is room for, while `joining` others are not done.

        Returns those that were joined for clients: if none comes back, they are left.
        """
        served = []
        for name in list(self.left)[: max(AT_LEAST, AT_A_TIME - joining)]:
            how = self.left.pop(name)
            try:
                self._command(Subscribe(name, ordered=True))
                if how == SERVED:
                    served.append(name)
                if how == MATCHED:  # left by name it stays for the pattern, if that stays
                    self._command(Unsubscribe(name))
            except PlanariaError as error:
                log.error("%s is not resumed: %s", name, error)
        return served
