"""Stops all threads of a process for a while, and sees their registers: ptrace.

Nothing is written into the process.  The kernel lets its threads go on when the tool lets go of them, and
also when the tool ends in any way, killed included; so the process cannot stay stopped.  A few system calls
(epoll_wait, sigtimedwait …) return EINTR to the program after a stop, as after a debugger's."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.base.signals import stoppable
from hakmem.blocks.threads import STACK_REGISTER, UNSEEN, Thread
from hakmem.target.access import refused
from hakmem.target.live_memory import Piece
from hakmem.target.process import Process

SEIZE, INTERRUPT, DETACH, GETREGSET = 0x4206, 0x4207, 17, 0x4204
NT_PRSTATUS, NT_PRFPREG, NT_X86_XSTATE = 1, 2, 0x202
REGISTER_BYTES_MAX = 16 << 10
PATIENCE_S = 10.0
STEP_S = 0.001
ROUNDS_MAX = 100  # of looking for threads that were made meanwhile
WALL = 0x40000000
EVENT_SHIFT = 16


@contextmanager
def frozen(process: Process) -> Iterator[list[Thread]]:
    """Within it the process is stopped."""
    stopped: dict[int, int] = {}
    with stoppable():
        try:
            _stop_all(process, stopped)
            process.is_stopped = True
            yield [_thread(thread_id) for thread_id in stopped]
        finally:
            process.is_stopped = False
            for thread_id, number in stopped.items():
                with suppress(OSError):
                    _ptrace(DETACH, thread_id, 0, number)


def _stop_all(process: Process, stopped: dict[int, int]) -> None:
    """Stops threads until no running one is found."""
    for _ in range(ROUNDS_MAX):
        fresh = [
            number for number in process.thread_ids() if number not in stopped and process.is_living(number)
        ]
        if not fresh:
            return
        for thread_id in fresh:
            _stop(process, thread_id, stopped)
    raise HakmemError(
        f"process {process.pid} makes threads faster than they can be stopped; try again without --freeze"
    )


def _stop(process: Process, thread_id: int, stopped: dict[int, int]) -> None:
    """Notes the signal that has come meanwhile: the thread gets it when it goes on."""
    try:
        _ptrace(SEIZE, thread_id, 0, 0)
        stopped[thread_id] = 0
        _ptrace(INTERRUPT, thread_id, 0, 0)
        stopped[thread_id] = _wait(process, thread_id)
    except OSError as error:
        if error.errno == errno.ESRCH or not process.is_living(thread_id):
            return
        raise _why_not(process) from None


def _why_not(process: Process) -> HakmemError:
    """A process has one tracer at most."""
    tracer = process.status().get("TracerPid", "0")
    if tracer != "0":
        return HakmemError(
            f"process {process.pid} is being debugged by process {tracer}, and a process has one debugger at "
            "most; leave out --freeze, or end that one"
        )
    return refused(process.pid)


def _wait(process: Process, thread_id: int) -> int:
    """Waits until it has stopped; returns the signal that it was about to get, or 0."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        found, status = os.waitpid(thread_id, os.WNOHANG | WALL)
        if found == thread_id:
            is_signal = os.WIFSTOPPED(status) and status >> EVENT_SHIFT == 0
            return os.WSTOPSIG(status) if is_signal else 0
        time.sleep(STEP_S)
    raise HakmemError(
        f"thread {thread_id} of process {process.pid} does not stop (it waits inside the kernel); try again "
        "without --freeze"
    )


def _thread(thread_id: int) -> Thread:
    machine = platform.machine()
    general = _registers(thread_id, NT_PRSTATUS)
    number = STACK_REGISTER.get(machine, 0)
    if len(general) <= number:
        return Thread(thread_id, None, (), UNSEEN.get(machine, UNSEEN["aarch64"])[1])
    wide = _registers(thread_id, NT_X86_XSTATE if machine == "x86_64" else NT_PRFPREG)
    return Thread(thread_id, general[number], (*general, *wide), 0)


def _registers(thread_id: int, kind: int) -> list[int]:
    data = ctypes.create_string_buffer(REGISTER_BYTES_MAX)
    piece = Piece(ctypes.addressof(data), REGISTER_BYTES_MAX)
    try:
        _ptrace(GETREGSET, thread_id, kind, ctypes.addressof(piece))
    except OSError:
        return []
    return [*map(int, np.frombuffer(data.raw, "<u8", piece.count // 8))]


def _ptrace(request: int, thread_id: int, address: int, data: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(request, thread_id, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
