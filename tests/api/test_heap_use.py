"""A thread's malloc served from a heap of the program's own, whatever it would be served from otherwise."""

from pathlib import Path

import pytest
from modes import assert_clean
from results import Run

PROGRAM = Path(__file__).with_name("hak_heap_use.c")
# All have blocks of their own kind ready that malloc takes before it asks for others.
WAYS = {
    "plain": {},
    "hardened": {"HAKMEM_HARDEN": "1"},
    "hardened twice": {"HAKMEM_HARDEN": "2"},
    "guarded": {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"},
    "profiled": {"HAKMEM_PROFILE": "1"},
    "profiled wholly": {"HAKMEM_PROFILE": "64"},
    "profiled and hardened": {"HAKMEM_PROFILE": "4K", "HAKMEM_HARDEN": "1"},
    "never profiled": {"HAKMEM_PROFILE": "never"},
    "limited": {"HAKMEM_LIMIT_HARD": "1G"},
}


@pytest.mark.parametrize("mode", ["preload", "static-debug"])
@pytest.mark.parametrize("way", WAYS)
def test_every_entry_uses_it(way: str, mode: str, run_program: Run) -> None:
    assert_clean(run_program(PROGRAM, mode, env=WAYS[way]))
