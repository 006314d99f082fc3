"""`hakmem run -o FILE.hkt`: records the program that was started, from its first malloc to its end.

    child ── starts with HAKMEM_PROFILE=trace ── its keeper reports ── rings are emptied ── ends ── files

The program waits at its start until the tool has opened it, a second at most.  The keeper holds its last
events until they are read.  A program started by exec is recorded in its turn."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError, ProcessGoneError, UnreadableError
from hakmem.base.sizes import bytes_text, count_text
from hakmem.launch.child import Child
from hakmem.launch.keepers import NEVER_READ, Keeper, Listener, unfollowed
from hakmem.target.process import Process
from hakmem.target.switch import Switch
from hakmem.target.target import open_process
from hakmem.trace.record import LEASE_S, Bar, Session

STEP_S = 0.01
UNKEPT_AFTER_S = 0.5  # no keeper by then: the process is read without one
GONE = "the process ended, its memory with it: its last events are missing"


@dataclass
class Tracing:
    """The programs of one `hakmem run -o FILE.hkt`: one, unless it calls exec."""

    child: Child
    listener: Listener
    path: Path
    say: Callable[[str], None]
    notes_of: Callable[[dict[str, Any] | None, int], list[str]]  # on the last line of a file
    bar: Bar
    images: list[tuple[str, Session]] = field(default_factory=list)  # each with what it called itself
    others: set[int] = field(default_factory=set)  # PIDs of programs that are not recorded
    why_not: str = NEVER_READ
    _next: Keeper | None = None  # of the child's next program

    def run(self) -> None:
        """Until the child has ended and its files are written."""
        began_s = time.monotonic()
        while True:
            is_over = self._is_over()
            keeper, self._next = self._next, None
            if keeper is not None:
                began_s = time.monotonic()
                self._record(keeper.keeper_pid, keeper.answer)
                keeper.release()
            elif is_over:
                break
            elif began_s and time.monotonic() - began_s > UNKEPT_AFTER_S:
                began_s = 0.0
                self._record(self.child.pid, lambda: None)
            else:
                select.select([self.listener.socket], [], [], STEP_S)
        self.child.reap()
        self._leave_out()
        for number, image in enumerate(self.images, 1):
            self._write(*image, number)
        self._sum_up()

    def _leave_out(self) -> None:
        """Shells and shims, which executed a program that did more."""
        for image in [one for one in self.images[:-1] if one[1].count < self.images[-1][1].count]:
            title, session = image
            session.writer.drop()
            self.images.remove(image)
            self.say(f"{title} executed another program after {duration_text(session.seconds)}: no file")

    def _is_over(self) -> bool:
        """Whether the program that runs is to be read for the last time.  Passes signals on."""
        self.child.forward()
        has_ended = self.child.has_ended  # before the arrivals: a keeper that reported before is seen
        for keeper in self.listener.arrivals():
            if keeper.pid == self.child.pid and self._next is None:
                self._next = keeper
            else:
                self.others |= {keeper.pid} - {self.child.pid}
                keeper.release()
        return has_ended or self._next is not None

    def _record(self, pid: int, answer: Callable[[], None]) -> None:
        """`pid`: the process whose memory is read, the keeper's or the child's.  The program waits for the
        answer at its start."""
        try:
            target = open_process(pid)
            with Switch(target) as switch:
                number = f".{len(self.images)}" if self.images else ""
                path = self.path.with_name(self.path.name + number)
                session = Session(target, switch, path, self.child.pid)
                self.images.append((Process(self.child.pid).name, session))
                switch.trace(LEASE_S)
                answer()
                try:
                    session.run(self._is_over, lambda *_: None)
                    session.counted = session.memory.counted()
                except (ProcessGoneError, UnreadableError):
                    session.ended = GONE
                except HakmemError as error:  # a full disk: the program goes on
                    session.ended = str(error)
                if session.ended:
                    with suppress(HakmemError):
                        switch.trace(0)
        except HakmemError as error:
            self.why_not = str(error)

    def _write(self, title: str, session: Session, number: int) -> None:
        """The last program has the name that was asked for."""
        is_last = number == len(self.images)
        how = self.child.how_it_ended() if is_last else "executed another program"
        path = self.path if is_last else self.path.with_stem(f"{self.path.stem}.exec{number}")
        with self.bar(f"writing {path.name}", None) as advance:
            end = session.write(path, how, advance)
        events, size = count_text(end["events"]), bytes_text(path.stat().st_size)
        self.say(f"{path}: {events} events, {size}; {title} (PID {self.child.pid}) {how}")
        for note in [*filter(None, [session.ended]), *self.notes_of(end, end["lost"])]:
            self.say(note)

    def _sum_up(self) -> None:
        if not self.images:
            self.say(f"no trace of PID {self.child.pid}, which {self.child.how_it_ended()}: {self.why_not}")
        if self.others:
            self.say(unfollowed(len(self.others), "recorded"))
