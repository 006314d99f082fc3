"""The threads of a target: the part of the stack in use, and as many registers as can be seen.

running process   /proc/PID/task/TID/syscall: of a blocked thread the stack pointer and the arguments of
                  its system call, but not the registers that functions keep (rbx, rbp, r12 …); of a
                  running thread nothing
frozen process    all registers, by ptrace (freeze.py)
core              all registers, from its notes"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hakmem.base.errors import UnreadableError
from hakmem.layout.memory import Memory
from hakmem.target.corefile import CoreMemory
from hakmem.target.process import SYSCALL_WORDS_MIN, Mapping, Process

RED_ZONE_BYTES = 128  # below the stack pointer: a leaf function's, on x86-64
CONTROL_BLOCK_BYTES_MAX = 64 << 10  # of a thread's stack, at its top: the thread's control block
# Hidden registers that may hold a pointer, of a blocked thread and of a running one.
UNSEEN = {"x86_64": (6, 15), "aarch64": (12, 31)}
# In the kernel's struct elf_prstatus: where the registers begin, and the number of the stack pointer's.
PRSTATUS_REGISTERS = 112
STACK_REGISTER = {"x86_64": 19, "aarch64": 31}
PRSTATUS_PID = 32


@dataclass(frozen=True)
class Thread:
    """One thread at one moment."""

    thread_id: int
    stack_pointer: int | None  # None: it runs
    registers: tuple[int, ...]  # those that are known
    unseen_registers: int

    def stack_start(self, memory: Memory, mapping: Mapping) -> int:
        """Where the part in use of its stack begins; 0 if the mapping may hold other stacks too: then all
        of it is in use."""
        assert self.stack_pointer is not None
        if not (mapping.path.startswith("[stack") or has_control_block(memory, mapping)):
            return 0
        return (self.stack_pointer - RED_ZONE_BYTES) & ~7


def has_control_block(memory: Memory, mapping: Mapping) -> bool:
    """Does glibc's control block of a thread lie at the mapping's end, as on stacks that pthread_create
    makes?  It points at itself twice (x86-64)."""
    start = max(mapping.start, mapping.end - CONTROL_BLOCK_BYTES_MAX)
    try:
        words = memory.array(start, np.dtype("u8"), (mapping.end - start) // 8)
    except UnreadableError:
        return False
    places = start + np.arange(len(words), dtype=np.uint64) * np.uint64(8)
    return bool(((words[:-2] == places[:-2]) & (words[2:] == places[:-2])).any())


def threads_of(process: Process) -> list[Thread]:
    """The threads of a running process; threads that end meanwhile are left out."""
    blocked, running = UNSEEN.get(platform.machine(), UNSEEN["aarch64"])
    found = []
    for thread_id, words in process.system_calls().items():
        if len(words) < SYSCALL_WORDS_MIN:
            found.append(Thread(thread_id, None, (), running))
        else:
            arguments = tuple(int(word, 16) for word in words[1:-2])
            unseen = blocked if arguments else running
            found.append(Thread(thread_id, int(words[-2], 16), arguments, unseen))
    return found


def threads_of_core(core: CoreMemory) -> list[Thread]:
    found: list[Thread] = []
    number = STACK_REGISTER.get(core.machine, 0)
    for status, others in core.thread_notes:
        words = np.frombuffer(status[: len(status) // 8 * 8], "<u8")
        first = PRSTATUS_REGISTERS // 8
        if len(words) <= first + number:
            continue
        more = b"".join(note[: len(note) // 8 * 8] for note in others)
        registers = [*words[first:].tolist(), *np.frombuffer(more, "<u8").tolist()]
        thread_id = int.from_bytes(status[PRSTATUS_PID : PRSTATUS_PID + 4], "little")
        found.append(Thread(thread_id, int(words[first + number]), tuple(registers), 0))
    return found


def kernel_words(process: Process) -> list[int]:
    """Pointers that the program has left with the kernel only: the data of epoll's events and of timers."""
    found: list[int] = []
    with suppress(OSError):
        for name in os.listdir(process.path("fdinfo")):
            with suppress(OSError, ValueError):
                text = Path(process.path("fdinfo"), name).read_text(errors="replace")
                # tfd:        5 events:       19 data:     55d0c0a012a0  pos:0 …
                lines = [line.split() for line in text.splitlines() if line.startswith("tfd:")]
                found += [int(one[one.index("data:") + 1], 16) for one in lines if "data:" in one]
    with suppress(OSError, ValueError):
        timers = process.path("timers").read_text().splitlines()
        found += [int(line.rpartition("/")[2], 16) for line in timers if line.startswith("signal:")]
    return found
