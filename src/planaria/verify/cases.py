"""What is searched for each overlay: small cases in every test run, larger ones in a campaign."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from planaria.core.errors import unknown
from planaria.verify.bursts import Bursts
from planaria.verify.check import Search
from planaria.verify.graph import Part
from planaria.verify.model import Model
from planaria.verify.models.antientropy import AntiEntropyModel
from planaria.verify.models.dht import DhtModel
from planaria.verify.models.gossip import GossipModel
from planaria.verify.models.leases import LeasesModel
from planaria.verify.models.mobile import MobileModel
from planaria.verify.models.skipring import SkipRingModel
from planaria.verify.models.sorted_ring import SortedRingModel
from planaria.verify.models.tree import TreeModel
from planaria.verify.saved import SavedBursts, SavedWide
from planaria.verify.space import Schedule
from planaria.verify.wide import Wide

MODELS: Mapping[str, type[Model]] = {
    it.name: it
    for it in (
        SortedRingModel,
        SkipRingModel,
        DhtModel,
        TreeModel,
        LeasesModel,
        AntiEntropyModel,
        MobileModel,
        GossipModel,
    )
}


class Case(Struct, frozen=True):
    """One search: a model of a size, its starts, a kind of schedule; `large`: for campaigns."""

    model: str
    n: int
    start: str
    channel: int = 0
    delay: int = 0
    large: bool = False
    fifo: bool = False

    def search(self, part: Part | None = None) -> Search:
        """The search itself, or that of a part of the first states."""
        model = find_model(self.model)(self.n, self.start)
        return Search(model, Schedule(self.channel, self.delay, self.fifo), part)

    def wide(self, directory: Path | None = None, of: str = "") -> Wide:
        """The same without the ways to states; in this directory too.

        `of` names the starts if they are not all.
        """
        plain = self.search()
        saved = None if directory is None else SavedWide(directory, f"{plain.key} {of}")
        return Wide(plain.model, plain.schedule, saved)

    def bursts(self, directory: Path | None = None, of: str = "") -> Bursts:
        """The same again, and only states without messages are kept."""
        plain = self.search()
        saved = None if directory is None else SavedBursts(directory, f"{plain.key} {of}")
        return Bursts(plain.model, plain.schedule, saved)

    def __str__(self) -> str:
        options = f"--n {self.n} --starts {self.start} --channel {self.channel}"
        options += f" --delay {self.delay}" if self.delay else ""
        return f"{self.model} {options}" + (" --fifo" if self.fifo else "")


CASES: Sequence[Case] = (
    Case("sorted-ring", 2, "right", channel=8),
    Case("sorted-ring", 2, "labels"),
    Case("sorted-ring", 2, "labels", channel=4),
    Case("sorted-ring", 2, "garbage", channel=4),
    Case("sorted-ring", 2, "dead", delay=1),
    Case("sorted-ring", 2, "between", delay=1),
    Case("sorted-ring", 2, "handed", delay=1),
    Case("sorted-ring", 2, "spent", delay=1),
    Case("sorted-ring", 2, "sides"),
    Case("sorted-ring", 3, "right"),
    Case("sorted-ring", 3, "equal"),
    Case("sorted-ring", 3, "sides", large=True),
    Case("sorted-ring", 3, "right", channel=4, large=True),
    Case("sorted-ring", 3, "labels", large=True),
    Case("sorted-ring", 3, "garbage", large=True),
    Case("sorted-ring", 3, "dead", delay=1, large=True),
    Case("sorted-ring", 3, "between", delay=1, large=True),
    Case("sorted-ring", 4, "right", large=True),
    Case("sorted-ring", 4, "wound", large=True),
    Case("ring", 1, "one", delay=1, large=True),
    Case("ring", 1, "leavers", delay=1),
    Case("ring", 1, "second", delay=1, large=True),
    Case("ring", 1, "two", delay=1, large=True),
    Case("ring", 2, "one", delay=1, large=True),
    Case("ring", 2, "any", delay=1, large=True),
    Case("dht", 1, "living", delay=1),
    Case("dht", 2, "living", delay=1),
    Case("dht", 2, "dead", delay=1, large=True),
    Case("dht", 3, "living", delay=1, large=True),
    Case("tree", 1, "links", delay=1),
    Case("tree", 2, "resting", delay=1),
    Case("tree", 2, "links", delay=1, large=True),
    Case("tree", 2, "searches", delay=1, large=True),
    Case("tree", 2, "speaking", delay=1, large=True),
    Case("tree", 3, "links", delay=1, large=True),
    Case("leases", 2, "entries", delay=1),
    Case("leases", 2, "announced", delay=1, large=True),
    Case("leases", 3, "entries", delay=1, large=True),
    Case("anti-entropy", 2, "stores", delay=1),
    Case("anti-entropy", 1, "memory", delay=1, large=True),
    Case("anti-entropy", 1, "stale", delay=1),
    Case("anti-entropy", 3, "stores", large=True),
    Case("anti-entropy", 2, "stores", channel=3, delay=1, large=True),
    Case("anti-entropy", 2, "memory", delay=1, large=True),
    Case("anti-entropy", 3, "stale", delay=1, large=True),
    Case("mobile", 2, "heights", delay=1),
    Case("mobile", 2, "links", delay=1),
    Case("mobile", 3, "heights", delay=1, large=True),
    Case("mobile", 3, "links", delay=1, large=True),
    Case("mobile", 3, "ring", delay=1, large=True),
    Case("gossip", 1, "any-group", delay=1),
    Case("gossip", 2, "group", delay=1),
    Case("gossip", 2, "levels", delay=1),
    Case("gossip", 2, "resting", delay=1),
    Case("gossip", 4, "resting", delay=1, large=True),
    Case("gossip", 2, "any-group", delay=1, large=True),
    Case("gossip", 2, "any-levels", delay=1, large=True),
)


def find_model(name: str) -> type[Model]:
    """The model of this name. Raises UsageError if there is none."""
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    return MODELS[name]


def cases_of(name: str, *, large: bool) -> list[Case]:
    """The cases of one model that every test run searches; with `large` those of a campaign too."""
    find_model(name)
    return [it for it in CASES if it.model == name and (large or not it.large)]
