"""One run of one program on one allocator: its result line, and the proof of which library served it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .allocators import Allocator

Sample = dict[str, float]

TIMEOUT_SECONDS = 120
SERVED_COUNTERS = ("refilled_blocks", "large_allocs", "big_allocs")
# Would print from within a timed run or change the serving library; all other options are the user's choice.
REMOVED_VARIABLES = ("LD_PRELOAD", "HAKMEM_STATS", "HAKMEM_HELP", "HAKMEM_SHARED_POOL_LOCK_STATS")
TUNING_PREFIXES = ("HAKMEM_", "MALLOC_", "MIMALLOC_", "TCMALLOC_", "GLIBC_TUNABLES")


class RunError(Exception):
    """The run gave no valid result; the text says why in a few words."""


def tuning_variables() -> dict[str, str]:
    """The user's environment variables that tune an allocator: they hold in the runs and are reported."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(TUNING_PREFIXES) and name not in REMOVED_VARIABLES
    }


def user_environment() -> dict[str, str]:
    """The user's variables without those that would disturb."""
    return {k: v for k, v in os.environ.items() if k not in REMOVED_VARIABLES}


def allocator_environment(allocator: Allocator) -> dict[str, str]:
    """For programs that report which library serves them: all of bench/support/measure.h."""
    environment = user_environment() | {"BENCH_PROVE": "1"}
    if allocator.library is not None:
        environment["LD_PRELOAD"] = allocator.preload
    return environment | dict(allocator.variables)


def run_for_result(command: list[str], environment: dict[str, str]) -> dict[str, str]:
    """The key=value pairs of the result line.  Raises RunError when there is none."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"not finished after {TIMEOUT_SECONDS} s") from error
    last_words = (done.stderr.strip().splitlines() or ["no message"])[-1]
    if done.returncode < 0:
        raise RunError(f"{signal.Signals(-done.returncode).name}: {last_words}")
    if done.returncode > 0:
        raise RunError(f"exit status {done.returncode}: {last_words}")
    lines = done.stdout.strip().splitlines()
    if not lines or not lines[-1].startswith("bench="):
        raise RunError("no result line")
    return dict(pair.split("=", 1) for pair in lines[-1].split())


def check_served_by(allocator: Allocator, pairs: dict[str, str]) -> None:
    """Raises RunError when another allocator served the run."""
    for call in ("malloc_from", "free_from"):
        if pairs.get(call) != allocator.expected_file:
            raise RunError(f"{call} is {pairs.get(call)}, not {allocator.expected_file}")


def numbers_of(pairs: dict[str, str]) -> Sample:
    """The pairs whose values are numbers."""
    sample: Sample = {}
    for key, value in pairs.items():
        try:
            sample[key] = float(value)
        except ValueError:
            continue
    return sample


def timed_run(executable: Path, arguments: list[str], allocator: Allocator) -> Sample:
    """The numbers of one run.  Raises RunError when it failed or another allocator served it."""
    command = [*allocator.wrapper, str(executable), *arguments]
    pairs = run_for_result(command, allocator_environment(allocator))
    check_served_by(allocator, pairs)
    return numbers_of(pairs)


def _figures_of(report: dict[str, Any]) -> dict[str, int]:
    """hakmem's counts: by its heaps, and in the whole process."""
    figures: dict[str, int] = report["counters"] | report["totals"]
    return figures


def measured_counters(folder: Path) -> dict[str, int]:
    """hakmem's counts between measure_start and measure_stop of a run that had BENCH_STATS_DIR=folder.
    Raises RunError."""
    start, stop = (_figures_of(_read_json(folder / f"{at}.json")) for at in ("start", "stop"))
    return {key: stop[key] - start[key] for key in stop}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise RunError(f"no report in {path.name}: {error}") from error
    return report


def reported_run(executable: Path, arguments: list[str], hakmem: Allocator) -> dict[str, Any]:
    """An untimed run that gives hakmem's counters: of the whole process (`exit`), and the difference
    between the end of the measured time and its start (`measured`), beside the program's `sample`."""
    with tempfile.TemporaryDirectory(prefix="hakmem-bench-") as name:
        folder = Path(name)
        environment = allocator_environment(hakmem)
        environment["HAKMEM_STATS"] = f"json:{folder}/exit.json"
        environment["BENCH_STATS_DIR"] = str(folder)
        pairs = run_for_result([str(executable), *arguments], environment)
        check_served_by(hakmem, pairs)
        at_exit = _read_json(folder / "exit.json")
        measured = measured_counters(folder)
    counters = _figures_of(at_exit)
    if sum(counters[name] for name in SERVED_COUNTERS) == 0:
        raise RunError("hakmem's counters say that it served nothing")
    return {
        "sample": numbers_of(pairs),
        "exit": counters,
        "measured": measured,
        "memory": at_exit["memory"],
    }
