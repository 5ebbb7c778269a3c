"""Which states of a search are legitimate, where very many are made of few parts.

A state counts as legitimate if its nodes are without what is in flight, and with what is in flight
to each of them: so what is judged is the nodes, then the nodes with one inbox, each once.
"""

import numpy as np

from planaria.verify.cells import NOBODY, Cells
from planaria.verify.fair import Flags
from planaria.verify.known import Codes, Known


class Verdicts:
    """What was judged of the states of these cells, and what of it is legitimate."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.judged = {at: Known() for at in (NOBODY, *range(cells.n))}
        self.right = {at: Known() for at in (NOBODY, *range(cells.n))}

    def of(self, codes: Codes) -> Flags:
        """Which of these states are legitimate."""
        good = np.ones(len(codes), dtype=np.bool_)
        for at in self.judged:
            places = np.flatnonzero(good)
            good[places] = self._with(at, codes[places])
        return good

    def _with(self, at: int, codes: Codes) -> Flags:
        """Which are legitimate with what is in flight to one node, or without."""
        parts = self.cells.owns(codes, at)
        kinds, first = np.unique(parts, return_index=True)
        fresh = self.judged[at].fresh(kinds)
        right = self._legitimate(codes[first[np.searchsorted(kinds, fresh)]], at)
        self.judged[at].add(fresh)
        self.right[at].add(fresh[right])
        return self.right[at].holds(parts)

    def _legitimate(self, codes: Codes, at: int) -> Flags:
        """Whether these are, each judged as it is."""
        space, found = self.cells.space, np.zeros(len(codes), dtype=np.bool_)
        each = zip(codes.tolist(), self.cells.nodes(codes), strict=True)
        for place, (code, nodes) in enumerate(each):
            heard = () if at == NOBODY else self.cells.inbox(code, at)
            found[place] = not space.model.violations(space.states(nodes), heard)
        return found
