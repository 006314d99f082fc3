"""A block much larger than the machine's memory, as the tool sees it: inside it chunks have no records."""

import subprocess
from pathlib import Path

import pytest
from tool.processes import hakmem_json, runs

BYTES = 200 << 30
MIB = 1 << 20
STRICT = "2"

pytestmark = pytest.mark.skipif(
    Path("/proc/sys/vm/overcommit_memory").read_text().strip() == STRICT,
    reason="the kernel has no such blocks under strict overcommit",
)


huge = runs("huge.c", HAKMEM_HELPER_THREAD="0")


def said(process: subprocess.Popen[str]) -> list[int]:
    """The block, its middle, the block that it points to there, the one that nothing points to."""
    return [int(word, 16) for word in process.said[0].split()]  # type: ignore[attr-defined]


def test_any_address_inside_is_the_blocks(huge: subprocess.Popen[str]) -> None:
    block, middle, *_ = said(huge)
    for address in (block, middle, block + BYTES - 1, block + BYTES // 3):
        answer = hakmem_json("what", huge.pid, hex(address))
        assert (answer["start"], answer["tier"], answer["state"]) == (hex(block), "big", "live")
        assert answer["offset"] == address - block


def test_what_it_points_to_is_reachable(huge: subprocess.Popen[str]) -> None:
    _, middle, inner, _ = said(huge)
    pointers = hakmem_json("what", huge.pid, hex(inner))["referrers"]
    assert [pointer["address"] for pointer in pointers] == [hex(middle)]


@pytest.mark.long("12 seconds; the scan is that of smaller programs")
def test_leaks_look_into_it(huge: subprocess.Popen[str]) -> None:
    found = hakmem_json("leaks", huge.pid, "--freeze")
    assert found["definite"]["blocks"] == 1, "the lost one, and not what the huge block points to"
    assert found["live"]["blocks"] == 3


def test_it_is_counted_once(huge: subprocess.Popen[str]) -> None:
    figures = hakmem_json("stat", huge.pid)
    assert BYTES <= figures["memory"]["live_bytes"] < BYTES + MIB
    assert figures["memory"]["metadata_bytes"] < MIB
