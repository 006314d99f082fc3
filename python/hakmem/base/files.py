"""Output files: a regular file is written whole or not at all; devices, FIFOs and - are written into.

A new file is written beside the old one, synced and renamed: a reader sees the old content or the new, never
a part.  Links are followed, and stay."""

from __future__ import annotations

import errno
import os
import secrets
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hakmem.base.errors import HakmemError
from hakmem.base.signals import deferred, stoppable

PERMISSIONS = 0o777
WRITABLE = 0o666  # before the umask


def is_standard_output(path: Path) -> bool:
    """By whatever name: then nothing else may be printed there."""
    if str(path) == "-":
        return True
    try:
        return os.path.samestat(path.stat(), os.fstat(1))
    except (OSError, ValueError):
        return False


def write_atomically(path: Path, text: str) -> None:
    with Output(path) as output:
        output.write(text)


def check_writable(path: Path) -> None:
    """HakmemError before the work, not after it, when the result could not be written.  Opens nothing: the
    reader of a FIFO would see its end."""
    Output(path, opens=False)


def replaceable(path: Path) -> Path:
    """The same check, of a file that another one shall replace: not a device or FIFO.  Returns it without
    links."""
    found = Output(path, opens=False)._path
    if found is None:
        raise HakmemError(f"cannot write {path}: not a regular file")
    return found


@contextmanager
def writing(name: Path | str) -> Iterator[None]:
    """A failure is a HakmemError that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _failed(name, error) from None


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
        self._is_cut = False
        self._path: Path | None = None  # of a regular file
        with writing(self._name):
            if is_standard_output(path):
                self._file = os.dup(1) if opens else -1
            elif _is_regular(path):
                self._path = Path(os.path.realpath(path))
            elif opens:
                self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)

    def write(self, text: str) -> None:
        """Writes one piece as UTF-8."""
        self.write_bytes(text.encode(errors="backslashreplace"))

    def write_bytes(self, data: bytes) -> None:
        try:
            if self._path is None:
                self._stream(data)
                return
            with stoppable(), deferred():
                if self._file >= 0:
                    self._append(data)
                else:
                    self._begin(self._path, data)
                self.pieces += 1
        except OSError as error:
            raise _failed(self._name, error) from None

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

    def _begin(self, path: Path, data: bytes) -> None:
        beside = path.with_name(f".hakmem-{secrets.token_hex(8)}")
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, WRITABLE)
        try:
            with suppress(FileNotFoundError):  # a private file stays private
                os.fchmod(file, path.stat().st_mode & PERMISSIONS)
            write_all(file, data)
            os.fsync(file)
            beside.replace(path)
        except BaseException:
            os.close(file)
            with suppress(OSError):  # the first error counts
                beside.unlink()
            raise
        self._file, self._written_bytes = file, len(data)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._file < 0:
            return
        file, self._file = self._file, -1
        try:
            if self._path is not None:
                os.fsync(file)  # write errors may appear only here
            os.close(file)
        except OSError as late:
            if error is None:  # the first error is the one to report
                raise _failed(self._name, late) from None


def _failed(name: Path | str, error: OSError | ValueError) -> HakmemError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return HakmemError(f"cannot write {name}: {reason}")


def _is_regular(path: Path) -> bool:
    """Or a new file; checks that it can be written."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        kind = stat.S_IFREG
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(kind):
        if not os.access(path, os.W_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return False
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise HakmemError(f"no such directory: {folder}; create it, or choose another file")
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        raise HakmemError(f"cannot write to the directory {folder}; choose another file")
    return True


def number_in(path: Path) -> int | None:
    """The number that a file of the kernel holds."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def write_all(file: int, data: bytes) -> None:
    """Continues after a short write: the next one gives the reason."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(file, rest) :]
        except BlockingIOError:
            select.select([], [file], [])
