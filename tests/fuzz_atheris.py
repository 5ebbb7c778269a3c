"""One decoder under atheris: `python tests/fuzz_atheris.py records -atheris_runs=1000000`.

It begins with good bytes and follows what Planaria's code does with them. Without a name it says
which decoders there are. `pip install atheris` needs a Clang with libFuzzer where there is no
wheel: on Debian `apt install clang`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris  # type: ignore[import-not-found]

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

with atheris.instrument_imports(include=["planaria"]):
    from fuzz_lab import attempt, decoders


def main() -> None:
    """Fuzz the decoder that is named, with libFuzzer's options."""
    with TemporaryDirectory(prefix="planaria-fuzz-") as home:
        table = decoders(Path(home))
        if len(sys.argv) < 2 or sys.argv[1] not in table:
            sys.exit(f"name a decoder: {', '.join(table)}")
        name, one = sys.argv[1], table[sys.argv[1]]
        corpus = Path(home) / "corpus"
        corpus.mkdir()
        for number, seed in enumerate(one.seeds):
            (corpus / str(number)).write_bytes(seed)
        words = [sys.argv[0], *sys.argv[2:], str(corpus)]
        atheris.Setup(words, lambda data: attempt(name, one, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
