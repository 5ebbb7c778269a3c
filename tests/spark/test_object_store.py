"""Sweeps into an S3-compatible store: there is no shared disk beyond one machine."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs
from pyspark.sql import SparkSession

import spark_lab
import toy_study
from planaria.cli.main import main
from planaria.core.errors import UsageError
from planaria.spark.grid import crossed
from planaria.spark.store import Store
from planaria.spark.sweep import Sweep
from planaria.studies import compare
from planaria.studies.reproduce import Reproduction

pytest_plugins = ("spark_session",)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URL of an empty bucket on this machine; `{}` in it stands for a path."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"scheme=http&endpoint_override={host}%3A{port}&allow_bucket_creation=true"
    yield f"s3://key:secret@lab/{{}}?{options}"
    server.stop()


def test_a_sweep_gives_the_same_files_in_an_object_store_as_on_a_disk(
    spark: SparkSession, bucket: str, tmp_path: Path
) -> None:
    cells = crossed({"x": [1, 2, 3]}, [1, 2])
    there = Sweep(spark_lab.work(), cells, bucket.format("sweep"), share=2)
    here = Sweep(spark_lab.work(), cells, str(tmp_path / "here"), share=2)
    assert (there.run(spark), here.run(spark)) == (6, 6)
    found, root = fs.FileSystem.from_uri(bucket.format("sweep"))
    for name, content in spark_lab.contents(tmp_path / "here").items():
        with found.open_input_stream(f"{root}/{name}") as source:
            assert source.read() == content
    assert sorted(map(tuple, there.rows(spark).collect())) == sorted(
        map(tuple, here.rows(spark).collect())
    )


def test_a_sweep_in_an_object_store_goes_on_where_it_was(spark: SparkSession, bucket: str) -> None:
    few = Sweep(spark_lab.work(), crossed({"x": [1]}, [1, 2]), bucket.format("more"))
    assert few.run(spark) == 2
    more = Sweep(spark_lab.work(), crossed({"x": [1]}, [1, 2, 3]), bucket.format("more"))
    assert more.run(spark) == 1


def test_a_whole_reproduction_fits_into_an_object_store(spark: SparkSession, bucket: str) -> None:
    out = bucket.format("papers")
    verdict = Reproduction([toy_study.STUDY], "quick", out).run(spark)
    assert verdict.good
    found, root = fs.FileSystem.from_uri(out)
    with found.open_input_stream(f"{root}/report.html") as source:
        assert b"The papers, measured" in source.read()


def test_a_comparison_fits_into_an_object_store_and_shows_no_key(
    spark: SparkSession,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(compare, "CONTENDERS", {"star": None})
    monkeypatch.setattr(compare, "FAULTS", ("none",))
    out = bucket.format("compared")
    words = ["compare", "--n", "4", "--topics", "1", "--events", "3", "--seeds", "1", "--out", out]
    assert main([*words, "--json"]) == 0
    first = capsys.readouterr()
    assert json.loads(first.out)["out"] == "s3://lab/compared"
    assert main(words) == 0  # nothing is run again
    again = capsys.readouterr()
    assert again.out.endswith("results in s3://lab/compared\n")
    assert "secret" not in first.out + first.err + again.out + again.err
    found, root = fs.FileSystem.from_uri(out)
    names = [info.base_name for info in found.get_file_info(fs.FileSelector(root))]
    files = [f"compare.{kind}" for kind in ("csv", "html", "parquet", "svg")]
    assert sorted(names) == [*files, "sweep", "sweep.json"]


def test_a_store_that_nobody_serves_is_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"s3://key:secret@lab/x?scheme=http&endpoint_override=127.0.0.1%3A{port}"
    with pytest.raises(UsageError, match="cannot"):
        Store(url).claim("x", "1")
