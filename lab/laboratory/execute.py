"""One run of one subject: its result line as numbers."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from harness.execute import RunError, Sample, numbers_of, user_environment

from .subjects import Subject

TIMEOUT_SECONDS = 60
# hakmem's own counters under the names of the laboratory's.
HAKMEM_COUNTERS = {
    "reuses": "page_reuses",
    "new_pages": "new_pages_forced",
    "cas_retries": "cas_retries",
    "locks": "lock_acquisitions",
    "futex_waits": "lock_waits",
}


def _pairs(command: list[str], environment: dict[str, str]) -> dict[str, str]:
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{name} did not finish within {TIMEOUT_SECONDS} s") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise RunError(f"{' '.join([name, *command[1:]])}: status {done.returncode}: {done.stderr.strip()}")
    return dict(pair.split("=", 1) for pair in lines[-1].split())


def _hakmem_counters(folder: Path) -> Sample:
    start, stop = (json.loads((folder / f"{at}.json").read_text())["counters"] for at in ("start", "stop"))
    return {ours: float(stop[theirs] - start[theirs]) for ours, theirs in HAKMEM_COUNTERS.items()}


def run(program: Path, subject: Subject, threads: int, seconds: float, *arguments: str) -> Sample:
    """The numbers of one run.  Raises RunError when it failed or another allocator served it."""
    environment = user_environment() | {"BENCH_PROVE": "1"}
    command = [str(program), "--strategy", subject.strategy, "--threads", str(threads)]
    command += ["--seconds", str(seconds), *arguments]
    if subject.library is not None:
        environment["LD_PRELOAD"] = str(subject.library)
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as name:
        if subject.name == "hakmem":
            environment["BENCH_STATS_DIR"] = name
        pairs = _pairs(command, environment)
        sample = numbers_of(pairs)
        if subject.name == "hakmem":
            sample |= _hakmem_counters(Path(name))
    if not sample.get("ops"):
        raise RunError(f"{subject.name}: no operation was done")
    expected = subject.library.name if subject.library else "libc.so.6"
    if subject.is_reference and expected != pairs.get("malloc_from"):
        raise RunError(f"{subject.name}: malloc came from {pairs.get('malloc_from')}")
    return sample
