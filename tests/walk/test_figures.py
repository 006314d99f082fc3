"""The walker's figures against those of malloc itself, inside the program."""

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from results import Compile

from walk.conftest import HERE
from walk.walking import Walked, asked, waiting, walk

MIB = 1 << 20
RECORD = struct.Struct("@QQ")
STATES = ("live", "free", "cached", "unknown", "top")
# Arguments of shadow.c, and a tunable.
MODES = {
    "one thread": (("0", "20000"), ""),
    "five arenas": (("4", "20000"), ""),
    "others use sbrk": (("2", "20000", "foreign"), ""),
    "sbrk fails": (("2", "20000", "blocked"), ""),
    "huge pages": (("2", "4000"), "hugetlb=1"),
    "small heaps": (("2", "4000"), "hugetlb=2"),
    "no thread caches": (("2", "4000"), "tcache_count=0"),
    "long lists in no order": (("0", "500000", "shuffled"), ""),
    "large thread caches": (("2", "4000"), "tcache_max=300000"),
}


def tuned(tunable: str) -> dict[str, str]:
    return {"GLIBC_TUNABLES": f"glibc.malloc.{tunable}"} if tunable else {}


def check_sums(walked: Walked, truth: dict[str, int]) -> None:
    """Malloc counts fences, addresses that others took and the records of arenas (2 KiB each) as used."""
    used = walked.total("live_bytes", "tcache_bytes", "foreign_bytes")
    assert used == pytest.approx(truth["used"], rel=0.001)
    assert walked.total("free_bytes", "fastbin_bytes", "top_bytes") == pytest.approx(
        truth["free"], rel=0.0001
    )
    assert walked.total("fastbin_bytes") == truth["fast"]
    assert walked.told["mmapped_bytes"] == truth["mmapped"] == walked.told["mmapped_bytes_counted"]
    assert walked.told["mmapped_chunks"] == walked.told["mmapped_chunks_counted"]
    assert (walked.status, walked.told["broken"], walked.told["explained_share"]) == (0, [], 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("linking", ["shared", "static"])
def test_sums(mode: str, linking: str, walker: Path, compile_c: Compile) -> None:
    flags = ["-static"] if linking == "static" else []
    program = compile_c(HERE / "shadow.c", "-Wno-deprecated-declarations", *flags)
    arguments, tunable = MODES[mode]
    with waiting(program, *arguments, variables=tuned(tunable)) as process:
        truth = asked(process, "i")
        walked = walk(walker, process.pid)
        check_sums(walked, truth)
        trimmed = asked(process, "t")
    returned = (trimmed["before"] - trimmed["after"]) * 1024
    assert walked.resident("free_whole") == pytest.approx(returned, rel=0.02, abs=MIB)


def test_resident_lines_add_up(walker: Path, shadow: Path) -> None:
    with waiting(shadow, "3", "20000") as process:
        asked(process, "i")
        walked = walk(walker, process.pid)
        status = Path(f"/proc/{process.pid}/status").read_text()
    anonymous = int(status.partition("RssAnon:")[2].split()[0]) * 1024
    keys = walked.told["arenas"][0]["resident"]
    lines = sum(walked.resident(key) for key in keys) + walked.told["mmapped_resident"]
    assert lines == pytest.approx(anonymous, abs=MIB)  # stacks, and the libraries' data


def test_blocks_are_those_of_the_figures(walker: Path, shadow: Path, tmp_path: Path) -> None:
    with waiting(shadow, "3", "5000") as process:
        asked(process, "i")
        walked = walk(walker, process.pid, "--blocks", tmp_path / "blocks")
    blocks = list(RECORD.iter_unpack((tmp_path / "blocks").read_bytes()))
    assert blocks == sorted(blocks)
    assert len({address for address, _ in blocks}) == len(blocks)
    counts = dict.fromkeys(STATES, 0)
    for _, word in blocks:
        counts[STATES[word & 7]] += 1
    assert counts == {
        "live": walked.total("live_chunks") + walked.told["mmapped_chunks"],
        "free": walked.total("free_chunks"),
        "cached": walked.total("tcache_chunks", "fastbin_chunks"),
        "unknown": 0,
        "top": len(walked.told["arenas"]),
    }
    sizes = [sum(row[column] for row in walked.told["sizes"]) for column in (1, 2, 3)]
    assert sizes == [walked.total("live_chunks"), counts["cached"], counts["free"]]
    usable = sum((word >> 3) + 8 for _, word in blocks if word & 7 == 1)
    assert usable == walked.total("free_bytes")


@pytest.mark.parametrize("mode", ["foreign", "shuffled"])
def test_one_walk_of_a_stopped_program(mode: str, walker: Path, shadow: Path, tmp_path: Path) -> None:
    blocks = tmp_path / "blocks"
    with waiting(shadow, "3", "20000", mode, variables=tuned("tcache_count=50")) as process:
        asked(process, "i")
        twice, blocks_of_two = walk(walker, process.pid, "--blocks", blocks).told, blocks.read_bytes()
        once = walk(walker, process.pid, "--stopped", blocks).told
    assert blocks.read_bytes() == blocks_of_two
    for told in (once, twice):
        del told["seconds"]
        for arena in told["arenas"]:
            del arena["resident"], arena["top_whole"]
    assert once == twice


@pytest.mark.parametrize("arenas", ["8", "1"])
@pytest.mark.parametrize(
    "walks", [3, pytest.param(50, marks=pytest.mark.long("two minutes of a program at full speed"))]
)
def test_a_busy_program_looks_healthy(arenas: str, walks: int, walker: Path, shadow: Path) -> None:
    variables = {"MALLOC_ARENA_MAX": arenas}
    with waiting(shadow, "8", "3000", "busy", variables=variables) as process:
        asked(process, "i")
        for _ in range(walks):
            walked = walk(walker, process.pid)
            assert (walked.status, walked.told["broken"]) == (0, [])
            assert walked.told["explained_share"] >= 0.99


def test_the_library_was_deleted_since(walker: Path, shadow: Path, tmp_path: Path) -> None:
    """As after an upgrade."""
    with waiting(shadow, "0", "10") as process:
        asked(process, "i")
        usual = walk(walker, process.pid).told["libc"]
        maps = Path(f"/proc/{process.pid}/maps").read_text()
    library = next(word for word in maps.split() if word.endswith("/libc.so.6"))
    copy = Path(shutil.copy(library, tmp_path))
    with waiting(shadow, "0", "10", variables={"LD_LIBRARY_PATH": str(tmp_path)}) as process:
        asked(process, "i")
        copy.unlink()
        assert walk(walker, process.pid).told["libc"] == usual is not None


def test_a_large_heap_takes_little(walker: Path, shadow: Path) -> None:
    """Memory for 10 million chunks stays below 200 MiB: here for three millions with half of that."""
    with waiting(shadow, "0", "3000000", "small") as process:
        asked(process, "i")
        limited = ["sh", "-c", f'ulimit -v 102400; exec "$0" {process.pid}', walker]
        told = json.loads(subprocess.run(limited, capture_output=True, check=True).stdout)
    arena = told["arenas"][0]
    assert arena["live_chunks"] + arena["free_chunks"] > 1_400_000
