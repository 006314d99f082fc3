"""Which thread has which heap."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hakmem.layout.schema import Schema

FIRST_HEAP = 1  # the number of the heap that the process's first thread makes


def thread_ids(heaps: NDArray[Any], schema: Schema, pid: int) -> list[int]:
    """The kernel's number of each heap's thread; 0 where there is none (any more).

    The library leaves the first thread's at 0, to save a system call at start: it is the process's."""
    if "thread_id" not in (heaps.dtype.names or ()):
        return [0] * len(heaps)
    parked = schema.constants.get("owner_parked")
    owners = heaps["owner"]
    rows = zip(heaps["thread_id"].tolist(), owners["number"].tolist(), owners["state"].tolist(), strict=True)
    return [
        thread_id or (pid if number == FIRST_HEAP and state != parked else 0)
        for thread_id, number, state in rows
    ]
