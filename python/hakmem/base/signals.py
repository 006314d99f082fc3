"""How the tool ends on a signal.

Ctrl-C, SIGTERM, SIGHUP and SIGPIPE kill it as they kill any program, at once and silently: nothing needs
cleaning up.  Where something does, the code runs as `stoppable`: there the signal becomes an exception, and
after the clean-up the tool kills itself with the same signal (`die_of`), so that shells see it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal ends the tool.  Not an Exception: no error handler may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    raise Stopped(number)


@contextmanager
def stoppable() -> Iterator[None]:
    """Signals that end the tool raise Stopped in here.  A signal that was ignored at start (nohup, a
    background job) stays ignored.  Outside the main thread, which receives the signals, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _stop)
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: not set by Python, which cannot restore it
                signal.signal(number, handler)


def die_of(number: int) -> NoReturn:
    """As if the signal had not been caught.  Where that is impossible (the first process of a container),
    with the status that shells report for it."""
    with suppress(OSError):  # SIGKILL cannot be set
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def ignore_broken_pipes() -> None:
    """For a server: a client that hangs up must not end it."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
