"""Where things are."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
REPOSITORY = HERE.parents[1]
BUILD = Path(os.environ.get("HAKMEM_BUILD", REPOSITORY / "build"))
PROGRAMS = HERE / "programs"
WORK = REPOSITORY / "build" / "profilers"
LIBRARY = BUILD / "libhakmem.so"


def debian_library(name: str) -> Path | None:
    """One that Debian installs for each architecture."""
    return next(iter(sorted(Path("/usr/lib").glob(f"*/{name}"))), None)
