"""One run of one subject: its result line as numbers, hakmem's counters under the laboratory's names."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.allocators import Allocator
from harness.execute import (
    RunError,
    Sample,
    allocator_environment,
    check_served_by,
    measured_counters,
    numbers_of,
    run_for_result,
)

from .subjects import Subject

HAKMEM_COUNTERS = {
    "reuses": "unstable_page_reuses",
    "new_pages": "unstable_new_pages_forced",
    "cas_retries": "unstable_cas_retries",
    "locks": "unstable_lock_acquisitions",
    "futex_waits": "lock_waits",
}


def _run(command: list[str], subject: Subject) -> Sample:
    allocator = Allocator(subject.name, subject.library)
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as name:
        counted = {"BENCH_STATS_DIR": name} if subject.name == "hakmem" else {}
        pairs = run_for_result(command, allocator_environment(allocator) | counted)
        sample = numbers_of(pairs)
        if counted:
            counters = measured_counters(Path(name))
            sample |= {ours: float(counters[theirs]) for ours, theirs in HAKMEM_COUNTERS.items()}
    if not sample.get("ops"):
        raise RunError("no operation was done")
    if subject.is_reference:
        check_served_by(allocator, pairs)
    return sample


def run(program: Path, subject: Subject, threads: int, seconds: float, *arguments: str) -> Sample:
    """The numbers of one run.  Raises RunError when it failed or another allocator served it."""
    command = [str(program), "--strategy", subject.strategy, "--threads", str(threads)]
    command += ["--seconds", str(seconds), *arguments]
    try:
        return _run(command, subject)
    except RunError as error:
        raise RunError(f"{subject.name}, {threads} threads: {error}") from error
