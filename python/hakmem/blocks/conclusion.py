"""The answer of `hakmem leaks`: growing sites, blocks' lifetimes and unreachable blocks, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.blocks.evidence import Evidence, Site
from hakmem.blocks.leaks import Leaks
from hakmem.blocks.size_growth import SizeGrowth
from hakmem.blocks.whose import Whose, as_json
from hakmem.profile.labels import caller_text, frame_text
from hakmem.profile.session import COST_PERCENT, Spent

NAMED_MAX = 3  # sites in the verdict
MS_PER_S = 1000
SLOW_BYTES = 1024.0  # a second: slower growth is shown per hour
MINUTE_S, HOUR_S = 60, 3600
LONGEST_WATCH_S, DEARER = 600, 4  # s; a longer watch is advised to sample 4 times as much
REPLACING = (
    "frees of blocks older than the profile are not counted: a site that replaces such blocks looks "
    "like one that grows; --for tells them apart"
)


@dataclass
class Conclusion(Whose):
    """All of it; parts that could not be found out are None."""

    evidence: Evidence | None
    reached: Leaks | None
    notes: list[str] = field(default_factory=list)
    spent: Spent | None = None  # on samples
    sizes: SizeGrowth | None = None  # where no call sites are known

    @property
    def keeping(self) -> list[Site]:
        return [site for site in self.evidence.leaks if site.keeps] if self.evidence else []

    @property
    def has_leaks(self) -> bool:
        """Without doubt: blocks that are only perhaps lost are none."""
        return bool(self.keeping or (self.reached is not None and self.reached.definite.blocks))

    @property
    def verdict(self) -> str:
        """One sentence for each site that leaks, or one that says that none does."""
        keeping = self.keeping
        if keeping and self.evidence:
            named = [sentence(site, self.evidence, self.reached) for site in keeping[:NAMED_MAX]]
            more = len(keeping) - len(named)
            rest = [f"And {counted(more, 'more site')}."] if more > 0 else []
            return " ".join([*named, *rest, self._lost(keeping)]).strip()
        after = f"Next: {self.next_command}" if self.next_command else ""
        lost = self._lost([]) or ("" if self.reached is None else "Nothing is definitely lost.")
        return " ".join(filter(None, [*self._other(), lost, after])) or "Nothing can be said."

    def _other(self) -> Iterator[str]:
        """Names the sites that may leak, or says that none does."""
        if self.sizes is not None:
            yield self.sizes.verdict
        if self.evidence is None:
            return
        changed = [site for site in self.evidence.leaks if site.growth.is_significant]
        growing = [site for site in changed if site.is_growing]
        for site in growing[:NAMED_MAX]:
            yield sentence(site, self.evidence, self.reached)
        if growing:
            return
        length = duration_text(self.evidence.grown.seconds)
        if not self.evidence.is_told:
            risen, seen = self.evidence.grown.risen_bytes, self.evidence.visible_bytes_per_second
            yield (
                f"Size classes grew by {bytes_text(risen)} in {length}, but no site by more than chance: one "
                f"that keeps less than {rate_text(seen)} may not be seen."
            )
        else:
            replacing = counted(len(changed), "site")
            but = f", but {replacing} may have replaced older blocks" if changed else ""
            yield f"No site grew by more than chance in {length}{but}."

    @property
    def next_command(self) -> str:
        """It sees whose growth that is, if it goes on."""
        evidence = self.evidence
        if evidence is None or evidence.is_told or self.is_core:
            return ""
        seen_bytes = evidence.visible_bytes_per_second * evidence.grown.seconds
        needed_s = evidence.grown.seconds * max(2.0, seen_bytes / evidence.untold_bytes)
        cost = COST_PERCENT if needed_s <= LONGEST_WATCH_S else COST_PERCENT * DEARER
        minutes = math.ceil(min(needed_s * COST_PERCENT / cost, HOUR_S) / MINUTE_S)
        option = f" --period {cost}%" if cost != COST_PERCENT else ""
        return f"hakmem leaks {self.pid} --for {minutes}m{option}"

    def _lost(self, told: list[Site]) -> str:
        """Sums up the unreachable blocks of all sites, unless one of `told` has lost its own."""
        if self.reached is None:
            return ""
        lost = self.reached.definite
        if not lost.blocks:
            return self._perhaps()
        if any(site.is_lost for site in told):
            return ""
        text = (
            f"{bytes_text(lost.bytes)} in {counted(lost.blocks, 'block')} are definitely lost{self._worst()}."
        )
        return f"{text} {self._perhaps()}" if self.reached.perhaps.bytes > lost.bytes else text

    def _perhaps(self) -> str:
        if self.reached is None or not self.reached.perhaps.blocks:
            return ""
        lost = self.reached.perhaps
        where = "" if self.reached.definite.blocks else self._worst()
        tells = "; --freeze tells" if self.reached.freeze_tells else ""
        return f"{bytes_text(lost.bytes)} in {counted(lost.blocks, 'block')} are perhaps lost{where}{tells}."

    def _worst(self) -> str:
        """The site that lost most, as far as samples know."""
        sites = [site for site in (self.evidence.sites if self.evidence else []) if site.lost]
        worst = max(sites, key=lambda site: site.lost.lost_weight if site.lost else 0.0, default=None)
        if worst is None or worst.lost is None or not worst.lost.lost_samples:
            return ""
        of_all = f"{worst.lost.lost_samples:,} of {worst.lost.samples:,}"
        return f": {of_all} sampled blocks of {name_of(worst)}"

    @property
    def all_notes(self) -> list[str]:
        notes = [*self.notes, *(self.reached.notes if self.reached else [])]
        if self.evidence is not None and self.evidence.grown.live_bytes is None:
            notes.append(REPLACING)
        return notes

    def to_json(self) -> dict[str, Any]:
        return (
            {item.name: getattr(self, item.name) for item in fields(Whose)}
            | {"verdict": self.verdict, "next_command": self.next_command or None}
            | ({"size_growth": asdict(self.sizes)} if self.sizes else {})
            | {"spent": None if self.spent is None else asdict(self.spent)}
            | (self.evidence.to_json() if self.evidence else {"growth": None, "sites": []})
            | (as_json(self.reached) if self.reached else {})
            | {"notes": self.all_notes}
        )


def name_of(site: Site) -> str:
    return frame_text(site.frames[0]) if site.frames else "a site whose stack is unknown"


def is_slow(bytes_per_second: float) -> bool:
    """Too slow for a second."""
    return abs(bytes_per_second) < SLOW_BYTES


def rate_text(bytes_per_second: float) -> str:
    """64.0 KiB/s; slow ones by the hour."""
    if not is_slow(bytes_per_second):
        return f"{bytes_text(bytes_per_second)}/s"
    return f"{bytes_text(bytes_per_second * HOUR_S)}/h"


def sentence(site: Site, evidence: Evidence, reached: Leaks | None) -> str:
    grown = evidence.grown
    if site.keeps:
        verb = "leaks" if site.is_lost else "grows by"
        parts = [f"{name_of(site)} {verb} {rate_text(grown.rate(site.growth.bytes))}"]
    else:
        length = duration_text(grown.seconds)
        parts = [f"{name_of(site)} grew by {bytes_text(round(site.growth.bytes))} in {length}"]
    parts[0] += blocks_text(site)
    if site.parts:
        callers = [
            f"{caller_text(part.frames[len(site.frames)])} ({rate_text(grown.rate(part.growth.bytes))})"
            for part in site.parts[:NAMED_MAX]
            if len(part.frames) > len(site.frames)
        ]
        more = [counted(len(site.parts) - len(callers), "other caller")] * (len(site.parts) > len(callers))
        parts.append(f"called by {', '.join([*callers, *more])}")
    if not site.growth.is_steady:
        parts.append("not all the time")
    parts += filter(None, [survival_text(site), reach_text(site, reached)])
    return "; ".join(parts) + "."


def blocks_text(site: Site) -> str:
    """` (256-byte blocks holding text)`, as far as it is known."""
    size = f"{site.block_bytes}-byte blocks" if site.block_bytes else "blocks"
    if site.content:
        return f" ({size} holding {site.content})"
    return f" ({size})" if site.block_bytes else ""


def survival_text(site: Site) -> str:
    lives = site.survival
    if site.is_never_freed:
        if not lives.last_freed_ms:
            return f"none of its {counted(lives.older, 'sampled block')} has been freed"
        return f"none of its blocks older than {duration_text(lives.last_freed_ms / MS_PER_S)} has been freed"
    point = lives.at(lives.oldest_ms)
    if point is None:
        return ""
    age = duration_text(point.age_ms / MS_PER_S)
    return f"{share_text(point.share, 1)} of its blocks live longer than {age}"


def reach_text(site: Site, reached: Leaks | None) -> str:
    if reached is None or site.lost is None or not site.lost.samples:
        return ""
    if not site.lost.lost_samples:
        return "the program still reaches all of them"
    word = "unreachable" if reached.definite.blocks else "perhaps unreachable"
    return f"{share_text(site.lost.lost_weight, site.lost.weight)} of them are {word}"
