"""Each source of the allocator has a unit test of its name, or is listed here with the one it has instead."""

from pathlib import Path

import pytest
from shape.sources import ROOT, SRC

TESTS = ROOT / "tests"
SOURCES = {str(path.relative_to(SRC)) for path in SRC.rglob("*.c")}

# Reason → test → sources.
ELSEWHERE = {
    "exported names, and stacks, are what they are in whole programs only": {
        "tests/api/test_programs.py": [
            "api/hak.c",
            "api/heaps.c",
            "api/object_size.c",
            "api/override.c",
            "jemalloc/mallocx.c",
            "heap/sized_free.c",
        ],
        "tests/jemalloc/test_mallctl.py": [
            "jemalloc/arenas.c",
            "jemalloc/figures.c",
            "jemalloc/mallctl.c",
            "jemalloc/names.c",
            "jemalloc/profile_dump.c",
            "jemalloc/stats_print.c",
            "jemalloc/utilization.c",
        ],
        "tests/jemalloc/test_conf.py": ["jemalloc/conf.c", "jemalloc/etc.c"],
        "tests/api/test_operator_new.py": ["api/override_cxx.c"],
        "tests/exotic/test_own_operators.py": ["api/override_next.c", "foreign/operators.c"],
        "tests/api/test_reports.py": ["api/override_glibc.c", "observe/report_figures.c"],
        "tests/api/test_options.py": ["api/startup.c"],
        "tests/tool/test_heaps_report.py": ["observe/report_heaps.c"],
        "tests/fortify/test_fortify.py": ["api/access.c"],
        "tests/concurrency/test_fork.py": ["api/override_threads.c"],
        "tests/concurrency/test_dynamic_loading.py": ["api/override_load.c", "os/os_linux_deepbind.c"],
        "tests/failure/test_confined.py": ["api/override_prctl.c"],
        "tests/crash/test_crash.py": ["observe/crash.c", "os/os_linux_crash.c"],
        "tests/unwind/test_unwind.py": [
            "stack/unwind.c",
            "stack/unwind_cache.c",
            "stack/unwind_expression.c",
            "stack/unwind_index.c",
            "stack/unwind_program.c",
        ],
    },
    "the system's contract is one, whatever files keep it": {
        "tests/unit/test_os_linux.c": [
            "base/system_call.c",
            "os/os_linux_confined.c",
            "os/os_linux_elf.c",
            "os/os_linux_memory.c",
            "os/os_linux_modules.c",
            "os/os_linux_move.c",
            "os/os_linux_process.c",
            "os/os_linux_symbols.c",
            "os/os_linux_time.c",
        ]
    },
    "parts of one subject: their law is that of the whole, which has the test": {
        "tests/unit/test_magazine.c": [
            "cache/capacity.c",
            "cache/flush.c",
            "cache/refill.c",
            "heap/allocate.c",
            "heap/free.c",
            "slab/batch_free.c",
        ],
        "tests/unit/test_lifecycle.c": [
            "cache/caches.c",
            "cache/heap.c",
            "cache/lost.c",
            "cache/parked.c",
            "heap/fork.c",
            "heap/library.c",
            "heap/thread.c",
        ],
        "tests/unit/test_checked.c": ["cache/quarantine.c", "hardened/beside.c", "checked/checked_range.c"],
        "tests/unit/test_guarded.c": ["cache/divert.c", "guard/guard_sampler.c"],
        "tests/misuse/test_soon.py": ["cache/glance.c"],
        "tests/unit/test_report_glibc.c": ["cache/class_figures.c", "observe/blocks.c"],
        "tests/unit/test_resize.c": ["heap/ask.c", "heap/reallocate.c"],
        "tests/unit/test_range.c": [
            "ranges/arena.c",
            "ranges/range_fresh.c",
            "ranges/range_purge.c",
            "ranges/range_record.c",
            "ranges/range_report.c",
        ],
        "tests/unit/test_commit.c": ["ranges/range_limit.c"],
        "tests/unit/test_given_back.c": ["ranges/range_marks.c"],
        "tests/unit/test_slab_pool.c": ["pool/slots.c", "pool/superslab.c"],
        "tests/unit/test_reclaim.c": ["purge/purge.c", "reclaim/allowance.c", "reclaim/due.c"],
        "tests/unit/test_slab.c": ["slab/record.c"],
        "tests/unit/test_named_heap.c": ["heap/in_named.c", "named/named_ranges.c", "named/named_slabs.c"],
        "tests/unit/test_sampling.c": ["profile/control.c", "profile/recording.c", "profile/sampler.c"],
        "tests/unit/test_samples.c": ["profile/profile.c"],
        "tests/unit/test_kinds.c": ["named/named_samples.c"],
        "tests/unit/test_tracing.c": ["profile/trace_ring.c"],
    },
}
LISTED = [
    (source, test) for tests in ELSEWHERE.values() for test, sources in tests.items() for source in sources
]


def has_its_own(source: str) -> bool:
    return (TESTS / "unit" / f"test_{Path(source).stem}.c").exists()


def test_each_source_has_a_test() -> None:
    listed = {source for source, _ in LISTED}
    assert not {source for source in SOURCES if not has_its_own(source)} - listed


def test_no_row_is_stale() -> None:
    sources = [source for source, _ in LISTED]
    assert len(sources) == len(set(sources)), "listed twice"
    assert not set(sources) - SOURCES, "no such source"
    assert not [source for source in sources if has_its_own(source)], "has a test of its own"


@pytest.mark.parametrize("test", sorted({test for _, test in LISTED}))
def test_what_is_named_instead_exists(test: str) -> None:
    assert (ROOT / test).is_file()
