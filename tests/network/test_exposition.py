"""`/metrics` is what Prometheus reads: judged by a strict parser that knows only the format."""

import random
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from planaria.core.node import Deliver, Notice, Subscribe
from planaria.network import metrics
from planaria.network.metrics import METRICS, exposition, render
from planaria.network.monitor import NOTICE_KINDS_MAX, Monitor
from watched import Watched, ring_node

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}


class Family(NamedTuple):
    kind: str
    help: str
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parse(text: str) -> dict[str, Family]:
    """The families in a text; asserts whatever the format demands."""
    assert text.endswith("\n")
    found: dict[str, Family] = {}
    helped, current = "", ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, helped, words = line.split(" ", 3)
            assert helped not in found, "a family must not come twice"
            current = ""
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == helped
            assert NAME.fullmatch(name)
            assert kind in ("counter", "gauge", "histogram")
            assert (kind == "counter") == name.endswith("_total")
            found[name], current = Family(kind, words, {}), name
        else:
            series, _, value = line.rpartition(" ")
            name, labels = labelled(series)
            assert current, "a sample needs a type before it"
            suffix = name.removeprefix(current)
            assert suffix in SUFFIXES.get(found[current].kind, ("",)), line
            key = (suffix, tuple(labels.items()))
            assert key not in found[current].samples, "a series must not come twice"
            found[current].samples[key] = float(value)
    for name, family in found.items():
        if family.kind == "histogram":
            check_histogram(name, family)
    return found


def labelled(series: str) -> tuple[str, dict[str, str]]:
    name, brace, rest = series.partition("{")
    assert NAME.fullmatch(name)
    if not brace:
        return name, {}
    assert rest.endswith("}")
    rest, labels = rest[:-1], {}
    while rest:
        match = LABEL.match(rest)
        assert match, f"no label: {rest}"
        assert match[1] not in labels
        labels[match[1]] = re.sub(r"\\.", lambda it: ESCAPES[it[0]], match[2])
        rest = rest[match.end() :]
    return name, labels


def check_histogram(name: str, family: Family) -> None:
    buckets = [
        (float(dict(labels)["le"]), value)
        for (suffix, labels), value in family.samples.items()
        if suffix == "_bucket"
    ]
    assert buckets == sorted(buckets), name
    counts = [count for _, count in buckets]
    assert counts == sorted(counts), f"{name} must count all that is below each bound"
    assert buckets[-1][0] == float("inf")
    assert buckets[-1][1] == family.samples["_count", ()]


def node(topics: list[str], name: str = "n0") -> Watched:
    found = Watched(ring_node(0, (0,), supervise=True), bytes(16), name)
    for topic in topics:
        found.ring.peer.on_command(Subscribe(topic))
    return found


def value(families: dict[str, Family], name: str, **labels: str) -> float:
    return families[name].samples["", tuple(labels.items())]


def test_every_metric_is_told_with_its_type_and_meaning() -> None:
    watched = node(["a", "b"])
    found = parse(exposition(watched.monitor))
    absent = {it for it in METRICS if it.startswith(("planaria_store_", "planaria_overlay_"))}
    assert set(found) == set(METRICS) - absent - {"planaria_topic_members"}
    assert all(found[name].help == METRICS[name][1] for name in found)
    assert value(found, "planaria_legitimate") == 0
    assert value(found, "planaria_topics") == value(found, "planaria_doubtful_topics") == 2
    assert value(found, "planaria_topic_legitimate", topic="a") == 0


def test_names_of_topics_are_escaped() -> None:
    evil = 'a"b\\c\nd'
    watched = node([])
    status = watched.monitor.status()
    topics = {evil: node(["x"]).monitor.status().topics["x"]}
    text = render(metrics.of_topics(replace(status, topics=topics)))
    assert value(parse(text), "planaria_topic_records", topic=evil) == 0


def test_many_topics_become_one_series() -> None:
    few, many = ([f"t/{at}" for at in range(count)] for count in (100, 101))
    assert len(parse(exposition(node(few).monitor))["planaria_topic_bytes"].samples) == 100
    found = parse(exposition(node(many).monitor))
    assert value(found, "planaria_topic_bytes", topic="#") == 0
    assert len(found["planaria_topic_bytes"].samples) == 1
    assert value(found, "planaria_topics") == 101


def test_kinds_of_notices_are_bounded_and_deliveries_counted() -> None:
    watched = node([])
    for number in range(2 * NOTICE_KINDS_MAX):
        watched.monitor.on_effect(Notice("a", f"kind {number}", {}))
    watched.monitor.on_effect(Deliver.one("a", b"id", b"payload"))
    found = parse(exposition(watched.monitor))
    assert len(found["planaria_notices_total"].samples) == NOTICE_KINDS_MAX + 1
    assert value(found, "planaria_notices_total", kind="other") == NOTICE_KINDS_MAX
    assert value(found, "planaria_deliveries_total") == 1


def test_the_recovery_histogram_counts_from_the_first_doubt_to_legitimate_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    watched = node([])
    monitor = Monitor(watched, lambda: clock[0])
    doubtful = iter([True, False, False, True, True, False, True, False])
    monkeypatch.setattr(monitor, "_doubtful", lambda: next(doubtful))
    for second in range(1, 9):
        clock[0] = second
        monitor.tick()
    found = parse(exposition(monitor))
    recovery = found["planaria_recovery_seconds"].samples
    assert recovery["_count", ()] == 2  # joining, the first doubt of all, is no recovery
    assert recovery["_sum", ()] == 2.0 + 1.0
    assert recovery["_bucket", (("le", "1"),)] == 1
    assert value(found, "planaria_doubts_total") == 2
    assert value(found, "planaria_rounds_since_fault") == 1


def test_random_histograms_are_sound() -> None:
    watched, rng = node([]), random.Random(4)
    for _ in range(200):
        watched.monitor.recovery.observe(rng.expovariate(0.05))
    samples = parse(exposition(watched.monitor))["planaria_recovery_seconds"].samples
    assert samples["_count", ()] == 200


def test_the_page_on_operating_lists_every_metric() -> None:
    page = (Path(__file__).parents[2] / "docs/operating.md").read_text()
    rows = re.findall(r"^\| `(p\w+_\w+)` \| (\w+) \| (.*) \|$", page, re.MULTILINE)
    assert {name: (kind, words) for name, kind, words in rows} == METRICS
