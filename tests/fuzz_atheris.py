"""All decoders under atheris: `python tests/fuzz_atheris.py -atheris_runs=1000000`.

The first byte of an input chooses the decoder.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris  # type: ignore[import-untyped]

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

with atheris.instrument_imports(include=["planaria"]):
    from fuzz_lab import Decoder, attempt, decoders

TABLE: list[tuple[str, Decoder]] = []


def one_input(data: bytes) -> None:
    """Try one decoder."""
    if data:
        name, one = TABLE[data[0] % len(TABLE)]
        attempt(name, one, data[1:])


if __name__ == "__main__":
    with TemporaryDirectory(prefix="planaria-fuzz-") as home:
        TABLE += decoders(Path(home)).items()
        atheris.Setup(sys.argv, one_input)
        atheris.Fuzz()
