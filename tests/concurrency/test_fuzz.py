"""Millions of random calls against a shadow model, under every policy that changes the slow paths."""

from pathlib import Path

import pytest
from modes import assert_clean
from results import Run, Tally

HERE = Path(__file__).resolve().parent

CASES = {
    "four-threads": ("preload", ["1", "10", "4", "100000"], {}),
    "one-thread": ("preload", ["2", "1", "1", "500000"], {}),
    "many-short-threads": ("preload", ["3", "200", "8", "500"], {}),
    "debug": ("preload-debug", ["4", "4", "4", "50000"], {}),
    "debug-many-short-threads": ("preload-debug", ["5", "100", "8", "500"], {}),
    "static": ("static", ["6", "4", "4", "50000"], {}),
    "purge-at-once": ("preload-debug", ["7", "4", "4", "25000"], {"HAKMEM_DECAY_MS": "0"}),
    "helper-thread": (
        "preload-debug",
        ["8", "4", "4", "50000"],
        {"HAKMEM_HELPER_THREAD": "1", "HAKMEM_DECAY_MS": "1"},
    ),
    "route-s-only": ("preload-debug", ["9", "4", "4", "50000"], {"HAKMEM_ROUTE_P": "0"}),
    "hardened": ("preload-debug", ["12", "4", "4", "10000"], {"HAKMEM_HARDEN": "2"}),
    "guarded": ("preload-debug", ["13", "4", "4", "10000"], {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "5"}),
    "no-caches": ("preload-debug", ["11", "4", "4", "25000"], {"HAKMEM_BIG_CACHE_BYTES": "0"}),
}


@pytest.mark.parametrize("case", CASES)
def test_fuzz(case: str, run_program: Run, tally: Tally) -> None:
    mode, arguments, options = CASES[case]
    assert_clean(run_program(HERE / "fuzz.c", mode, args=arguments, env=options, timeout=120))
    _, generations, threads, _ = map(int, arguments)
    tally(generations * threads, "sequences")
