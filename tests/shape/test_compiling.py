"""The tests' own compiler: what runs keeps its file, whoever needs the program, too."""

import subprocess
from pathlib import Path

import pytest
from compiling import Compiler

SOURCE = '#include <stdio.h>\nint main(void) { puts("ready"); fflush(stdout); return getchar(); }\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "waits.c"
    path.write_text(SOURCE)
    return path


def test_another_run_leaves_a_running_program_its_file(source: Path, tmp_path: Path, cc: str) -> None:
    """Replaced by its like, it was `(deleted)` in /proc/PID/maps, and its core dump had no names."""
    command = [cc, str(source)]
    program = Compiler(tmp_path / "made", "one").make(source, "", *command)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        inode = program.stat().st_ino
        assert Compiler(tmp_path / "made", "other").make(source, "", *command) == program
        assert program.stat().st_ino == inode
        assert str(Path(f"/proc/{process.pid}/exe").readlink()) == str(program)
        source.write_text(SOURCE.replace("ready", "other"))
        Compiler(tmp_path / "made", "third").make(source, "", *command)
        assert program.stat().st_ino != inode
        process.communicate()


def test_workers_of_one_run_compile_once(source: Path, tmp_path: Path, cc: str) -> None:
    log = tmp_path / "log"
    script = tmp_path / "compiler"
    script.write_text(f'#!/bin/sh\necho called >> {log}\nexec {cc} "$@"\n')
    script.chmod(0o755)
    for worker in ("gw0", "gw1"):
        assert Compiler(tmp_path / "made", "run").make(source, "", str(script), str(source)).exists(), worker
    assert log.read_text() == "called\n"


def test_what_does_not_compile_is_tried_again(source: Path, tmp_path: Path, cc: str) -> None:
    source.write_text("nonsense")
    for _ in ("gw0", "gw1"):
        with pytest.raises(pytest.fail.Exception, match="nonsense"):
            Compiler(tmp_path / "made", "run").make(source, "", cc, str(source))
    source.write_text(SOURCE)
    assert Compiler(tmp_path / "made", "run").make(source, "", cc, str(source)).exists()
