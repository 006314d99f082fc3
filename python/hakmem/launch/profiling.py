"""`hakmem run --profile`: watches the program that was started, and writes its profiles.

    child ── starts ── its keeper reports ── readings: latest, peak, --when ── ends ── last reading ── files

A program started by exec is profiled in its turn.  With %p in a file's name other processes that
run on hakmem are, too."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError
from hakmem.base.sizes import bytes_text, counted
from hakmem.launch.child import Child
from hakmem.launch.condition import Condition
from hakmem.launch.keepers import NEVER_READ, Keeper, Listener, unfollowed
from hakmem.launch.profiled import Program, Taken, program_of
from hakmem.launch.results import Results, Say, whose
from hakmem.profile.model import Mode

STEPS_S = (0.01, 0.05)  # between two looks: in the first second, and later
FIRST_S = 1.0
UNKEPT_AFTER_S = 0.5  # no keeper by then: it is looked for without one
LOOKED_FOR_EVERY_S = 0.25
# A program that called exec has a file from both on: shells and shims of version managers hold less.
SAMPLES_MIN = 10
HELD_MIN_BYTES = 256 << 10
# Names, and files of ended programs, wait 2 s: a new program may reach its peak, or meet the OOM killer.
CALM_S = 2.0


@dataclass(frozen=True)
class Plan:
    mode: Mode = Mode.LIVE
    period_bytes: int = 0
    conditions: Sequence[Condition] = ()


def _is_worth_a_file(program: Program) -> bool:
    held = [taken.live_bytes for taken in (program.peak, program.latest) if taken]
    return program.sample_count >= SAMPLES_MIN and max(held, default=0) >= HELD_MIN_BYTES


@dataclass
class Profiling:
    child: Child
    listener: Listener
    plan: Plan
    results: Results
    say: Say
    programs: dict[int, Program] = field(default_factory=dict)  # by PID
    done: dict[int, list[Program]] = field(default_factory=dict)  # ended, or left by exec, by PID
    ready: list[int] = field(default_factory=list)  # processes that have ended, to be written
    unnamed: list[tuple[Program, Taken, str]] = field(default_factory=list)  # written, but without names
    others: set[int] = field(default_factory=set)  # PIDs of programs on hakmem that are not profiled
    written: list[tuple[Program, str]] = field(default_factory=list)  # with the word in the files' names
    left_out: list[Program] = field(default_factory=list)  # sampled before an exec, but hardly
    met: set[tuple[int, str]] = field(default_factory=set)
    why_not: str = NEVER_READ
    _unserved_s: float = field(default_factory=time.monotonic)  # since when no program of the child is known
    _looked_s: float = 0.0
    _busy_s: float = 0.0  # when a program last began, or met a condition

    def run(self) -> None:
        """Until the child has ended and its profiles are written."""
        began_s = time.monotonic()
        poller = select.poll()
        poller.register(self.listener.socket, select.POLLIN)
        if self.child.pidfd >= 0:
            poller.register(self.child.pidfd, select.POLLIN)
        while True:
            step_s = STEPS_S[time.monotonic() - began_s > FIRST_S]
            poller.poll(1000 * step_s)
            self.child.forward()
            has_ended = self.child.has_ended  # before the arrivals: a keeper that reported before is seen
            for keeper in self.listener.arrivals():
                self._welcome(keeper)
            if has_ended:
                break
            if self.child.pid not in self.programs:
                self._look_for_child()
            for program in list(self.programs.values()):
                self._look(program)
            if time.monotonic() - self._busy_s > CALM_S:
                self._catch_up()
        self._end()

    def _catch_up(self) -> None:
        """One of the files that wait."""
        if self.unnamed:
            self.results.write(*self.unnamed.pop(0))
        elif self.ready:
            self._write(self.ready.pop(0))

    # ---- what runs -------------------------------------------------------------------------------------

    def _welcome(self, keeper: Keeper) -> None:
        is_child = keeper.pid == self.child.pid
        if not is_child and not self.results.is_for_each:
            self.others.add(keeper.pid)  # each fork and each exec has a keeper
            keeper.release()
            return
        known = self.programs.get(keeper.pid)
        try:
            if known is not None and known.keeper is None and not known.has_executed:
                known.adopt(keeper)
                return
            if known is not None:
                self._finish(known, "executed another program")
            self._begin(Program(keeper.pid, keeper, self.plan.mode, self.plan.period_bytes))
        except HakmemError as error:
            self.why_not = str(error)
            keeper.release()

    def _begin(self, program: Program) -> None:
        self.programs[program.pid] = program
        self._busy_s = time.monotonic()

    def _look_for_child(self) -> None:
        """A keeper could not be had: a static program, say, or an older library."""
        now_s = time.monotonic()
        if now_s - self._unserved_s < UNKEPT_AFTER_S or now_s - self._looked_s < LOOKED_FOR_EVERY_S:
            return
        self._looked_s = now_s
        try:
            self._begin(Program(self.child.pid, None, self.plan.mode, self.plan.period_bytes))
        except HakmemError as error:
            self.why_not = str(error)

    # ---- while they run --------------------------------------------------------------------------------

    def _look(self, program: Program) -> None:
        try:
            program.look()
            for number, condition in enumerate(self.plan.conditions, 1):
                self._compare(program, condition, number)
        except HakmemError as error:  # it may end just now
            self.why_not = str(error)
        if program.pid != self.child.pid and not Path(f"/proc/{program.pid}/exe").exists():
            self._finish(program, "ended")
            self.ready.append(program.pid)
        elif program.has_executed:
            now = program_of(program.pid)
            self._finish(program, f"executed {now[0] if now else 'another program'}")

    def _compare(self, program: Program, condition: Condition, number: int) -> None:
        if (program.pid, condition.text) in self.met or not program.meets(condition):
            return
        taken = program.take()
        self.met.add((program.pid, condition.text))
        word = "when" if number == 1 else f"when{number}"
        what = (
            f"{whose(program)} met {condition.text}: RSS {bytes_text(taken.rss_bytes)}, "
            f"{bytes_text(taken.live_bytes)} live"
        )
        self.results.write_at_once(program, taken, word, what)
        self.unnamed.append((program, taken, word))
        self._busy_s = time.monotonic()

    # ---- their ends ------------------------------------------------------------------------------------

    def _finish(self, program: Program, how: str) -> None:
        """Reads it for the last time, and releases its memory."""
        self.programs.pop(program.pid, None)
        self._unserved_s = time.monotonic()
        program.finish(how)
        program.release()
        self.done.setdefault(program.pid, []).append(program)

    def _write(self, pid: int) -> None:
        """The program before an exec is written if it has enough samples, and was not a shell or a shim."""
        images = [program for program in self.done.pop(pid, []) if program.latest]
        before = [program for program in images[:-1] if _is_worth_a_file(program)]
        self.left_out += [each for each in images[:-1] if each.sample_count and each not in before]
        named = [(program, f"exec{number}") for number, program in enumerate(before, 1)]
        named += [(program, "") for program in images[-1:]]
        for program, word in named:
            self.results.write_all_of(program, self.plan.mode, word)
        self.written += named

    def _end(self) -> None:
        main = self.programs.pop(self.child.pid, None)
        if main is not None:
            main.finish()  # before its process is reaped: the PID is still its own
        self.child.reap()
        for keeper in self.listener.arrivals():
            self._welcome(keeper)
        for program in list(self.programs.values()):
            self._finish(program, "was still running, or had just ended")
        if main is not None:
            main.ended = self.child.how_it_ended()
            self.done.setdefault(main.pid, []).append(main)
        for met in self.unnamed:
            self.results.write(*met)
        for pid in [pid for pid in self.done if pid != self.child.pid]:
            self._write(pid)
        self._write(self.child.pid)
        if main is not None:
            main.release()
        self._sum_up()
        if not self.written:
            self.say(f"no profile of PID {self.child.pid}, which {self.child.how_it_ended()}: {self.why_not}")
        if self.others:
            hint = "with %p in the file's name (-o x.%p.pb.gz) each has a file"
            self.say(f"{unfollowed(len(self.others), 'profiled')}; {hint}")

    def _sum_up(self) -> None:
        """Says which of several files is the main one."""
        for program in self.left_out:
            count = counted(program.sample_count, "sample")
            ran = duration_text(program.ran_s)
            self.say(f"{whose(program)} {program.ended} after {ran}: {count}, no profile of it")
        if len(self.written) > 1:
            program, word = max(self.written, key=lambda one: one[0].ran_s)
            names = self.results.names_of(program, word)
            of_what = f"; its profile is {', '.join(names)}" if names else ""
            self.say(f"{whose(program)} ran longest, {duration_text(program.ran_s)}{of_what}")
