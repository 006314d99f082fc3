"""The benchmarks: which program with which arguments.  One line each; the order is that of the tables."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch


@dataclass(frozen=True)
class Work:
    """A fixed amount of work, for programs whose peak of memory depends on it."""

    flag: str
    full: int
    quick: int


@dataclass(frozen=True)
class Benchmark:
    """One row of the tables.  Without `work` the program runs for the seconds that the harness says.

    `rounds_max` is for benchmarks that mostly sleep: more rounds of them would tell nothing."""

    name: str
    program: str
    args: str = ""
    work: Work | None = None
    report_seconds: float | None = None  # length of hakmem's extra run; default: as the timed runs
    rounds_max: int | None = None
    beyond_seconds: float = 0.1  # what a run takes besides the measured time: set-up, idle time

    def command(self, seconds: float, quick: bool) -> list[str]:
        """The arguments of the program."""
        if self.work is None:
            return [*self.args.split(), "--seconds", f"{seconds:g}"]
        return [*self.args.split(), self.work.flag, str(self.work.quick if quick else self.work.full)]

    def matches(self, pattern: str) -> bool:
        """`larson` selects every larson-…; shell patterns are allowed."""
        return fnmatch(self.name, pattern) or fnmatch(self.name, f"{pattern}-*")


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
    Benchmark("malloc_large", "malloc_large", work=Work("--ops", 500, 200)),
    Benchmark("realloc_grow", "realloc_grow", work=Work("--ops", 400_000, 100_000)),
    Benchmark("churn", "churn"),
    Benchmark("many_live", "many_live", work=Work("--rounds", 4, 1)),
)


def select(patterns: list[str]) -> tuple[list[Benchmark], list[str]]:
    """The benchmarks that any of the patterns matches (all when there is none), and the patterns that
    match nothing."""
    if not patterns:
        return list(SUITE), []
    chosen = [bench for bench in SUITE if any(bench.matches(pattern) for pattern in patterns)]
    unknown = [p for p in patterns if not any(bench.matches(p) for bench in SUITE)]
    return chosen, unknown
