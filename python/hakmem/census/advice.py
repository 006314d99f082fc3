"""The lines of `why`: what each is, and what could be done about it."""

from __future__ import annotations

from hakmem.target.mappings import Outside

LIVE, ROUNDING, FREE, CACHED = (
    "live data",
    "rounding inside blocks",
    "free blocks in used slabs",
    "magazines and remote-free buffers",
)
QUARANTINE = "blocks in quarantine"
POOL, RANGES_CACHED, RANGES_FREE = (
    "slabs EMPTY or UNUSED",
    "cached Large and Big blocks",
    "free ranges waiting for purge",
)
HUGE, METADATA = "huge-page fill", "hakmem's metadata"

# Of each line: what it is, and what could be done about it.
ADVICE = {
    LIVE: (
        "What the program asked for and has not freed.",
        "A heap profiler of the program tells who allocated it.",
    ),
    ROUNDING: (
        "Requests are rounded up to the next size class; sizes just above a class cost most.",
        "hak_good_size() tells what a request really takes.",
    ),
    FREE: (
        "Freed blocks that lie between live ones, reused by the next requests of their class.",
        "Pages without a live block go back when they are HAKMEM_DECAY_MS old, or with hak_purge(true); the "
        "others when their live neighbours go: long-lived data allocated apart from short-lived data avoids "
        "it.",
    ),
    CACHED: (
        "Free blocks that threads keep for themselves; an idle thread gives them back when it next allocates "
        "or frees, or ends. A thread that sleeps keeps them, whoever purges.",
        "Fewer threads, or threads that end when idle, keep less.",
    ),
    QUARANTINE: (
        "Hardened mode: freed blocks that threads keep from being used again for a while.",
        "Lower HAKMEM_QUARANTINE_BYTES, a bound for each thread.",
    ),
    POOL: (
        "Wholly free slabs, kept for reuse until they are HAKMEM_DECAY_MS old.",
        "Lower HAKMEM_DECAY_MS or HAKMEM_SUPERSLAB_KEEP, call hak_purge(true), or let the helper thread run "
        "(HAKMEM_HELPER_THREAD=1).",
    ),
    RANGES_CACHED: (
        "Freed Large and Big blocks, kept whole for the same call site.",
        "Lower HAKMEM_BIG_CACHE_BYTES or HAKMEM_DECAY_MS, or call hak_purge(true).",
    ),
    RANGES_FREE: (
        "Freed memory above 32 KiB that goes back when it is HAKMEM_DECAY_MS old.",
        "Lower HAKMEM_DECAY_MS or HAKMEM_BIG_CACHE_BYTES, or call hak_purge(true).",
    ),
    HUGE: (
        "Never used, but resident because the kernel hands out 2 MiB at a time.",
        "Set /sys/kernel/mm/transparent_hugepage/enabled to madvise and leave HAKMEM_THP=0.",
    ),
    METADATA: (
        "Records of slabs, ranges and threads, the library's own data; never given back.",
        "Fewer threads at a time need fewer records.",
    ),
    Outside.STACKS: (
        "Each thread's stack keeps the pages of its deepest call.",
        "Fewer threads, or less deep ones.",
    ),
    Outside.OTHER_MALLOC: (
        "Another malloc than hakmem: the C library's own before hakmem was loaded, or a bundled one.",
        "`hakmem doctor -- CMD` tells which programs keep their own.",
    ),
    Outside.FILES: (
        "Programs, libraries and mapped files, mostly shared with other processes.",
        "The kernel takes clean pages back when memory is short.",
    ),
    Outside.SHARED: (
        "Shared memory (tmpfs, memfd, SysV), counted in each process that touches it.",
        "It is the program's own: its configuration says how much.",
    ),
    Outside.ANONYMOUS: (
        "Mapped by the program or its libraries themselves, past malloc: language runtimes, JITs, arenas.",
        "Their own settings decide; for CPython's arenas PYTHONMALLOC=malloc brings them to hakmem.",
    ),
}


def advice(name: str) -> str:
    """What a line is and what could be done, in words."""
    return " ".join(ADVICE[name])


def action(name: str) -> str:
    """What could be done about a line."""
    return ADVICE[name][1]
