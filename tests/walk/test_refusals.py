"""Targets that cannot be walked: status 2, and one sentence."""

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from preload import preload_environment
from results import captured

from walk.images import program_of_32_bits
from walk.walking import asked, said, waiting, walk

WAIT = '#include <unistd.h>\nint main(void) { write(1, "1\\n", 2); for (;;) pause(); }\n'
NOBODY = 65534


def refused(walker: Path, of: int | Path) -> str:
    walked = walk(walker, of)
    assert walked.status == 2
    return walked.sentence


@pytest.fixture
def without_heap(tmp_path: Path) -> Path:
    (tmp_path / "wait.c").write_text(WAIT)
    return tmp_path / "wait.c"


def test_no_such_target(walker: Path, tmp_path: Path) -> None:
    assert "no process 999999999" in refused(walker, 999999999)
    assert "no process 0" in refused(walker, 0)
    assert "ENOENT" in refused(walker, tmp_path / "none")
    assert "not an ELF core" in refused(walker, tmp_path)
    assert "not an ELF core" in refused(walker, walker)
    step = captured([walker])
    assert (step.returncode, "usage" in step.stderr) == (2, True)


def test_a_zombie(walker: Path) -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert "zombie" in refused(walker, process.pid)
    process.wait()


def test_a_kernel_thread(walker: Path) -> None:
    """Their parent is the second process."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat")]
    threads = [text.split()[0] for text in stats if text.rpartition(")")[2].split()[1] == "2"]
    if not threads:
        pytest.skip("no kernel threads are seen here")
    assert "kernel thread" in refused(walker, int(threads[0]))


def test_no_rights(walker: Path, shadow: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("changing the user needs root")
    with waiting(shadow, "0", "10") as process:
        asked(process, "i")
        step = captured([walker, str(process.pid)], user=NOBODY)
    assert (step.returncode, step.stderr.count("\n")) == (2, 1)
    assert "no right" in step.stderr


def test_no_heap_yet(walker: Path, without_heap: Path) -> None:
    program = without_heap.with_suffix("")
    captured(["cc", without_heap, "-o", program], check=True)
    with waiting(program) as process:
        said(process)
        assert "holds no heap" in refused(walker, process.pid)


def test_another_malloc_serves_it(walker: Path, shadow: Path, lib: Path) -> None:
    with waiting(shadow, "0", "10", variables=preload_environment(lib)) as process:
        asked(process, "i")
        assert "another malloc serves" in refused(walker, process.pid)


def test_musl(walker: Path, without_heap: Path) -> None:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed")
    program = without_heap.with_suffix("")
    captured(["musl-gcc", without_heap, "-o", program], check=True)
    with waiting(program) as process:
        said(process)
        assert "another C library" in refused(walker, process.pid)


def test_a_32_bit_program(walker: Path, tmp_path: Path) -> None:
    try:
        with waiting(program_of_32_bits(tmp_path / "of-32-bits")) as process:
            assert "32-bit" in refused(walker, process.pid)
    except OSError:
        pytest.skip("this kernel runs no 32-bit programs")


@pytest.mark.parametrize("delay_ms", range(0, 40, 4))
def test_a_process_that_ends_meanwhile(delay_ms: int, walker: Path, shadow: Path) -> None:
    with waiting(shadow, "2", "20000") as process:
        asked(process, "i")
        ending = threading.Thread(target=lambda: (time.sleep(delay_ms / 1000), process.kill()))
        ending.start()
        walked = walk(walker, process.pid)
        ending.join()
    assert walked.status in {0, 2}
    assert walked.status == 0 or any(word in walked.sentence for word in ("ended", "ending", "no process"))
