"""The last report of a guarded block, as text."""

from __future__ import annotations

from collections.abc import Iterator

from hakmem.blocks.guards import GuardReport
from hakmem.profile.labels import frame_text


def guard_lines(report: GuardReport) -> Iterator[str]:
    """The report's own words, with names."""
    what = f"{report.kind}: {report.what} at {report.address:#x}, {report.place}"
    yield f"Last report of a guarded block: {what}"
    for stack in report.stacks:
        yield f"  {stack.what} by thread {stack.thread_id}:"
        yield from (f"    #{number} {frame_text(frame)}" for number, frame in enumerate(stack.frames))
