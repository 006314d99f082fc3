"""The command line of lab/traces/run."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from hakmem.base.errors import HakmemError
from hakmem.layout.memory import Records
from hakmem.trace.file import Trace, read
from hakmem.trace.plan import STAYS_SHARE, Ranks
from hakmem.trace.words import Events, Op
from harness.arguments import IS_QUICK, positive
from harness.build import BuildError, compile_anew
from harness.execute import RunError
from harness.paths import REPOSITORY
from harness.selection import select
from harness.tables import output_console
from harness.workload import Length
from rich.table import Table

from traces import campaign
from traces.record import OUTPUT, record

HERE = Path(__file__).resolve().parent
FLAGS = ["-std=gnu17", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-pthread", f"-I{HERE.parent}"]
SOURCES = REPOSITORY / "src"
# struct event
EVENT = np.dtype("<u4, <u4, <u2, u1, u1")
EVENT.names = ("life", "size", "thread", "is_take", "is_last")
THREAD_MAX = 4096  # as slabs.h has it
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
    add("--only", nargs="+", metavar="NAME", help="these workloads (bench/run --list); larson means larson-*")
    add("--policy", nargs="+", metavar="POLICY", default=list(POLICIES), help="as simulate.c has them")
    add("--seconds", type=float, default=0.1, metavar="S", help="length of a timed workload (0.1)")
    add("--again", action="store_true", help="replay the recordings that lie there")
    add("--campaign", action="store_true", help="replays against the programs themselves, on five mallocs")
    add("--rounds", type=positive, default=2 if IS_QUICK else 4, metavar="N",
        help="with --campaign: replays on each malloc (4; QUICK=1: 2)")  # fmt: skip
    return parser.parse_args(arguments)


def say(sentence: str) -> None:
    print(f"lab/traces/run: {sentence}", file=sys.stderr, flush=True)


def simulator() -> Path:
    inputs = [*HERE.glob("sim*.c"), *HERE.glob("slabs.*"), SOURCES / "map" / "size_class.c"]
    return compile_anew(OUTPUT / "simulate", inputs, [*FLAGS, f"-I{SOURCES}"])


def events_of(trace: Trace) -> Records:
    """As simulate.c reads them.  A thread ends after its last event, unless that is near the end."""
    parts = [lives.at(lives.events.ops != Op.RESIZE) for lives in trace.lives()]
    events = Events.joined([part.events for part in parts])
    found = np.zeros(len(events), EVENT)
    found["life"], found["is_take"] = np.concatenate([part.numbers for part in parts]), events.ops != Op.FREE
    found["size"] = np.minimum(events.sizes, np.iinfo(np.uint32).max)
    found["thread"] = (Ranks(-1).of(events.threads) - 1) % (THREAD_MAX - 1) + 1
    lasts = len(events) - 1 - np.unique(events.threads[::-1], return_index=True)[1]
    ages = events.times_ns - events.times_ns[0]
    found["is_last"][lasts] = ages[lasts] < STAYS_SHARE * ages[-1]
    return found


def simulate(recording: Path, policies: list[str]) -> list[list[str]]:
    """One row for each policy.  Raises RunError, or HakmemError if it is not a trace."""
    program = simulator()
    with tempfile.NamedTemporaryFile(dir=OUTPUT) as file:
        events_of(read(recording)).tofile(file.name)
        done = subprocess.run([program, file.name, *policies], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(done.stderr.strip())
    return [[cell.strip() for cell in line.split("\t")] for line in done.stdout.splitlines()]


def simulated(recording: Path, policies: list[str]) -> Table:
    head, *rows = simulate(recording, policies)
    table = Table(*head, title=recording.stem, title_justify="left", header_style="bold")
    for row in rows:
        table.add_row(*row)
    return table


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    chosen = [f"real-{name}" for name in campaign.PROGRAMS] if options.campaign else [*THREADED, "real"]
    workloads, unknown = select(options.only or chosen)
    if options.campaign and not options.only:
        workloads = [each for each in workloads if each.name in (chosen[::2] if IS_QUICK else chosen)]
    if unknown:
        say(f"no workload is called {', '.join(unknown)}: see bench/run --list")
        return 2
    length = Length(options.seconds, quick=True)
    console, peaks, status = output_console(), [], 0
    for workload in workloads:
        recording = OUTPUT / f"{workload.name}.hkt"
        if missing := workload.missing():
            say(missing)
            continue
        try:
            if not (options.again and recording.exists()):
                (campaign.record_best if options.campaign else record)(workload, length)
            if options.campaign:
                workload.prepare(length)
                peaks.append(campaign.measure(workload, recording, length, options.rounds))
                print(peaks[-1].row(), file=sys.stderr, flush=True)
            else:
                console.print(simulated(recording, options.policy))
        except (BuildError, RunError, HakmemError, OSError) as error:  # it may run as another user
            say(f"{workload.name}: {error}")
            status = 1
    if peaks:
        print(campaign.markdown(peaks))
    return status
