"""`hakmem run --trace`: records the program that was started, from its first malloc to its end.

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
from hakmem.base.sizes import bytes_text, count_text, counted
from hakmem.launch.child import Child
from hakmem.launch.keepers import Keeper, Listener
from hakmem.profile.session import require_profiles
from hakmem.target.process import Process
from hakmem.target.switch import Switch
from hakmem.target.target import open_process
from hakmem.trace.file import Writer, resolved
from hakmem.trace.memory import Memory
from hakmem.trace.record import LEASE_S, Session, head_of

STEP_S = 0.01
UNKEPT_AFTER_S = 0.5  # no keeper by then: the process is read without one
GONE = "the process ended, its memory with it: its last events are missing"


@dataclass
class Image:
    """One program that the process ran."""

    title: str
    writer: Writer
    session: Session
    began_s: float
    ended: str = ""
    seconds: float = 0.0


@dataclass
class Tracing:
    """The programs of one `hakmem run --trace`: one, unless it calls exec."""

    child: Child
    listener: Listener
    path: Path
    say: Callable[[str], None]
    notes_of: Callable[[dict[str, Any], int], list[str]]  # on the last line of a file
    images: list[Image] = field(default_factory=list)
    others: set[int] = field(default_factory=set)  # PIDs of programs that are not recorded
    why_not: str = "it did not allocate on hakmem, or ended before it could be read"
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
            self._write(image, number)
        self._sum_up()

    def _leave_out(self) -> None:
        """Shells and shims, which executed a program that did more."""
        for image in [one for one in self.images[:-1] if one.session.count < self.images[-1].session.count]:
            image.writer.drop()
            self.images.remove(image)
            self.say(f"{image.title} executed another program after {duration_text(image.seconds)}: no file")

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
            require_profiles(target)
            with Switch(target) as switch:
                number = f".{len(self.images)}" if self.images else ""
                writer = Writer(
                    self.path.with_name(f"{self.path.name}{number}.part"),
                    head_of(target) | {"pid": self.child.pid},
                )
                session = Session(target, switch, writer)
                image = Image(Process(self.child.pid).name, writer, session, time.monotonic())
                self.images.append(image)
                switch.trace(LEASE_S)
                answer()
                self._follow(image)
                image.seconds = time.monotonic() - image.began_s
                if image.ended:
                    with suppress(HakmemError):
                        switch.trace(0)
        except HakmemError as error:
            self.why_not = str(error)

    def _follow(self, image: Image) -> None:
        try:
            image.session.run(self._is_over, lambda *_: None)
            image.ended = image.session.ended
        except (ProcessGoneError, UnreadableError):
            image.ended = GONE
        except HakmemError as error:  # a full disk: the program goes on
            image.ended = str(error)

    def _write(self, image: Image, number: int) -> None:
        """The last program has the name that was asked for."""
        is_last = number == len(self.images)
        how = self.child.how_it_ended() if is_last else "executed another program"
        path = self.path if is_last else self.path.with_stem(f"{self.path.stem}.exec{number}")
        lives, lost = resolved(image.session.take_words())
        memory = Memory.of(image.session.memory.rows)
        end = image.writer.replace_by(path, lives, memory, image.ended or how, lost, image.seconds)
        image.writer.close()
        events, size = count_text(len(lives.events)), bytes_text(path.stat().st_size)
        self.say(f"{path}: {events} events, {size}; {image.title} (PID {self.child.pid}) {how}")
        for note in [*filter(None, [image.ended]), *self.notes_of(end, lost)]:
            self.say(note)

    def _sum_up(self) -> None:
        if not self.images:
            self.say(f"no trace of PID {self.child.pid}, which {self.child.how_it_ended()}: {self.why_not}")
        if self.others:
            self.say(
                f"{counted(len(self.others), 'other process', 'other processes')} on hakmem, started by it, "
                f"{'was' if len(self.others) == 1 else 'were'} not recorded"
            )
