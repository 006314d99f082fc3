"""Damage of each kind is found, and at the right chunk; a healthy heap has none."""

from pathlib import Path

import pytest
from results import Compile

from walk.conftest import HERE
from walk.walking import said, waiting, walk

HEADER_BYTES = 16
KINDS = {
    "overflow-1": "size",
    "overflow-0": "size",
    "overflow-16": "size",
    "overflow-top": "size",
    "free-links": "links",
    "free-bk": "links",
    "tcache-next": "tcache",
    "tcache-twice": "tcache",
    "fastbin-next": "fastbin",
    "fastbin-twice": "fastbin",
    "fastbin-far": "fastbin",
}


@pytest.mark.parametrize("arena", [[], ["thread"]], ids=["main", "thread"])
@pytest.mark.parametrize("kind", KINDS)
def test_damage(kind: str, arena: list[str], walker: Path, compile_c: Compile) -> None:
    with waiting(compile_c(HERE / "damage.c"), kind, *arena) as process:
        block = said(process)
        walked = walk(walker, process.pid)
    found = walked.told["broken"]
    assert (walked.status, len(found)) == (3, 1)
    assert (found[0]["what"], found[0]["chunk"] + HEADER_BYTES) == (KINDS[kind], block)
    before = found[0]["before"]
    assert 0 <= block - HEADER_BYTES - (before["address"] + before["bytes"]) + 8 <= HEADER_BYTES
    assert walked.told["explained_share"] >= 0.99


@pytest.mark.parametrize("arena", [[], ["thread"]], ids=["main", "thread"])
def test_a_chunk_that_became_smaller(arena: list[str], walker: Path, compile_c: Compile) -> None:
    """The chain breaks in the middle of its block: both blocks that may have been overrun are named."""
    with waiting(compile_c(HERE / "damage.c"), "shrunk", *arena) as process:
        block = said(process)
        (found,) = walk(walker, process.pid).told["broken"]
    assert (found["what"], found["before"]["address"]) == ("size", block)
    assert f"unless one byte beyond the block at {block - 0x190:#x}" in found["detail"]


def test_no_damage(walker: Path, compile_c: Compile) -> None:
    with waiting(compile_c(HERE / "damage.c"), "healthy") as process:
        said(process)
        assert walk(walker, process.pid).told["broken"] == []
