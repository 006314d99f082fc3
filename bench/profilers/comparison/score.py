"""How right an answer is: against the program's own shares."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

TOP = 10
SITE = re.compile(r"\bsite_([a-z]+)\b")


@dataclass(frozen=True)
class Score:
    found: int  # of the true ten largest sites, those among the tool's ten largest
    error: float | None  # median of |share by the tool / true share - 1| of the sites it found
    seen_bytes: float


def of_folded(lines: Iterable[str]) -> dict[str, float]:
    """Bytes by site, from `outer;inner;innermost bytes`: a site is the innermost function of the program's
    sites, and what has none is under the name of its innermost function."""
    found: dict[str, float] = defaultdict(float)
    for line in lines:
        stack, _, value = line.rpartition(" ")
        try:
            count = float(value)
        except ValueError:
            continue
        frames = stack.split(";")
        sites = (SITE.search(frame) for frame in reversed(frames))
        site = next((found_site for found_site in sites if found_site), None)
        found[site[1] if site else f"other: {frames[-1]}"] += count
    return dict(found)


def score(answer: dict[str, float], shares: dict[str, float]) -> Score:
    """Shares are compared, not bytes: tools begin to count at different moments."""
    best = sorted(shares, key=lambda name: -shares[name])[:TOP]
    shown = sorted(answer, key=lambda name: -answer[name])[:TOP]
    right = [name for name in shown if name in best]
    whole = sum(value for name, value in answer.items() if name in shares)
    errors = [abs(answer[name] / whole / shares[name] - 1) for name in right] if whole else []
    return Score(len(right), statistics.median(errors) if errors else None, sum(answer.values()))
