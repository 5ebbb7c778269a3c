"""Options of a node: which source counts, what is refused, and what the directory remembers."""

from pathlib import Path

import pytest

from planaria.core.errors import UsageError
from planaria.network.config import (
    FILE,
    Config,
    is_loopback,
    load_config,
    misspelt,
    save_config,
)

SAFE = {"insecure": 1}


def test_each_source_gives_way_to_the_stronger_one(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('listen = "127.0.0.1:1"\nname = "own"\ninsecure = true\n')
    file = tmp_path / "given.toml"
    file.write_text('listen = "127.0.0.1:2"\njoin = ["a:1", "b:2"]\ninterval = 1\n')
    environment = {"PLANARIA_LISTEN": "127.0.0.1:3", "PLANARIA_SUPERVISE": "yes"}
    assert load_config(tmp_path, {}, environment={}).listen == "127.0.0.1:1"
    assert load_config(tmp_path, {}, file=file, environment={}).listen == "127.0.0.1:2"
    settings = load_config(tmp_path, {}, file=file, environment=environment)
    assert (settings.listen, settings.supervise, settings.name) == ("127.0.0.1:3", True, "own")
    assert (settings.join, settings.interval, settings.insecure) == (("a:1", "b:2"), 1.0, 1)
    given = {"listen": "127.0.0.1:4", "join": ("c:3",), "supervise": False}
    settings = load_config(tmp_path, given, file=file, environment=environment)
    assert (settings.listen, settings.join, settings.supervise) == ("127.0.0.1:4", ("c:3",), False)


def test_the_directory_may_come_from_the_environment(tmp_path: Path) -> None:
    environment = {"PLANARIA_DIR": str(tmp_path), "PLANARIA_INSECURE": "1"}
    assert load_config(None, {}, environment=environment).dir == tmp_path
    with pytest.raises(UsageError, match="--dir"):
        load_config(None, {}, environment={})


def test_a_file_may_say_all_of_it_and_come_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "node1.toml"
    file.write_text('dir = "one"\ninsecure = true\nwalk = 2\n')
    settings = load_config(None, {}, environment={"PLANARIA_CONFIG": str(file)})
    assert (settings.dir, settings.insecure, settings.walk) == (tmp_path / "one", 1, 2)
    assert load_config(tmp_path / "two", {}, file=file, environment={}).dir == tmp_path / "two"
    other = {"PLANARIA_CONFIG": str(tmp_path / "none.toml")}
    assert load_config(None, {}, file=file, environment=other).walk == 2
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / FILE).write_text('dir = "three"\n')
    with pytest.raises(UsageError, match="unknown option 'dir'"):
        load_config(None, {}, file=file, environment={})


def test_a_variable_that_says_nothing_sensible_is_named(tmp_path: Path) -> None:
    for name, text in (("SUPERVISE", "maybe"), ("JOIN", "a:b"), ("INSECURE", "perhaps")):
        with pytest.raises(UsageError, match=f"^PLANARIA_{name}: "):
            load_config(tmp_path, SAFE, environment={f"PLANARIA_{name}": text})
    assert load_config(tmp_path, SAFE, environment={"PLANARIA_SUPERVISE": " "}).supervise is False


def test_a_name_to_listen_at_is_kept_as_a_name(tmp_path: Path) -> None:
    config = load_config(tmp_path, {**SAFE, "listen": "localhost:0"}, environment={})
    save_config(config, "[::1]:4242")
    assert load_config(tmp_path, {}, environment={}).listen == "localhost:4242"


def test_what_a_node_ran_with_is_what_it_continues_with(tmp_path: Path) -> None:
    given = {"listen": "127.0.0.1:0", "join": ("a:1",), "supervise": True, "insecure": 1}
    config = load_config(tmp_path, given, environment={})
    save_config(config, "127.0.0.1:4242")
    again = load_config(tmp_path, {}, environment={})
    assert again == Config(
        dir=tmp_path, listen="127.0.0.1:4242", join=("a:1",), supervise=True, insecure=1
    )
    kept = (tmp_path / FILE).read_text() + "# mine\n"
    (tmp_path / FILE).write_text(kept)
    save_config(again, again.listen)
    assert (tmp_path / FILE).read_text() == kept


def test_keys_and_insecure_are_answers_to_one_question(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    (tmp_path / FILE).write_text('keys = "keys"\n')
    assert load_config(tmp_path, {}, environment={}).credentials == keys
    settings = load_config(tmp_path, SAFE, environment={})
    assert (settings.credentials, settings.keys) == (None, None)
    (tmp_path / FILE).write_text("insecure = true\n")
    settings = load_config(tmp_path, {"keys": str(keys)}, environment={})
    assert (settings.credentials, settings.insecure) == (keys, 0)
    with pytest.raises(UsageError, match="not both"):
        load_config(tmp_path, {"keys": str(keys), "insecure": 1}, environment={})


def test_keys_may_lie_in_the_nodes_own_directory(tmp_path: Path) -> None:
    (tmp_path / "certificate.pem").write_text("")
    assert load_config(tmp_path, {}, environment={}).credentials == tmp_path


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"insecure": 0}, "no keys"),
        ({"listen": "nowhere:x"}, "address 'nowhere:x'"),
        ({"listen": "192.0.2.1:7400"}, "say --insecure twice"),
        ({"http": "192.0.2.1:7500"}, "say --insecure twice"),
        ({"listen": "0.0.0.0:7400", "insecure": 2}, "--advertise"),
        ({"interval": 0.0}, "interval of 0.0 seconds"),
        ({"durability": "some"}, "option durability"),
        ({"join": ("a:b",)}, "address 'a:b'"),
    ],
)
def test_what_no_node_can_run_with_is_one_line(
    given: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        load_config(tmp_path, {**SAFE, **given}, environment={})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_insecure_said_twice_listens_anywhere(tmp_path: Path) -> None:
    given = {"listen": "192.0.2.1:7400", "insecure": 2}
    assert load_config(tmp_path, given, environment={}).insecure == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('lisen = "a:1"', "unknown option 'lisen'; did you mean listen?"),
        ("listen = 7", "option listen"),
        ("listen = [", "is not TOML"),
        ("join = 'a:1'", "option join"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_it(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        load_config(tmp_path, SAFE, file=file, environment={})
    assert said in str(refused.value)
    with pytest.raises(UsageError, match="cannot read"):
        load_config(tmp_path, SAFE, file=tmp_path / "none.toml", environment={})


def test_a_misspelt_variable_is_told_and_others_are_left_alone() -> None:
    complaints = misspelt({"PLANARIA_LISTN": "a", "PLANARIA_CAMPAIGN": "1", "PLANARIA_LISTEN": "b"})
    assert complaints == ["PLANARIA_LISTN is no option: did you mean PLANARIA_LISTEN?"]


@pytest.mark.parametrize(
    ("address", "yes"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("10.0.0.1:1", False),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("example.org:1", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(address: str, yes: bool) -> None:
    assert is_loopback(address) is yes
