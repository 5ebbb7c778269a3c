"""The directory of a store: one process at a time, and how the last one left it."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from planaria.core.errors import UsageError

CLEAN, IN_USE, DAMAGED = "clean", "in use", "damaged"


class Directory:
    """A locked directory. `left` is how the process before left it; empty if it never was used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writable = True
        self.left = ""
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock: int | None = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            if not path.is_dir():
                reason = error.strerror or error
                raise UsageError(f"{path} cannot be made: {reason}; name another --dir") from None
            self.writable = False
            self._lock = self._existing()
        if self._lock is not None:
            self._take(self._lock)

    def _existing(self) -> int | None:
        try:
            return os.open(self.path / "lock", os.O_RDONLY)
        except OSError:
            return None

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 64, 0).decode(errors="replace").partition(" by ")[2]
            os.close(lock)
            raise UsageError(
                f"{self.path}: in use by {holder.strip() or 'another'}; stop that, or name "
                "another --dir"
            ) from None
        self.left = os.pread(lock, 64, 0).decode(errors="replace").partition(" by ")[0]

    def mark(self, state: str) -> None:
        """Note in what state the directory is, for whoever opens it next."""
        if self.writable and self._lock is not None:
            text = f"{state} by process {os.getpid()}\n".encode()
            with suppress(OSError):  # a full disk: the store says so where it matters
                os.pwrite(self._lock, text.ljust(48), 0)

    def aside(self, name: str) -> Path:
        """A name in this directory that nothing has yet, to move something to."""
        number = 1
        while (self.path / f"{name}.set-aside-{number}").exists():
            number += 1
        return self.path / f"{name}.set-aside-{number}"

    def release(self) -> None:
        """Let another process have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
