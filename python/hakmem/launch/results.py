"""The output of `hakmem run --profile`: files (docs/PROFILING.md), and a line on standard error for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError
from hakmem.base.files import check_writable
from hakmem.base.sizes import bytes_text
from hakmem.launch.profiled import Program, Taken
from hakmem.profile.files import Write, save
from hakmem.profile.model import Mode, Profile

PID = "%p"
SHORT_OF_PEAK = 1.1  # the process's peak RSS, above what the peak's reading found: then a peak was missed
Say = Callable[[str], None]
Show = Callable[[Profile], None]


@dataclass(frozen=True)
class Target:
    """One -o option."""

    path: Path
    suffix: str
    write: Write

    def path_for(self, pid: int, word: str) -> Path:
        name = self.path.name.replace(PID, str(pid))
        stem = name[: -len(self.suffix)]
        return self.path.with_name(f"{stem}{f'.{word}' if word else ''}{self.suffix}")

    @property
    def is_for_each(self) -> bool:
        return PID in self.path.name


def checked(path: Path, suffix: str, write: Write) -> Target:
    """HakmemError before the program is started if it could not be written."""
    if path.name == suffix:
        raise HakmemError(f"the name {path} is only an ending; use one as in x{suffix}")
    target = Target(path.absolute(), suffix, write)
    for word in ("", "peak"):
        check_writable(target.path_for(0, word))
    return target


@dataclass
class Results:
    """Writes them, or shows them where no file was asked for."""

    targets: Sequence[Target]
    say: Say
    show: Show

    @property
    def is_for_each(self) -> bool:
        return any(target.is_for_each for target in self.targets)

    def write(self, program: Program, taken: Taken, word: str, what: str = "") -> None:
        """One reading, in every format; a file that cannot be written is reported, and kept elsewhere.
        Without `what` that which was written at once is written again, with names."""
        program.name(taken.profile)
        paths = self._save(program, taken.profile, word)
        if what:
            self._tell(paths, what)
        if not self.targets:
            self.show(taken.profile)

    def write_at_once(self, program: Program, taken: Taken, word: str, what: str) -> None:
        """Without names, which take time: the OOM killer may be near."""
        self._tell(self._save(program, taken.profile, word), what)

    def _tell(self, paths: Sequence[Path], what: str) -> None:
        if paths:
            self.say(f"{', '.join(map(_short, paths))}: {what}")
        elif not self.targets:
            self.say(what)

    def _save(self, program: Program, profile: Profile, word: str) -> list[Path]:
        written = []
        for target in self.targets:
            path = target.path_for(program.pid, word)
            try:
                save(profile, path, target.write)
                written.append(path)
            except HakmemError as error:
                self.say(str(error))
        return written

    def write_all_of(self, program: Program, mode: Mode, word: str) -> None:
        latest, peak = program.latest, program.peak
        if latest is None:
            return
        if mode is not Mode.ALLOCATED and peak is not None:
            at_s = duration_text(max(0.001, peak.at_s - program.began_s))
            what = f"{whose(program)} held most: {bytes_text(peak.live_bytes)} live, {at_s} after its start"
            if program.rss_peak_bytes > peak.rss_bytes * SHORT_OF_PEAK:
                then, highest = bytes_text(peak.rss_bytes), bytes_text(program.rss_peak_bytes)
                what += f" (its RSS was {then} then; its highest, {highest}, fell between two readings)"
            self.write(program, peak, f"{word}.peak" if word else "peak", what)
        how = f"{whose(program)} {program.ended}"
        if latest.is_exact:
            what = f"{how}: {bytes_text(latest.live_bytes)} live then"
        else:
            age = duration_text(max(0.001, program.ended_s - latest.at_s))
            what = f"{how}; its memory was gone: read {age} before, {bytes_text(latest.live_bytes)} live then"
        self.write(program, latest, word, what)

    def names_of(self, program: Program, word: str) -> list[str]:
        """The names of the files written at the program's end."""
        return [_short(target.path_for(program.pid, word)) for target in self.targets]


def whose(program: Program) -> str:
    return f"{program.title} (PID {program.pid})"


def _short(path: Path) -> str:
    """As the user would name it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
