"""A sweep's directory: whole files or none, of one experiment and one version."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import fs, parquet

from planaria.core.errors import UsageError
from planaria.spark import store as store_module
from planaria.spark.imports import imported_files
from planaria.spark.sessions import PACKAGE
from planaria.spark.store import Store, code_version
from planaria.studies.compare import Comparison
from spark_lab import contents

TABLE = pyarrow.table({"cell": ["a", "b"]})


def claimed(path: Path) -> Store:
    store = Store(str(path))
    store.claim("x", "1")
    return store


def test_a_claimed_directory_is_claimed_again_by_the_same_experiment_and_version(
    tmp_path: Path,
) -> None:
    claimed(tmp_path / "a/b")
    claimed(tmp_path / "a/b")
    assert list(contents(tmp_path)) == ["a/b/sweep.json"]


@pytest.mark.parametrize(("experiment", "version"), [("y", "1"), ("x", "2")])
def test_another_experiment_or_version_is_refused(
    tmp_path: Path, experiment: str, version: str
) -> None:
    claimed(tmp_path)
    with pytest.raises(UsageError, match="name another directory"):
        Store(str(tmp_path)).claim(experiment, version)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"layout": 0}', "\xff"])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError):
        claimed(tmp_path)


def test_a_directory_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="not empty"):
        claimed(tmp_path)


def test_a_file_or_a_place_without_permission_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for place in (str(file), str(file / "below"), "/proc/planaria", "nonsense://x/y"):
        with pytest.raises(UsageError) as raised:
            Store(place).claim("x", "1")
        assert "\n" not in str(raised.value)
        assert place in str(raised.value)


def test_a_full_disk_leaves_nothing_that_could_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = claimed(tmp_path)

    def full(table: pyarrow.Table, sink: Any, **_: object) -> None:
        sink.write(b"half")
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(parquet, "write_table", full)
    with pytest.raises(UsageError, match="No space left on device; make room there"):
        store.write("summary/b.parquet", TABLE)
    assert list(contents(tmp_path)) == ["sweep.json"]
    assert store.batches() == []


def test_what_a_dead_process_left_half_written_is_no_batch(tmp_path: Path) -> None:
    store = claimed(tmp_path)
    store.write("summary/b.parquet", TABLE)
    (tmp_path / "summary/.c.parquet.0.part").write_bytes(b"half")
    assert store.batches() == ["b.parquet"]
    assert store.column("b.parquet", "cell") == ["a", "b"]


def test_a_damaged_file_is_named_and_not_read(tmp_path: Path) -> None:
    store = claimed(tmp_path)
    store.write("summary/b.parquet", TABLE)
    path = tmp_path / "summary/b.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UsageError, match=r"summary/b\.parquet.*delete it"):
        store.column("b.parquet", "cell")


def test_a_url_is_as_good_as_a_path(tmp_path: Path) -> None:
    store = Store(tmp_path.as_uri())
    store.claim("x", "1")
    store.write("summary/b.parquet", TABLE)
    assert claimed(tmp_path).batches() == store.batches() == ["b.parquet"]


def test_any_filesystem_of_pyarrow_will_do(tmp_path: Path) -> None:
    """The same calls on a filesystem that is not the local one."""
    local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    store = Store("elsewhere://bucket")
    store.__dict__["_place"] = (local, "results")
    store.claim("x", "1")
    store.write("summary/b.parquet", TABLE)
    assert json.loads((tmp_path / "results/sweep.json").read_text())["experiment"] == "x"
    assert store.column("b.parquet", "cell") == ["a", "b"]


def test_the_code_version_follows_the_sources(tmp_path: Path) -> None:
    source = tmp_path / "overlay.py"
    source.write_text("x = 1")
    before = code_version([source])
    assert code_version([source]) == before != code_version()
    source.write_text("x = 2")
    assert code_version([source]) != before


@pytest.mark.parametrize(
    ("out", "shown", "below"),
    [
        ("out/a?b", "out/a?b", "out/a?b/c/d"),
        ("/data/", "/data/", "/data/c/d"),
        ("s3://bucket/a", "s3://bucket/a", "s3://bucket/a/c/d"),
        (
            "s3://key:word@bucket/a?scheme=http",
            "s3://bucket/a",
            "s3://key:word@bucket/a/c/d?scheme=http",
        ),
    ],
)
def test_a_directory_below_keeps_the_options_of_its_url_and_nobody_sees_its_secret(
    out: str, shown: str, below: str
) -> None:
    assert Store(out).shown == shown
    assert Store(out).below("c/d") == below


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, to be changed at will."""
    copy = tmp_path / "planaria"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(store_module, "PACKAGE", copy)
    return copy


def edited(file: Path) -> None:
    file.write_text(file.read_text() + "\n# ,\n")


def test_only_what_a_worker_imports_is_in_the_version(house: Path) -> None:
    runs = ["planaria.studies.damulticast.runs"]
    before, whole = code_version(modules=runs), code_version()
    for page in ("studies/damulticast/tables.py", "studies/damulticast/study.py", "cli/hunt.py"):
        edited(house / page)
        edited(house / "protocols/mobile/layer.py")
    assert code_version(modules=runs) == before
    assert code_version() != whole
    versions = {before}
    for place in ("protocols/gossip/links.py", "core/node.py", "__init__.py", "lab/__init__.py"):
        edited(house / place)
        versions.add(code_version(modules=runs))
    assert len(versions) == 5


def test_a_comma_in_the_page_of_the_comparison_voids_no_run(house: Path) -> None:
    before = Comparison(6, 2, 3, 1)
    for page in ("studies/compare.py", "studies/compare_page.py", "studies/advice.py"):
        edited(house / page)
    after = Comparison(6, 2, 3, 1)
    assert (after.version, after.store.out) == (before.version, before.store.out)
    assert code_version(modules=after.work().imports) == before.version
    edited(house / "lab/contest/baselines.py")
    assert Comparison(6, 2, 3, 1).version != before.version


def test_a_file_of_ones_own_counts_with_what_it_imports(house: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("def later():\n    from planaria.protocols.mobile import layer\n    layer\n")
    before = code_version([mine], ["planaria.spark.hunt"])
    edited(house / "protocols/gossip/links.py")
    assert code_version([mine], ["planaria.spark.hunt"]) == before
    edited(house / "protocols/mobile/link.py")
    assert code_version([mine], ["planaria.spark.hunt"]) != before


def test_imports_for_type_checkers_alone_do_not_count(tmp_path: Path) -> None:
    house = tmp_path / "house"
    for name, text in {
        "__init__": "",
        "one": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house import two\n",
        "two": "",
        "three": "from . import one\nimport house.four as it\n",
        "four": "from house.five import six",
        "five": "six = 6",
    }.items():
        house.mkdir(exist_ok=True)
        (house / f"{name}.py").write_text(text)
    found = [path.stem for path in imported_files(["house.three"], house)]
    assert found == ["__init__", "five", "four", "one", "three"]


@pytest.mark.parametrize(
    "out",
    [
        "s3://key:sec/ret@lab/x",
        "s3://key:sec ret@lab/x",
        "s3://key:sec?ret@lab/x",
        "s3://key:sec%ret@lab/x?scheme=http",
        "moon://key:sec_ret@lab/x",
    ],
)
def test_a_url_that_cannot_be_read_is_one_line_without_its_secret(out: str) -> None:
    with pytest.raises(UsageError, match=r"cannot use (s3|moon)://lab/x: ") as caught:
        Store(out).claim("x", "1")
    assert not any(part in str(caught.value) for part in ("key", "sec", "ret"))
