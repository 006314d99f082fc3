"""Reading another program's memory, from a process or a file.

`Memory.gather` is the one operation that an implementation provides: many pieces, one system call for up to
1,024 of them.  Everything else is derived from it.

    ProcessMemory   a running (or stopped, or hung) process: target/live_memory.py
    CoreMemory      a core dump: target/corefile.py

The target is never stopped, so pieces may be a few operations apart; readers must tolerate that.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hakmem.base.lazy import Lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hakmem.base.errors import HakmemError
else:
    np = Lazy("numpy")

# Arrays of what has been read: the same names everywhere.
Bytes: TypeAlias = "NDArray[np.uint8]"
Words: TypeAlias = "NDArray[np.uint64]"
Addresses: TypeAlias = "NDArray[np.uint64]"
Integers: TypeAlias = "NDArray[np.int64]"
Numbers: TypeAlias = "NDArray[np.integer[Any]]"  # of any width
Doubles: TypeAlias = "NDArray[np.float64]"
Flags: TypeAlias = "NDArray[np.bool_]"
Records: TypeAlias = "NDArray[Any]"

PAGE_BYTES = os.sysconf("SC_PAGESIZE")
TEXT_BYTES_MAX = 4096


class Memory(ABC):
    """The memory of a target, by its own addresses."""

    # Raised where the missing part of a core that was cut short is read.
    truncation: HakmemError | None = None

    @abstractmethod
    def gather(self, addresses: Addresses, counts: Words) -> Bytes:
        """The bytes of all pieces, concatenated; UnreadableError if one is not mapped."""

    def read(self, address: int, count: int) -> bytes:
        return self.gather(np.array([address], np.uint64), np.array([count], np.uint64)).tobytes()

    def read_many(self, pieces: Sequence[tuple[int, int]]) -> list[bytes]:
        """One bytes object per (address, count)."""
        if not pieces:
            return []
        table = np.array(pieces, np.uint64)
        data = self.gather(table[:, 0], table[:, 1]).tobytes()
        ends = np.cumsum(table[:, 1]).tolist()
        return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def records(self, addresses: Addresses | Sequence[int], dtype: np.dtype[Any]) -> Records:
        """One record of this type at each address."""
        places = np.asarray(addresses, np.uint64)
        sizes = np.full(len(places), dtype.itemsize, np.uint64)
        return self.gather(places, sizes).view(dtype)

    def array(self, address: int, dtype: np.dtype[Any], count: int) -> Records:
        """`count` neighbouring records."""
        size = np.array([count * dtype.itemsize], np.uint64)
        return self.gather(np.array([address], np.uint64), size).view(dtype)

    def words(self, address: int, count: int) -> list[int]:
        return [int(one) for one in self.array(address, np.dtype("<u8"), count)]

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), sys.byteorder)

    def text(self, address: int) -> str:
        """The NUL-terminated text at an address; page by page, as the next page may not be mapped."""
        found = b""
        while address and b"\0" not in found and len(found) < TEXT_BYTES_MAX:
            count = PAGE_BYTES - address % PAGE_BYTES
            found += self.read(address, count)
            address += count
        return found.split(b"\0")[0].decode(errors="replace")
