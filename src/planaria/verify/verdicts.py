"""Which states of a search are legitimate, where very many are made of few parts.

A state counts as legitimate if its nodes are without what is in flight, and with what is in flight
to each of them: so what is judged is the nodes, then the nodes with one inbox, each once. Before
that come outlines of the nodes, where a model has some by which a judge knows that all is lost.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from planaria.verify.cells import NOBODY, Cells, Column
from planaria.verify.fair import Flags
from planaria.verify.known import Codes, Known

OUTLINES = -2  # before NOBODY, and nodes with what is in flight to one of them


class Verdicts:
    """What was judged of the states of these cells, and what of it may be legitimate."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        stages = (OUTLINES, NOBODY, *range(cells.n))
        self.judged = {it: Known() for it in stages}
        self.right = {it: Known() for it in stages}
        self.outlines: list[dict[Any, int]] = [{} for _ in range(cells.n)]
        self.outline_of = [Column() for _ in range(cells.n)]  # of each cell

    def of(self, codes: Codes) -> Flags:
        """Which of these states are legitimate."""
        good = self._each(OUTLINES, self._outlined(codes), codes, self._hopeful)
        for at in (NOBODY, *range(self.cells.n)):
            places = np.flatnonzero(good if at == NOBODY else good & ~self.cells.spared(codes, at))
            left = codes[places]
            judge = partial(self._legitimate, at)
            good[places] = self._each(at, self.cells.owns(left, at), left, judge)
        return good

    def _each(
        self, stage: int, parts: Codes, codes: Codes, judge: Callable[[Codes], Flags]
    ) -> Flags:
        """What is so of the parts of these states, of which one of each kind is judged."""
        kinds, first = np.unique(parts, return_index=True)
        fresh = self.judged[stage].fresh(kinds)
        right = judge(codes[first[np.searchsorted(kinds, fresh)]])
        self.judged[stage].add(fresh)
        self.right[stage].add(fresh[right])
        return self.right[stage].holds(parts)

    def _outlined(self, codes: Codes) -> Codes:
        """The outlines of the nodes in these states, as one number."""
        cells, found = self.cells, np.zeros(len(codes), dtype=np.uint64)
        for at, (outlines, column) in enumerate(zip(self.outlines, self.outline_of, strict=True)):
            for own, _ in cells.cells[at][len(column) :]:
                outline = cells.space.model.outline(cells.space.known(at, own))
                column.append(outlines.setdefault(outline, len(outlines)))
            found += cells.fields.put(column.array()[cells.of(codes, at)], at)
        return found

    def _hopeful(self, codes: Codes) -> Flags:
        space = self.cells.space
        hopeless = [space.model.hopeless(space.states(it)) for it in self.cells.nodes(codes)]
        return ~np.array(hopeless, dtype=np.bool_)

    def _legitimate(self, at: int, codes: Codes) -> Flags:
        """Whether these are, each judged as it is."""
        space, found = self.cells.space, np.zeros(len(codes), dtype=np.bool_)
        each = zip(codes.tolist(), self.cells.nodes(codes), strict=True)
        for place, (code, nodes) in enumerate(each):
            heard = () if at == NOBODY else self.cells.inbox(code, at)
            found[place] = not space.model.violations(space.states(nodes), heard)
        return found
