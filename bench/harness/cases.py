"""Single situations in which an allocator can be far worse than others; bench/README.md says what each shows.

They are rows of the tables like all others, named case-…; most of a case's time is waiting for memory to
become old, so they have few rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .allocators import Allocator
from .suite import Benchmark, Work
from .workload import Length


@dataclass(frozen=True)
class Case(Benchmark):
    """A benchmark without an extra run for hakmem's counters."""

    @property
    def is_case(self) -> bool:
        return True

    def report(self, hakmem: Allocator, length: Length) -> dict[str, Any] | None:  # noqa: ARG002
        return None


def _case(
    name: str,
    program: str,
    args: str = "",
    work: Work | None = None,
    *,
    runs_max: int | None = None,
    together: bool = False,
    beyond_seconds: float = 0.1,
) -> Case:
    return Case(
        f"case-{name}",
        program,
        args,
        work,
        runs_max=runs_max,
        together=together,
        beyond_seconds=beyond_seconds,
    )


def _sleeps(name: str, args: str, work: Work, beyond_seconds: float, *, together: bool = False) -> Case:
    """After a burst the program sleeps: once is enough."""
    return _case(name, "burst_idle", args, work, runs_max=1, together=together, beyond_seconds=beyond_seconds)


CASES = (
    *(
        _case(
            f"worst_call-{who}",
            "worst_call",
            f"--freed-by {who}",
            Work("--seconds", 3, 2),
            runs_max=2,
            beyond_seconds=2.0,
        )
        for who in ("own", "other")
    ),
    *(
        _sleeps(
            f"server-{count}",
            f"--burst 111M --threads 1 --trickle {count}",
            Work("--idle", 10, 3),
            beyond_seconds=10.0,
            together=True,
        )
        for count in (20, 2000)
    ),
    _sleeps("idle-1g", "--burst 1G --threads 1 --survives 0 --bursts 2", Work("--idle", 3, 2), 4.0),
    _sleeps(
        "pool-64t",
        "--burst 256M --threads 64 --min 64K --max 512K --survives 0 --fills 20",
        Work("--idle", 3, 2),
        2.0,
    ),
    _sleeps("burst-again", "--burst 100M --threads 1 --survives 0 --idle 1.5", Work("--bursts", 4, 2), 4.0),
    _case("growth-1000t", "growth", "--threads 1000 --holes 200", Work("--count", 1000, 300)),
    _case("growth-8000t", "growth", "--threads 8000 --holes 200", Work("--count", 1000, 300), runs_max=3),
    _case(
        "growth-after-peak",
        "growth",
        "--peak-size 1K --survives 1024 --size 4K --count 20K --unit 64K",
        Work("--peak", 3 << 30, 512 << 20),
        runs_max=1,
        beyond_seconds=5.0,
    ),
    _case(
        "fork-3000t",
        "fork_heavy",
        "--threads 3000 --child 600 --blocks 200 --max 256K",
        runs_max=2,
        beyond_seconds=0.6,
    ),
    _case("aligned-2m", "aligned", "--alignment 2M --slots 1 --min 2M --max 2M"),
    _case("aligned-2m-64b", "aligned", "--alignment 2M --slots 50 --min 64 --max 64"),
    _case(
        "realloc-20k-42k",
        "realloc_grow",
        "--pattern buffer --containers 1 --low 20K --limit 42K",
        Work("--ops", 1_000_000, 200_000),
    ),
    _case(
        "huge-500g",
        "malloc_large",
        "--min 500G --max 500G --slots 1 --touch 16K",
        Work("--ops", 2, 1),
        runs_max=2,
    ),
    _case(
        "60k-then-33k",
        "growth",
        "--peak 127M --peak-size 60K --wait 0 --size 33K --write 1",
        Work("--count", 4000, 2000),
        runs_max=3,
    ),
    _case("3m", "malloc_large", "--min 2800K --max 3300K", Work("--ops", 2000, 1000)),
    _case("33k-64k", "malloc_large", "--min 33K --max 64K --slots 2000", Work("--ops", 300_000, 50_000)),
    _case("pipe-mid", "producer_consumer", "--min 2K --max 32K"),
    _case("batch-64b", "batch_transfer", "--min 64 --max 64"),
    _case(
        "shuffled-4t", "many_live", "--threads 4 --min 1 --max 1000 --blocks 10000", Work("--rounds", 20, 5)
    ),
    _case("handover", "churn", "--blocks 2000"),
    _case("usable_size", "usable_size"),
)
