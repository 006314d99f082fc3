"""Signals at a high rate, processes that are killed again and again, and millions of random calls."""

import random
import subprocess
import time
from pathlib import Path

import pytest
import target
from modes import INCLUDE_TESTS, assert_clean
from preload import json_stats_option, preload_environment
from results import Compile, Run, Tally

HERE = Path(__file__).resolve().parent
SHARED_MEMORY = Path("/dev/shm")
KILLS = 40


@pytest.mark.long("3 seconds each; a storm of seconds, for what shows by chance")
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
def test_signal_storm(mode: str, run_program: Run) -> None:
    options = {"HAKMEM_DECAY_MS": "1"}
    assert_clean(run_program(HERE / "signal_storm.c", mode, args=["1500"], env=options, timeout=60))


@target.not_there
def test_killed_again_and_again(compile_c: Compile, lib: Path, tmp_path: Path) -> None:
    """What is killed leaves nothing behind, and the next one starts as if nothing had been."""
    program = compile_c(HERE / "killed.c", INCLUDE_TESTS)
    before = set(SHARED_MEMORY.iterdir())
    chance = random.Random(1)
    for _ in range(KILLS):
        environment = preload_environment(lib, json_stats_option(tmp_path))
        with subprocess.Popen([program], env=environment, stdout=subprocess.PIPE, cwd=tmp_path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(chance.random() * 0.03)
            process.kill()
    assert not list(tmp_path.iterdir())
    assert not {path.name for path in set(SHARED_MEMORY.iterdir()) - before if "hakmem" in path.name}


# ---- millions of random calls against a shadow model -----------------------------------------------------


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


@pytest.mark.long("a second on all processors each")
@pytest.mark.parametrize("case", CASES)
def test_fuzz(case: str, run_program: Run, tally: Tally) -> None:
    mode, arguments, options = CASES[case]
    assert_clean(run_program(HERE / "fuzz.c", mode, args=arguments, env=options, timeout=120))
    _, generations, threads, _ = map(int, arguments)
    tally(generations * threads, "sequences")
