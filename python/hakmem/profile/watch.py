"""The profile of a running process, read repeatedly: for views that follow it.

    with SiteWatch(target) as watch:
        watch.switch_on()              unless it is on; off again at the end
        profile = watch.read()         samples that are alike are one; names as far as they are known
        watch.names.find(profile)      the names of what is new; find_soon: in the background

A lease ends the profile in the process should the tool die; a thread of the watch renews it meanwhile."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from hakmem.base.errors import HakmemError
from hakmem.census.figures import Snapshot
from hakmem.profile.live import Start, read_profile, read_start
from hakmem.profile.model import Frame, Mapping, Mode, Profile
from hakmem.profile.names import Sources, name_addresses
from hakmem.profile.session import LEASE_S, READING_SHARE, is_on, python_notes, require_profiles
from hakmem.target.process import Process
from hakmem.target.switch import Settings, Switch
from hakmem.target.target import Target, making_sense

RENEWALS = 4  # while a lease lasts
UNNAMED_FOR_S = 10.0  # then code of a JIT compiler is looked up again: its names may have come


class SiteWatch(AbstractContextManager["SiteWatch"]):
    """One process.  Methods may be called from any thread."""

    def __init__(self, target: Target) -> None:
        """HakmemError for a core, or a library without profiles."""
        require_profiles(target)
        if target.process is None:
            raise HakmemError("a core dump does not change: give the PID of a running process")
        self.target = target
        self.names = Names(target.process)
        self.took_s = 0.0  # of processor time, the last reading
        self.notes: list[str] = []  # on the last reading
        self._start: Start | None = None
        self._switch: Switch | None = None
        self._changing = threading.Lock()
        self._closed = threading.Event()

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- the switch ----------------------------------------------------------------------------------

    @property
    def is_ours(self) -> bool:
        """This watch switched it on, and will switch it off."""
        return self._switch is not None

    @property
    def is_on(self) -> bool:
        """Read from the control record: threads follow when they next allocate or free."""
        with making_sense(self.target):
            return is_on(self.target)

    def switch_on(self) -> None:
        """Unless it is on.  HakmemError if the process, or the kernel, refuses."""
        with self._changing:
            if self._switch is not None or self.is_on:
                return
            start = read_start(self.target)
            switch = Switch(self.target)
            try:
                switch.on(Settings(lease_s=LEASE_S))
            except HakmemError:
                switch.close()
                raise
            self._start, self._switch = start, switch
            self._closed = threading.Event()
            threading.Thread(target=self._renew, args=(switch, self._closed), daemon=True).start()

    def _renew(self, switch: Switch, closed: threading.Event) -> None:
        while not closed.wait(LEASE_S / RENEWALS):
            with self._changing:
                if self._switch is not switch:
                    return
                try:
                    switch.renew(LEASE_S)
                except HakmemError:
                    return  # readings say what has happened to the process

    def close(self) -> None:
        """Switches off the profile that this watch switched on, unless the process is gone."""
        with self._changing:
            switch, self._switch = self._switch, None
            self._closed.set()
            if switch is not None:
                with switch, suppress(HakmemError):
                    switch.off()

    # ---- reading -------------------------------------------------------------------------------------

    def read(
        self,
        snapshot: Snapshot | None = None,
        *,
        with_counts: bool = True,
        since: Profile | None = None,
    ) -> Profile:
        """The live blocks now.  `snapshot`: a full one of this moment, where there is one already; `since`:
        the reading that this one will be compared with."""
        began_s = time.thread_time()
        profile = read_profile(
            self.target,
            Mode.LIVE,
            self._start,
            with_counts=with_counts,
            is_merged=True,
            since_s=since.header.ended_s if since else 0.0,
            snapshot=snapshot,
        )
        self.names.use(profile)
        self.notes = python_notes(self.target)
        self.took_s = time.thread_time() - began_s
        return profile

    def pause_s(self, interval_s: float) -> float:
        """Until the next reading, so that readings take a tenth of one processor at most."""
        return max(interval_s, self.took_s / READING_SHARE)


class Names:
    """The names of a process's addresses, each looked up once; those of code in no file again and again until
    there is one: a JIT compiler may tell it later."""

    def __init__(self, process: Process) -> None:
        self.known: dict[int, tuple[Frame, ...]] = {}  # nothing: there is no name
        self.rounds = 0  # of looking up: with each there are more names
        self._process = process
        self._mappings: set[Mapping] = set()
        self._again_s = 0.0
        self._busy = threading.Lock()

    def use(self, profile: Profile) -> None:
        """Gives a profile the names that are known.  Those of files that were unmapped are forgotten."""
        now = set(profile.mappings)
        gone, self._mappings = self._mappings - now, now
        for address in list(self.known) if gone else []:
            if any(address in mapping for mapping in gone):
                self.known.pop(address, None)
        profile.names = self.known

    def missing(self, profile: Profile) -> set[int]:
        """Addresses that were not looked up yet."""
        return profile.addresses() - self.known.keys()

    def find(self, profile: Profile) -> None:
        """Looks up what is new: seconds, where a program is large."""
        with self._busy:
            self._find(profile)

    def find_soon(self, profile: Profile) -> None:
        """`find` in a thread that the tool's end does not wait for; nothing if one is at work."""
        if self._wanted(profile) and self._busy.acquire(blocking=False):
            threading.Thread(target=self._find_and_release, args=(profile,), daemon=True).start()

    @property
    def is_busy(self) -> bool:
        return self._busy.locked()

    def _wanted(self, profile: Profile) -> set[int]:
        wanted = self.missing(profile)
        if time.monotonic() > self._again_s:
            wanted |= {
                at for at, frames in list(self.known.items()) if not frames and self._is_in_no_file(at)
            }
        return wanted

    def _is_in_no_file(self, address: int) -> bool:
        return not any(address in mapping for mapping in self._mappings if mapping.path.startswith("/"))

    def _find_and_release(self, profile: Profile) -> None:
        try:
            self._find(profile)
        finally:
            self._busy.release()

    def _find(self, profile: Profile) -> None:
        wanted = self._wanted(profile)
        if not wanted:
            return
        self._again_s = time.monotonic() + UNNAMED_FOR_S
        found: dict[int, tuple[Frame, ...]] = {}
        part = Profile(mappings=profile.mappings, names=found)
        part.samples = [replace(one, stack=tuple(wanted)) for one in profile.samples[:1]]
        with suppress(HakmemError, OSError, ValueError):  # functions stay without names
            name_addresses(part, Sources.of_process(self._process))
        self.known.update({address: found.get(address, ()) for address in wanted})
        self.rounds += 1
