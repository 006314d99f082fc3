"""All processes of the machine that run on hakmem, found repeatedly at little cost.

A process's allocator is fixed when its program is loaded, so a process is examined once per program that it
executes; one without hakmem is not examined again."""

from __future__ import annotations

import os
from pathlib import Path

from hakmem.base.errors import AccessRefusedError, HakmemError, ProcessGoneError
from hakmem.target.allocators import HAKMEM
from hakmem.target.process import Process, all_processes
from hakmem.target.target import Target, open_process

Identity = tuple[int, int, str]  # PID, start time, executable
UPTIME = Path("/proc/uptime")
SETTLING_TICKS = 200  # a program that has just started may not have loaded its libraries yet


class Fleet:
    """The hakmem processes that this user may read."""

    def __init__(self) -> None:
        self._known: dict[Identity, Target | None] = {}
        self.refused = 0

    def targets(self) -> list[Target]:
        """The current ones.  `refused` counts the processes to which the kernel denied access."""
        self.refused = 0
        now: dict[Identity, Target | None] = {}
        for process in all_processes():
            if process.pid == os.getpid():
                continue
            try:
                identity = self._identity(process)
                now[identity] = self._known.get(identity) or self._look(process, identity)
            except AccessRefusedError:
                self.refused += 1
            except (ProcessGoneError, OSError):
                continue
        self._known = now
        return [target for target in now.values() if target is not None]

    def _identity(self, process: Process) -> Identity:
        try:
            executable = str(process.path("exe").readlink())
        except PermissionError:
            executable = ""
        except OSError:
            raise ProcessGoneError(f"process {process.pid} has no executable") from None
        return process.pid, process.start_ticks, executable

    def _look(self, process: Process, identity: Identity) -> Target | None:
        if identity in self._known:
            up_s = float(UPTIME.read_text().split()[0])
            if up_s * os.sysconf("SC_CLK_TCK") - process.start_ticks >= SETTLING_TICKS:
                return None
        try:
            target = open_process(process.pid)
        except (AccessRefusedError, ProcessGoneError):
            raise
        except HakmemError:
            return None
        return target if target.malloc == HAKMEM else None
