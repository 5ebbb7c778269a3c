"""How an application takes events: one by one or in batches, by one task or by several."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

from planaria.core.node import Notice
from planaria.network.client.events import Event

T = TypeVar("T", bound=Event | Notice)


class Iterating(ABC, Generic[T]):
    """Events as they come, each given to whoever asks first; subclasses fetch them."""

    def __init__(self) -> None:
        self._events: list[Any] = []
        self._at = 0  # of the next to be taken
        self._turn = asyncio.Lock()  # two tasks that fetch would each throw away what the other got

    @abstractmethod
    async def _advance(self) -> bool:
        """Replace the events, which are all taken, by the next ones; False if there are none."""

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while self._at >= len(self._events):
            if not await self.filled():
                raise StopAsyncIteration
        event: T = self._events[self._at]
        self._at += 1
        return event

    def take(self) -> T | None:
        """The next event if it is here already."""
        if self._at >= len(self._events):
            return None
        self._at += 1
        event: T = self._events[self._at - 1]
        return event

    async def filled(self) -> bool:
        """Wait until there is an event to `take`; False if there will be none.

        Whatever interrupts the wait, nothing is taken.
        """
        async with self._turn:
            while self._at >= len(self._events):
                if not await self._advance():
                    return False
        return True

    async def batches(self) -> AsyncIterator[list[T]]:
        """Events as they come, many at a time; never an empty list."""
        while await self.filled():
            batch: list[T] = self._events[self._at :]
            self._at = len(self._events)
            yield batch
