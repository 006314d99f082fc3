"""A program as the tool's child that looks, to its user, as if it had been started without the tool.

Same terminal and process group: Ctrl-C and Ctrl-Z reach it directly.  Signals that a user sends to the tool
are forwarded.  The tool ends as the program did: with its status, or by the same signal."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from hakmem.base.errors import CommandError, HakmemError
from hakmem.base.signals import die_of

FORWARDED = {
    signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGWINCH, signal.SIGALRM,
}  # fmt: skip
STEP_S = 0.05
SI_KERNEL = 0x80  # from the terminal: the program has it, too


@dataclass
class Child:
    """The program, from its start to the tool's end."""

    pid: int
    pidfd: int  # -1 on kernels without them: then it is asked for
    status: int | None = None  # its exit status; of a signal that killed it the negated number

    @property
    def has_ended(self) -> bool:
        """Whether it has ended; it is not reaped, so that its PID is not reused."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def forward(self) -> None:
        while (got := signal.sigtimedwait(FORWARDED, 0)) is not None:
            if got.si_code < SI_KERNEL:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, got.si_signo)

    def wait(self) -> None:
        while self.status is None:
            self.forward()
            if self.has_ended:
                self.reap()
            else:
                time.sleep(STEP_S)

    def reap(self) -> None:
        """After its end.  From now on signals are the tool's own: Ctrl-C ends its writing."""
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        while signal.sigtimedwait(FORWARDED, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)

    def leave(self) -> NoReturn:
        """As it did."""
        assert self.status is not None
        if self.status < 0:
            with suppress(OSError, ValueError):  # one core dump is enough
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            die_of(-self.status)
        raise SystemExit(self.status)

    def how_it_ended(self) -> str:
        assert self.status is not None
        if self.status < 0:
            return f"was killed by signal {-self.status} ({signal.strsignal(-self.status)})"
        return f"ended with exit status {self.status}"


def start(execute: Callable[[], NoReturn]) -> Child:
    """`execute` replaces the new process; a CommandError that it raises there is raised here."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    reading, writing = os.pipe()  # closed by exec
    try:
        pid = os.fork()
    except OSError as error:
        raise HakmemError(f"cannot start a process: {error.strerror}") from None
    if pid == 0:
        _become(execute, writing, before)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        failure = file.read()
    if failure:
        os.waitpid(pid, 0)
        code, _, message = failure.decode(errors="replace").partition(" ")
        raise CommandError(message, int(code))
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        pidfd = -1
    return Child(pid, pidfd)


def _become(execute: Callable[[], NoReturn], writing: int, mask: set[int | signal.Signals]) -> NoReturn:
    """In the new process."""
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        execute()
    except CommandError as error:
        os.write(writing, f"{error.exit_code} {error}".encode(errors="replace"))
    except BaseException as error:  # it must not go on as a second tool
        os.write(writing, f"{CommandError.NOT_EXECUTABLE} cannot start it: {error}".encode(errors="replace"))
    finally:
        os._exit(CommandError.NOT_EXECUTABLE)
