"""The moment for which `leaks --freeze` stops a process."""

from pathlib import Path

import numpy as np
import pytest
from anyprocess.conftest import PROGRAMS, Start
from hakmem.blocks.leaks import Options, find_leaks
from hakmem.blocks.stopped import Finders, listed
from hakmem.target.target import open_process
from results import Compile

PAGE, PAGES = 4096, 200
BLOCK, BLOCK_BYTES = 0x5A5A00001000, 64
# Places in the memory, the last ones outside of what is searched; one page of it cannot be read.
WORDS = {
    8: BLOCK,
    PAGE: BLOCK + 8,
    70 * PAGE + 16: BLOCK + BLOCK_BYTES - 1,
    71 * PAGE: BLOCK - 1,
    71 * PAGE + 8: BLOCK + BLOCK_BYTES,
    0: BLOCK,
    PAGES * PAGE - 8: BLOCK,
}
FOUND = list(WORDS)[:3]
CODE = """
import ctypes, mmap
pages = mmap.mmap(-1, {pages} * {page})
begin = ctypes.addressof(ctypes.c_char.from_buffer(pages))
for place, value in {words}.items():
    ctypes.c_uint64.from_address(begin + place).value = value
ctypes.CDLL(None).mprotect(ctypes.c_void_p(begin + 2 * {page}), {page}, 0)
print("address", begin)
print("ready", flush=True)
input()
"""


def test_pointers_into_a_block(start: Start) -> None:
    code = CODE.format(pages=PAGES, page=PAGE, words=WORDS)
    process = start(["/usr/bin/python3", "-c", code])
    begin = process.parts["address"]

    def one(address: int, count: int) -> bytes:
        return listed(np.array([address], np.uint64), np.array([count], np.uint64))

    with Finders.started(open_process(process.pid), one(BLOCK, BLOCK_BYTES)) as finders:
        finders.send(one(begin + 8, PAGES * PAGE - 16))
        found = finders.pointers(finders.counts())
    assert {place - begin: value for place, value in found.tolist()} == {
        place: WORDS[place] for place in FOUND
    }


@pytest.mark.parametrize("malloc", ["glibc", "hakmem"])
def test_blocks_whose_pointers_always_move(start: Start, compile_c: Compile, lib: Path, malloc: str) -> None:
    """A scan suspects most of them; each stop clears them all."""
    variables = {"LD_PRELOAD": str(lib)} if malloc == "hakmem" else {}
    process = start([compile_c(PROGRAMS / "ring.c", "-pthread")], **variables)
    for _ in range(8):
        leaks = find_leaks(open_process(process.pid), Options(freeze=True))
        assert leaks.definite.blocks + leaks.perhaps.blocks == 0
