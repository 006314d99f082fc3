"""The kinds of mappings outside hakmem's window: stacks, other mallocs, files, shared memory, the rest.

The kernel names some of them; the others are recognised by their neighbours:

    [ ---p guard ][ rw-p ]                 the stack of a thread, as pthread_create makes it
    [ r--p r-xp rw-p libx.so ][ rw-p ]     zero-initialised data of the library (.bss)
    [ rw-p | ---p … 64 MiB ] aligned       an arena of glibc's malloc
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from enum import StrEnum

from hakmem.target.process import Mapping

GUARD_MAX_BYTES = 1 << 20
GLIBC_ARENA_BYTES = 64 << 20
MMAP_LOWEST = 1 << 32  # the kernel chooses addresses above; runtimes with short pointers choose some below
SHARED_PREFIXES = ("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "[anon_shmem")


DataEnd = Callable[[Mapping], float]  # where the data of a mapped file end, .bss included


class Outside(StrEnum):
    """Kinds of memory outside hakmem's blocks."""

    LIBRARY = "hakmem library"
    STACKS = "thread stacks"
    OTHER_MALLOC = "other malloc"
    FILES = "files"
    SHARED = "shared memory"
    ANONYMOUS = "other anonymous"


def classify(
    mappings: Sequence[Mapping], data_end: DataEnd, stack_pointers: Sequence[int] = ()
) -> list[Outside]:
    """The kind of each mapping, in order.  `stack_pointers`: those of the threads that are known, sorted."""
    kinds: list[Outside] = []
    for index, mapping in enumerate(mappings):
        before = mappings[index - 1] if index else None
        after = mappings[index + 1] if index + 1 < len(mappings) else None
        if mapping.file_name.startswith("libhakmem") and "w" in mapping.permissions:
            kind = Outside.LIBRARY  # its data; its code counts as a file
        elif mapping.path:
            kind = named_kind(mapping)
        elif is_stack(mapping, before, stack_pointers):
            kind = Outside.STACKS
        elif is_glibc_arena(mapping, after):
            kind = Outside.OTHER_MALLOC
        elif before is not None and continues_file(mapping, before, data_end):
            kind = kinds[-1]
        else:
            kind = Outside.ANONYMOUS
        kinds.append(kind)
    return kinds


def named_kind(mapping: Mapping) -> Outside:
    name = mapping.path
    if name.startswith("[stack") or "pthread stack" in name:
        return Outside.STACKS
    if name == "[heap]" or "glibc: malloc" in name:
        return Outside.OTHER_MALLOC
    if name.startswith(SHARED_PREFIXES):
        return Outside.SHARED
    if "s" in mapping.permissions:  # of a file that exists independently of the process, or not
        return Outside.FILES if name.startswith("/") else Outside.SHARED
    return Outside.ANONYMOUS if name.startswith("[anon") else Outside.FILES


def is_stack(mapping: Mapping, before: Mapping | None, stack_pointers: Sequence[int]) -> bool:
    """A thread's stack: a stack pointer is inside it, or a guard directly below."""
    if not is_writable(mapping):
        return False
    place = bisect_left(stack_pointers, mapping.start)
    if place < len(stack_pointers) and stack_pointers[place] < mapping.end:
        return True
    return (
        before is not None
        and before.end == mapping.start
        and not before.path
        and before.permissions.startswith("---")
        and before.end - before.start <= GUARD_MAX_BYTES
    )


def is_glibc_arena(mapping: Mapping, after: Mapping | None) -> bool:
    """The used part of an arena, followed by its unused part up to the arena's end."""
    border = mapping.start + GLIBC_ARENA_BYTES
    if mapping.start % GLIBC_ARENA_BYTES or not is_writable(mapping):
        return False
    if mapping.start < MMAP_LOWEST or mapping.end > border:  # the heap of a language runtime
        return False
    if after is None or after.start != mapping.end or not after.permissions.startswith("---"):
        return mapping.end == border
    return mapping.end == border or after.end >= border


def continues_file(mapping: Mapping, before: Mapping, data_end: DataEnd) -> bool:
    """The .bss after a library's or program's writable data.  The kernel may have merged it with anonymous
    memory that follows: then the larger part decides."""
    if before.end != mapping.start or not before.path.startswith("/") or not is_writable(before):
        return False
    return (mapping.start + mapping.end) // 2 < data_end(before)


def is_writable(mapping: Mapping) -> bool:
    """Private memory that the program can write."""
    return mapping.permissions.startswith("rw") and "p" in mapping.permissions
