"""One program that is profiled from its first malloc on: its readings, its peak, its last state.

kept     a keeper shares its memory: the last reading is of the moment at which it ended
else     its own memory is read, as long as it is there: the last reading is from before its end"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.census.snapshot import take
from hakmem.launch.condition import Condition, usable_bytes
from hakmem.launch.keepers import Keeper
from hakmem.profile.live import Start, read_profile
from hakmem.profile.model import Mode, Profile
from hakmem.profile.names import Sources, name_addresses
from hakmem.profile.session import require_profiles
from hakmem.target.process import Process, kib
from hakmem.target.switch import Settings, Switch
from hakmem.target.target import Target, open_process

FROM_THE_START = Start({}, np.empty((0, 4)), (0, 0))  # nothing lived before
PEAK_STEP = 1.02  # a new peak is read when it is 2 % above the last
PEAK_LEAP = 1.3  # and at once when it is 30 % above
LEASE_S, RENEWED_EVERY_S = 60.0, 10.0  # sampling ends 60 s after the tool's death
# The key: has RSS grown; is a last reading sure to come.
LOOK_EVERY_S = {True: 0.05, False: 0.25}
LATEST_EVERY_S = {True: 2.0, False: 0.25}
# Largest shares of one processor's time.
LOOK_SHARE, PEAK_SHARE = 0.05, 0.1
LATEST_SHARE = {True: 0.02, False: 0.1}
RISKY_SHARE = 0.5  # of what the process may use: above it the OOM killer may come, and ends the keeper, too


@dataclass
class Taken:
    profile: Profile
    at_s: float  # by time.monotonic
    live_bytes: float
    rss_bytes: int
    is_exact: bool = False  # of the moment at which the program ended


def program_of(pid: int) -> tuple[str, ...] | None:
    """Which program a process runs, its file first: exec changes it.  The rest is where its stack begins, its
    code and its environment, which are placed at random."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return str(Path(f"/proc/{pid}/exe").readlink()), *fields[23:26]
    except OSError:
        return None  # it ends, or became another user's


class Program:
    """A program on hakmem, in the process `pid`."""

    def __init__(self, pid: int, keeper: Keeper | None, mode: Mode, period_bytes: int) -> None:
        self.pid, self.keeper, self.mode = pid, keeper, mode
        self.target: Target = open_process(keeper.keeper_pid if keeper else pid)
        require_profiles(self.target)
        self.began_s = time.monotonic()
        self.identity = program_of(self.target.pid)
        self.title = self.target.command[0].rsplit("/", 1)[-1]
        if not self.has_executed:  # as it calls itself
            with suppress(HakmemError):
                self.title = Process(pid).name
        self.latest: Taken | None = None
        self.peak: Taken | None = None
        self.ended = ""  # how, once it has
        self.ended_s = 0.0
        self.rss_peak_bytes = 0  # the kernel's figure, at the end
        self.live_bytes = 0.0
        # When the next of each may come, by time.monotonic.
        self._look_s = 0.0
        self._if_grown_s = 0.0  # a look, when RSS has grown
        self._peak_s = 0.0  # a reading of a new peak
        self._latest_s = 0.0  # a reading in case the keeper ends as well
        self._renew_s = self.began_s
        self._rss_looked_at = 0
        self._risky_bytes = usable_bytes() * RISKY_SHARE
        self._settings = Settings(period_bytes=period_bytes, lease_s=LEASE_S)
        self._switch: Switch | None = None
        self._begin_lease()

    # ---- while it runs ---------------------------------------------------------------------------------

    def look(self) -> None:
        """Called often; does what is due.  ProcessGoneError once the memory is gone."""
        now_s = time.monotonic()
        if now_s >= self._renew_s:
            self._renew()
        rss_bytes = self.rss_bytes
        has_grown = rss_bytes > self._rss_looked_at * PEAK_STEP
        if now_s < (self._if_grown_s if has_grown else self._look_s):
            return
        began_cpu_s = time.process_time()
        self.live_bytes = self._read_live_bytes()
        self._rss_looked_at = rss_bytes
        took_s = time.process_time() - began_cpu_s
        self._if_grown_s = now_s + max(LOOK_EVERY_S[True], took_s / LOOK_SHARE)
        self._look_s = now_s + max(LOOK_EVERY_S[False], took_s / LOOK_SHARE)
        highest_bytes = self.peak.live_bytes if self.peak else 0.0
        is_peak = self.live_bytes > highest_bytes * PEAK_STEP
        is_far = self.live_bytes > highest_bytes * PEAK_LEAP  # that is not often so
        if is_far or now_s >= (self._peak_s if is_peak else self._latest_s):
            self.take(self.live_bytes, rss_bytes)
        elif is_peak:
            self._look_s = self._peak_s

    def take(self, live_bytes: float | None = None, rss_bytes: int | None = None) -> Taken:
        """Reads the profile now: the latest, and perhaps the peak."""
        if live_bytes is None:
            live_bytes = self._read_live_bytes()
        at_s, began_cpu_s = time.monotonic(), time.process_time()
        profile = read_profile(self.target, self.mode, FROM_THE_START)
        profile.header.pid, profile.header.process_name = self.pid, self.title
        found = Taken(profile, at_s, live_bytes, self.rss_bytes if rss_bytes is None else rss_bytes)
        self.latest = found
        if self.peak is None or live_bytes > self.peak.live_bytes:
            header = replace(profile.header, mode=Mode.PEAK, comments=list(profile.header.comments))
            self.peak = replace(found, profile=replace(profile, header=header, allocated=[]))
        now_s, is_sure = time.monotonic(), self.is_kept and found.rss_bytes < self._risky_bytes
        took_s = time.process_time() - began_cpu_s
        self._peak_s = now_s + took_s / PEAK_SHARE
        self._latest_s = now_s + max(LATEST_EVERY_S[is_sure], took_s / LATEST_SHARE[is_sure])
        return found

    def _read_live_bytes(self) -> float:
        return float(take(self.target, "counters").memory.live_bytes)

    def meets(self, condition: Condition) -> bool:
        """Compares RSS now, or the live bytes at the last look."""
        return (self.rss_bytes if condition.figure == "rss" else self.live_bytes) > condition.bytes

    # ---- its end ---------------------------------------------------------------------------------------

    def adopt(self, keeper: Keeper) -> None:
        """Its keeper, which comes late."""
        self.keeper, self.target = keeper, open_process(keeper.keeper_pid)
        self._close_switch()
        self._begin_lease()

    def finish(self, how: str = "") -> None:
        """It has ended: the last reading, as far as its memory is there."""
        self.ended = how
        self.ended_s = time.monotonic()
        self._close_switch()
        if self.is_kept:
            with suppress(HakmemError):
                self.rss_peak_bytes = kib(Process(self.target.pid).status().get("VmHWM"))
                self.take().is_exact = True
        if self.latest is not None and not self.latest.is_exact:
            age_s = self.ended_s - self.latest.at_s
            self.latest.profile.header.comments.append(f"read {age_s:.1f} s before the program's end")

    def release(self) -> None:
        self._close_switch()
        if self.keeper is not None:
            self.keeper.release()

    @property
    def sample_count(self) -> int:
        """The samples of the reading that has most."""
        taken = (one for one in (self.latest, self.peak) if one is not None)
        return max((sum(sample.samples for sample in one.profile.shown) for one in taken), default=0)

    @property
    def ran_s(self) -> float:
        """Until it ended, or called exec."""
        return max(0.0, self.ended_s - self.began_s)

    @property
    def is_kept(self) -> bool:
        return self.keeper is not None and self.keeper.is_alive

    @property
    def has_executed(self) -> bool:
        """Whether the process runs another program by now."""
        now = program_of(self.pid)
        return now is not None and now != self.identity

    @property
    def rss_bytes(self) -> int:
        """0 when it has ended."""
        with suppress(HakmemError, ValueError):
            return sum(Process(self.target.pid).resident_bytes())
        return 0

    def name(self, profile: Profile) -> None:
        """In its own file system, as long as it is there."""
        sources = Sources()
        if self.target.process is not None and (self.is_kept or not self.ended_s):
            with suppress(HakmemError, OSError):
                sources = Sources.of_process(self.target.process)
        name_addresses(profile, sources)

    # ---- the lease -------------------------------------------------------------------------------------

    def _begin_lease(self) -> None:
        """A kernel that refuses writing leaves it on without one."""
        with suppress(HakmemError):
            self._switch = Switch(self.target)
            self._switch.on(self._settings)
        self._renew_s = time.monotonic() + RENEWED_EVERY_S

    def _renew(self) -> None:
        self._renew_s = time.monotonic() + RENEWED_EVERY_S
        if self._switch is not None:
            with suppress(HakmemError):
                self._switch.renew(LEASE_S)

    def _close_switch(self) -> None:
        if self._switch is not None:
            self._switch.close()
            self._switch = None
