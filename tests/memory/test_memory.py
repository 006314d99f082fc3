"""Resident memory follows live memory, whichever thread frees it and whenever."""

from pathlib import Path

import pytest
from modes import assert_clean
from results import Run

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


def test_idle_magazines_of_a_busy_thread_go_back(run_program: Run) -> None:
    assert_clean(run_program(HERE / "idle_magazines.c", "preload", env=DECAY))


@pytest.mark.parametrize("owner", ["sleeping", "ended", "awake"])
@pytest.mark.parametrize("size", SIZES)
def test_same_size_is_reused_at_once(size: str, owner: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / "freed_by_others.c", "preload", args=[owner, size, size], env=NEVER))


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


def test_records_of_a_burst(run_program: Run) -> None:
    assert_clean(run_program(HERE / "records_of_a_burst.c", "preload", env=DECAY))
