"""Output files.  Only a regular file is replaced; everything else is written in place.

-, /dev/stdout, /dev/fd/N        the open descriptor: redirections are respected
a device, a FIFO                 opened and written
a symbolic link                  followed; the link stays
a regular file, or none yet      written to a temporary file beside it, synced, renamed: a reader sees the old
                                 content or the new, never a part; mode and owner are kept
… that cannot be replaced        (no write permission for the folder, a mount point, another owner) in place
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
from hakmem.base.signals import deferred, stoppable

STANDARD_STREAMS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
DESCRIPTOR_FOLDER = re.compile(r"/proc/(\d+)(/task/\d+)?/fd")
LINKS_MAX = 40  # the kernel's own limit
PERMISSIONS = 0o777
WRITABLE = 0o666  # before the umask
NOT_REPLACEABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV, errno.ENAMETOOLONG)


def is_standard_output(path: Path) -> bool:
    """Whether the file is standard output: then nothing else may be printed there."""
    try:
        return resolved(path) == 1
    except OSError:
        return False


def write_atomically(path: Path, text: str) -> None:
    """Writes the whole text, atomically where the target allows it."""
    with Output(path) as output:
        output.write(text)


def check_writable(path: Path) -> None:
    """HakmemError before the work, not after it, when the result could not be written.  Opens nothing: the
    reader of a FIFO would see its end."""
    Output(path, opens=False)


def resolved(path: Path) -> Path | int:
    """The target of a path: an open descriptor of this process, or the path after all links."""
    for _ in range(LINKS_MAX):
        if str(path) in STANDARD_STREAMS:
            return STANDARD_STREAMS[str(path)]
        if match := DESCRIPTOR_FOLDER.fullmatch(os.path.realpath(path.parent)):
            is_ours = int(match[1]) == os.getpid() and path.name.isascii() and path.name.isdigit()
            return (
                int(path.name) if is_ours else path
            )  # of another process: opened as it is; its link is not a path
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


class Output:
    """An output that is written in pieces.  Nothing changes before the first piece is complete; of a regular
    file each piece is written whole or, when the disk is full, not at all, whatever signal comes.  Elsewhere
    a reader that waits must not hold the tool: a signal may cut a piece, and nothing is written after it.

    The first piece replaces the old content.  Every failure is a HakmemError."""

    def __init__(self, path: Path, *, opens: bool = True) -> None:
        """Fails before the work, not after it, when the result could not be written; `opens`: where writing
        needs no new file."""
        self._name = "standard output" if str(path) == "-" else str(path)
        self._file = -1
        self.pieces = 0  # that are written
        self._written_bytes = 0
        self._is_regular = False
        self._is_cut = False
        try:
            place = resolved(path)
            self._path = None if isinstance(place, int) else place
            if isinstance(place, int):
                os.fstat(place)
                self._file = os.dup(place) if opens else -1
            elif self._is_special(place) and opens:
                self._file = os.open(place, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
        except (OSError, ValueError) as error:
            raise self._failed(error) from None

    def _is_special(self, path: Path) -> bool:
        """A device or a FIFO; checks that a file can be created or written."""
        try:
            kind = path.stat().st_mode
        except FileNotFoundError:
            if not path.parent.is_dir():
                raise HakmemError(
                    f"no such directory: {path.parent}; create it, or choose another file"
                ) from None
            if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=True):
                raise HakmemError(
                    f"cannot write to the directory {path.parent}; choose another file"
                ) from None
            return False
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if stat.S_ISREG(kind):
            if not (self._may_write(path) or self._may_write(path.parent)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return False
        if not self._may_write(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return True

    @staticmethod
    def _may_write(path: Path) -> bool:
        return os.access(path, os.W_OK, effective_ids=True)

    # ---- writing -----------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Writes one piece as UTF-8."""
        self.write_bytes(text.encode(errors="backslashreplace"))

    def write_bytes(self, data: bytes) -> None:
        """Writes one piece."""
        try:
            if self._file >= 0 and not self._is_regular:
                self._stream(data)
                return
            with stoppable(), deferred():
                if self._file >= 0:
                    self._append(data)
                else:
                    self._begin(data)
                self.pieces += 1
        except OSError as error:
            raise self._failed(error) from None

    def _stream(self, data: bytes) -> None:
        if self._is_cut:
            return
        self._is_cut = True  # from the first byte on
        write_all(self._file, data)
        self.pieces += 1
        self._is_cut = False

    def _append(self, data: bytes) -> None:
        try:
            write_all(self._file, data)
        except BaseException:
            os.ftruncate(self._file, self._written_bytes)
            os.lseek(self._file, self._written_bytes, os.SEEK_SET)  # no hole before what comes next
            raise
        self._written_bytes += len(data)

    def _begin(self, data: bytes) -> None:
        assert self._path is not None
        self._is_regular = True
        old = self._path.stat() if self._path.exists() else None
        beside, file = self._path.with_name(f".hakmem-{secrets.token_hex(8)}"), -1
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, WRITABLE)
            if old is not None:
                keep_owner_and_mode(file, old)
            write_all(file, data)
            sync(file)
            beside.replace(self._path)
        except BaseException as error:
            with suppress(OSError):  # the first error counts
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
        """Overwrites the old content of the same file."""
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
            if error is None:  # the first error is the one to report
                raise self._failed(late) from None

    def _failed(self, error: OSError | ValueError) -> HakmemError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return HakmemError(f"cannot write {self._name}: {reason}")


def write_all(file: int, data: bytes) -> None:
    """Continues after a short write: the next one gives the reason."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(file, rest) :]
        except BlockingIOError:
            select.select([], [file], [])


def keep_owner_and_mode(file: int, old: os.stat_result) -> None:
    """PermissionError if the new file cannot get the old one's owner."""
    now = os.fstat(file)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        os.fchown(file, old.st_uid, old.st_gid)
    os.fchmod(file, stat.S_IMODE(old.st_mode) & PERMISSIONS)


def sync(file: int) -> None:
    """Flushes to disk, where there is one: write errors may appear only here."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
