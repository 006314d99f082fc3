"""The result as JSON (everything) and CSV (one line a timed run)."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def write_json(document: Document, path: Path) -> None:
    """The whole document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Document:
    """A document that write_json wrote.  Raises ValueError for anything else."""
    document = json.loads(path.read_text())
    if not isinstance(document, dict) or "noise" not in document:
        raise ValueError("not a result of this version of bench/run")
    return document


def write_csv(document: Document, path: Path) -> None:
    """benchmark, allocator, number of the run and every number of the result line."""
    lines = [
        {"benchmark": row["name"], "allocator": name, "run": number + 1, **sample}
        for row in document["benchmarks"]
        for name, cell in row["cells"].items()
        for number, sample in enumerate(cell["samples"])
    ]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, columns)
        writer.writeheader()
        writer.writerows(lines)
