"""`doctor`, `ls`, `inspect` and `top` against a network on real sockets in this process."""

import json
from collections.abc import Callable, Iterator

import pytest

from planaria.cli.doctor import report
from planaria.cli.main import main
from planaria.network.doctor import BROKEN, WARNING, Diagnosis, Finding
from planaria.network.units import seconds_text, size_text
from watched import WatchedNetwork, running

Ask = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def network() -> Iterator[WatchedNetwork]:
    made = WatchedNetwork(3, supervisors=2, topics=("news", "weather/europe"))
    with running(made):
        yield made


@pytest.fixture
def ask(
    network: WatchedNetwork, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ask:
    """Run a command against the network: its exit code and output."""
    monkeypatch.setenv("PLANARIA_SERVERS", ",".join(network.context.servers))

    def run(*words: str) -> tuple[int, str]:
        code = main([*words, "--insecure"])
        return code, capsys.readouterr().out

    return run


def test_doctor_says_legitimate_with_exit_0(ask: Ask) -> None:
    code, out = ask("doctor", "--wait", "60")
    assert (code, out[:30]) == (0, "legitimate: 5 nodes, 2 topics ")
    code, out = ask("doctor", "--json", "--wait", "60")
    found = json.loads(out)
    assert (code, found["legitimate"], found["nodes"], found["topics"]) == (0, True, 5, 2)


def test_doctor_names_what_is_wrong_with_exit_1(ask: Ask, network: WatchedNetwork) -> None:
    liar = network.peers[0]

    def lie() -> None:
        liar.ring.peer.topics["news"].subscriber.label = 99

    liar.gate.lie = lie
    try:
        code, out = ask("doctor")
        assert code == 1
        first, *rest = out.splitlines()
        assert first.startswith("NOT legitimate: ")
        assert any(line.startswith("broken: label of news at n0 (127.0.0.1:") for line in rest)
        assert "-> heals by itself, at the latest" in out
        code, out = ask("doctor", "--json")
        found = [it for it in json.loads(out)["findings"] if it["invariant"] == "label"]
        assert (code, found[0]["topic"], found[0]["node"]) == (1, "news", liar.id)
    finally:
        liar.gate.lie = None
    assert ask("doctor", "--wait", "60")[0] == 0


def test_doctor_says_once_what_is_wrong_with_many_topics() -> None:
    def one(topic: str | None, where: str = "n1", severity: str = BROKEN) -> Finding:
        return Finding(severity, "label", topic, 1, where, "is wrong", "heals")

    many = [one(f"t{at}") for at in range(5)]
    found = Diagnosis(False, 3, 5, 2, 1.0, [one(None, "n3", WARNING), *many, one("t0", "n2")])
    assert report(found)[1:] == [
        "broken: label of t0, t1, t2 and 2 more topics at n1: is wrong",
        "  -> heals",
        "broken: label of t0 at n2: is wrong",
        "warning: label at n3: is wrong",
    ]
    nodes = [one("t", f"n{at}") for at in range(25)]
    assert report(Diagnosis(False, 25, 1, 2, 1.0, nodes))[-1] == "... and 5 more: --json shows all"


def test_doctor_of_nobody_is_not_legitimate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-s", "127.0.0.1:1", "--insecure", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [it["invariant"] for it in found["findings"]] == ["unreachable"]
    assert main(["doctor", "-s", "127.0.0.1:1", "--insecure"]) == 1
    assert capsys.readouterr().out.startswith("NOT legitimate: no node answers\n")


def test_ls_lists_topics_and_nodes(ask: Ask) -> None:
    _, out = ask("ls")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["topic", "members"],
        ["news", "3"],
        ["weather/europe", "3"],
    ]
    _, out = ask("ls", "weather/+", "--json")
    (row,) = [json.loads(line) for line in out.splitlines()]
    assert (row["topic"], row["members"], len(row["supervisors"])) == ("weather/europe", 3, 1)
    _, out = ask("ls", "--nodes")
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["n0", "n1", "n2", "s0", "s1"]
    _, out = ask("ls", "--nodes", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["supervises"] for row in rows] == [False] * 3 + [True] * 2


def test_inspect_finds_a_node_by_any_of_its_names(ask: Ask, network: WatchedNetwork) -> None:
    node = network.peers[1]
    names = ("n1", str(node.id), node.host.hello.id.hex()[:8], node.address)
    for name in names:
        _, out = ask("inspect", name, "--json")
        assert json.loads(out)["handle"] == node.id
    _, out = ask("inspect", "n1")
    assert f"id {node.host.hello.id.hex()}" in out
    assert "weather/europe" in out
    assert "anonymous 127.0.0.1:" in out, "who asks is a client"
    assert "asks: " in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_inspect_shows_a_topic_in_the_order_of_its_ring(ask: Ask) -> None:
    _, out = ask("inspect", "news", "--json")
    found = json.loads(out)
    assert [it["label"] for it in found["members"]] == [0, 1, 2]
    assert len(found["databases"][0]["members"]) == 3
    _, out = ask("inspect", "news")
    assert out.startswith("topic news: 3 members\nserved by s")


def test_inspect_of_what_is_not_there_names_the_nearest(
    network: WatchedNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ",".join(network.context.servers)
    assert main(["inspect", "newz", "-s", servers, "--insecure"]) == 2
    assert "did you mean news?" in capsys.readouterr().err


def test_top_shows_every_node_once(ask: Ask) -> None:
    _, out = ask("top", "--once")
    lines = out.splitlines()
    assert lines[0].endswith("of 5 nodes know of nothing wrong")
    assert [line.split()[0] for line in lines[2:]] == ["n0", "n1", "n2", "s0", "s1"]
    assert all(len(line) <= 80 for line in lines)
    _, out = ask("top", "--once", "--json")
    (row,) = [json.loads(line) for line in out.splitlines()]
    assert [it["name"] for it in row["nodes"]] == ["n0", "n1", "n2", "s0", "s1"]
    assert row["nodes"][0]["in_per_second"] is None  # a rate needs two looks


def test_without_credentials_a_tool_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert main(["ls", "-s", "127.0.0.1:1"]) == 2
    assert "no credentials" in capsys.readouterr().err


def test_units_are_short() -> None:
    assert [size_text(it) for it in (None, 0, 1023, 1536, 1 << 30)] == [
        "-", "0 B", "1023 B", "1.5 KiB", "1.0 GiB",
    ]  # fmt: skip
    assert [seconds_text(it) for it in (0, 119, 120, 7200, 200_000)] == [
        "0s", "119s", "2m", "2h", "2d",
    ]  # fmt: skip
