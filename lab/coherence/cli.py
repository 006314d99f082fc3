"""The command line of lab/coherence/run."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from harness.arguments import positive
from harness.build import BuildError
from harness.execute import RunError
from harness.tables import output_console
from rich.console import Console
from rich.table import Table

from .figures import Run, build, run, source_at, variable_at

LOADS = ("larson", "pipe-1:1", "pipe-n:1", "ring", "pool", "server", "all-to-all")
THREADS = (4, 16, 64, 256)
OPERATIONS = 20000
FLAT = 1.10
SHOWN = 6

EPILOGUE = """\
Counts are of 1,000 operations: one malloc and one free each. A transfer is a line, or the right to write it,
that comes from another core; cores have infinite caches, 64 are in a socket, and a transfer has the costs of
lab/coherence/coherence.h. Results: docs/decisions/0050.
"""


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="lab/coherence/run",
        description="Runs hakmem's sources on virtual cores, and counts the lines that pass between these.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--load", nargs="+", choices=LOADS, default=LOADS, metavar="NAME", help=" ".join(LOADS))
    add("--threads", nargs="+", type=positive, default=THREADS, metavar="N", help="2 to 256 (4 16 64 256)")
    add("--operations", type=positive, default=OPERATIONS, metavar="N", help=f"of each thread ({OPERATIONS})")
    add("--jobs", type=positive, default=2, metavar="N", help="runs at a time (2)")
    return parser.parse_args(arguments)


def _summary(console: Console, load: str, runs: list[Run]) -> None:
    table = Table(title=load, title_justify="left", header_style="bold")
    for head in (
        "threads",
        "warm, ms",
        "transfers",
        "across sockets",
        "payload",
        "of other blocks",
        "wide lines",
        "roofline M/s",
        "M/s",
    ):
        table.add_column(head, justify="right")
    for each in runs:
        own, payload = (each.per_1000(sum(counts)) for counts in (each.own, each.payload))
        table.add_row(
            str(each.threads),
            f"{each.warm_ns / 1e6:,.1f}",
            f"{own:.1f}",
            f"{each.per_1000(each.own[1]):.1f}",
            f"{payload:.0f}",
            f"{each.per_1000(each.payload_shared):.0f}",
            str(len(each.process_wide())),
            f"{each.roofline / 1e6:,.0f}",
            f"{1000 * each.operations / each.ns:,.0f}",
        )
    console.print(table)
    if len(runs) > 1:
        growth = sum(runs[-1].own) / runs[-1].operations / (sum(runs[0].own) / runs[0].operations or 1)
        verdict = "flat" if growth <= FLAT else f"{growth:.2f} times those of the fewest threads"
        console.print(f"transfers with the most threads: {verdict}", highlight=False)


def _details(console: Console, each: Run) -> None:
    """The lines that the most threads meet on, and the places that take most lines."""
    rows = [
        (
            each.per_1000(line.writes),
            f"written by {line.writers}: {variable_at(line.address) or 'a record'}",
            line.place,
        )
        for line in each.process_wide()[:SHOWN]
    ]
    rows += [(each.per_1000(count), "transfers", place) for place, count in each.places[:SHOWN]]
    for count, what, place in rows:
        console.print(
            f"{count:8.2f} {what}; {source_at(place)}", highlight=False, markup=False, soft_wrap=True
        )


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    console = output_console()
    try:
        build()
        with ThreadPoolExecutor(options.jobs) as pool:
            for load in options.load:
                runs = list(
                    pool.map(lambda n, load=load: run(load, n, options.operations), sorted(options.threads))
                )
                _summary(console, load, runs)
                _details(console, runs[-1])
    except (BuildError, RunError) as error:
        print(f"lab/coherence/run: {error}", file=sys.stderr)
        return 1
    return 0
