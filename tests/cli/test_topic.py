"""`planaria topic`: charters laid down, listed and shown on a network of real sockets."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planaria.cli.main import main
from planaria.cli.topic import changed_rights, parse_age, parse_allow, parse_count
from planaria.core.errors import UsageError
from planaria.protocols.publications.retention import Retention
from watched import WatchedNetwork, running, until

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def network() -> Iterator[tuple[WatchedNetwork, asyncio.AbstractEventLoop]]:
    made = WatchedNetwork(2, supervisors=2)
    with running(made) as loop:
        yield made, loop


@pytest.fixture
def ask(
    network: tuple[WatchedNetwork, asyncio.AbstractEventLoop],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Ask:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    servers = ",".join(network[0].context.servers)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["topic", *words, "-s", servers, "--insecure"])
        return code, *capsys.readouterr()

    return run


def test_a_charter_is_laid_down_obeyed_changed_and_shown(
    ask: Ask, network: tuple[WatchedNetwork, asyncio.AbstractEventLoop]
) -> None:
    made, loop = network
    code, out, _ = ask("set", "news", "--keep", "7d", "--count", "1000")
    assert (code, out) == (
        0,
        "news version 1: keeps 7d, count 1,000, per publisher all: held by 2 of 2 supervisors\n",
    )

    def obeyed(wanted: Retention) -> bool:
        found = [it.ring.peer.topics["news"].history.horizon.retention for it in made.peers]
        return found == [wanted] * 2

    first = Retention(7 * 86400, 1000)
    asyncio.run_coroutine_threadsafe(until(lambda: obeyed(first)), loop).result(60)
    code, out, _ = ask("set", "news", "--keep", "forever", "--per-publisher", "10", "--json")
    assert json.loads(out)["version"] == 2
    second = Retention(None, 1000, 10)
    asyncio.run_coroutine_threadsafe(until(lambda: obeyed(second)), loop).result(60)
    _, out, _ = ask("show", "news", "--json")
    assert [(it["version"], it["keep_seconds"]) for it in json.loads(out)] == [
        (2, None),
        (1, 604800),
    ]
    _, out, _ = ask("show", "news")
    assert out.startswith("news version 2: keeps forever, count 1,000, per publisher 10, signed 20")


def test_topics_without_members_have_charters_too(ask: Ask) -> None:
    assert ask("set", "later/one", "--count", "5")[0] == 0
    _, out, _ = ask("ls", "later/#")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["later/one", "1", "ring", "forever", "5", "all"]
    ]
    _, out, _ = ask("ls", "later/+", "--json")
    assert json.loads(out)["count"] == 5


def test_where_nothing_is_kept_nothing_is_laid_down_of_it(ask: Ask) -> None:
    assert ask("set", "gossip/one", "--overlay", "gossip")[0] == 0
    for words in (("--keep", "7d"), ("--overlay", "mobile", "--count", "all")):
        code, _, error = ask("set", "gossip/one", *words)
        assert (code, error.count("\n")) == (2, 1)
        assert "keeps no history: say nothing of what 'gossip/one' keeps" in error
    assert json.loads(ask("show", "gossip/one", "--json")[1])[0]["version"] == 1
    assert ask("set", "gossip/one", "--overlay", "ring", "--keep", "7d")[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "x"), "nothing to lay down"),
        (("set", "x", "--keep", "7 days"), "such as 7d"),
        (("set", "x", "--count", "0"), "1 or more, or all"),
        (("set", "x/#", "--count", "1"), "wildcard"),
        (("set", "x", "--count", "1", "--version", "5000"), "from 1 to 1000"),
        (("set", "x", "--allow", "read=alice"), "unknown right 'read'"),
        (("set", "x", "--allow", "publish"), "such as publish=alice,bob"),
        (("set", "x", "--allow", "publish=alice"), "--allow needs certificates"),
        (("show", "nothing"), "has no charter"),
        (("set", "x", "--count", "1", "--overlay", "star"), "--overlay"),
        (("set", "x", "--keep", "7d", "--overlay", "gossip"), "gossip keeps no history"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    ask: Ask, words: tuple[str, ...], said: str
) -> None:
    code, out, error = ask(*words)
    assert (code, out) == (2, "")
    assert said in error
    assert error.count("\n") == 1


def test_rights_change_one_by_one_and_an_asterisk_ends_a_restriction() -> None:
    first = changed_rights((), dict([parse_allow("publish=bob,alice"), parse_allow("admin=boss")]))
    assert first == (("admin", ("boss",)), ("publish", ("alice", "bob")))
    assert changed_rights(first, dict([parse_allow("publish=*")])) == (("admin", ("boss",)),)


def test_ages_and_counts() -> None:
    assert [parse_age(it) for it in ("90s", "15m", "12h", "7d", "2w", "forever")] == [
        90, 900, 43200, 604800, 1209600, None,
    ]  # fmt: skip
    assert (parse_count("3"), parse_count("all")) == (3, None)
    with pytest.raises(UsageError):
        parse_age("0d")
