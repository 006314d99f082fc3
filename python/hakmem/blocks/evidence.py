"""The evidence for each call site: how much it grew, how long its blocks live, how many of them are lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from typing import Any, TypeVar

from hakmem.blocks.content import Content, Kind
from hakmem.blocks.growing import Watched
from hakmem.blocks.leaks import Leaks
from hakmem.blocks.sampling import Share, wilson
from hakmem.blocks.whose import as_json
from hakmem.profile.growth import Grown, Growth, growth
from hakmem.profile.json_format import with_ends
from hakmem.profile.labels import DEPTH, Labels
from hakmem.profile.model import Frame, Profile, Stack, StackKey
from hakmem.profile.names import Sources, name_addresses
from hakmem.profile.sites import sums_of
from hakmem.profile.survival import Survival, survival

Kept = TypeVar("Kept", int, str)
NAMED = (Kind.CXX, Kind.PYTHON)
TEXTS = (Kind.TEXT, Kind.WIDE_TEXT)
MOST_SHARE = 0.5
SAMPLES_MIN = 10  # that nothing has happened to: chance leaves out fewer
SAMPLES_SEEN = 18  # on average: then there are SAMPLES_MIN in 98 of 100 cases
TOLD_SHARE = 0.5  # of the classes' growth: sites that explain this much are the answer
NO_RISE_BYTES = 256 << 10  # in a watch: smaller growth need not be a leak


@dataclass
class Lost:
    """The sampled live blocks of a site, and those of them that nothing reaches."""

    samples: int = 0
    lost_samples: int = 0
    weight: float = 0.0  # bytes that the samples stand for
    lost_weight: float = 0.0
    squares: float = 0.0

    def add(self, weight: float, is_lost: bool) -> None:
        self.samples += 1
        self.lost_samples += is_lost
        self.weight += weight
        self.lost_weight += weight * is_lost
        self.squares += weight * weight

    @property
    def share(self) -> Share:
        if not self.samples:
            return Share(0.0, 0.0, 1.0)
        return wilson(self.lost_weight / self.weight, self.weight**2 / self.squares)


@dataclass
class Site:
    """One call site: the innermost frames of the program."""

    frames: tuple[Frame, ...]
    growth: Growth
    survival: Survival
    lost: Lost | None  # None: unreachable blocks are not known
    content: str = ""  # of most of its blocks, if that has a name
    block_bytes: int = 0  # of most of its blocks; 0: they differ
    parts: tuple[Site, ...] = ()  # the callers of one line, where they are judged as one

    @property
    def is_never_freed(self) -> bool:
        """Nothing older than some age has been freed, and enough blocks are older."""
        return self.survival.older >= SAMPLES_MIN

    @property
    def is_lost(self) -> bool:
        """Nothing reaches most of its blocks."""
        return self.lost is not None and self.lost.samples > 0 and self.lost.share.low > MOST_SHARE

    @property
    def is_growing(self) -> bool:
        """More than chance, and not only in place of older blocks, so far as that is known; nothing frees
        what nothing reaches."""
        is_certain = self.growth.certain is None or self.growth.is_certain or self.is_lost
        return self.growth.is_significant and is_certain

    @property
    def keeps(self) -> bool:
        """It keeps growing, and frees nothing that it has kept for some time."""
        return self.is_growing and self.growth.is_steady and self.is_never_freed

    def to_json(self, grown: Grown) -> dict[str, Any]:
        return {
            "stack": [asdict(frame) for frame in self.frames],
            "keeps": self.keeps,
            "content": self.content,
            "growth": growth_to_json(self.growth, grown),
            "survival": survival_to_json(self.survival),
            "unreachable": self.lost
            and {"samples": self.lost.samples, "lost_samples": self.lost.lost_samples}
            | as_json(self.lost.share),
        }


@dataclass
class Evidence:
    """All sites, those with the most to say first."""

    grown: Grown
    profile: Profile
    sites: list[Site] = field(default_factory=list)
    period_bytes: float = 0.0  # R, on average over the time
    leaks: list[Site] = field(default_factory=list)  # the sites; those of one leak are one

    @property
    def visible_bytes_per_second(self) -> float:
        """A site that keeps less may not be seen: it takes SAMPLES_SEEN samples to be more than chance."""
        return self.grown.rate(SAMPLES_SEEN * self.period_bytes)

    @property
    def untold_bytes(self) -> float:
        """The certain growth of the classes that no growing site explains."""
        told = sum(
            site.growth.certain.value for site in self.leaks if site.is_growing and site.growth.certain
        )
        return max(0.0, self.grown.risen_bytes - told)

    @property
    def is_told(self) -> bool:
        """Known: which sites grow, or that none does."""
        return self.untold_bytes <= max(NO_RISE_BYTES, (1 - TOLD_SHARE) * self.grown.risen_bytes)

    def to_json(self) -> dict[str, Any]:
        return {
            "growth": {
                "seconds": round(self.grown.seconds, 3),
                "live_bytes": self.grown.live_bytes,
                "samples": len(self.profile.samples),
                "visible_bytes_per_second": round(self.visible_bytes_per_second),
            },
            "sites": [site.to_json(self.grown) for site in self.sites],
            "leaks": [site.to_json(self.grown) for site in self.leaks if site.keeps],
        }


def gather_evidence(
    watched: Watched,
    reached: Leaks | None,
    sources: Sources,
    depth: int = DEPTH,
    *,
    with_internals: bool = False,
) -> Evidence | None:
    """None without samples.  `reached`: which of the samples nothing reaches, and what they contain;
    `with_internals`: sites begin at malloc's caller."""
    after, before = watched.after, watched.before
    if after is None or not (after.samples or after.lifetimes or (after.classes and after.header.seconds)):
        return None
    name_addresses(after, sources)
    if before is not None:
        name_addresses(before, sources)
        after.names.update(before.names)
    labels = Labels(after, with_internals=with_internals)
    key = labels.key(depth)
    grown, found = _sites(watched, after, reached, key, lambda stack: labels.site(stack, depth))
    leaks = _leaks(
        found, lambda lines: _sites(watched, after, reached, _by_line(key, lines), lambda _: ())[1]
    )
    # R as the samples were taken: the mean over the bytes that they stand for.
    whole = sums_of(after.samples)[0]
    mean_bytes = max(whole.variance / whole.value if whole.value else 0.0, float(after.header.rate_bytes))
    period_bytes = watched.period_bytes or mean_bytes
    return Evidence(grown, after, found, period_bytes, leaks)


def _sites(
    watched: Watched,
    after: Profile,
    reached: Leaks | None,
    key: StackKey,
    frames_of: Callable[[Stack], tuple[Frame, ...]],
) -> tuple[Grown, list[Site]]:
    """All that is known of each site, those with the most to say first."""
    grown, lives = growth(watched.before, after, key), survival(after, key)
    of_site = {site.key: site for site in grown.sites}
    lost_by_site = None if reached is None else _lost_by_site(after, reached, key)
    contents = {} if reached is None else _contents(after, reached.sample_contents, key)
    sizes = _block_sizes(after, key)
    found = [
        Site(
            frames=frames_of(stack),
            growth=of_site.get(name) or Growth(name, stack),
            survival=lives.get(name) or Survival((), (), ()),
            lost=None if lost_by_site is None else lost_by_site.get(name, Lost()),
            content=contents.get(name, ""),
            block_bytes=sizes.get(name, 0),
        )
        for name, stack in _stacks(watched.before, after, key).items()
    ]
    return grown, sorted(found, key=_importance, reverse=True)


# ---- one leak, several callers -----------------------------------------------------------------------------


def _leaks(sites: list[Site], sites_of: Callable[[dict[Hashable, Frame]], list[Site]]) -> list[Site]:
    """The sites; those of one line that all leak, with all callers, as one.  One caller may have too few
    samples for a verdict of its own.  `sites_of`: judges those that have a frame together, with that as their
    key."""
    by_line: dict[Frame, list[Site]] = defaultdict(list)
    for site in sites:
        if site.frames and (site.keeps or (site.growth.bytes > 0 and not site.survival.freed_samples)):
            by_line[site.frames[0]].append(site)
    by_line = {frame: parts for frame, parts in by_line.items() if len(parts) > 1}
    if not by_line:
        return sites
    lines = {site.growth.key: frame for frame, parts in by_line.items() for site in parts}
    joined, found = set[Hashable](), list[Site]()
    for whole in sites_of(lines):
        parts = by_line.get(whole.growth.key, []) if isinstance(whole.growth.key, Frame) else []
        if parts and (whole.keeps or (whole.is_growing and not any(site.keeps for site in parts))):
            parts.sort(key=lambda site: -site.growth.bytes)
            whole.frames, whole.parts = _common([site.frames for site in parts]), tuple(parts)
            joined |= {site.growth.key for site in parts}
            found.append(whole)
    found += [site for site in sites if site.growth.key not in joined]
    return sorted(found, key=_importance, reverse=True)


def _by_line(key: StackKey, lines: dict[Hashable, Frame]) -> StackKey:
    return lambda stack: lines.get(key(stack), key(stack))


def _common(stacks: Sequence[tuple[Frame, ...]]) -> tuple[Frame, ...]:
    """The innermost frames that all have."""
    alike = takewhile(lambda frames: len(set(frames)) == 1, zip(*stacks, strict=False))
    return tuple(frames[0] for frames in alike)


# ---- by site -----------------------------------------------------------------------------------------------


def _stacks(before: Profile | None, after: Profile, key: StackKey) -> dict[Hashable, Stack]:
    """One stack of each site that holds, held or freed something."""
    known: dict[Hashable, Stack] = {}
    for profile in filter(None, (after, before)):
        for stack in (*(one.stack for one in profile.samples), *profile.lifetimes):
            known.setdefault(key(stack), stack)
    return known


def _lost_by_site(profile: Profile, reached: Leaks, key: StackKey) -> dict[Hashable, Lost]:
    found: dict[Hashable, Lost] = {}
    for one, is_lost in zip(profile.samples, reached.lost_samples, strict=True):
        found.setdefault(key(one.stack), Lost()).add(one.weight_bytes, bool(is_lost))
    return found


def _block_sizes(profile: Profile, key: StackKey) -> dict[Hashable, int]:
    """The size of most of each site's sampled blocks."""
    counts: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for one in profile.samples:
        counts[key(one.stack)][one.block_bytes] += 1
    return _prevailing(counts)


def _contents(profile: Profile, contents: dict[int, Content], key: StackKey) -> dict[Hashable, str]:
    """The content of most of each site's blocks, where that is more than a kind of bytes."""
    counts: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for row, content in contents.items():
        is_named = content.kind in NAMED or content.kind in TEXTS
        name = f"{content.kind.value}: {content.name}" if content.kind in NAMED else content.kind.value
        counts[key(profile.samples[row].stack)][name if is_named else ""] += 1
    return {site: name for site, name in _prevailing(counts).items() if name}


def _prevailing(counts: dict[Hashable, Counter[Kept]]) -> dict[Hashable, Kept]:
    most = {site: found.most_common(1)[0] for site, found in counts.items()}
    return {site: one for site, (one, count) in most.items() if count > counts[site].total() * MOST_SHARE}


def _importance(site: Site) -> tuple[bool, bool, float]:
    lost_weight = site.lost.lost_weight if site.lost else 0.0
    return site.keeps, bool(lost_weight), max(site.growth.bytes, lost_weight)


# ---- as JSON ---------------------------------------------------------------------------------------


def growth_to_json(one: Growth, grown: Grown) -> dict[str, Any]:
    return {
        **with_ends("bytes", one.bytes, one.interval),
        "bytes_per_second": round(grown.rate(one.bytes)),
        "blocks": round(one.blocks),
        "certain_bytes": None if one.certain is None else round(one.certain.value),
        "is_significant": one.is_significant,
        "is_certain": one.is_certain,
        "is_steady": one.is_steady,
    }


def survival_to_json(one: Survival) -> dict[str, Any]:
    last = one.last_freed_ms
    return {
        "freed_samples": one.freed_samples,
        "live_samples": len(one.ages_ms),
        "oldest_seconds": one.oldest_ms / 1000,
        "none_freed_after_seconds": None if last is None else last / 1000,
        "older_samples": one.older,
        "points": [
            {"seconds": point.age_ms / 1000}
            | {name: round(getattr(point, name), 6) for name in ("share", "low", "high")}
            for point in one.points()
        ],
    }
