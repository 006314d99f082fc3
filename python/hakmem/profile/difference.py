"""The changes between two profiles, site by site, and whether that is more than chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath

from hakmem.profile.estimate import Z_SIGNIFICANT, Estimate, difference_interval, difference_z
from hakmem.profile.growth import are_of_one_profile, growth
from hakmem.profile.labels import DEPTH, Labels
from hakmem.profile.model import Frame, Mapping, Mode, Profile, StackKey
from hakmem.profile.sites import Site, SiteTable, site_table
from hakmem.target.process import DELETED


@dataclass(frozen=True)
class Change:
    frames: tuple[Frame, ...]  # innermost first
    before: Estimate
    after: Estimate
    blocks_before: Estimate
    blocks_after: Estimate
    # The blocks that came, and those that went; None where the profiles are independent.
    came: tuple[Estimate, Estimate] | None = None  # bytes, blocks
    went: tuple[Estimate, Estimate] = (Estimate(), Estimate())

    @property
    def bytes(self) -> float:
        first, last = self._ends
        return last.value - first.value

    @property
    def blocks(self) -> float:
        if self.came is None:
            return self.blocks_after.value - self.blocks_before.value
        return self.came[1].value - self.went[1].value

    @cached_property
    def interval(self) -> tuple[float, float]:
        return difference_interval(*self._ends)

    @cached_property
    def z(self) -> float:
        return difference_z(*self._ends)

    @property
    def _ends(self) -> tuple[Estimate, Estimate]:
        """Two independent figures whose difference the change is."""
        return (self.before, self.after) if self.came is None else (self.went[0], self.came[0])

    @property
    def is_significant(self) -> bool:
        return abs(self.z) > Z_SIGNIFICANT


@dataclass(frozen=True)
class Difference:
    """The sites by what they changed, the largest change first."""

    changes: list[Change]
    before: SiteTable
    after: SiteTable
    mode: Mode

    @property
    def unseen_bytes(self) -> float:
        """The part of the change that no site explains, nor a class without a sample: older blocks; in two
        readings of one profile also the samples' error."""
        total = self.after.total_bytes - self.before.total_bytes
        unsampled = self.after.unsampled_bytes - self.before.unsampled_bytes
        return total - unsampled - sum(change.bytes for change in self.changes)

    @property
    def significant(self) -> list[Change]:
        return [change for change in self.changes if change.is_significant]


def difference(
    before: Profile, after: Profile, depth: int = DEPTH, *, with_internals: bool = False
) -> Difference:
    """Compares two profiles of the same mode.  Sites are matched by the names of their frames, and by their
    lines except in rebuilt files, whose lines have moved."""
    is_one = are_of_one_profile(before, after)
    if is_one:  # one process: an address has one name
        before, after = (replace(one, names=before.names | after.names) for one in (before, after))
    rebuilt = _rebuilt(before, after)
    labels = [
        Labels(profile, with_internals=with_internals, has_line=lambda one: _name_of(one) not in rebuilt)
        for profile in (before, after)
    ]
    tables = [
        site_table(profile, names.key(depth)) for profile, names in zip((before, after), labels, strict=True)
    ]
    sites: list[dict[Hashable, Site]] = [{site.key: site for site in table.sites} for table in tables]
    grown = _grown(before, after, labels[1].key(depth)) if is_one else None
    changes = []
    for key in dict.fromkeys([*sites[1], *sites[0]]):
        old, new = sites[0].get(key), sites[1].get(key)
        shown, names = (new, labels[1]) if new is not None else (old, labels[0])
        assert shown is not None
        came, went = (None, _NOTHING) if grown is None else grown.get(key, (_NOTHING, _NOTHING))
        changes.append(
            Change(
                names.site(shown.stack, depth),
                old.bytes if old else Estimate(),
                new.bytes if new else Estimate(),
                old.blocks if old else Estimate(),
                new.blocks if new else Estimate(),
                came,
                went,
            )
        )
    changes.sort(key=lambda change: -abs(change.bytes))
    return Difference(changes, tables[0], tables[1], after.header.mode)


_NOTHING = (Estimate(), Estimate())
_Ends = tuple[tuple[Estimate, Estimate], tuple[Estimate, Estimate]]


def _grown(before: Profile, after: Profile, key: StackKey) -> dict[Hashable, _Ends]:
    """The bytes and blocks that came to each site, and those that went; either profile may be older."""
    is_reversed = after.header.ended_s < before.header.ended_s
    found = growth(after, before, key) if is_reversed else growth(before, after, key)
    ends = {site.key: ((site.came, site.blocks_came), (site.went, site.blocks_went)) for site in found.sites}
    return {name: (went, came) for name, (came, went) in ends.items()} if is_reversed else ends


def _rebuilt(before: Profile, after: Profile) -> set[str]:
    """The names of files that are not the same build in both, or not known to be."""
    old, new = _builds(before), _builds(after)
    is_one_process = before.header.pid == after.header.pid != 0
    return {
        name
        for name in old.keys() & new.keys()
        if old[name] != new[name] or ("" in old[name] and not is_one_process)
    }


def _builds(profile: Profile) -> dict[str, set[str]]:
    """The build ids of each file's name."""
    found: dict[str, set[str]] = defaultdict(set)
    for mapping in profile.mappings:
        found[_name_of(mapping)].add(mapping.build_id)
    return found


def _name_of(mapping: Mapping) -> str:
    return PurePosixPath(mapping.path.removesuffix(DELETED)).name
