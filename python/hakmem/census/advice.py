"""The lines of `why`: the meaning of each, and its remedy."""

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

# Line → its meaning, and its remedy.
ADVICE = {
    LIVE: (
        "Memory that the program requested and has not freed.",
        "`hakmem profile` shows which code allocates it, `hakmem what` what it is.",
    ),
    ROUNDING: (
        "Requests are rounded up to the next size class; sizes just above a class waste most.",
        "hak_good_size() returns the size that a request really takes.",
    ),
    FREE: (
        "Freed blocks between live ones, reused by the next requests of their class.",
        "Pages without a live block are purged after HAKMEM_DECAY_MS, or by hak_purge(true); the others when "
        "their live neighbours are freed: allocate long-lived data apart from short-lived data.",
    ),
    CACHED: (
        "Free blocks that threads cache; an idle thread flushes them when it next allocates or frees, or "
        "ends. A sleeping thread keeps them, even if another thread purges.",
        "Use fewer threads, or end idle ones.",
    ),
    QUARANTINE: (
        "Hardened mode: freed blocks whose reuse is delayed, and some of each class ready for reuse.",
        "Use fewer threads, or lower HAKMEM_QUARANTINE_BYTES, which bounds the delayed ones of each.",
    ),
    POOL: (
        "Completely free slabs, kept for reuse for HAKMEM_DECAY_MS.",
        "Lower HAKMEM_DECAY_MS, call hak_purge(true), or enable the helper thread "
        "(HAKMEM_HELPER_THREAD=1).",
    ),
    RANGES_CACHED: (
        "Freed Large and Big blocks, kept whole for the same call site.",
        "Lower HAKMEM_DECAY_MS, or call hak_purge(true).",
    ),
    RANGES_FREE: (
        "Freed memory above 64 KiB that is purged after HAKMEM_DECAY_MS.",
        "Lower HAKMEM_DECAY_MS or HAKMEM_BIG_CACHE_BYTES, or call hak_purge(true).",
    ),
    HUGE: (
        "Never used, but resident because the kernel allocates 2 MiB at a time.",
        "Set /sys/kernel/mm/transparent_hugepage/enabled to madvise and keep HAKMEM_THP=0.",
    ),
    METADATA: (
        "Records of slabs, ranges and threads, the library's own data; little of it is ever returned.",
        "Fewer simultaneous threads need fewer records.",
    ),
    Outside.STACKS: (
        "Each thread's stack keeps the pages of its deepest call chain.",
        "Use fewer threads, or shallower calls.",
    ),
    Outside.OTHER_MALLOC: (
        "A malloc other than hakmem: the C library's before hakmem was loaded, or a bundled one.",
        "`hakmem doctor -- CMD` shows whether a program bundles its own.",
    ),
    Outside.FILES: (
        "Programs, libraries and mapped files, mostly shared with other processes.",
        "The kernel reclaims clean pages when memory is short.",
    ),
    Outside.SHARED: (
        "Shared memory (tmpfs, memfd, SysV), counted in each process that touches it.",
        "The program's configuration decides its size.",
    ),
    Outside.ANONYMOUS: (
        "Mapped directly by the program or its libraries, bypassing malloc: language runtimes, JITs, arenas.",
        "Their own settings decide: `hakmem doctor PID` names those of the common runtimes.",
    ),
}


def advice(name: str) -> str:
    """The meaning of a line and its remedy."""
    return " ".join(ADVICE[name])


def action(name: str) -> str:
    """The remedy of a line."""
    return ADVICE[name][1]
