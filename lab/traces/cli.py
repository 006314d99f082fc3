"""The command line of lab/traces/run."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from harness.allocators import Allocator
from harness.build import BuildError, compile_anew
from harness.execute import RunError
from harness.paths import REPOSITORY
from harness.selection import select
from harness.tables import output_console
from harness.workload import Length, Workload
from rich.table import Table

HERE = Path(__file__).resolve().parent
OUTPUT = REPOSITORY / "build" / "lab" / "traces"
FLAGS = ["-std=gnu17", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-pthread", f"-I{HERE.parent}"]
SOURCES = REPOSITORY / "src"

# Slabs owned from the first block on; those that lend, as hakmem's do; shared ones; and earned ownership.
POLICIES = (
    "cache=32,own=0",
    "cache=32,own=0,lend=1,lines=1",
    *(f"cache={kib},lines=1" for kib in (4, 8, 32)),
    *(f"cache=32,own={kib},steady=4,lines=1" for kib in (256, 1024, 4096)),
)
THREADED = ("batch_transfer", "server", "producer_consumer-ring", "larson-*-4t", "mid_large_mt-4t", "tree-4t")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="lab/traces/run",
        description="Records workloads of bench/, and replays each on simulated heaps.",
        epilog=f"Recordings lie in build/lab/traces until they are made anew. Policies: {' '.join(POLICIES)}",
    )
    add = parser.add_argument
    add("--only", nargs="+", metavar="NAME", default=[*THREADED, "real"],
        help="these workloads (bench/run --list); larson means larson-*")  # fmt: skip
    add(
        "--policy",
        nargs="+",
        metavar="POLICY",
        default=list(POLICIES),
        help="as lab/traces/simulate.c has them",
    )
    add(
        "--seconds",
        type=float,
        default=0.1,
        metavar="S",
        help="length of a workload that runs for a time (0.1)",
    )
    add("--again", action="store_true", help="replay the recordings that lie there")
    return parser.parse_args(arguments)


def recorder() -> Allocator:
    library = compile_anew(
        OUTPUT / "recorder.so", [HERE / "recorder.c", HERE / "event.h"], [*FLAGS, "-fPIC", "-shared"]
    )
    return Allocator("recorder", library, variables=(("TRACE_FOLDER", str(OUTPUT / "new")),))


def simulator() -> Path:
    inputs = [*HERE.glob("sim*.c"), *HERE.glob("slabs.*"), HERE / "event.h", SOURCES / "map" / "size_class.c"]
    return compile_anew(OUTPUT / "simulate", inputs, [*FLAGS, f"-I{SOURCES}"])


def record(workload: Workload, length: Length) -> Path:
    """The recording of the process that allocated most: a compiler, say, not its driver."""
    place, new = OUTPUT / f"{workload.name}.trace", OUTPUT / "new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    workload.prepare(length)
    workload.timed(recorder(), length)
    largest = max(new.glob("*.trace"), key=lambda path: path.stat().st_blocks, default=None)
    if largest is None:
        raise RunError("no process was recorded")
    largest.replace(place)
    shutil.rmtree(new)
    return place


def simulate(recording: Path, policies: list[str]) -> list[list[str]]:
    """One row for each policy.  Raises RunError."""
    done = subprocess.run([simulator(), recording, *policies], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(done.stderr.strip())
    return [[cell.strip() for cell in line.split("\t")] for line in done.stdout.splitlines()]


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    workloads, unknown = select(options.only)
    if unknown:
        print(
            f"lab/traces/run: no workload is called {', '.join(unknown)}: see bench/run --list",
            file=sys.stderr,
        )
        return 2
    console = output_console()
    for workload in workloads:
        if missing := workload.missing():
            print(missing, file=sys.stderr)
            continue
        try:
            recording = OUTPUT / f"{workload.name}.trace"
            if not (options.again and recording.exists()):
                recording = record(workload, Length(options.seconds, quick=True))
            head, *rows = simulate(recording, options.policy)
        except (BuildError, RunError) as error:
            print(f"lab/traces/run: {workload.name}: {error}", file=sys.stderr)
            return 1
        table = Table(*head, title=workload.name, title_justify="left", header_style="bold")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    return 0
