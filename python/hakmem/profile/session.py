"""A profile of a running process, from the switch to the last reading.

    gather(target, plan)    on ── readings ── … ── last reading ── off

The samples so far are kept, whatever ends it: the time, Ctrl-C, the process's end, its exec.  A profile
that was on before stays on: another user of the tool switched it on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.signals import Stopped, stoppable
from hakmem.census.snapshot import take
from hakmem.profile.live import Start, clock_ms, read_profile, read_start
from hakmem.profile.model import Mode, Profile
from hakmem.target.python_frames import PythonFrames
from hakmem.target.python_recipe import UnknownPythonError, recipe_of
from hakmem.target.switch import STATE, Settings, Switch, is_asked_for, read_state
from hakmem.target.target import Target

LEASE_S = 10.0  # the process switches off by itself so long after the tool's death
READING_EVERY_S = 1.0
READING_SHARE = 0.1  # of the time, at most
COST_PERCENT = 5  # of the process's processor time: someone waits for the answer
TOO_MANY = "there are too many different stacks; the process compiles ever more code, or --period is small"
STEP_S, NS_PER_S = 0.01, 1e9
WAS_ON = "the profile was on already, and stays on: hakmem profile PID --off ends it"
SWITCHED_OFF = "the profile was on already, and another command has switched it off since: run this one again"
OWN_SETTINGS = "the profile was on already, with a --period of its own, which stays"

Progress = Callable[[float], None]  # seconds since it went on


@dataclass(frozen=True)
class Plan:
    mode: Mode = Mode.LIVE
    for_s: float = 10.0
    settings: Settings = field(default_factory=Settings)
    # Asked at the end: for how many seconds more?
    more_s: Callable[[Profile], float] = lambda _: 0.0


@dataclass
class Gathered:
    profile: Profile
    notes: list[str] = field(default_factory=list)
    stopped_by: int | None = None  # the signal
    spent: Spent | None = None  # None: the process ended before that was read


def require_profiles(target: Target) -> None:
    """HakmemError for another malloc, and for a library that has none."""
    target.schema.need(STATE, "site_count")


def gather(target: Target, plan: Plan, progress: Progress = lambda _: None) -> Gathered:
    """Switches the profile on, reads it for the plan's time, and switches it off."""
    with Switch(target) as switch:
        was_on = switch.is_on
        start = None if was_on else read_start(target)
        if not was_on and not plan.settings.cost_percent:
            plan = replace(plan, settings=replace(plan.settings, cost_percent=COST_PERCENT))
        began = python_notes(target) if was_on else []
        readings = _Readings(target, plan.mode, start)
        try:
            with stoppable():
                gathered = _while_on(switch, plan, readings, progress, was_on=was_on)
                gathered.notes += dict.fromkeys(began + python_notes(target))
                return gathered
        finally:
            if not was_on:
                with suppress(HakmemError):  # its lease would end it, too; one that is gone needs nothing
                    switch.off()


def last_profile(target: Target, mode: Mode) -> Gathered:
    """The profile of a core, or one that was left on: blocks live when it began are not known."""
    if mode is Mode.PEAK:
        raise HakmemError("the peak is known only for a profile that this command starts: use --for")
    profile = read_profile(target, mode)
    if not profile.shown:
        what = "the core dump" if target.process is None else f"process {target.pid}"
        raise HakmemError(
            f"{what} has no samples: no profile was on; switch one on with `hakmem profile PID --on`"
        )
    return Gathered(profile, python_notes(target))


def python_notes(target: Target) -> list[str]:
    """Why samples have no lines of Python.  New ones of a profile begun without the tool get them."""
    try:
        if recipe_of(target) is None:
            return []
        if PythonFrames.of(target) is None:
            with suppress(HakmemError), Switch(target) as switch:  # not in a core
                switch.tell_python()
            return ["samples so far have no lines of Python: the profile was begun without this command"]
    except UnknownPythonError as error:
        return [str(error)]
    except HakmemError:
        return []
    cut = int(read_state(target)["cut_stacks"])
    return [f"{cut:,} samples have no lines of Python: {TOO_MANY}"] if cut else []


def is_on(target: Target) -> bool:
    """Read from the control record, whether or not a thread has looked at it since."""
    return is_asked_for(target, clock_ms(target, read_state(target)))


@dataclass
class _Readings:
    """The last good reading, and for Mode.PEAK the highest."""

    target: Target
    mode: Mode
    start: Start | None
    last: Profile | None = None
    highest_bytes: float = 0.0
    took_s: float = 0.0

    def take(self, *, is_last: bool = False) -> Profile:
        """Exact counts need a walk of all slabs: only the last reading, and a peak, have them."""
        is_peak = self.mode is Mode.PEAK
        live_bytes = float(take(self.target, "counters").memory.live_bytes) if is_peak else 0.0
        if is_peak and self.last is not None and live_bytes < self.highest_bytes:
            return self.last
        began_s = time.monotonic()
        self.last = read_profile(self.target, self.mode, self.start, with_counts=is_last or is_peak)
        self.highest_bytes = live_bytes
        self.took_s = time.monotonic() - began_s
        return self.last

    @property
    def pause_s(self) -> float:
        return max(READING_EVERY_S, self.took_s / READING_SHARE)


@dataclass(frozen=True)
class Spent:
    """Processor time of sampling and of the process."""

    samples: int
    sampling_s: float
    cpu_s: float  # of processor time, sampling included
    seconds: float

    @classmethod
    def so_far(cls, target: Target) -> Spent:
        state, process = read_state(target), target.process
        cpu_s = process.figures().cpu_s if process else 0.0
        return cls(int(state["samples"]), float(state["sampling_ns"]) / NS_PER_S, cpu_s, time.monotonic())

    def since(self, before: Spent) -> Spent:
        return Spent(
            self.samples - before.samples,
            self.sampling_s - before.sampling_s,
            self.cpu_s - before.cpu_s,
            max(self.seconds - before.seconds, STEP_S),
        )


def _while_on(
    switch: Switch, plan: Plan, readings: _Readings, progress: Progress, *, was_on: bool
) -> Gathered:
    notes = []
    before, spent, stopped_by = Spent.so_far(readings.target), None, None

    def conclude() -> Spent:
        spent = Spent.so_far(readings.target).since(before)
        if was_on:
            notes.extend([WAS_ON if switch.is_on else SWITCHED_OFF, *own_settings(plan.settings)])
        return spent

    try:
        if not was_on:
            switch.on(plan.settings if plan.settings.lease_s else replace(plan.settings, lease_s=LEASE_S))
            notes += _how_it_followed(switch)
        _wait(switch, plan, readings, progress, was_on=was_on)
        spent = conclude()
    except Stopped as stop:
        readings.take(is_last=True)
        spent = conclude()
        stopped_by = stop.number
    except ProcessGoneError:
        if readings.last is None:
            raise
        ended = f"process {readings.target.pid} ended, or runs another program now"
        notes.append(f"{ended}; this is the last reading")
        readings.last.header.comments.append(f"not whole: {ended}")
    assert readings.last is not None
    return Gathered(readings.last, notes, None if stopped_by == signal.SIGINT else stopped_by, spent)


def own_settings(asked: Settings) -> list[str]:
    """A note if a profile was on already with other settings."""
    return [OWN_SETTINGS] if replace(asked, lease_s=0.0) != Settings() else []


def _how_it_followed(switch: Switch) -> list[str]:
    if switch.is_stopped:
        return ["the process is stopped; sampling starts when it continues"]
    followed = switch.wait_followed()
    if followed.is_all:
        return []
    waiting = followed.heaps - followed.following
    if followed.heaps == 1:
        return ["the thread is idle; sampling starts with its next malloc or free"]
    verb, whose = ("is", "its") if waiting == 1 else ("are", "their")
    return [
        f"{waiting} of {followed.heaps} threads {verb} idle; sampling starts with {whose} next malloc or free"
    ]


def _wait(switch: Switch, plan: Plan, readings: _Readings, progress: Progress, *, was_on: bool) -> None:
    began_s = time.monotonic()
    end_s, next_s = began_s + plan.for_s, began_s
    while True:
        if (now_s := time.monotonic()) >= end_s:
            if not (more_s := plan.more_s(readings.take(is_last=True))):
                return
            end_s = time.monotonic() + more_s
        progress(now_s - began_s)
        if now_s >= next_s:
            readings.take()
            if not was_on and not plan.settings.lease_s:
                switch.renew(LEASE_S)
            next_s = time.monotonic() + readings.pause_s
        time.sleep(max(0.0, min(next_s, end_s, now_s + READING_EVERY_S / 4) - time.monotonic()))
