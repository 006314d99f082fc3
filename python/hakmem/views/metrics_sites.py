"""The sites of heap profiles as metrics: of each process whose profile is on, the largest.

A site's labels are names and its line, without addresses: they stay the same when the program is started
again, and in another build but for the line (`sum without (line)`).  Their number is bounded: SITES_KNOWN_MAX
of one process, as long as the exporter runs; a site that would be one more is among the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from hakmem.base.errors import HakmemError
from hakmem.census import catalogue
from hakmem.census.figures import Snapshot
from hakmem.profile.estimate import Estimate
from hakmem.profile.labels import DEPTH, Labels
from hakmem.profile.model import Profile, Stack
from hakmem.profile.short_names import short_name
from hakmem.profile.sites import SiteTable, site_table
from hakmem.profile.watch import SiteWatch
from hakmem.target.target import Target
from hakmem.views.profile_text import CALLER
from hakmem.views.screen import console

SITES_SHOWN = 20
SITES_KNOWN_MAX = 200
UNKNOWN, ANONYMOUS = "unknown", "anonymous"
ADDRESS = re.compile("0x|anonymous[+]0x")  # code in no file: another place with each start
Add = Callable[[catalogue.Figure, tuple[str, ...], float], None]
Name = tuple[str, str, str, str]  # site, function, file, line


@dataclass
class _Followed:
    watch: SiteWatch
    known: set[Name] = field(default_factory=set)  # that had a metric
    is_noted: bool = False


@dataclass
class SiteMetrics:
    """`switches_on`: profiles are switched on in each process, and off again by `close`.  `waits`: names are
    looked up before the first answer, not beside it."""

    sites_shown: int = SITES_SHOWN
    switches_on: bool = False
    waits: bool = False
    _followed: dict[int, _Followed] = field(default_factory=dict)  # by PID

    def add(self, add: Add, target: Target, snapshot: Snapshot, labels: tuple[str, str]) -> None:
        """The metrics of one process; of one that cannot be read now, none."""
        if target.process is None:
            return
        with suppress(HakmemError):
            followed = self._follow(target)
            watch = followed.watch
            if self.switches_on:
                with suppress(HakmemError):  # it refuses: then it is not on
                    watch.switch_on()
            add(catalogue.PROFILE_ON, labels, float(watch.is_on))
            if self.sites_shown and watch.is_on:
                self._add_sites(add, followed, snapshot, labels)

    def _follow(self, target: Target) -> _Followed:
        known = self._followed.get(target.pid)
        if known is None or known.watch.target is not target:  # another program under an old PID
            known = self._followed[target.pid] = _Followed(SiteWatch(target))
        return known

    def _add_sites(self, add: Add, followed: _Followed, snapshot: Snapshot, labels: tuple[str, str]) -> None:
        is_full = snapshot.detail == "full"
        profile = followed.watch.read(snapshot if is_full else None, with_counts=is_full)
        names = followed.watch.names
        if self.waits:
            names.find(profile)
        names.find_soon(profile)
        for note in () if followed.is_noted else followed.watch.notes:
            console(stderr=True).print(f"hakmem: process {profile.header.pid}: {note}", soft_wrap=True)
            followed.is_noted = True
        add(catalogue.LOST_SAMPLES, labels, profile.header.lost_samples)
        table = site_table(profile)
        shown, other_bytes = self._chosen(table, profile, followed)
        for name, (of_bytes, of_blocks) in shown.items():
            values = (of_bytes.value, *of_bytes.interval, of_blocks.value)
            for figure, value in zip(catalogue.SITES, values, strict=True):
                add(figure, (*labels, *name), round(value))
        add(catalogue.SITES_OTHER, labels, round(other_bytes))
        add(catalogue.SITES_BEFORE, labels, round(table.before.value))
        add(catalogue.SITES_UNSAMPLED, labels, round(table.unsampled_bytes))

    def _chosen(
        self, table: SiteTable, profile: Profile, followed: _Followed
    ) -> tuple[dict[Name, tuple[Estimate, Estimate]], float]:
        """The largest sites by their labels; the bytes of all others, and of those not yet named."""
        labels, sums, other_bytes = Labels(profile), dict[Name, tuple[Estimate, Estimate]](), 0.0
        missing = followed.watch.names.missing(profile)
        for site in table.sites:
            if not missing.isdisjoint(site.stack):
                other_bytes += site.bytes.value
                continue
            name = name_of(labels, site.stack)
            of_bytes, of_blocks = sums.get(name, (Estimate(), Estimate()))
            sums[name] = of_bytes + site.bytes, of_blocks + site.blocks
        largest = sorted(sums, key=lambda name: -sums[name][0].value)[: self.sites_shown]
        shown = {}
        for name in largest:
            if name in followed.known or len(followed.known) < SITES_KNOWN_MAX:
                followed.known.add(name)
                shown[name] = sums.pop(name)
        return shown, other_bytes + sum(of_bytes.value for of_bytes, _ in sums.values())

    def forget(self, targets: list[Target]) -> None:
        """Processes that are gone."""
        kept = {target.pid for target in targets}
        for pid in self._followed.keys() - kept:
            self._followed.pop(pid).watch.close()

    def close(self) -> None:
        """Switches off the profiles that it switched on."""
        self.switches_on = False
        self.forget([])


def name_of(labels: Labels, stack: Stack) -> Name:
    """A site's labels: the functions of the innermost frames; function, source file and line of the first."""
    frames = labels.site(stack, DEPTH)
    if not frames:
        return UNKNOWN, UNKNOWN, "", ""
    functions = [ANONYMOUS if ADDRESS.match(one.function) else short_name(one.function) for one in frames]
    line = str(frames[0].line) if frames[0].line else ""
    return CALLER.join(functions), functions[0], PurePosixPath(frames[0].file).name, line
