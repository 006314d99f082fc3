"""The benchmarks: which program with which arguments.  One line each; the order is that of the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .allocators import Allocator, placed_anew
from .build import build_program
from .execute import Sample, reported_run, timed_run
from .figures import COUNTED
from .workload import Length

# Programs that have several threads without being told, or print wall times.
ALONE = {
    "producer_consumer",
    "batch_transfer",
    "churn",
    "false_sharing",
    "idle_threads",
    "oversubscription",
    "server",
}
ALONE |= {"tail_latency", "worst_call"}
QUICK_REPORT_SECONDS = 2.0
WORK_SECONDS = {False: 1.0, True: 0.5}  # of a fixed amount of work, about; the key is `quick`


@dataclass(frozen=True)
class Work:
    """A fixed amount of work, for programs whose peak of memory depends on it."""

    flag: str
    full: int
    quick: int


@dataclass(frozen=True)
class Benchmark:
    """One row of the tables.  Without `work` the program runs for the seconds that the harness says.

    `runs_max` is for benchmarks that mostly sleep: more rounds of them would tell nothing.  `together`
    is for those whose only figure is memory after seconds of sleep: all allocators run at the same time."""

    name: str
    program: str
    args: str = ""
    work: Work | None = None
    report_seconds: float | None = None  # length of hakmem's extra run; default: as the timed runs
    runs_max: int | None = None
    together: bool = False
    beyond_seconds: float = 0.1  # of a run besides the measured time: set-up, idle time

    def command(self, seconds: float, quick: bool) -> list[str]:
        """The arguments of the program."""
        if self.work is None:
            return [*self.args.split(), "--seconds", f"{seconds:g}"]
        return [*self.args.split(), self.work.flag, str(self.work.quick if quick else self.work.full)]

    # The interface of workload.py.

    @property
    def alternates(self) -> bool:
        is_threaded = self.program in ALONE or "--threads" in self.args.split()
        return not is_threaded and self.runs_max is None

    @property
    def is_real(self) -> bool:
        return False

    @property
    def is_case(self) -> bool:
        return False

    def command_text(self, length: Length) -> str:
        return " ".join([self.program, *self.command(length.seconds, length.quick)])

    def missing(self) -> str:
        return ""

    def prepare(self, length: Length) -> None:  # noqa: ARG002
        build_program(self.program)

    def expected_seconds(self, length: Length) -> float:
        return self.beyond_seconds + (length.seconds if self.work is None else WORK_SECONDS[length.quick])

    def prove(self, allocator: Allocator) -> None:
        """Every timed run proves it."""

    def timed(self, allocator: Allocator, length: Length) -> Sample:
        arguments = self.command(length.seconds, length.quick)
        return timed_run(build_program(self.program), arguments, placed_anew(allocator))

    def report(self, hakmem: Allocator, length: Length) -> dict[str, Any] | None:
        seconds = self.report_seconds or length.seconds
        if length.quick:
            if self.name not in COUNTED:
                return None
            seconds = min(seconds, QUICK_REPORT_SECONDS)
        arguments = self.command(seconds, length.quick)
        return reported_run(build_program(self.program), arguments, hakmem)


def _larson(profile: str, threads: int) -> Benchmark:
    # Target A1 is stated for 10 seconds of the middle profile.
    return Benchmark(
        f"larson-{profile}-{threads}t",
        "larson",
        f"--profile {profile} --threads {threads}",
        report_seconds=10.0 if (profile, threads) == ("mid", 4) else None,
    )


def _mid_large(threads: int) -> Benchmark:
    return Benchmark(f"mid_large_mt-{threads}t", "mid_large_mt", f"--threads {threads}")


SUITE = (
    Benchmark("tiny_hot", "tiny_hot"),
    Benchmark("random_mixed-1t", "random_mixed"),
    Benchmark("random_mixed-4t", "random_mixed", "--threads 4"),
    *(_larson("small", threads) for threads in (1, 2, 4)),
    *(_larson("mid", threads) for threads in (1, 2, 4)),
    *(_larson("large", threads) for threads in (1, 4)),
    *(_mid_large(threads) for threads in (1, 2, 4, 8)),
    Benchmark("mid_large_mt-2k-4t", "mid_large_mt", "--min 2K --max 2K --threads 4"),
    Benchmark("json", "scenarios", "--scenario json"),
    Benchmark("mir", "scenarios", "--scenario mir"),
    Benchmark("vm", "scenarios", "--scenario vm"),
    Benchmark("mixed", "scenarios", "--scenario mixed"),
    Benchmark("producer_consumer", "producer_consumer"),
    Benchmark("malloc_large", "malloc_large", work=Work("--ops", 200, 80)),
    Benchmark("realloc_grow", "realloc_grow", work=Work("--ops", 200_000, 100_000)),
    Benchmark("churn", "churn"),
    Benchmark("many_live", "many_live", work=Work("--rounds", 2, 1)),
    *(
        Benchmark(f"producer_consumer-{row}", "producer_consumer", f"--topology {topology} --threads 4")
        for row, topology in (("1n", "1:n"), ("n1", "n:1"), ("ring", "ring"))
    ),
    Benchmark("batch_transfer", "batch_transfer"),
    *(
        Benchmark(
            f"many_live-10m-{order}",
            "many_live",
            f"--min 16 --max 32 --rounds 1 --order {order}",
            work=Work("--blocks", 10_000_000, 1_000_000),
        )
        for order in ("forward", "reverse", "random")
    ),
    Benchmark("phases", "phases", work=Work("--live", 64 << 20, 16 << 20)),
    Benchmark("fragmentation", "fragmentation", work=Work("--ops", 8 << 20, 2 << 20)),
    *(
        Benchmark(name, "burst_idle", args, work=Work("--idle", 5, 2), runs_max=3, beyond_seconds=4.0)
        for name, args in (("burst_idle", ""), ("burst_idle-trickle", "--trickle 1"))
    ),
    Benchmark("idle_threads", "idle_threads"),
    Benchmark("oversubscribed", "oversubscription"),
    Benchmark("oversubscribed-1x", "oversubscription", "--per-core 1"),
    Benchmark("false_sharing-active", "false_sharing"),
    Benchmark("false_sharing-passive", "false_sharing", "--kind passive"),
    Benchmark("false_sharing-first", "false_sharing", "--kind first"),
    Benchmark("realloc_buffer", "realloc_buffer", work=Work("--max", 1 << 30, 64 << 20)),
    Benchmark("calloc_large", "calloc_large", work=Work("--ops", 400, 250)),
    Benchmark("aligned", "aligned"),
    Benchmark("large_mixed-1t", "large_mixed", work=Work("--ops", 3000, 1500)),
    Benchmark("large_mixed-4t", "large_mixed", "--threads 4", work=Work("--ops", 750, 400)),
    Benchmark("tail_latency-1t", "tail_latency", work=Work("--calls", 8 << 20, 2 << 20)),
    Benchmark("tail_latency-2t", "tail_latency", "--threads 2", work=Work("--calls", 8 << 20, 2 << 20)),
    Benchmark("startup", "startup"),
    Benchmark("startup-true", "startup", "--what true"),
    Benchmark("fork_heavy", "fork_heavy"),
    Benchmark("strings", "strings"),
    Benchmark("tree-1t", "tree"),
    Benchmark("tree-4t", "tree", "--threads 4"),
    Benchmark("server", "server"),
)
