"""Listings of all processes, of which one has an odd name, is hidden, or changes meanwhile."""

import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from hakmem.base.errors import NotHakmemError, ProcessGoneError
from hakmem.commands import ps
from hakmem.commands.answer import process_named
from hakmem.doctor.checks import check_map_count
from hakmem.launch.profiled import program_of
from hakmem.target.access import refused
from hakmem.target.allocators import GLIBC
from hakmem.target.cgroup import groups_of
from hakmem.target.container import container_of
from hakmem.target.fleet import Fleet
from hakmem.target.process import Process, all_processes
from hakmem.target.target import Target, open_process
from preload import clean_environment, preload_environment
from tool.processes import read_until

ODD = "a\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b"  # str.splitlines separates all of them


@contextmanager
def shell(command: str, environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """One that is ready, and waits, after this command."""
    words = ["sh", "-c", f"{command}; echo ready; read line"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=environment or clean_environment(), **pipes) as process:
        read_until(process, "ready")
        yield process
        process.kill()


def test_a_mapped_file_of_any_name(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(ODD.encode())
    path.write_bytes(b"x")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert any(one.file_name == ODD for one in Process(os.getpid()).maps())


def test_a_process_of_any_name() -> None:
    for name in (r"\rUid:x", r"\rNSpid:x", r"\rVmRSS:x", r"\377"):
        with shell(f"printf '{name}' > /proc/$$/comm") as process:
            one = Process(process.pid)
            assert int(one.status()["Uid"].split()[1]) == os.geteuid()
            assert one.figures().rss_bytes > 0
            assert "denies access" in str(refused(one.pid))
            assert program_of(one.pid)
            vars(one)["_is_in_other_namespace"] = True
            assert one.own_id(one.pid) == one.pid


def test_a_process_of_another_namespace_ends() -> None:
    with shell("true") as process:
        one = Process(process.pid)
        vars(one)["_is_in_other_namespace"] = True
        assert one.own_id(one.pid) == one.pid
    with pytest.raises(ProcessGoneError):
        one.own_id(one.pid)


def test_hidden_processes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the mount option hidepid=1 hides them: their folders are listed, and may not be entered."""

    def opened(path: str | Path) -> FileIO:
        if f"/proc/{os.getpid()}/" in str(path):
            return FileIO(path)
        raise PermissionError

    monkeypatch.setattr("hakmem.target.process.FileIO", opened)
    fleet = Fleet()
    with shell("true") as process:
        assert process.pid in [one.pid for one in all_processes()]
        assert [line.pid for line in ps.listing()[0]] == [os.getpid()]
        assert ps.listing()[1] >= 1
        assert fleet.targets() == []
        assert fleet.refused >= 1
        assert process_named("sh") == ""
        assert check_map_count().name == "map count"


def test_a_fleet_is_on_hakmem() -> None:
    """glibc's heap can be read as well, by other commands."""
    with shell("true") as process:
        assert open_process(process.pid).malloc == GLIBC
        assert process.pid not in [one.pid for one in Fleet().targets()]


def test_a_process_that_executes_its_own_file_stays(lib: Path) -> None:
    """PID, start time and file stay the same, and hakmem's data lie elsewhere."""
    fleet = Fleet()
    again = "echo ready; read line; exec sh -c 'echo ready; read line'"
    with shell(again, preload_environment(lib)) as process:
        of_process = lambda: [one for one in fleet.targets() if one.pid == process.pid]  # noqa: E731
        (before,) = of_process()
        assert of_process() == [before]
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        read_until(process, "ready")
        (after,) = of_process()
        assert (before.is_gone, after.is_gone) == (True, False)


def test_a_program_is_examined_until_it_has_loaded_its_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since it was seen first, however old its process is; and however late the next look comes."""
    examined: list[int] = []

    def examine(pid: int) -> Target:
        examined.append(pid)
        raise NotHakmemError

    clock_s = 1e6
    monkeypatch.setattr("hakmem.target.fleet.open_process", examine)
    monkeypatch.setattr("hakmem.target.fleet.all_processes", lambda: [Process(process.pid)])
    monkeypatch.setattr(time, "monotonic", lambda: clock_s)
    fleet = Fleet()
    with shell("true") as process:
        for passed_s, count in (0, 1), (1, 2), (30, 3), (30, 3):
            clock_s += passed_s
            assert fleet.targets() == []
            assert len(examined) == count


def test_a_cgroup_of_any_name(tmp_path: Path) -> None:
    """Its path is that of a folder; as a label it is UTF-8."""
    path = tmp_path / "cgroup"
    path.write_bytes(b"0::/a\xff\x0cb\n")
    assert groups_of(path) == {"": os.fsdecode(b"/a\xff\x0cb")}
    assert container_of(path).cgroup == "/a\N{REPLACEMENT CHARACTER}\x0cb"
