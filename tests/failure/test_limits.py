"""HAKMEM_LIMIT_SOFT and HAKMEM_LIMIT_HARD, a real cgroup, and a process that may have no more mappings."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import target
from modes import assert_silent
from results import Run

HERE = Path(__file__).resolve().parent
BY_AGE_NEVER = {"HAKMEM_DECAY_MS": "3600000"}


@pytest.mark.long("a second each; each mode, number of threads and limit", keep=1)
@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("mib", ["32", "100"])
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
def test_hard_limit(mode: str, mib: str, threads: str, run_program: Run) -> None:
    result = run_program(
        HERE / "limit_hard.c", mode, args=[mib, threads], env={"HAKMEM_LIMIT_HARD": f"{mib}M"}
    )
    assert_silent(result)
    [report] = result.stats
    assert report["counters"]["enomem"] > 0
    assert report["totals"]["limit_hard_refusals"] > 0


@pytest.mark.long("3 seconds each")
@pytest.mark.parametrize(("mode", "mib"), [("preload", "100"), ("preload-debug", "32"), ("static", "32")])
def test_hard_limit_counts_what_is_asked_for(mode: str, mib: str, run_program: Run) -> None:
    environment = {"HAKMEM_LIMIT_HARD": f"{mib}M"}
    assert_silent(run_program(HERE / "limit_counts.c", mode, args=[mib], env=environment, stats=False))


@pytest.mark.long("2 seconds each; tests/unit/test_bytes.c reads each unit", keep=1)
@pytest.mark.parametrize("limit", ["32MiB", "33.554432MB", "0.03125G", "32768k"])
def test_units_of_a_limit(limit: str, run_program: Run) -> None:
    environment = {"HAKMEM_LIMIT_HARD": limit}
    assert_silent(run_program(HERE / "limit_counts.c", "preload", args=["32"], env=environment, stats=False))


@pytest.mark.parametrize("flags", ["1", "2", "3", "7"], ids=["current", "future", "both", "onfault"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
def test_locked_memory(mode: str, when: str, flags: str, run_program: Run) -> None:
    """Without privilege, 8 MiB may be locked; what is reserved alone would exceed that."""
    assert_silent(run_program(HERE / "locked.c", mode, args=[when, flags], stats=False))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"HAKMEM_HARDEN": "1"},
        {"HAKMEM_HARDEN": "2"},
        {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"},
        {"HAKMEM_PROFILE": "64"},
    ],
    ids=["default", "hardened", "hardened-more", "guarded", "sampled"],
)
@pytest.mark.parametrize(
    "refused",
    ["malloc limit", "malloc space", "aligned limit", "heap space", "heap heap", "used limit", "used heap"],
)
@pytest.mark.parametrize("mode", ["linked", "linked-debug"])
def test_a_block_that_shrinks_stays(
    mode: str, refused: str, options: dict[str, str], run_program: Run
) -> None:
    environment = options | ({"HAKMEM_LIMIT_HARD": "200M"} if "limit" in refused else {})
    source = HERE / "shrink_refused.c"
    assert_silent(run_program(source, mode, args=refused.split(), env=environment, stats=False))


@target.not_there
@pytest.mark.parametrize(
    ("soft", "hard", "says"),
    [
        ("", "12Q", 'HARD="12Q" is not a size '),
        ("", "0", 'HARD="0" is zero, '),
        ("64", "", 'SOFT="64" is less than 1 MiB, '),
        ("", "4000T", 'HARD="4000T" exceeds the '),
        ("2G", "1G", 'SOFT="2G" exceeds HAKMEM_LIMIT_HARD, '),
    ],
)
def test_a_wrong_limit_is_told(soft: str, hard: str, says: str, preload: Run) -> None:
    """In one line, which says what holds now; the program runs all the same."""
    environment = {"HAKMEM_LIMIT_SOFT": soft, "HAKMEM_LIMIT_HARD": hard}
    result = preload(["true"], env=environment, stats=False)
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.startswith(f"hakmem: warning: HAKMEM_LIMIT_{says}")
    assert result.stderr.count("\n") == 1
    assert re.search("hold|will be reached first", result.stderr)


@pytest.mark.parametrize("what", ["pass", "change", pytest.param("above", marks=pytest.mark.alone)])
@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_soft_limit(mode: str, what: str, run_program: Run) -> None:
    environment = BY_AGE_NEVER | {"HAKMEM_LIMIT_SOFT": "24M"}
    result = run_program(HERE / "limit_soft.c", mode, args=["24", what], env=environment)
    assert_silent(result)
    [report] = result.stats
    assert 0 < report["counters"]["limit_soft_hits"] < (60 if what == "above" else 1000)


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize("left", ["0", "2", "10", "100", "1000"])
@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_no_mappings_left(mode: str, left: str, run_program: Run) -> None:
    result = run_program(HERE / "maps_exhausted.c", mode, args=[left], stats=False)
    if result.returncode == 77:
        pytest.skip("vm.max_map_count is beyond reach")
    assert_silent(result)


# ---- a real cgroup -----------------------------------------------------------------------------------------

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
CGROUP_MIB = 128


@dataclass(frozen=True)
class Cgroup:
    procs: Path
    mib: int


@pytest.fixture
def cgroup() -> Iterator[Cgroup]:
    """A cgroup with a memory limit, for what joins it; removed afterwards."""
    is_v2 = (V2 / "cgroup.controllers").exists()
    name = "memory.max" if is_v2 else "memory.limit_in_bytes"
    place = (V2 if is_v2 else V1) / f"hakmem-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        try:
            (place / name).write_text(str(CGROUP_MIB << 20))
        except OSError as error:
            pytest.skip(f"the cgroup has no memory limit to be set: {error}")
        yield Cgroup(place / "cgroup.procs", CGROUP_MIB)
    finally:
        place.rmdir()


@pytest.mark.long("a second each", keep=1)
@target.not_there
@pytest.mark.parametrize("what", ["percent", "keen"])
@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_cgroup(mode: str, what: str, cgroup: Cgroup, run_program: Run) -> None:
    # The program starts twice, the first time outside: there, where no limit may be known, a line says so.
    environment = {"HAKMEM_LIMIT_HARD": "50%"} if what == "percent" else {}
    result = run_program(
        HERE / "limit_cgroup.c",
        mode,
        args=[cgroup.procs, str(cgroup.mib), what],
        env=environment,
        stats=False,
    )
    assert result.returncode == 0, result.stderr
    no_limit = "no cgroup memory limit found to take a percentage of; ignored"
    lines = result.stderr.splitlines()
    assert len(lines) <= (1 if environment else 0)
    assert all(line.endswith(no_limit) for line in lines)
