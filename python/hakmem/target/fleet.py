"""All processes of the machine that run on hakmem, found repeatedly at little cost.

A process's allocator is fixed when its program is loaded, so a process is examined once per program that it
executes; one without hakmem once more, when it has loaded its libraries."""

from __future__ import annotations

import os
import time

from hakmem.base.errors import AccessRefusedError, HakmemError, ProcessGoneError
from hakmem.target.allocators import HAKMEM
from hakmem.target.process import Process, all_processes
from hakmem.target.target import Target, open_process

Identity = tuple[int, int, str]  # PID, start time, executable
SETTLING_S = 2.0  # a program that has just started may not have loaded its libraries yet
# None: not on hakmem.  When it was seen first; 0 after it has been examined for the last time.
Seen = tuple[Target | None, float]


class Fleet:
    """The hakmem processes that this user may read."""

    def __init__(self) -> None:
        self._known: dict[Identity, Seen] = {}
        self.refused = 0

    def targets(self) -> list[Target]:
        """The current ones.  `refused` counts the processes to which the kernel denied access."""
        self.refused = 0
        now: dict[Identity, Seen] = {}
        for process in all_processes():
            if process.pid == os.getpid():
                continue
            try:
                identity = self._identity(process)
                now[identity] = self._look(process, *self._known.get(identity, (None, time.monotonic())))
            except AccessRefusedError:
                self.refused += 1
            except (ProcessGoneError, OSError):
                continue
        self._known = now
        return [target for target, _ in now.values() if target is not None]

    def _identity(self, process: Process) -> Identity:
        try:
            executable = str(process.path("exe").readlink())
        except PermissionError:
            executable = ""
        except OSError:
            raise ProcessGoneError(f"process {process.pid} has no executable") from None
        return process.pid, process.start_ticks, executable

    def _look(self, process: Process, target: Target | None, since_s: float) -> Seen:
        now_s = time.monotonic()
        if target is not None:
            if not target.is_gone:
                return target, since_s
            since_s = now_s  # it has executed the same file
        if not since_s:
            return None, since_s
        if now_s - since_s >= SETTLING_S:
            since_s = 0
        try:
            target = open_process(process.pid)
        except (AccessRefusedError, ProcessGoneError):
            raise
        except HakmemError:
            return None, since_s
        return target if target.malloc == HAKMEM else None, since_s
