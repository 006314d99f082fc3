"""Every strategy of the laboratory keeps its blocks intact and its counters consistent, for a moment."""

import re
import sys
from pathlib import Path

import pytest
from shape.sources import ROOT, sources

sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "bench")]

from harness.execute import Sample  # noqa: E402
from laboratory.build import build  # noqa: E402
from laboratory.execute import run  # noqa: E402
from laboratory.subjects import EXPERIMENTS, Subject  # noqa: E402
from laboratory.verdicts import FINDINGS  # noqa: E402

SECONDS = 0.08
INCLUDE = re.compile(r'#\s*include\s+"(\.\./)*lab/')
CHECKED = ("--check", "1", "--blocks", "200", "--limit", "2048", "--warmup", "0")
LOCK_FREE = (
    "cas-walk", "cas-singles", "adopt-at-once", "threshold-4", "threshold-2", "reenqueue",
    "adopt-announced", "route-s",
)  # fmt: skip


@pytest.fixture(scope="module")
def program() -> Path:
    return build()


@pytest.fixture(scope="module")
def checked_by_the_race_detector() -> Path:
    return build("lab-thread", "-O1", "-fsanitize=thread")


def assert_consistent(name: str, sample: Sample) -> None:
    made = sample["pages_at_end"] - sample["pages_at_start"]
    assert sample["ops"] > 0
    assert sample["out_of_pages"] == 0
    assert sample["new_pages"] == made
    assert sample["drained"] <= sample["queued"]
    assert sample["adopted"] <= sample["drained"]
    assert sample["futex_waits"] + sample["futex_wakes"] == 0 or sample["locks"] > 0
    if name in LOCK_FREE:
        assert sample["locks"] == 0


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_blocks_and_counters(program: Path, name: str, threads: int) -> None:
    """The program itself compares contents and counts that every block is back."""
    assert_consistent(name, run(program, Subject(name, name), threads, SECONDS, *CHECKED))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_data_race(checked_by_the_race_detector: Path, name: str) -> None:
    run(checked_by_the_race_detector, Subject(name, name), 3, SECONDS, *CHECKED)


def test_every_experiment_is_judged() -> None:
    assert tuple(finding.name for finding in FINDINGS) == EXPERIMENTS


def test_the_product_knows_nothing_of_the_laboratory() -> None:
    assert not [path.name for path in sources(".c", ".h", ".def") if INCLUDE.search(path.read_text())]
