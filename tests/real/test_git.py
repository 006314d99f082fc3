"""git: a generated history is imported, cloned, packed by two threads, checked and read back."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from real.sides import Side, Sides

HISTORY = Path(__file__).parent / "programs" / "history.py"
COMMITS = 1000
SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "pack.threads",
    "GIT_CONFIG_VALUE_0": "2",
    "GIT_CONFIG_KEY_1": "gc.auto",
    "GIT_CONFIG_VALUE_1": "0",
    "GIT_CONFIG_KEY_2": "init.defaultBranch",
    "GIT_CONFIG_VALUE_2": "main",
}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """The stream for `git fast-import`, made once for both sides."""
    path = tmp_path / "history"
    with path.open("wb") as output:
        subprocess.run([sys.executable, HISTORY, str(COMMITS)], stdout=output, timeout=60, check=True)
    return path


@pytest.mark.long("20 seconds; the compilers and sqlite make and free as many blocks")
def test_import_clone_gc_fsck(sides: Sides, program: Callable[[str], Path], history: Path) -> None:
    git = program("git")

    def job(side: Side) -> dict[str, str]:
        def run(*words: str, stdin: str | None = None, processes: int = 1) -> str:
            command = [git, *words]
            return side.run(command, env=SETTINGS, stdin=stdin, processes=processes).stdout

        run("init", "-q", "--bare", "origin.git")
        imported = [
            "sh",
            "-c",
            f'exec "$1" -C origin.git fast-import --quiet --done < "{history}"',
            "sh",
            git,
        ]
        side.run(imported, env=SETTINGS)
        run("clone", "-q", "--no-local", "origin.git", "copy", processes=3)
        run("-C", "copy", "gc", "-q", "--aggressive", "--prune=now", processes=3)
        answers = {
            "fsck": run("-C", "copy", "fsck", "--full", "--strict", "--no-progress"),
            "objects": run("-C", "copy", "cat-file", "--batch-all-objects", "--batch-check"),
            "refs": run("-C", "copy", "for-each-ref"),
            "log": run("-C", "copy", "log", "-p", "--stat", "-M", "--max-count=500"),
            "blame": run("-C", "copy", "blame", "--line-porcelain", "part7/file7.txt"),
            "grep": run("-C", "copy", "grep", "-c", "-E", "slab.*(magazine|refill)", "main"),
            "status": run("-C", "copy", "status", "--porcelain"),
        }
        return {name: digest(text) for name, text in answers.items()} | {"commits": answers["log"][:48]}

    answers = sides.same(job)
    assert answers["commits"].startswith("commit ")
    assert answers["status"] == digest(""), "the clone's files are those of its commit"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
