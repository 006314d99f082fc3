"""A trace that tells nothing of its program, machine and time: a file that one may send."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hakmem.trace.file import Trace
from hakmem.trace.lives import Lives
from hakmem.trace.plan import ranks

KEPT = ("hakmem", "machine")  # the version and the architecture


def anonymized(trace: Trace) -> Trace:
    """Sizes stay, and so do times since the beginning; threads have numbers from 1, as they appear."""
    known = np.flatnonzero(trace.lives.life_of_row >= 0)
    events, memory = trace.lives.events.at(known), trace.memory
    times = [events.times_ns] if memory is None else [events.times_ns, memory.times_ns]
    began_ns = min((int(some[0]) for some in times if len(some)), default=0)
    events.times_ns = events.times_ns - began_ns
    events.threads = ranks(0, events.threads)  # 0, of blocks that lived before, stays
    lives = Lives.numbered(events, trace.lives.life_of_row[known], 0, 0, 0)
    if memory is not None:
        memory = replace(memory, times_ns=memory.times_ns - began_ns)
    head = {name: trace.head[name] for name in KEPT if name in trace.head}
    end = trace.end or {"end": "cut off", "lost": trace.lost}
    return Trace(head, lives, trace.lost, end, memory)
