"""The memory limits of a process: hakmem's options and the cgroup's; how close it is to them, what they cost.

hakmem's two limits apply to its own memory (committed_bytes), the cgroup's to everything that its processes
have resident, including page cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.target.cgroup import Limits, cgroup_limits
from hakmem.target.process import Process

NO_LIMITS = Limits("", "")
NEAR_SHARE = 0.9  # of a limit: from here on it is reported unasked


@dataclass(frozen=True)
class LimitFigures:
    """None: no such limit, or unknown."""

    committed_bytes: int
    soft_bytes: int | None = None
    # Without HAKMEM_LIMIT_SOFT hakmem uses three quarters of the cgroup's limit, once it has read it.
    soft_is_cgroups: bool = False
    hard_bytes: int | None = None
    soft_hits: int = 0  # purge rounds because the soft limit was exceeded
    hard_refusals: int = 0  # times that the hard limit was reached
    refused_requests: int = 0  # requests that failed with ENOMEM, for any reason
    heap_refusals: int = 0  # of those, by limits of heaps that the program has made and that are there now
    cgroup: str = ""  # "cgroup v2", "cgroup v1"; "" without one that has a limit
    cgroup_setting: str = ""
    cgroup_bytes: int | None = None
    cgroup_used_bytes: int | None = None
    cgroup_oom_kills: int = 0

    @property
    def soft_used_ratio(self) -> float | None:
        return self.committed_bytes / self.soft_bytes if self.soft_bytes else None

    @property
    def hard_used_ratio(self) -> float | None:
        return self.committed_bytes / self.hard_bytes if self.hard_bytes else None

    @property
    def cgroup_used_ratio(self) -> float | None:
        used, limit = self.cgroup_used_bytes, self.cgroup_bytes
        return used / limit if used is not None and limit else None

    @property
    def any(self) -> bool:
        """Is there a limit, or was a request refused?"""
        known = (self.soft_bytes, self.hard_bytes, self.cgroup_bytes)
        return any(limit is not None for limit in known) or bool(self.refused_requests)


def limit_figures(
    process: Process | None,
    own: Mapping[str, int],
    options: Mapping[str, int | str],
    counters: Mapping[str, int],
    totals: Mapping[str, int],
    heap_refusals: int,
) -> LimitFigures:
    """The limits of a process or a core; `own` are the limits in force as published by the library."""
    cgroup = cgroup_limits(membership=process.path("cgroup")) if process else NO_LIMITS
    cgroup = NO_LIMITS if cgroup.memory_bytes is None else cgroup
    return LimitFigures(
        committed_bytes=totals.get("committed_bytes", 0),
        soft_bytes=own.get("soft_bytes") or None,
        soft_is_cgroups=bool(own.get("soft_bytes")) and not options.get("limit_soft"),
        hard_bytes=own.get("hard_bytes") or None,
        soft_hits=counters.get("limit_soft_hits", 0),
        hard_refusals=totals.get("limit_hard_refusals", 0),
        refused_requests=counters.get("enomem", 0),
        heap_refusals=heap_refusals,
        cgroup=cgroup.kind,
        cgroup_setting=cgroup.memory_setting,
        cgroup_bytes=cgroup.memory_bytes,
        cgroup_used_bytes=cgroup.used_bytes,
        cgroup_oom_kills=cgroup.oom_kills,
    )


# ---- as text -----------------------------------------------------------------------------------------


def limit_rows(limits: LimitFigures) -> list[tuple[str, str, str, str]]:
    """Name, limit, use and effect: one row for each limit."""
    rows = []
    held = limits.committed_bytes
    if limits.hard_bytes is not None:
        refused = f"reached {counted(limits.hard_refusals, 'time')}"
        rows.append(("HAKMEM_LIMIT_HARD", *_against(held, limits.hard_bytes), refused))
    if limits.soft_bytes is not None:
        name = "soft limit (3/4 of the cgroup's)" if limits.soft_is_cgroups else "HAKMEM_LIMIT_SOFT"
        hits = f"exceeded in {counted(limits.soft_hits, 'purge round')}"
        rows.append((name, *_against(held, limits.soft_bytes), hits))
    if limits.cgroup_bytes is not None:
        kills = limits.cgroup_oom_kills
        said = f"by all its processes; {counted(kills, 'process', 'processes')} killed"
        rows.append((limits.cgroup, *_against(limits.cgroup_used_bytes or 0, limits.cgroup_bytes), said))
    return rows


def _against(used_bytes: int, limit_bytes: int) -> tuple[str, str]:
    return bytes_text(limit_bytes), f"{bytes_text(used_bytes)}, {share_text(used_bytes, limit_bytes)}"


def limit_notes(limits: LimitFigures) -> list[str]:
    """Notes shown unasked: refused requests, limits that are close."""
    notes = []
    if limits.refused_requests:
        notes.append(_refusals(limits))
    held = limits.committed_bytes
    if _is_near(held, limits.hard_bytes):
        notes.append(
            f"hakmem holds {_of(held, limits.hard_bytes)} HAKMEM_LIMIT_HARD: beyond it requests fail with "
            "ENOMEM. Raise the limit, or free memory."
        )
    if limits.soft_bytes is not None and held > limits.soft_bytes:
        name = "three quarters of the cgroup's limit" if limits.soft_is_cgroups else "HAKMEM_LIMIT_SOFT"
        notes.append(
            f"hakmem holds {bytes_text(held)}, more than {name} ({bytes_text(limits.soft_bytes)}): free "
            "memory is purged at once, which costs page faults."
        )
    if _is_near(limits.cgroup_used_bytes, limits.cgroup_bytes):
        does = "slows processes down" if limits.cgroup_setting.endswith(".high") else "kills processes"
        notes.append(
            f"The cgroup uses {_of(limits.cgroup_used_bytes or 0, limits.cgroup_bytes)} its memory limit: at "
            f"the limit the kernel {does}. Raise {limits.cgroup_setting}, or purge sooner "
            "(HAKMEM_DECAY_MS)."
        )
    return notes


def _refusals(limits: LimitFigures) -> str:
    said = f"{counted(limits.refused_requests, 'request')} failed with ENOMEM"
    if limits.hard_refusals:
        limit = f" ({bytes_text(limits.hard_bytes)})" if limits.hard_bytes is not None else ""
        return (
            f"{said}; HAKMEM_LIMIT_HARD{limit} was reached {counted(limits.hard_refusals, 'time')}. Raise "
            "it, or see what holds the memory (hakmem why)."
        )
    if limits.heap_refusals:
        said += f", {limits.heap_refusals:,} of them by limits of the program's heaps (hak_set_limit)"
        if limits.heap_refusals >= limits.refused_requests:
            return f"{said}."
    return f"{said}: the system had no memory or address space, or the size was impossible."


def _is_near(used_bytes: int | None, limit_bytes: int | None) -> bool:
    return limit_bytes is not None and (used_bytes or 0) > NEAR_SHARE * limit_bytes


def _of(used_bytes: int, limit_bytes: int | None) -> str:
    whole = limit_bytes or 0
    return f"{bytes_text(used_bytes)}, {share_text(used_bytes, whole)} of the {bytes_text(whole)} of"


def limit_mark(limits: LimitFigures) -> str:
    """The closest limit and the refused requests, as a cell: "97 % of hard 100 MiB, 3 refused"."""
    held = limits.committed_bytes
    shares = [
        (used / limit, f"{share_text(used, limit)} of {name} {bytes_text(limit)}")
        for name, used, limit in (
            ("hard", held, limits.hard_bytes),
            ("soft", held, None if limits.soft_is_cgroups else limits.soft_bytes),
            ("cgroup", limits.cgroup_used_bytes or 0, limits.cgroup_bytes),
        )
        if limit
    ]
    said = [max(shares)[1]] if shares else []
    if limits.refused_requests:
        said.append(f"{limits.refused_requests:,} refused")
    return ", ".join(said)
