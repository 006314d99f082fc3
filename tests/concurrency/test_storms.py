"""Signals at a high rate, and processes that are killed again and again."""

import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import target
from modes import INCLUDE_TESTS, assert_clean
from preload import json_stats_option, preload_environment
from results import Run

HERE = Path(__file__).resolve().parent
SHARED_MEMORY = Path("/dev/shm")
KILLS = 40


@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
def test_signal_storm(mode: str, run_program: Run) -> None:
    options = {"HAKMEM_DECAY_MS": "1"}
    assert_clean(run_program(HERE / "signal_storm.c", mode, args=["1500"], env=options, timeout=60))


@target.not_there
def test_killed_again_and_again(compile_c: Callable[..., Path], lib: Path, tmp_path: Path) -> None:
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
