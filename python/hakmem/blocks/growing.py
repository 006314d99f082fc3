"""The samples that `hakmem leaks` goes by: of a profile that is on, of one that is made for it, or of the one
in a core."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.profile.live import is_known, read_profile
from hakmem.profile.model import Mode, Profile, Stack
from hakmem.profile.session import Plan, Progress, gather, is_on
from hakmem.target.switch import Settings
from hakmem.target.target import Target

FOR_S = 10.0
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

    @property
    def places(self) -> list[int]:
        """Of the live samples' blocks."""
        return self.after.blocks if self.after else []

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
    """How to watch."""

    for_s: float | None = None  # None: so far as a profile that is on has seen, else FOR_S
    settings: Settings = field(default_factory=Settings)
    may_switch: bool = True

    @property
    def seconds(self) -> float:
        return FOR_S if self.for_s is None else self.for_s


def watch(target: Target, how: Watch, progress: Progress = lambda _: None) -> Watched:
    """Waits if it has to; what cannot be known is a note, not an error."""
    if not is_known(target.schema):
        return Watched(notes=[f"{UNKNOWN}: hakmem {target.schema.version} has no heap profiles"])
    if target.process is None or not how.may_switch or (how.for_s is None and is_on(target)):
        return _so_far(target)
    try:
        return _for_a_while(target, how, progress)
    except ProcessGoneError:
        raise
    except HakmemError as error:
        target.check_same()
        return Watched(notes=[f"{UNKNOWN}: {error}"])


def _so_far(target: Target) -> Watched:
    profile = read_profile(target, with_counts=False)
    if profile.samples:
        return Watched(profile)
    if target.process is None:
        return Watched(notes=[f"{UNKNOWN}: no profile was on when the core was written"])
    return Watched(notes=[f"{UNKNOWN}: no profile is on (hakmem profile {target.pid} --on)"])


def _for_a_while(target: Target, how: Watch, progress: Progress) -> Watched:
    """Samples that there are already are read before: what lives in both readings did not grow."""
    before = read_profile(target, with_counts=is_on(target))
    gathered = gather(target, Plan(Mode.LIVE, how.seconds, how.settings), progress)
    nothing = [] if gathered.profile.samples else [f"{UNKNOWN}: {NOTHING}"]
    return Watched(
        after=gathered.profile,
        before=before,
        notes=[*gathered.notes, *nothing],
        stopped_by=gathered.stopped_by,
        is_gone=_is_gone(target),
    )


def _is_gone(target: Target) -> bool:
    try:
        target.check_same()
    except ProcessGoneError:
        return True
    return False
