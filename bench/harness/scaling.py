"""The benchmarks of `bench/run --scaling`: a load on one thread up to twice the processors."""

from __future__ import annotations

import os

from .cases import Case
from .workload import Workload

# Name, program, the fewest threads, and arguments; {n}: the number of threads.
_LOADS = (
    ("random_mixed", "random_mixed", 1, "--threads {n}"),
    ("larson-small", "larson", 1, "--profile small --threads {n}"),
    ("mid_large_mt", "mid_large_mt", 1, "--threads {n}"),
    ("batch_transfer", "batch_transfer", 1, "--threads {n} --mailboxes {twice}"),
    ("ring", "producer_consumer", 2, "--topology ring --threads {n}"),
    ("server", "server", 1, "--threads {n}"),
)


def thread_counts(processors: int) -> list[int]:
    """Powers of two to twice the processors, and these two numbers."""
    powers = {1 << bit for bit in range((2 * processors).bit_length())}
    return sorted(powers | {processors, 2 * processors})


def scaling_workloads(processors: int | None = None) -> list[Workload]:
    counts = thread_counts(processors or len(os.sched_getaffinity(0)))
    return [
        Case(f"{name}-{n}t", program, arguments.format(n=n, twice=2 * n))
        for name, program, least, arguments in _LOADS
        for n in counts
        if n >= least
    ]
