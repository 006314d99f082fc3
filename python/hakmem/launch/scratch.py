"""Folders of `hakmem run` for files that must have a path, such as sockets.  Private, and gone with their
owner.

    hakmem-run-XXXXXXXX/owner        locked by the process that made it

A process that is killed cannot clean up; its lock ends with it, in whatever namespace of PIDs it was.  So
each process that makes a folder first removes those of this user whose owner file no process has locked."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem.base.errors import HakmemError

PREFIX = "hakmem-run-"
OWNER = "owner"


@dataclass(frozen=True)
class Scratch:
    path: Path
    lock: int  # a descriptor, closed by exec

    @classmethod
    def make(cls) -> Scratch:
        """HakmemError if there is no place for it."""
        while True:
            try:
                remove_stale(Path(tempfile.gettempdir()))
                path = Path(tempfile.mkdtemp(prefix=PREFIX))
                lock = os.open(path / OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise HakmemError(
                    f"no folder for temporary files: {error.strerror}; set TMPDIR to one that can be written"
                ) from None
            with suppress(OSError):  # file systems without locks: then no process removes it either
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return cls(path, lock)
            os.close(lock)  # it looked like one without an owner

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def remove_stale(folder: Path) -> None:
    """Removes folders whose owner was killed.  Folders of other users, and without the owner's file, stay."""
    with suppress(OSError):
        for path in folder.glob(f"{PREFIX}*"):
            with suppress(OSError):  # it has an owner, or is another user's
                if path.lstat().st_uid == os.geteuid():
                    _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    lock = os.open(path / OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
