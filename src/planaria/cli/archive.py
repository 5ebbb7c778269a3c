"""`planaria archive`: topics as partitioned Parquet, and back."""

from pathlib import Path

import click

from planaria.cli.access import JSON, reaches_network
from planaria.core.errors import UsageError
from planaria.core.topics import check_filter, matches
from planaria.network.client.patterns import Patterns
from planaria.network.context import Context


@click.command()
@click.argument("topic")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@reaches_network
@click.option("--restore", "back", is_flag=True, help="Publish what DIRECTORY has of TOPIC.")
@click.option("--skip-lost", is_flag=True, help="Go on where retention was faster than this.")
@JSON
def archive(
    topic: str, directory: Path, context: Context, back: bool, skip_lost: bool, as_json: bool
) -> None:
    """Write TOPIC, or all topics of a pattern, to Parquet files in DIRECTORY, by topic and date.

    Each run adds what was published since the last one; a run that was killed is resumed by the
    next. Every publication is there once.
    """
    try:
        from planaria.spark.archive import Archive
        from planaria.spark.archive import archive as write
        from planaria.spark.restore import restore
    except ImportError:
        raise UsageError("this needs pyarrow: pip install 'planaria[trace]'") from None
    if back:
        found = Archive(directory)
        topics = [it for it in found.topics() if matches(check_filter(topic), it)]
        for name in topics:
            new, total = restore(context, found, name)
            _say(as_json, f"{name}: {new} of {total} published", topic=name, new=new, total=total)
        if not topics:
            raise UsageError(f"{directory} has nothing of {topic}")
        return
    patterns, rows, batches = list(Patterns([topic])), 0, 0
    for commit in write(context, patterns, directory, fail_on_data_loss=not skip_lost):
        rows, batches = rows + commit.rows, batches + 1
    said = f"{rows} publications in {batches} batches" if rows else "nothing new"
    _say(as_json, f"{directory}: {said}", rows=rows, batches=batches)


def _say(as_json: bool, text: str, **values: object) -> None:
    import json

    click.echo(json.dumps(values) if as_json else text)
