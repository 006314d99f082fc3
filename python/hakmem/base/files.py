"""Where results go.  Only a regular file is replaced; everything else is written into.

-, /dev/stdout, /dev/fd/N        the open descriptor: what was redirected stays where it was redirected to
a device, a FIFO                 opened and written
a symbolic link                  followed: its target is what counts, the link stays
a regular file, or none yet      written beside it, synced, renamed: a reader sees the old content or the
                                 new one, never a part; mode and owner stay
… that cannot be replaced        (a folder one may not write, a mount of its own, another owner) in place
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import select
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hakmem.base.errors import HakmemError
from hakmem.base.signals import stoppable

STANDARD_STREAMS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
DESCRIPTOR_FOLDER = re.compile(r"/proc/(\d+)(/task/\d+)?/fd")
LINKS_MAX = 40  # as the kernel's own limit
PERMISSIONS = 0o777
WRITABLE = 0o666  # before the umask
NOT_REPLACEABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV, errno.ENAMETOOLONG)


def is_standard_output(path: Path) -> bool:
    """Whether what is written there is read as the tool's own output: nothing else may be printed then."""
    try:
        return resolved(path) == 1
    except OSError:
        return False


def write_atomically(path: Path, text: str) -> None:
    """All of it, at once where the place allows."""
    with Output(path) as output:
        output.write(text)


def resolved(path: Path) -> Path | int:
    """What a path stands for: an open descriptor of ours, or the path behind all links."""
    for _ in range(LINKS_MAX):
        if str(path) in STANDARD_STREAMS:
            return STANDARD_STREAMS[str(path)]
        if match := DESCRIPTOR_FOLDER.fullmatch(os.path.realpath(path.parent)):
            is_ours = int(match[1]) == os.getpid() and path.name.isascii() and path.name.isdigit()
            return int(path.name) if is_ours else path  # another's is opened; what it links to is no path
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


class Output:
    """A place that is written to in pieces.  Nothing there changes before the first piece is complete; each
    piece is either whole or, when the place takes no more, not there at all (of a regular file).

    With the first piece the old content is gone.  Raises HakmemError for whatever is in the way."""

    def __init__(self, path: Path) -> None:
        """Says before the work, not after it, that the result could not be kept."""
        self._name = "standard output" if str(path) == "-" else str(path)
        self._file = -1
        self._written_bytes = 0
        self._is_regular = False
        try:
            place = resolved(path)
            if isinstance(place, int):
                self._file = os.dup(place)
                self._path = None
            else:
                self._path = place
                self._open_special(place)
        except (OSError, ValueError) as error:
            raise self._failed(error) from None

    def _open_special(self, path: Path) -> None:
        """Devices and FIFOs are opened now; of a file it is checked whether it can be made or written."""
        try:
            kind = path.stat().st_mode
        except FileNotFoundError:
            if not path.parent.is_dir():
                raise HakmemError(
                    f"there is no folder {path.parent}; make it, or name a file elsewhere"
                ) from None
            if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=True):
                raise HakmemError(f"cannot write in {path.parent}; name a file elsewhere") from None
            return
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if stat.S_ISREG(kind):
            if not (self._may_write(path) or self._may_write(path.parent)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)

    @staticmethod
    def _may_write(path: Path) -> bool:
        return os.access(path, os.W_OK, effective_ids=True)

    # ---- writing -----------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """One piece, as UTF-8."""
        data = text.encode(errors="backslashreplace")
        try:
            if self._file >= 0:
                self._append(data)
            else:
                with stoppable():
                    self._begin(data)
        except OSError as error:
            raise self._failed(error) from None

    def _append(self, data: bytes) -> None:
        try:
            write_all(self._file, data)
        except BaseException:
            if self._is_regular:
                os.ftruncate(self._file, self._written_bytes)
            raise
        self._written_bytes += len(data)

    def _begin(self, data: bytes) -> None:
        assert self._path is not None
        self._is_regular = True
        old = self._path.stat() if self._path.exists() else None
        beside, file = self._path.with_name(f".hakmem-{secrets.token_hex(8)}"), -1
        try:  # a signal may come between any two steps
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, WRITABLE)
            if old is not None:
                keep_owner_and_mode(file, old)
            write_all(file, data)
            sync(file)
            beside.replace(self._path)
        except BaseException as error:
            with suppress(OSError):  # no folder that one may write, no file in it: the first error counts
                beside.unlink(missing_ok=True)
            if file >= 0:
                os.close(file)
            is_refused = isinstance(error, OSError) and error.errno in NOT_REPLACEABLE
            if old is None or not is_refused:
                raise
            self._begin_in_place(data)
            return
        self._file, self._written_bytes = file, len(data)

    def _begin_in_place(self, data: bytes) -> None:
        """The same file, its old content overwritten."""
        assert self._path is not None
        self._file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        self._append(data)
        os.ftruncate(self._file, len(data))

    # ---- the end -----------------------------------------------------------------------------------

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file < 0:
            return
        file, self._file = self._file, -1
        try:
            if self._is_regular:
                sync(file)
            os.close(file)
        except OSError as late:
            if error is None:  # the first error is the one to be told
                raise self._failed(late) from None

    def _failed(self, error: OSError | ValueError) -> HakmemError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return HakmemError(f"cannot write {self._name}: {reason}")


def write_all(file: int, data: bytes) -> None:
    """Goes on after a short write: the next one says why."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(file, rest) :]
        except BlockingIOError:
            select.select([], [file], [])


def keep_owner_and_mode(file: int, old: os.stat_result) -> None:
    """PermissionError where the new file cannot have the old one's owner."""
    now = os.fstat(file)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        os.fchown(file, old.st_uid, old.st_gid)
    os.fchmod(file, stat.S_IMODE(old.st_mode) & PERMISSIONS)


def sync(file: int) -> None:
    """Onto the disk, where there is one: errors of writing may come as late as this."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
