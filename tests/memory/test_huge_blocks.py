"""A block of 500 GiB costs what is touched of it; so do the large ones of hardened mode."""

from pathlib import Path

import pytest
from modes import assert_clean
from results import Run

pytestmark = pytest.mark.alone

HERE = Path(__file__).resolve().parent
OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
STRICT = "2"


@pytest.mark.skipif(
    OVERCOMMIT.read_text().strip() == STRICT, reason="the kernel has no such blocks under strict overcommit"
)
@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
@pytest.mark.parametrize(
    "scenario",
    [
        "taken-and-freed",
        "zeroed",
        "zeroed-while-another-lives",
        "zeroed-beside-a-thread",
        "aligned",
        "resized",
        "many",
        "forked",
        "by-threads",
        "refused",
    ],
)
def test_huge_blocks(scenario: str, mode: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / "huge_blocks.c", mode, "-pthread", args=[scenario]))


@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_prefaulted_blocks_miss_no_page(mode: str, run_program: Run) -> None:
    options = {"HAKMEM_PREFAULT": "1", "HAKMEM_BIG_CACHE_BYTES": "1G"}
    words = ["zeroed-and-prefaulted"]
    assert_clean(run_program(HERE / "huge_blocks.c", mode, "-pthread", args=words, env=options))


@pytest.mark.skipif(OVERCOMMIT.read_text().strip() == STRICT, reason="all that is mapped is charged")
@pytest.mark.parametrize("level", ["1", "2"])
@pytest.mark.parametrize("scenario", ["vector", "sparse"])
def test_hardened_ranges(scenario: str, level: str, run_program: Run) -> None:
    options = {"HAKMEM_HARDEN": level}
    assert_clean(run_program(HERE / "hardened_ranges.c", "preload", args=[scenario], env=options))
