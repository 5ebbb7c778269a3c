"""All decoders under atheris, one after the other: `python tests/fuzz_atheris.py -atheris_runs=N`.

Names of decoders before the options choose some of them. Each begins with good bytes, and atheris
follows what Planaria's code does with them. `pip install atheris` needs a Clang with libFuzzer
where there is no wheel: on Debian `apt install clang`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris  # type: ignore[import-untyped]

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

with atheris.instrument_imports(include=["planaria"]):
    from fuzz_lab import Decoder, attempt, decoders


def fuzz(name: str, one: Decoder, options: Sequence[str], corpus: Path) -> None:
    """Try one decoder; libFuzzer ends the process."""
    corpus.mkdir()
    for number, seed in enumerate(one.seeds):
        (corpus / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: attempt(name, one, data))
    atheris.Fuzz()


def main() -> None:
    """Fuzz each decoder in a process of its own, with libFuzzer's options."""
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    with TemporaryDirectory(prefix="planaria-fuzz-") as home:
        table = decoders(Path(home))
        names = [word for word in sys.argv[1:] if word not in options] or [*table]
        if not {*names} <= {*table}:
            sys.exit(f"decoders: {', '.join(table)}")
        for number, name in enumerate(names):
            child = os.fork()
            if not child:
                code = 1
                try:
                    fuzz(name, table[name], options, Path(home) / f"corpus{number}")
                    code = 0
                except SystemExit as end:
                    code = 0 if end.code is None else int(end.code)
                finally:
                    os._exit(code)  # the files are its parent's
            if os.waitpid(child, 0)[1]:
                sys.exit(f"{name}: see above")
            print(f"{name}: done", flush=True)


if __name__ == "__main__":
    main()
