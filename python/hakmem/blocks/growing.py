"""The samples that `hakmem leaks` goes by: of a profile that is on, of one that is made for it, or of the one
in a core."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.profile.live import read_profile
from hakmem.profile.model import Mode, Profile, Stack
from hakmem.profile.session import Plan, Progress, Spent, gather, is_on, python_notes
from hakmem.target.switch import Settings, read_state
from hakmem.target.target import Target

FOR_S, LONGEST_S = 10.0, 60.0
DESCRIBED_MAX = 20  # samples of a stack whose contents are looked at
NOTHING = "no live block was sampled; the process allocates little (--for, --period), or keeps nothing"
UNKNOWN = "growth by site is not known"


@dataclass
class Watched:
    """A reading at the end, and one at the beginning; without samples the notes say why."""

    after: Profile | None = None
    before: Profile | None = None
    notes: list[str] = field(default_factory=list)
    stopped_by: int | None = None  # the signal that ends the tool
    is_gone: bool = False  # the process ended meanwhile
    spent: Spent | None = None
    period_bytes: float = 0.0  # R, on average over the time; 0: it was not watched

    @property
    def described(self) -> list[int]:
        """Some samples of each stack, for what they contain: rows."""
        counts: Counter[Stack] = Counter()
        found = []
        for row, one in enumerate(self.after.samples if self.after else ()):
            counts[one.stack] += 1
            if counts[one.stack] <= DESCRIBED_MAX:
                found.append(row)
        return found


@dataclass(frozen=True)
class Watch:
    for_s: float | None = None  # None: as long as a running profile has seen, else until is_told; 0: none
    settings: Settings = field(default_factory=Settings)
    is_told: Callable[[Watched], bool] = lambda _: True  # is it known whose growth it is?

    @property
    def seconds(self) -> float:
        return FOR_S if self.for_s is None else self.for_s


def watch(target: Target, how: Watch, progress: Progress = lambda _: None) -> Watched:
    """Waits if it has to; a figure that cannot be known is a note, not an error."""
    if target.process is None or how.for_s == 0 or (how.for_s is None and is_on(target)):
        return _so_far(target)
    try:
        return _for_a_while(target, how, progress)
    except ProcessGoneError:
        raise
    except HakmemError as error:
        target.check_same()
        return Watched(notes=[f"{UNKNOWN}: {error}"])


def _so_far(target: Target) -> Watched:
    profile = read_profile(target)
    if profile.samples:
        return Watched(profile, notes=python_notes(target))
    if target.process is None:
        return Watched(notes=[f"{UNKNOWN}: no profile was on when the core was written"])
    return Watched(notes=[f"{UNKNOWN}: no profile is on (hakmem profile {target.pid} --on)"])


def _for_a_while(target: Target, how: Watch, progress: Progress) -> Watched:
    """Existing samples are read first: blocks alive in both readings are not growth."""
    was_on = is_on(target)
    before = read_profile(target, with_counts=was_on)
    periods: list[int] = []
    end_s = time.monotonic() + LONGEST_S

    def look(seconds: float) -> None:
        periods.append(int(read_state(target)["period_bytes"]))
        progress(seconds)

    def more_s(profile: Profile) -> float:
        left_s = end_s - time.monotonic()
        is_enough = how.for_s is not None or left_s <= 0 or how.is_told(Watched(profile, before))
        return 0.0 if is_enough else min(FOR_S, left_s)

    gathered = gather(target, Plan(Mode.LIVE, how.seconds, how.settings, more_s), look)
    periods = [one for one in periods if one]
    nothing = [] if gathered.profile.samples else [f"{UNKNOWN}: {NOTHING}"]
    return Watched(
        after=gathered.profile,
        before=before,
        notes=[*gathered.notes, *nothing],
        stopped_by=gathered.stopped_by,
        is_gone=target.is_gone,
        spent=gathered.spent,
        period_bytes=sum(periods) / len(periods) if periods else 0.0,
    )
