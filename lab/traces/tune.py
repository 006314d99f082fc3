"""hakmem's own constants, judged on recordings of programs: `make tune-self`.

Each constant that has an option is replayed with other values, in rounds that have the default as well.  A
value is better if a figure's mean over all programs falls by more than 1 %, no other mean rises by more, nor
a program's own figure: by the median of the rounds, and in each of them.  It is recommended if a second
measurement, in more rounds, finds that again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hakmem.launch.replaying import How
from hakmem.launch.tuning import VALUES, Tuner, text_of
from hakmem.trace.file import read
from numpy.typing import NDArray
from rich.table import Table

OPTIONS = Path(__file__).resolve().parents[2] / "src" / "config" / "options.def"
NUMBER = re.compile(r"^OPTION\((?:FLAG|NUMBER), (\w+), (\d+), \d+, (\d+),", re.MULTILINE)
FEW = 2  # an option with no larger value names a kind: all others are tried
FIGURES = ("peak RSS", "mean RSS", "time")
WORTH = 0.01
# The time of a single program varies by 20 %: all of fewer rounds would often be worse by chance.
TIME_ROUNDS = 7
CHECKED_MAX = 2
AT_A_TIME = min(2, os.cpu_count() or 1)  # replays, which mostly wait for the recorded time
Shares = NDArray[np.float64]  # of the default's figures; one row a figure, one column a round
Setting = dict[str, str]


def settings() -> list[Setting]:
    """The options that `hakmem tune` tries: half and double of the default, or all other kinds."""
    found = []
    for name, default, most in NUMBER.findall(OPTIONS.read_text()):
        values = range(int(most) + 1) if int(most) <= FEW else (int(default) // 2, int(default) * 2)
        variable = f"HAKMEM_{name.upper()}"
        if variable in VALUES:
            found += [{variable: str(value)} for value in values if value != int(default)]
    return found


@dataclass(frozen=True)
class Judged:
    """A setting's figures on each program."""

    setting: Setting
    of: dict[str, Shares]

    @property
    def mean(self) -> Shares:
        """Geometric, over the programs."""
        return np.asarray(np.exp(np.mean([np.log(shares) for shares in self.of.values()], axis=0)))

    @property
    def gains(self) -> dict[str, float]:
        """The falls of means that are worth it."""
        falls = {
            figure: 1 - float(np.median(row))
            for figure, row in zip(FIGURES, self.mean, strict=True)
            if row.max() < 1
        }
        return {figure: fall for figure, fall in falls.items() if fall > WORTH}

    @property
    def worse(self) -> list[str]:
        """The figures that rise too much."""
        return [
            f"{program}: {figure} {percent(row)}"
            for program, shares in {"all programs": self.mean, **self.of}.items()
            for figure, row in zip(FIGURES, shares, strict=True)
            if np.median(row) > 1 + WORTH and row.min() > 1
            if figure != "time" or shares is self.mean or len(row) >= TIME_ROUNDS
        ]

    def __str__(self) -> str:
        means = (f"{figure} {percent(row)}" for figure, row in zip(FIGURES, self.mean, strict=True))
        return f"{text_of(self.setting)}: {', '.join(means)}"


Measure = Callable[[Sequence[Setting], int], list[Judged]]


def percent(shares: Shares) -> str:
    """The median with its range."""
    middle, least, most = (100 * (one - 1) for one in (np.median(shares), shares.min(), shares.max()))
    return f"{middle:+.1f} % ({least:+.1f} to {most:+.1f})"


class Corpus:
    """Recordings, and how each is replayed."""

    def __init__(self, recordings: Sequence[Path], say: Callable[[str], None]) -> None:
        self._say = say
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            self._tuners = dict(
                zip([path.stem for path in recordings], pool.map(self._tuner, recordings), strict=True)
            )

    def _tuner(self, path: Path) -> Tuner:
        trace = read(path)
        tuner = Tuner(trace, How(idle_s=0.0), lambda *_: None, self._say)
        tuner.fit()
        events = trace.extent.events
        self._say(
            f"{path.stem}: {events:,} events, {trace.lost / (events + trace.lost):.1%} more were missed"
        )
        return tuner

    def measure(self, tried: Sequence[Setting], rounds: int) -> list[Judged]:
        """Without settings with which hakmem failed."""
        self._say(f"replaying {len(self._tuners)} programs with {len(tried) + 1} settings, {rounds} times")
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            found = list(pool.map(lambda tuner: tuner.ratios(tried, rounds), self._tuners.values()))
        of = dict(zip(self._tuners, found, strict=True))
        return [
            Judged(setting, {name: np.array([one.peak, one.rss, one.time]) for name, one in row.items()})
            for place, setting in enumerate(tried)
            if all((row := {name: ratios[place] for name, ratios in of.items()}).values())
        ]


def table(judged: Sequence[Judged]) -> Table:
    """A row for each setting and figure."""
    shown = Table(title="changes in %, medians of the rounds", title_justify="left", header_style="bold")
    for head in ("constant and value", "figure", *judged[0].of, "geometric mean (rounds)"):
        shown.add_column(head.removeprefix("real-"), justify="right" if head in judged[0].of else "left")
    for one in judged:
        # of a build its file's
        name = text_of(one.setting).rpartition("/")[2].removeprefix("HAKMEM_").lower()
        for place, figure in enumerate(FIGURES):
            cells = [f"{100 * (np.median(shares[place]) - 1):+.1f}" for shares in one.of.values()]
            shown.add_row(name, figure, *cells, percent(one.mean[place]), end_section=place == 2)
            name = ""
    for column in shown.columns:
        column.no_wrap = True
    return shown


def verdict(judged: Sequence[Judged], measure: Measure, say: Callable[[str], None]) -> str:
    """The setting of which both measurements find a figure better, and none worse."""
    promising = sorted((one for one in judged if one.gains), key=lambda one: -max(one.gains.values()))
    for one in promising:
        if one.worse:
            say(f"{one}; but {'; '.join(one.worse)}")
    for one in [one for one in promising if not one.worse][:CHECKED_MAX]:
        for again in measure([one.setting], TIME_ROUNDS):
            if one.gains.keys() & again.gains.keys() and not again.worse:
                return f"better on this corpus: {one}\nmeasured again: {again}"
            say(f"{one}; but measured again {'; '.join([str(again), *again.worse])}")
    return "no other value is better by more than 1 % on this corpus, with no program worse by more than 1 %"
