"""The changes between two profiles, site by site, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

from hakmem.profile.estimate import Z_SIGNIFICANT, Estimate, difference_interval, difference_z
from hakmem.profile.labels import DEPTH, Labels
from hakmem.profile.model import Frame, Mode, Profile
from hakmem.profile.sites import Site, SiteTable, site_table


@dataclass(frozen=True)
class Change:
    """One site in both profiles."""

    frames: tuple[Frame, ...]  # innermost first
    before: Estimate
    after: Estimate
    blocks_before: Estimate
    blocks_after: Estimate

    @property
    def bytes(self) -> float:
        return self.after.value - self.before.value

    @property
    def blocks(self) -> float:
        return self.blocks_after.value - self.blocks_before.value

    @cached_property
    def interval(self) -> tuple[float, float]:
        return difference_interval(self.before, self.after)

    @cached_property
    def z(self) -> float:
        return difference_z(self.before, self.after)

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
    def significant(self) -> list[Change]:
        return [change for change in self.changes if change.is_significant]


def difference(
    before: Profile, after: Profile, depth: int = DEPTH, *, with_internals: bool = False
) -> Difference:
    """Compares two profiles of the same mode; sites are matched by the names of their frames."""
    labels = [Labels(profile, with_internals=with_internals) for profile in (before, after)]
    tables = [
        site_table(profile, names.key(depth)) for profile, names in zip((before, after), labels, strict=True)
    ]
    sites: list[dict[Hashable, Site]] = [{site.key: site for site in table.sites} for table in tables]
    changes = []
    for key in dict.fromkeys([*sites[1], *sites[0]]):
        old, new = sites[0].get(key), sites[1].get(key)
        shown, names = (new, labels[1]) if new is not None else (old, labels[0])
        assert shown is not None
        changes.append(
            Change(
                names.site(shown.stack, depth),
                old.bytes if old else Estimate(),
                new.bytes if new else Estimate(),
                old.blocks if old else Estimate(),
                new.blocks if new else Estimate(),
            )
        )
    changes.sort(key=lambda change: -abs(change.bytes))
    return Difference(changes, tables[0], tables[1], after.header.mode)
