"""Running programs on hakmem and reading the reports they leave: shared by scripts/run and the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# The tool's, from its sources: `make run` comes before the tool.
sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))
from hakmem.launch.preloadable import preloadable

Report = dict[str, Any]

SERVED_COUNTERS = ("refilled_blocks", "large_allocs", "big_allocs")


def clean_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without any preload and without any hakmem option."""
    source = os.environ if base is None else base
    return {k: v for k, v in source.items() if k != "LD_PRELOAD" and not k.startswith("HAKMEM_")}


def preload_environment(lib: Path, stats: str = "", base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a program that runs on `lib`; `stats` is the value of HAKMEM_STATS."""
    environment = clean_environment(base)
    environment["LD_PRELOAD"] = str(preloadable(lib))
    if stats:
        environment["HAKMEM_STATS"] = stats
    return environment


def run_clean(
    words: Sequence[str | Path], timeout_s: float = 120, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command in the clean environment and these variables; what it wrote and its exit status."""
    environment = clean_environment() | variables
    return subprocess.run(
        [str(word) for word in words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def json_stats_option(folder: Path) -> str:
    """The value of HAKMEM_STATS that makes every process leave one JSON report in `folder`."""
    return f"json:{folder}/%p.json"


def read_reports(folder: Path) -> list[Report]:
    """The reports of all processes that ended normally, in the order of their process ids."""
    reports: list[Report] = []
    for path in sorted(folder.glob("*.json"), key=lambda p: int(p.stem)):
        try:
            reports.append(json.loads(path.read_text()))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is not a JSON report: {error}") from error
    return reports


def served(report: Report) -> int:
    """Above zero exactly when hakmem served the process: blocks that only a working hakmem counts."""
    return sum(int(report["counters"][name]) for name in SERVED_COUNTERS)
