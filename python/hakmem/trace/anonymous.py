"""A trace to share: without its program, machine and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hakmem.trace.file import Trace
from hakmem.trace.lives import Lives
from hakmem.trace.plan import Ranks

KEPT = ("hakmem", "machine")  # the version and the architecture


def anonymized(trace: Trace) -> Trace:
    """Sizes stay, and so do times since the beginning; threads have numbers from 1, as they appear."""
    extent, memory = trace.extent, trace.memory
    began = [extent.first_ns] if extent.events + extent.live_blocks else []
    began += [int(memory.times_ns[0])] if memory is not None and len(memory.times_ns) else []
    began_ns = min(began, default=0)

    def lives() -> Iterator[Lives]:
        ranks = Ranks(0)  # of blocks that lived before; it stays
        for some in trace.lives():
            events = some.events
            times_ns, threads = events.times_ns - began_ns, ranks.of(events.threads)
            yield Lives(replace(events, times_ns=times_ns, threads=threads), some.numbers)

    if memory is not None:
        memory = replace(memory, times_ns=memory.times_ns - began_ns)
    head = {name: trace.head[name] for name in KEPT if name in trace.head}
    end = trace.end or {"end": "cut off", "lost": trace.lost}
    return Trace(head, lives, trace.lost, end, memory)
