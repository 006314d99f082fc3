"""A program with one thread gives back what is too much, without a helper and before it sleeps."""

from pathlib import Path

import pytest
import target
from modes import assert_clean
from results import Run

pytestmark = pytest.mark.alone

HERE = Path(__file__).resolve().parent
KEEP = {"HAKMEM_DECAY_MS": "3600000"}
# The last two measure time; what the first one learns is forgotten with time.
TIMED = ("bursts", "swinger", "locked")
ATTEMPTS = 4


@pytest.mark.parametrize(
    ("kind", "largest", "mib", "options"),
    [
        ("server", "1024", "111", {}),
        ("sleeper", "64", "400", {}),
        ("sleeper", "1024", "512", {}),
        ("sleeper", "3000", "512", {}),
        ("sleeper", "30000", "1024", {}),
        ("sleeper", "1000000", "1024", {}),
        ("sleeper", "8000000", "1024", {}),
        ("bursts", "1024", "512", {}),
        ("keeper", "1024", "512", KEEP),
        ("swinger", "64", "400", {}),
        ("locked", "8000000", "600", {}),
    ],
)
def test_single_thread(kind: str, largest: str, mib: str, options: dict[str, str], run_program: Run) -> None:
    if target.NAME and kind in TIMED:
        pytest.skip("the time of an emulated processor says nothing about the library")
    # A step of giving back is bounded by time, so a machine that is busy for a moment leaves more.
    for _ in range(ATTEMPTS if kind == "sleeper" else 1):
        result = run_program(HERE / "single_thread.c", "preload", args=[kind, largest, mib], env=options)
        if result.returncode == 0:
            break
    assert_clean(result)
