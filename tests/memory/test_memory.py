"""Resident memory follows live memory, whichever thread frees it and whenever."""

from pathlib import Path

import pytest
import target
from modes import INCLUDE_TESTS, assert_clean, ways_of
from results import Compile, Run

pytestmark = pytest.mark.alone

HERE = Path(__file__).resolve().parent
DECAY = {"HAKMEM_DECAY_MS": "200"}
HELPER = DECAY | {"HAKMEM_HELPER_THREAD": "1"}
ALONE = DECAY | {"HAKMEM_HELPER_THREAD": "0"}  # else it may be at it while the program looks
NEVER = {"HAKMEM_DECAY_MS": "3600000"}  # memory to be reused is not given back meanwhile

# One size of each tier.
SIZES = ["64", "4000", "100000", "2000000"]
MORE = pytest.mark.long("one more pair of tiers")


@pytest.mark.parametrize("who", ["main", "threads", "sleepers"])
@pytest.mark.parametrize(("how", "options"), [("helper", HELPER), ("next-calls", ALONE), ("trim", NEVER)])
def test_memory_comes_back(how: str, who: str, options: dict[str, str], run_program: Run) -> None:
    assert_clean(run_program(HERE / "memory_comes_back.c", "preload", args=[how, who], env=options))


@pytest.mark.parametrize("options", [HELPER, ALONE], ids=str)
def test_moved_blocks_bring_memory_back(options: dict[str, str], run_program: Run) -> None:
    assert_clean(run_program(HERE / "moved_blocks.c", "linked", env=options))


def test_idle_magazines_of_a_busy_thread_go_back(run_program: Run) -> None:
    assert_clean(run_program(HERE / "idle_magazines.c", "preload", env=DECAY))


@pytest.mark.parametrize("owner", ["sleeping", "ended", "awake"])
@pytest.mark.parametrize("size", SIZES)
def test_same_size_is_reused_at_once(size: str, owner: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / "freed_by_others.c", "preload", args=[owner, size, size], env=NEVER))


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize("owner", ["sleeping", "ended", "awake"])
@pytest.mark.parametrize(
    ("size", "other"),
    [
        ("64", "4000"),
        pytest.param("4000", "64", marks=MORE),
        pytest.param("64", "100000", marks=MORE),
        ("2000000", "64"),
    ],
)
def test_another_size_is_bounded_after_a_decay(size: str, other: str, owner: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / "freed_by_others.c", "preload", args=[owner, size, other], env=DECAY))


@pytest.mark.parametrize("size", [*SIZES[:3], "1000", "32768"])
def test_free_only_thread(size: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / "free_only_thread.c", "preload", args=[size]))


# Small and large blocks live in different regions: one's free memory serves the other after a decay.
@pytest.mark.parametrize(
    ("first", "second", "when"),
    [
        ("64", "1000", "at-once"),
        ("1000", "64", "at-once"),
        ("4000", "64", "at-once"),
        ("64", "16384", "at-once"),
        ("3000000", "300000", "at-once"),
        ("300000", "3000000", "aged"),
        ("300000", "4000", "aged"),
        ("64", "300000", "aged"),
        ("64", "64", "scattered"),
        ("4000", "4000", "scattered"),
        ("100000", "100000", "scattered"),
    ],
)
def test_phases(first: str, second: str, when: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / "phases.c", "preload", args=[first, second, when], env=DECAY))


def test_many_idle_threads(run_program: Run) -> None:
    assert_clean(run_program(HERE / "many_idle_threads.c", "preload", env=DECAY))


MARKED = HERE / "marked.c"


@pytest.mark.parametrize("scenario", ways_of(MARKED))
def test_no_mark_outlives_a_big_block(scenario: str, run_program: Run) -> None:
    assert_clean(run_program(MARKED, "preload-debug", args=[scenario]))


def test_block_that_grows_and_shrinks_by_steps(run_program: Run) -> None:
    assert_clean(run_program(HERE / "grown_by_steps.c", "preload"))


def test_records_of_a_burst(run_program: Run) -> None:
    assert_clean(run_program(HERE / "records_of_a_burst.c", "preload", env=DECAY))


# ---- huge blocks: 500 GiB cost what is touched of them; so do the large ones of hardened mode ------------


SOURCE, PREFAULTED = HERE / "huge_blocks.c", "zeroed_and_prefaulted"
OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
STRICT = "2"


@pytest.mark.skipif(
    OVERCOMMIT.read_text().strip() == STRICT, reason="the kernel has no such blocks under strict overcommit"
)
@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
@pytest.mark.parametrize("scenario", [way for way in ways_of(SOURCE) if way != PREFAULTED])
def test_huge_blocks(scenario: str, mode: str, run_program: Run) -> None:
    assert_clean(run_program(SOURCE, mode, "-pthread", args=[scenario]))


@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_prefaulted_blocks_miss_no_page(mode: str, run_program: Run) -> None:
    options = {"HAKMEM_PREFAULT": "1", "HAKMEM_BIG_CACHE_BYTES": "1G"}
    assert_clean(run_program(SOURCE, mode, "-pthread", args=[PREFAULTED], env=options))


@pytest.mark.skipif(OVERCOMMIT.read_text().strip() == STRICT, reason="all that is mapped is charged")
@pytest.mark.parametrize("level", ["1", "2"])
@pytest.mark.parametrize("scenario", ["vector", "sparse"])
def test_hardened_ranges(scenario: str, level: str, run_program: Run) -> None:
    options = {"HAKMEM_HARDEN": level}
    assert_clean(run_program(HERE / "hardened_ranges.c", "preload", args=[scenario], env=options))


# ---- one thread gives back what is too much, without a helper and before it sleeps -----------------------


KEEP = {"HAKMEM_DECAY_MS": "3600000"}
# The last two measure time; what the first one learns is forgotten with time.
TIMED = ("bursts", "swinger", "locked")
ATTEMPTS = 4


@pytest.mark.long("a second each; each kind of load")
@pytest.mark.parametrize(
    ("kind", "largest", "mib", "options"),
    [
        ("server", "1024", "111", {}),
        ("sleeper", "1024", "60", {}),
        ("sleeper", "30000", "100", {}),
        ("sleeper", "64", "400", {}),
        ("sleeper", "1024", "512", {}),
        ("sleeper", "3000", "512", {}),
        ("sleeper", "30000", "1024", {}),
        ("sleeper", "1000000", "1024", {}),
        ("sleeper", "5000000", "1024", {}),
        ("bursts", "1024", "512", {}),
        ("keeper", "1024", "512", KEEP),
        ("swinger", "64", "400", {}),
        ("locked", "8000000", "600", {}),
    ],
)
def test_single_thread(kind: str, largest: str, mib: str, options: dict[str, str], run_program: Run) -> None:
    if target.NAME and kind in TIMED:
        pytest.skip("the time of an emulated processor says nothing about the library")
    # A step of giving back is bounded by time, so a machine that is busy for a moment leaves more.  Each free
    # takes one: blocks of 8 MB are too few where a page takes longer.
    for _ in range(ATTEMPTS if kind == "sleeper" else 1):
        result = run_program(HERE / "single_thread.c", "preload", args=[kind, largest, mib], env=options)
        if result.returncode == 0:
            break
    assert_clean(result)


# ---- bounds: memory for each idle thread, mappings, resident for live memory -----------------------------


NOT_ALLOWED = 77

LOAD_SECONDS = "5"
PEAK_PERCENT, IDLE_PERCENT = "600", "350"  # seen: 350 to 420, 150 to 200


# Seen: 2 to 300 bytes, and glibc 900, 9,500 and 10,500.  A thread that does more than this gets a heap.
@pytest.mark.long("3 seconds of processor time each")
@pytest.mark.parametrize(
    ("threads", "largest_bytes", "limit_bytes"),
    [("10000", "16", "1000"), ("10000", "700", "8000"), ("2000", "5000", "10000")],
)
def test_idle_threads(
    threads: str, largest_bytes: str, limit_bytes: str, compile_c: Compile, preload: Run
) -> None:
    program = compile_c(HERE / "ten_thousand_threads.c", INCLUDE_TESTS)
    result = preload([program, threads, largest_bytes, limit_bytes], env=DECAY)
    if result.returncode == NOT_ALLOWED:
        pytest.skip(f"the system does not allow {threads} threads: {result.stderr.strip()}")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.long("11 seconds of processor time")
def test_mappings_and_resident_memory(compile_c: Compile, preload: Run) -> None:
    program = compile_c(HERE / "long_mixed_load.c", INCLUDE_TESTS)
    result = preload([program, LOAD_SECONDS, PEAK_PERCENT, IDLE_PERCENT], env=DECAY)
    assert (result.returncode, result.stderr) == (0, "")
