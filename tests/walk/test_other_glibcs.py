"""The walker on programs of other versions of glibc, whose heaps differ in layout."""

import platform
from pathlib import Path

import pytest
from results import each_fetched
from wheels.glibcs import GLIBCS, Root, fetch

from walk.conftest import HERE
from walk.test_figures import MIB, check_sums, tuned
from walk.walking import asked, waiting, walk

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the versions of glibc that are fetched are x86-64's"
)
root = each_fetched("glibc", GLIBCS, fetch)


@pytest.mark.long("fetches 20 MB for each", keep=1)
@pytest.mark.parametrize("tunable", ["", "tcache_max=300000"])
def test_it_is_walked(tunable: str, root: Root, walker: Path, tmp_path: Path) -> None:
    program = root.build(HERE / "shadow.c", tmp_path / "shadow", "-Wno-deprecated-declarations")
    with waiting(program, "4", "3000", variables=tuned(tunable)) as process:
        truth = asked(process, "i")
        walked = walk(walker, process.pid)
        check_sums(walked, truth)
        trimmed = asked(process, "t")
    assert root.version().startswith(walked.told["libc"])
    assert walked.told["layout"]["tcache_bytes"] > 0
    returned = (trimmed["before"] - trimmed["after"]) * 1024
    assert walked.resident("free_whole") == pytest.approx(returned, rel=0.02, abs=MIB)


@pytest.mark.long("fetches 20 MB for each")
def test_a_busy_program_looks_healthy(root: Root, walker: Path, tmp_path: Path) -> None:
    program = root.build(HERE / "shadow.c", tmp_path / "shadow", "-Wno-deprecated-declarations")
    with waiting(program, "4", "3000", "busy") as process:
        asked(process, "i")
        for _ in range(5):
            walked = walk(walker, process.pid)
            assert (walked.told["broken"], walked.told["explained_share"] > 0.99) == ([], True)
