"""A description of the machine, so that figures are never read without it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from pathlib import Path

from .allocators import Allocator


def _first_match(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return "unknown"
    return found.group(1).strip() if found else "unknown"


def _package_version(package: str) -> str:
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown version"
    return done.stdout.strip() or "unknown version"


def _memory_gib() -> str:
    kib = _first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)")
    return f"{int(kib) / 2**20:.1f}" if kib.isdigit() else "unknown"


def describe_machine() -> dict[str, str]:
    """Processor, cores, memory, kernel, C library, what disturbs: the load at the start, and the date."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory_gib": _memory_gib(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "huge_pages": _first_match("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]"),
        "load_at_start": f"{os.getloadavg()[0]:.2f}",
    }


def describe_allocators(allocators: list[Allocator]) -> dict[str, str]:
    """Each allocator's name with its package and version, or its file."""
    return {
        a.name: ", ".join(
            filter(None, (a.origin, f"{a.package} {_package_version(a.package)}" if a.package else ""))
        )
        or str(a.library)
        for a in allocators
    }
