"""Signals that end `hakmem top`: the terminal is restored, if it still exists."""

from __future__ import annotations

import errno
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hakmem.base.signals import SIGNALS, die_of
from hakmem.views.top import TopApp

STOPPED_WITHIN_S = 3  # then at once, whatever the state of the terminal


@contextmanager
def leaving_in_order(app: TopApp) -> Iterator[None]:
    """Wraps app.run().  Its handler does without the app: textual waits forever for a terminal that hangs."""

    def stop(number: int, _frame: FrameType | None) -> None:
        if is_gone():
            die_of(number)
        signal.signal(signal.SIGALRM, lambda *_: die_of(number))
        signal.alarm(STOPPED_WITHIN_S)
        app.stop(number)

    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, stop)
    yield
    signal.alarm(0)
    if app.stopped_by is not None:
        die_of(app.stopped_by)
    for number in handled:
        signal.signal(number, signal.SIG_DFL)


def is_gone() -> bool:
    """Whether the terminal was closed, or its connection broke."""
    try:
        termios.tcgetattr(0)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False
