"""hakmem on other kernels than this machine's: programs of the other tests, on Debian's kernels, emulated.

`make test` boots Debian 12's kernel, where those programs run that tell most; `make test-kernels` all of
kernels.py with all of programs.py (ONLY=regex for some of them).
"""

import os
import platform
import re
from pathlib import Path

import pytest
from kernels import programs
from kernels.kernels import KERNELS, Kernel, fetch
from kernels.machine import Outcome, run_jobs
from results import Compile, Tally, fetched

IS_FULL = os.environ.get("KERNELS") == "all"
USUAL = "bookworm"
TIMEOUT_S = 3600 if IS_FULL else 600
ONLY = re.compile(os.environ.get("ONLY", ""))
PROGRAMS = [p for p in programs.PROGRAMS if (IS_FULL or p.is_telling) and ONLY.search(p.name)]


def wrong(outcome: Outcome) -> str:
    """What a person has to know; nothing when all is right."""
    if outcome.job.name == programs.OUTSIDE and outcome.status == 0:
        return programs.wrong_outside(outcome.said)
    return "" if outcome.is_clean else str(outcome)


@pytest.mark.long("an emulated machine; its programs run on this kernel")
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("kernel", [k for k in KERNELS if IS_FULL or k.suite == USUAL], ids=lambda k: k.suite)
def test_kernel(kernel: Kernel, compile_c: Compile, lib: Path, tmp_path: Path, tally: Tally) -> None:
    if platform.machine() != "x86_64":
        pytest.skip(f"the kernels are x86-64's, this machine's programs are for {platform.machine()}")
    image = fetched(f"Linux {kernel.version}", fetch, kernel)
    jobs, files = programs.jobs(PROGRAMS, compile_c, lib), [lib]
    if IS_FULL and ONLY.search(programs.OUTSIDE):
        jobs.append(programs.outside_job(compile_c, lib))
        files += programs.outside_files(compile_c, lib)
    outcomes = run_jobs(image, jobs, files, tmp_path)
    failed = [what for outcome in outcomes if (what := wrong(outcome))]
    assert not failed, f"on {image.name}:\n" + "\n".join(failed)
    tally(len(jobs), "kernels")
