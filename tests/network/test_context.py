"""Contexts: which network the tools talk to, in which order of strength, and what they refuse."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.network.context import (
    Context,
    announced,
    choose_context,
    context_path,
    find_context,
    read_context,
    running_contexts,
    write_context,
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CONFIG_HOME", "STATE_HOME"):
        monkeypatch.setenv(f"XDG_{variable}", str(tmp_path / variable))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    for variable in ("CONTEXT", "SERVERS", "CREDENTIALS", "INSECURE"):
        monkeypatch.delenv(f"PLANARIA_{variable}", raising=False)


def test_without_anything_it_is_the_usual_port_of_this_machine() -> None:
    assert find_context(environment={}) == Context(("127.0.0.1:7400",))


def test_each_source_gives_way_to_the_stronger_one() -> None:
    write_context(context_path("chosen"), Context(("chosen:1",)))
    write_context(context_path("named"), Context(("named:1",), cluster="n"))
    choose_context("chosen")
    assert find_context(environment={}).servers == ("chosen:1",)
    with announced(Context(("up:1", "up:2"), Path("/keys"))):
        found = find_context(environment={})
        assert (found.name, found.servers, found.credentials) == (
            "up",
            ("up:1", "up:2"),
            Path("/keys"),
        )
        environment = {"PLANARIA_CONTEXT": "named"}
        assert find_context(environment=environment).servers == ("named:1",)
        environment["PLANARIA_SERVERS"] = "env:1, env:2"
        assert find_context(environment=environment).servers == ("env:1", "env:2")
        assert find_context(environment=environment).cluster == "n"
        assert find_context("chosen", environment=environment).servers == ("chosen:1",)
        given = find_context(servers="given:1", environment=environment)
        assert given.servers == ("given:1",)
    assert find_context(environment={}).servers == ("chosen:1",)


def test_servers_given_by_hand_keep_the_credentials_of_the_context() -> None:
    with announced(Context(("up:1",), Path("/keys"))):
        assert find_context(servers="up:2", environment={}).credentials == Path("/keys")
        assert find_context(insecure=True, environment={}).credentials is None
        environment = {"PLANARIA_CREDENTIALS": "/mine"}
        assert find_context(environment=environment).credentials == Path("/mine")


def test_a_variable_that_tells_nodes_twice_to_do_without_tls_tells_tools_too() -> None:
    for text, insecure in (("2", True), ("yes", True), ("0", False)):
        found = find_context(environment={"PLANARIA_INSECURE": text})
        assert found.insecure is insecure
    with pytest.raises(UsageError, match="neither yes nor no"):
        find_context(environment={"PLANARIA_INSECURE": "perhaps"})


def test_credentials_given_by_hand_say_their_cluster_themselves() -> None:
    write_context(context_path("up"), Context(("up:1",), Path("/up"), cluster="planaria"))
    choose_context("up")
    found = find_context(servers="other:1", credentials=Path("/other"), environment={})
    assert found.cluster is None, "or nobody of the other network would let it in"


def test_a_killed_networks_context_is_not_used_and_is_removed() -> None:
    script = (
        "import time; from planaria.network.context import *\n"
        "with announced(Context(('dead:1',))):\n    print('on', flush=True); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"on\n"
        assert find_context(environment={}).servers == ("dead:1",)
        with announced(Context(("younger:1",))):
            assert find_context(environment={}).servers == ("younger:1",)
            assert len(running_contexts()) == 2
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert find_context(environment={}).servers == ("127.0.0.1:7400",)
        assert running_contexts() == []
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def test_a_file_is_a_context_with_paths_relative_to_it(tmp_path: Path) -> None:
    path = tmp_path / "net" / "context.toml"
    path.parent.mkdir()
    path.write_text('servers = ["[::1]:7400"]\ncredentials = "keys/me"\ncluster = "c"\n')
    found = find_context(str(path), environment={})
    assert found == Context(("[::1]:7400",), tmp_path / "net/keys/me", False, "c", str(path))
    write_context(tmp_path / "again.toml", found)
    assert read_context(tmp_path / "again.toml").credentials == found.credentials


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("servers = [", "is not TOML"),
        ('server = ["a:1"]', "unknown key 'server'; did you mean servers?"),
        ("servers = 7", "Expected `array`"),
        ("servers = []", "0 servers"),
        ('servers = ["a:b"]', "address 'a:b'"),
        ("insecure = 3", "Expected `bool`"),
    ],
)
def test_what_is_no_context_is_refused_with_one_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        find_context(str(path))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_contexts_are_added_used_listed_and_removed_from_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["context", "add", "prod", "-s", "a:1,b:2", "--insecure", "--cluster", "p"]) == 0
    assert main(["context", "use", "prod"]) == 0
    assert main(["context", "ls"]) == 0
    assert capsys.readouterr().out == "* prod  a:1,b:2\n"
    assert main(["context", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {
        "name": "prod",
        "servers": ["a:1", "b:2"],
        "credentials": None,
        "insecure": True,
        "cluster": "p",
    }
    assert main(["context", "use", "prodd"]) == 2
    assert "did you mean prod?" in capsys.readouterr().err
    assert main(["context", "rm", "prod"]) == 0
    assert main(["context", "ls"]) == 0
    assert capsys.readouterr().out == "* default  127.0.0.1:7400\n"
    assert main(["context", "add", "../x", "-s", "a:1"]) == 2
    assert main(["context", "add", "x", "-s", "a:1", "--insecure", "--credentials", "."]) == 2
