"""The memory of a running (or stopped, or hung) process: process_vm_readv, else /proc/PID/mem."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import TYPE_CHECKING

from hakmem.base.errors import HakmemError, UnreadableError
from hakmem.base.lazy import Lazy
from hakmem.layout.memory import Addresses, Bytes, Memory, Words
from hakmem.target.access import gone

if TYPE_CHECKING:
    import numpy as np

    from hakmem.target.process import Process
else:
    np = Lazy("numpy")

IOV_MAX = 1024  # pieces of one process_vm_readv
CALL_BYTES_MAX = 64 << 20  # of one call: the reader stays interruptible


class Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("address", ctypes.c_uint64), ("count", ctypes.c_uint64))


class ProcessMemory(Memory):
    """The memory of a running process, as far as the kernel permits."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._number = process.memory_id
        self._mem_fd: int | None = None

    def read(self, address: int, count: int) -> bytes:
        """Reads one piece without numpy: structures are linked by many small ones."""
        if self._mem_fd is None:
            data = ctypes.create_string_buffer(count)
            local, remote = Piece(ctypes.addressof(data), count), Piece(address, count)
            got = _libc().process_vm_readv(self._number, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
            if got == count:
                return data.raw
            if got < 0:
                self._cope(ctypes.get_errno(), address)
        return super().read(address, count)

    def gather(self, addresses: Addresses, counts: Words) -> Bytes:
        ends = np.cumsum(counts, dtype=np.uint64)
        data: Bytes = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        table = np.column_stack([addresses, counts]).astype(np.uint64)  # is an array of struct iovec
        first, done = 0, 0
        while first < len(table):
            last = min(first + IOV_MAX, int(np.searchsorted(ends, done + CALL_BYTES_MAX, "right")))
            last = max(last, first + 1)
            end = int(ends[last - 1])
            self._read_into(data[done:end], np.ascontiguousarray(table[first:last]))
            first, done = last, end
        return data

    def _read_into(self, part: Bytes, pieces: Words) -> None:
        """Continues after a short read: a large piece may come in several."""
        if self._mem_fd is not None:
            return self._read_through_file(part, pieces)
        while len(part):
            got = _process_vm_readv(self._number, part, pieces)
            if got <= 0:
                self._cope(-got, int(pieces[0][0]))
                return self._read_into(part, pieces)
            part, pieces = part[got:], _skip(pieces, got)
        return None

    def _cope(self, error: int, address: int) -> None:
        """process_vm_readv failed; returns where another try may succeed.  The thread whose number led to the
        memory may have ended before others; some sandboxes forbid the system call but permit the file."""
        if error == errno.ESRCH:
            before, self._number = self._number, self._process.memory_id
            if self._number == before:
                raise gone(self._process.pid)
        elif error in (errno.EPERM, errno.ENOSYS):
            self._mem_fd = self._process.open("mem")
        else:
            raise UnreadableError(address)

    def _read_through_file(self, part: Bytes, pieces: Words) -> None:
        assert self._mem_fd is not None
        done = 0
        for address, count in pieces.tolist():
            end = done + count
            while done < end:
                try:
                    got = os.preadv(self._mem_fd, [part[done:end].data], address + count - (end - done))
                except (OSError, OverflowError):
                    raise UnreadableError(address) from None
                if got == 0:  # the address space is gone
                    raise gone(self._process.pid)
                done += got

    def close(self) -> None:
        if self._mem_fd is not None:
            os.close(self._mem_fd)
            self._mem_fd = None


def _process_vm_readv(pid: int, part: Bytes, pieces: Words) -> int:
    """Bytes read, or the negated error number."""
    local = np.array([[part.ctypes.data, len(part)]], np.uint64)
    got = _libc().process_vm_readv(pid, local.ctypes.data, 1, pieces.ctypes.data, len(pieces), 0)
    return got if got >= 0 else -ctypes.get_errno()


def _skip(pieces: Words, count: int) -> Words:
    """The pieces without their first `count` bytes."""
    ends = np.cumsum(pieces[:, 1])
    first = int(np.searchsorted(ends, count, "right"))
    rest = pieces[first:].copy()
    if len(rest):
        begun = np.uint64(count - (int(ends[first - 1]) if first else 0))
        rest[0, 0] += begun
        rest[0, 1] -= begun
    return rest


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "process_vm_readv"):
        raise HakmemError("this system's C library has no process_vm_readv; the tool needs Linux")
    pieces = ctypes.c_void_p, ctypes.c_ulong
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    libc.process_vm_readv.argtypes = [ctypes.c_int, *pieces, *pieces, ctypes.c_ulong]
    return libc
