"""How the tool ends on a signal.

Ctrl-C, SIGTERM, SIGHUP and SIGPIPE kill it as they kill any program, at once and silently: nothing needs
cleaning up.  Where something does, the code runs as `stoppable`: there the signal becomes an exception, and
after the clean-up the tool kills itself with the same signal (`die_of`), so that shells see it.  The
exception may come after any instruction; steps that belong together run as `deferred`."""

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


class _Deferral:
    """How many `deferred` are open, and the signal that came meanwhile."""

    depth = 0
    number = 0


def _stop(number: int, _frame: FrameType | None) -> None:
    if _Deferral.depth:
        _Deferral.number = number
    else:
        raise Stopped(number)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def stoppable() -> Iterator[None]:
    """Signals that end the tool raise Stopped in here.  A signal that was ignored at start (nohup, a
    background job) stays ignored.  Outside the main thread, which receives the signals, nothing changes."""
    if not _is_main_thread():
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


@contextmanager
def deferred() -> Iterator[None]:
    """A signal that would raise Stopped in here raises it at the end.  For steps that end soon: nothing
    interrupts them.  Outside the main thread nothing changes."""
    if not _is_main_thread():
        yield
        return
    _Deferral.depth += 1
    try:
        yield
    finally:
        _Deferral.depth -= 1
        if _Deferral.number and not _Deferral.depth:
            number, _Deferral.number = _Deferral.number, 0
            raise Stopped(number)


def die_of(number: int) -> NoReturn:
    """As if the signal had not been caught.  Where that is impossible (the first process of a container),
    with the status that shells report for it."""
    with suppress(OSError):  # SIGKILL cannot be set
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
