"""The results of a campaign so far, line by line in a file, so that it can be stopped and resumed.

The file's name depends on all that the figures depend on: a changed library begins anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .allocators import Allocator
from .execute import Sample, tuning_variables
from .paths import OUTPUT
from .workload import Length

if TYPE_CHECKING:
    from .campaign import Outcome

FOLDER = OUTPUT / "campaign"


def place_of(allocators: Iterable[Allocator], length: Length) -> Path:
    """The file of all campaigns with these libraries."""
    digest = hashlib.sha256(repr((length, tuning_variables())).encode())
    for each in allocators:
        digest.update(repr((each.name, each.variables, each.wrapper)).encode())
        digest.update(each.library.read_bytes() if each.library else b"")
    return FOLDER / f"{digest.hexdigest()[:12]}.jsonl"


class Kept:
    """Without a path nothing is kept."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path

    def _add(self, line: Mapping[str, Any]) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as out:
                out.write(json.dumps(line) + "\n")

    def add_block(self, row: str, block: Mapping[str, Sample]) -> None:
        self._add({"row": row, "block": block})

    def add_report(self, row: str, report: Mapping[str, Any]) -> None:
        self._add({"row": row, "report": report})

    def add_failure(self, row: str, allocator: str, why: str) -> None:
        self._add({"row": row, "allocator": allocator, "failure": why})

    def read_into(self, outcome: Outcome, rows: set[str]) -> None:
        """Only these rows; a line that was not written to its end is left out."""
        if self.path is None or not self.path.exists():
            return
        for text in self.path.read_text().splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if line["row"] not in rows:
                continue
            if "block" in line:
                outcome.blocks.setdefault(line["row"], []).append(line["block"])
            elif "report" in line:
                outcome.reports[line["row"]] = line["report"]
            else:
                outcome.failures[line["row"], line["allocator"]] = line["failure"]
