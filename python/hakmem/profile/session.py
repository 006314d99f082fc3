"""A profile of a running process, from the switch to the last reading.

    gather(target, plan)    on ── readings ── … ── last reading ── off

What was gathered so far is kept, whatever ends it: the time, Ctrl-C, the process's end, its exec.  A profile
that was on before stays on: another user of the tool switched it on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.signals import Stopped, stoppable
from hakmem.census.snapshot import take
from hakmem.profile.live import Start, clock_ms, is_known, read_profile, read_start
from hakmem.profile.model import Mode, Profile
from hakmem.target.switch import Settings, Switch, is_asked_for, read_state
from hakmem.target.target import Target

LEASE_S = 10.0  # the process switches off by itself so long after the tool's death
READING_EVERY_S = 1.0
READING_SHARE = 0.1  # of the time, at most
WAS_ON = "the profile was on already, and stays on: hakmem profile PID --off ends it"
SWITCHED_OFF = "the profile was on already, and another command has switched it off since: run this one again"

Progress = Callable[[float], None]  # seconds since it went on


@dataclass(frozen=True)
class Plan:
    mode: Mode = Mode.LIVE
    for_s: float = 10.0
    settings: Settings = field(default_factory=Settings)


@dataclass
class Gathered:
    """A profile, and why there is no more of it."""

    profile: Profile
    ended: str  # "duration reached", "interrupted", "the process ended" …
    notes: list[str] = field(default_factory=list)
    stopped_by: int | None = None  # the signal


def require_profiles(target: Target) -> None:
    """HakmemError for a library that has none."""
    if not is_known(target.schema):
        raise HakmemError(
            f"hakmem {target.schema.version} in process {target.pid} has no heap profiles; start the program "
            "with this tool's library: hakmem run -- PROGRAM"
        )


def gather(target: Target, plan: Plan, progress: Progress = lambda _: None) -> Gathered:
    """Switches the profile on, reads it for the plan's time, and switches it off."""
    require_profiles(target)
    start = read_start(target)
    with Switch(target) as switch:
        was_on = switch.is_on
        readings = _Readings(target, plan.mode, None if was_on else start)
        try:
            with stoppable():
                gathered = _while_on(switch, plan, readings, progress, was_on=was_on)
        finally:
            if not was_on:
                _off(switch)
    return gathered


def last_profile(target: Target, mode: Mode) -> Gathered:
    """Of a core, or of a profile that was left on: what was live when it began is not known."""
    if mode is Mode.PEAK:
        raise HakmemError("the peak is only known of a profile that this command makes itself: use --for")
    profile = read_profile(target, mode)
    if not profile.shown:
        what = "the core dump" if target.process is None else f"process {target.pid}"
        raise HakmemError(
            f"{what} has no samples: no profile was on; switch one on with `hakmem profile PID --on`"
        )
    return Gathered(profile, "read")


def is_on(target: Target) -> bool:
    """By the control record, whether a thread has looked since or not."""
    return is_asked_for(target, clock_ms(target, read_state(target)))


def _off(switch: Switch) -> None:
    """Its lease would end it, too; a process that is gone needs nothing."""
    try:
        switch.off()
    except HakmemError:
        return


@dataclass
class _Readings:
    """The last good reading, and for Mode.PEAK the highest."""

    target: Target
    mode: Mode
    start: Start | None
    last: Profile | None = None
    highest_bytes: float = 0.0
    took_s: float = 0.0

    def take(self, *, is_last: bool = False) -> None:
        """Exact counts need a walk of all slabs: only the last reading, and a peak, have them."""
        is_peak = self.mode is Mode.PEAK
        live_bytes = float(take(self.target, "counters").memory.live_bytes) if is_peak else 0.0
        if is_peak and self.last is not None and live_bytes < self.highest_bytes:
            return
        began_s = time.monotonic()
        self.last = read_profile(self.target, self.mode, self.start, with_counts=is_last or is_peak)
        self.highest_bytes = live_bytes
        self.took_s = time.monotonic() - began_s

    @property
    def pause_s(self) -> float:
        return max(READING_EVERY_S, self.took_s / READING_SHARE)


def _while_on(
    switch: Switch, plan: Plan, readings: _Readings, progress: Progress, *, was_on: bool
) -> Gathered:
    notes = []

    def conclude() -> None:
        readings.take(is_last=True)
        if was_on:
            notes.extend([WAS_ON if switch.is_on else SWITCHED_OFF])

    try:
        if not was_on:
            switch.on(plan.settings if plan.settings.lease_s else replace(plan.settings, lease_s=LEASE_S))
            notes += _how_it_followed(switch)
        _wait(switch, plan, readings, progress, was_on=was_on)
        conclude()
        ended, stopped_by = "duration reached", None
    except Stopped as stop:
        conclude()
        ended, stopped_by = "interrupted", stop.number
    except ProcessGoneError:
        if readings.last is None:
            raise
        ended, stopped_by = f"process {readings.target.pid} ended, or runs another program now", None
        notes.append(f"{ended}; this is what was read last")
        readings.last.header.comments.append(f"not whole: {ended}")
    assert readings.last is not None
    return Gathered(readings.last, ended, notes, None if stopped_by == signal.SIGINT else stopped_by)


def _how_it_followed(switch: Switch) -> list[str]:
    if switch.is_stopped:
        return ["the process is stopped: it is sampled from when it goes on"]
    followed = switch.wait_followed()
    if followed.is_all:
        return []
    waiting = followed.heaps - followed.following
    if followed.heaps == 1:
        return ["its thread has allocated and freed nothing since; it is sampled from when it does"]
    verbs = "has not seen it yet; it follows when it allocates or frees"
    if waiting > 1:
        verbs = "have not seen it yet; they follow when they allocate or free"
    return [f"{waiting} of {followed.heaps} threads {verbs}"]


def _wait(switch: Switch, plan: Plan, readings: _Readings, progress: Progress, *, was_on: bool) -> None:
    began_s = time.monotonic()
    end_s, next_s = began_s + plan.for_s, began_s
    while (now_s := time.monotonic()) < end_s:
        progress(now_s - began_s)
        if now_s >= next_s:
            readings.take()
            if not was_on and not plan.settings.lease_s:
                switch.renew(LEASE_S)
            next_s = time.monotonic() + readings.pause_s
        time.sleep(max(0.0, min(next_s, end_s, now_s + READING_EVERY_S / 4) - time.monotonic()))
