"""Limits of a process's control group and of its ancestors: the tightest one counts.

v2   /sys/fs/cgroup/a/b/…                  memory.max, memory.current, cpu.max
v1   /sys/fs/cgroup/memory/a/b/…, …/cpu/…  memory.limit_in_bytes, cpu.cfs_quota_us
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem.base.files import number_in

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
NO_LIMIT_BYTES = 1 << 60  # v1 writes a number near 2^63 for no limit


@dataclass(frozen=True)
class _Files:
    """The file names of one cgroup version."""

    kind: str
    limits: tuple[str, ...]  # where several are equal, the first one is reported
    used: str
    events: str
    quota: tuple[str, ...]  # with the period after it, in a file or two


V2 = _Files("cgroup v2", ("memory.max", "memory.high"), "memory.current", "memory.events", ("cpu.max",))
V1 = _Files(
    "cgroup v1", ("memory.limit_in_bytes",), "memory.usage_in_bytes", "memory.oom_control",
    ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """None: no limit."""

    kind: str  # "cgroup v2", "cgroup v1", "no cgroup"
    memory_setting: str
    memory_bytes: int | None = None
    used_bytes: int | None = None
    oom_kills: int = 0
    cpus: float | None = None


def cgroup_limits(root: Path = ROOT, membership: Path = MEMBERSHIP) -> Limits:
    groups = groups_of(membership)
    if (root / "cgroup.controllers").exists() and "" in groups:
        folders = list(_upwards(root, groups[""]))
        return _limits(V2, folders, folders)
    if "memory" in groups or "cpu" in groups:
        memory = list(_upwards(root / "memory", groups.get("memory", "/")))
        cpu = _upwards(root / "cpu", groups.get("cpu", "/"))
        return _limits(V1, memory, cpu)
    return Limits("no cgroup", "")


def groups_of(membership: Path) -> dict[str, str]:
    """Path by controller; that of v2 under the name ""."""
    with suppress(OSError):
        rows = (line.split(":", 2) for line in os.fsdecode(membership.read_bytes()).split("\n")[:-1])
        return {controller: path for _, names, path in rows for controller in names.split(",")}
    return {}


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """The group's folder and its parents.  In a container the path may not be visible: only the root is."""
    folder = root / path.lstrip("/")
    while folder != root:
        if folder.is_dir():
            yield folder
        folder = folder.parent
    yield root


def _limits(files: _Files, memory: list[Path], cpu: Iterable[Path]) -> Limits:
    limit, path = _tightest([folder / name for name in files.limits for folder in memory])
    return Limits(
        kind=files.kind,
        memory_setting=str(path),
        memory_bytes=limit,
        used_bytes=number_in(path.parent / files.used),
        oom_kills=_oom_kills(path.parent / files.events),
        cpus=min(filter(None, (_quota(files, folder) for folder in cpu)), default=None),
    )


def _tightest(paths: list[Path]) -> tuple[int | None, Path]:
    limits = [(limit, path) for path in paths if (limit := number_in(path)) is not None]
    real = [(limit, path) for limit, path in limits if limit < NO_LIMIT_BYTES]
    return min(real, default=(None, paths[0]), key=lambda pair: pair[0] or 0)


def _quota(files: _Files, folder: Path) -> float | None:
    """No limit is "max" in v2, and -1 in v1."""
    words = [word for name in files.quota for word in _words(folder / name)]
    return int(words[0]) / int(words[1]) if len(words) >= 2 and words[0].isdigit() else None


def _oom_kills(path: Path) -> int:
    words = _words(path)
    return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
