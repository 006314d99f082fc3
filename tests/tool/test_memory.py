"""Reading memory: many pieces, large ones, ones that are not there; where the system call is forbidden."""

import ctypes
import errno
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hakmem.base.errors import ProcessGoneError, UnreadableError
from hakmem.census.snapshot import open_process, take
from hakmem.layout.memory import PAGE_BYTES
from hakmem.target import live_memory as module
from hakmem.target.live_memory import ProcessMemory
from hakmem.target.process import Process
from tool.conftest import Stepper

ME = os.getpid()


class NoSystemCall:
    """A C library in a sandbox that forbids process_vm_readv."""

    def process_vm_readv(self, *_: object) -> int:
        ctypes.set_errno(errno.EPERM)
        return -1


@pytest.fixture(params=["system call", "file"])
def own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ProcessMemory:
    """This process's memory, by either way."""
    if request.param == "file":
        monkeypatch.setattr(module, "_libc", NoSystemCall)
    return ProcessMemory(Process(ME))


def test_pieces_come_in_their_order(own: ProcessMemory) -> None:
    numbers = np.arange(10_000, dtype=np.uint64)
    begin = numbers.ctypes.data
    wanted = [5, 9999, 0, *range(3000)]  # more pieces than one call takes
    pieces = [(begin + 8 * number, 8) for number in wanted]
    assert [int.from_bytes(data, "little") for data in own.read_many(pieces)] == wanted
    assert own.records([begin + 8 * number for number in wanted], np.dtype("u8")).tolist() == wanted
    assert own.array(begin, np.dtype("u8"), 10_000).tolist() == numbers.tolist()
    assert own.read_many([]) == []


def test_pieces_larger_than_one_call(own: ProcessMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_BYTES_MAX", 1000)
    data = np.random.default_rng(1).integers(0, 255, 10_000, np.uint8)
    pieces = [(data.ctypes.data, 2500), (data.ctypes.data + 2500, 10), (data.ctypes.data + 2510, 7490)]
    assert b"".join(own.read_many(pieces)) == data.tobytes()


def test_short_answers_are_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module._process_vm_readv
    monkeypatch.setattr(module, "_process_vm_readv", lambda pid, part, pieces: real(pid, part[:7], pieces))
    data = np.arange(100, dtype=np.uint8)
    pieces = [(data.ctypes.data + begin, 10) for begin in range(0, 100, 10)]
    assert b"".join(ProcessMemory(Process(ME)).read_many(pieces)) == data.tobytes()


@pytest.fixture
def last_page() -> Iterator[int]:
    """The address of a page behind which nothing is mapped."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    begin = libc.mmap(None, ctypes.c_size_t(2 * PAGE_BYTES), mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    libc.munmap(ctypes.c_void_p(begin + PAGE_BYTES), PAGE_BYTES)
    yield begin
    libc.munmap(ctypes.c_void_p(begin), PAGE_BYTES)


def test_what_is_not_there_is_said(own: ProcessMemory, last_page: int) -> None:
    end = last_page + PAGE_BYTES
    assert own.read(last_page, PAGE_BYTES) == bytes(PAGE_BYTES)
    for address, count in ((end, 1), (end - 8, 16), (8, 8), (2**63, 8)):
        with pytest.raises(UnreadableError):
            own.read(address, count)


def test_texts_end_at_their_nul(own: ProcessMemory, last_page: int) -> None:
    ctypes.memmove(last_page + PAGE_BYTES - 4, b"abc\0", 4)
    assert own.text(last_page + PAGE_BYTES - 4) == "abc"
    assert own.text(0) == ""


def test_a_sandbox_without_the_system_call_reads_the_same(
    compiled: Callable[..., Path], stepper: Callable[..., Stepper], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = stepper([compiled("blocks"), "100:1000", "70000:5"], "begun")
    program.go_on("allocated")
    usual = take(open_process(program.pid))
    monkeypatch.setattr(module, "_libc", NoSystemCall)
    target = open_process(program.pid)
    assert take(target).classes == usual.classes
    program.end()
    with pytest.raises(ProcessGoneError):
        take(target)
