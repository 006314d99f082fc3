"""`hakmem run` is killed: what it had in the folder for temporary files goes with the next one."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hakmem.launch import scratch
from hakmem.launch.scratch import PREFIX, Scratch, remove_stale
from tool.conftest import Tool
from tool.processes import begun

WAITING = ("sh", "-c", "echo $$; read line")


def folders(place: Path) -> list[Path]:
    return sorted(place.glob(f"{PREFIX}*"))


@contextmanager
def waiting(tool: Tool, place: Path, option: str) -> Iterator[subprocess.Popen[str]]:
    """The tool with a shell that waits."""
    variables = {"HAKMEM_LIBRARY": str(tool.library), "TMPDIR": str(place)}
    with begun("run", option, "--", *WAITING, **variables) as process:
        process.program = int(process.stdout.readline())  # type: ignore[attr-defined, union-attr]
        yield process


@pytest.mark.long("2 seconds of processor time")
def test_the_folder_of_a_killed_tool_goes_with_the_next(tool: Tool, tmp_path: Path) -> None:
    with waiting(tool, tmp_path, "--profile") as first:
        (left,) = folders(tmp_path)
        first.kill()
        first.wait()
        assert left.is_dir(), "this test shows nothing"
        with waiting(tool, tmp_path, "--profile") as second:
            (owned,) = folders(tmp_path)
            assert owned != left
            # One that has an owner stays.
            remove_stale(tmp_path)
            assert folders(tmp_path) == [owned]
            second.communicate("\n")
        os.kill(first.program, signal.SIGKILL)  # type: ignore[attr-defined]
    assert not folders(tmp_path)


def test_only_folders_without_an_owner_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    mine = Scratch.make()
    older = tmp_path / f"{PREFIX}older"  # of a version without owners
    older.mkdir()
    stale = tmp_path / f"{PREFIX}stale"
    stale.mkdir()
    (stale / scratch.OWNER).touch()
    linked = tmp_path / f"{PREFIX}linked"
    linked.mkdir()
    (linked / scratch.OWNER).symlink_to(tmp_path / "elsewhere")
    other = Scratch.make()
    assert folders(tmp_path) == sorted([mine.path, other.path, older, linked])
    for one in (mine, other):
        one.remove()
    assert folders(tmp_path) == sorted([older, linked])


def test_a_folder_that_was_taken_for_a_stale_one_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tool looks between the file and its lock."""
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    lock, seen = fcntl.flock, []

    def late(file: int, how: int) -> None:
        if not seen:
            seen.append(file)
            remove_stale(tmp_path)
        lock(file, how)

    monkeypatch.setattr(scratch.fcntl, "flock", late)
    made = Scratch.make()
    assert made.path.is_dir()
    assert folders(tmp_path) == [made.path]
    made.remove()
