"""The last report of a guarded block, as text."""

from __future__ import annotations

from collections.abc import Iterator

from hakmem.blocks.guards import GuardReport
from hakmem.profile.labels import frame_text
from hakmem.views.screen import one_line


def guard_lines(report: GuardReport) -> Iterator[str]:
    """The report's own words, with names."""
    what = f"{report.kind}: {report.what} at {report.address:#x}, {report.place}"
    yield one_line([f"Last report of a guarded block: {what}"])
    for stack in report.stacks:
        yield "  " + one_line([f"{stack.what} by thread {stack.thread_id}:"])
        for number, frame in enumerate(stack.frames):
            yield "    " + one_line([f"#{number} {frame_text(frame)}"])
