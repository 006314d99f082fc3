"""lab/coherence: threads that write known lines have known figures, and hakmem's lines are seen."""

import subprocess
import sys

import pytest
from shape.sources import ROOT

sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "bench")]

from coherence.figures import PROGRAM, build, run, source_at, variable_at  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    known = subprocess.run(["cmake", "--build", "--preset", "debug", "--target", "help"], cwd=ROOT,
        capture_output=True, text=True, check=True)  # fmt: skip
    if "coherence" not in known.stdout:
        pytest.skip("the debug variant is not gcc's for x86-64: see cmake/models.cmake")
    build()


@pytest.mark.long("15 seconds in the simulated machine")
@pytest.mark.parametrize(("threads", "across"), [(2, False), (128, True)])
def test_threads_that_write_one_line(threads: int, across: bool) -> None:
    found = run("one-line", threads, 500)
    [line] = found.process_wide() if threads > 2 else found.lines
    assert found.own == (line.in_socket, line.across)
    assert (line.across > 0) == across
    assert found.per_1000(line.transfers) == pytest.approx(1000, rel=0.2)
    assert 1e9 / 140 <= found.roofline <= 1e9 / 45
    assert variable_at(line.address) == "line_of_all"
    assert "run_core" in source_at(line.place)


@pytest.mark.long("28 seconds of processor time")
def test_threads_with_a_line_each() -> None:
    assert sum(run("own-lines", 2, 500).own) == 0


def test_blocks_that_another_thread_frees() -> None:
    """The consumer reads most blocks' two lines and the producer writes them again; hakmem itself is seen."""
    found = run("pipe-1:1", 2, 3000)
    assert found.per_1000(sum(found.payload)) > 1500
    assert 0 < sum(found.own) < sum(found.payload)
    assert any("slab_free_remote" in source_at(place) for place, _ in found.places)


def test_usage() -> None:
    done = subprocess.run([PROGRAM, "no-such-load", "2", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: coherence LOAD THREADS OPERATIONS" in done.stderr
