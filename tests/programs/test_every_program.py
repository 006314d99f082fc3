"""Programs of Debian 13 do their work with hakmem preloaded as they do it without: same status, same output,
not a word of hakmem.

`make test-programs` makes a root with all of them (10 GB, needs root) and runs jobs/NAME.sh there: plainly,
then in each mode.  A job's first line names its packages.  ONLY=regex takes some, in a root of their own."""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from results import fetched
from roots import Root, root_with

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
ONLY = os.environ.get("ONLY", "")
JOBS = sorted(path for path in (HERE / "jobs").glob("*.sh") if re.search(ONLY, path.stem))
MODES = {
    "release": ["LD_PRELOAD=/opt/libhakmem.so"],
    "debug": ["LD_PRELOAD=/opt/debug/libhakmem.so"],
    "hardened": ["LD_PRELOAD=/opt/libhakmem.so", "HAKMEM_HARDEN=1"],
    "guard": ["LD_PRELOAD=/opt/libhakmem.so", "HAKMEM_GUARD=1"],
}
# They free with a wrong size: a warning, and in hardened mode their end (docs/decisions/0018).
WITH_A_WRONG_SIZE = {"povray", "squid"}
TOLD_OF_SIZE = "hakmem: warning: mismatched free of "
JOB_TIMEOUT_S = 600

if os.environ.get("PROGRAMS") != "all":
    pytest.skip("make test-programs runs it", allow_module_level=True)
pytestmark = pytest.mark.timeout(JOB_TIMEOUT_S * 3)


def packages_of(job: Path) -> list[str]:
    return job.read_text().partition("\n")[0].removeprefix("# ").split()


@pytest.fixture(scope="session")
def debian() -> Iterator[Root]:
    packages = sorted({name for job in JOBS for name in packages_of(job)})
    folder = BUILD / "programs" / ("some" if ONLY else "trixie")
    root = fetched("a root of Debian 13", root_with, folder, "trixie", packages)
    for name in ("libhakmem.so", "debug/libhakmem.so"):
        target = root.path / "opt" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / name, target)
    yield root


def run_job(root: Root, name: str, options: list[str]) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What it did, and what hakmem said, in its output or in what it wrote to files."""
    work = root.path / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    command = f"cd /work; . /hakmem/tests/programs/jobs/common; . /hakmem/tests/programs/jobs/{name}.sh"
    ended = root.run(
        "bash", "-c", command, timeout_s=JOB_TIMEOUT_S, ON=" ".join(["env", *options]), HOME="/work"
    )
    written = [path for path in work.iterdir() if path.is_file() and path.name.startswith(("err", "log"))]
    texts = [ended.stdout, ended.stderr, *(path.read_text(errors="replace") for path in written)]
    return ended, [line for text in texts for line in text.splitlines() if line.startswith("hakmem: ")]


@functools.cache
def plain(root: Root, name: str) -> str:
    ended, _ = run_job(root, name, [])
    assert ended.returncode == 0, f"without hakmem: {ended.stderr[-2000:]}"
    return ended.stdout


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [job.stem for job in JOBS])
def test_it_works_as_without(name: str, mode: str, debian: Root) -> None:
    if name in WITH_A_WRONG_SIZE and mode == "hardened":
        pytest.skip("it frees with a wrong size, which ends it in this mode")
    expected = plain(debian, name)
    ended, told = run_job(debian, name, MODES[mode])
    if name in WITH_A_WRONG_SIZE:
        told = [line for line in told if not line.startswith(TOLD_OF_SIZE)]
    assert (ended.returncode, ended.stdout, told) == (0, expected, []), ended.stderr[-2000:]
