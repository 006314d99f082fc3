"""Recordings that a test has made or changed, written as `hakmem record` writes them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from hakmem.views.recording import Recording, bounded, line
from hakmem.views.recording_sites import KEY, SiteHistory


def parts_of(history: SiteHistory) -> list[dict[str, Any]]:
    """A part for each reading; the first that has a site has its name."""
    known, found = 0, []
    for reading in history.readings:
        named = max((row.site + 1 for row in reading.rows), default=0)
        part = history.part(reading, known)
        part["names"] = part["names"][: max(0, named - known)]
        known = max(known, named)
        found.append(part)
    return found


def write(recording: Recording, path: Path) -> None:
    samples = recording.samples
    lines: list[dict[str, Any]] = [*(asdict(bounded(one)) for one in samples), {"ended": recording.ended}]
    for part in parts_of(recording.sites):
        place = sum(sample.monotonic_s < part["monotonic_s"] for sample in samples)
        lines[place].setdefault(KEY, []).append(part)
    path.write_text("".join(map(line, [recording.header(), *lines])))
