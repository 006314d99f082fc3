"""A broken heap of glibc's is found before glibc finds it; a healthy one is not broken, whatever it does."""

from pathlib import Path
from typing import Any

import pytest
from anyprocess.conftest import Process, Start
from hakmem.target.glibc import walk
from hakmem.target.target import open_process
from results import Compile
from tool.conftest import Tool

HEADER_BYTES = 16
WRITES_BEYOND, AFTER_FREE = "wrote beyond that block", "wrote into the chunk after it had freed it"
KINDS = {
    "overflow-1": WRITES_BEYOND,
    "overflow-16": WRITES_BEYOND,
    "free-links": AFTER_FREE,
    "tcache-next": AFTER_FREE,
    "tcache-twice": "or freed it twice",
    "fastbin-twice": "or freed it twice",
}


def damaged(start: Start, compile_c: Compile, kind: str) -> tuple[Process, int]:
    """And the address of the block."""
    source = Path(__file__).parents[1] / "walk" / "damage.c"
    process = start([compile_c(source), kind], ready=None)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@pytest.mark.parametrize("kind", KINDS)
def test_the_chunk_and_the_block_before_it_are_named(
    start: Start, compile_c: Compile, tool: Tool, kind: str
) -> None:
    process, block = damaged(start, compile_c, kind)
    answer: dict[str, Any] = tool.json("why", process.pid)
    (found,) = answer["broken"]
    before = found["before"]
    assert found["chunk"] + HEADER_BYTES == block
    # A block's last 8 bytes are the next chunk's.
    assert 0 <= found["chunk"] + 8 - (before["address"] + before["bytes"]) <= HEADER_BYTES
    first = tool(process.pid)
    assert first.status == 0
    for text in (answer["verdict"], " ".join(first.stdout.split())):
        assert f"broken at chunk {found['chunk']:#x}, after the {before['state']} block" in text
        assert f"{before['bytes']:,} bytes at {before['address']:#x}" in text
        assert KINDS[kind] in text
    assert f"HAKMEM_HARDEN=1 hakmem run -- {Path(process.args[0]).name[:15]}" in first.stdout  # type: ignore[index]
    assert process.poll() is None


def test_malloc_does_not_hold_its_chunks(start: Start, compile_c: Compile, tool: Tool) -> None:
    """Its arena points to the chunk behind this block: that is no reference of the program's."""
    process, block = damaged(start, compile_c, "tcache-next")
    answer = tool.json("what", process.pid, hex(block))
    assert answer["state"] == "magazine"
    assert not [one for one in answer["referrers"] if "libc" in one["where"]], answer["referrers"]
    text = tool("what", process.pid, hex(block)).stdout
    assert "Big" not in text
    assert "owner" not in text


@pytest.mark.long("20 seconds beside a busy program; test_why.py has a short one")
def test_threads_at_full_speed_break_nothing(shape: Start) -> None:
    target = open_process(shape("hurried").pid)
    for _ in range(20):
        heap = walk(target)
        assert not heap.broken
        assert heap.explained_share >= 0.99
