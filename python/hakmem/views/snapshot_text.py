"""A snapshot as text."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from hakmem.base.sizes import bytes_text, count_text, counted
from hakmem.census.catalogue import MEMORY, OS_CALLS, QUARANTINE, RSS, SWAP, grouped
from hakmem.census.figures import TIERS, ClassFigures, Snapshot, ThreadFigures
from hakmem.census.heap_figures import HEAPS_SHOWN, limits_of_heaps
from hakmem.census.limits import LimitFigures, limit_notes, limit_rows
from hakmem.census.options import WHERE
from hakmem.census.snapshot import Target, take
from hakmem.layout.schema import FieldMeta
from hakmem.target.process import ProcessFigures
from hakmem.views.glibc_text import show_glibc
from hakmem.views.heap_rows import HEAP_COLUMNS, heap_row
from hakmem.views.screen import Sheet, console, one_line, print_json, progress_bar

THREADS_SHOWN = 20
NOT_RSS = "All but RSS is counted in blocks and addresses, resident or not: not parts of RSS"


def show_snapshot(target: Target, *, as_json: bool, everything: bool, more: Mapping[str, Any]) -> None:
    """Takes a snapshot and prints it, with a progress bar.  `everything`: also zero classes and counters, and
    all threads.  `more`: further members of the JSON."""
    if target.malloc != "hakmem":
        show_glibc(target, as_json=as_json, everything=everything)
        return
    with progress_bar("reading") as progress:
        snapshot = take(target, progress=progress)
    if as_json:
        print_json({**asdict(snapshot), **more})
        return
    out = console()
    out.print(_headline(snapshot))
    for part in _parts(snapshot, target.schema.counter_meta, everything):
        out.print()
        out.print(part)


def _headline(snapshot: Snapshot) -> Text:
    command = one_line([shlex.join(snapshot.command)])
    pid, version = (f"PID {snapshot.pid}", "bold"), (f"hakmem {snapshot.version}", "cyan")
    return Text.assemble(pid, f"  {command}  ", version)


def _parts(snapshot: Snapshot, meta: Mapping[str, FieldMeta], everything: bool) -> Iterator[RenderableType]:
    yield _memory(snapshot)
    if snapshot.limits is not None and snapshot.limits.any:
        yield _limits(snapshot.limits)
    if snapshot.options_changed:
        yield _options(snapshot)
    if snapshot.heaps:
        yield _heaps(snapshot, everything)
    yield _tiers(snapshot)
    yield _classes(snapshot.classes, everything)
    yield _threads(snapshot.threads, everything)
    yield from _counters(snapshot.counters, meta, everything)
    yield _os_calls(snapshot.totals)
    if snapshot.process is not None:
        yield _process(snapshot.process)


# ---- memory ----------------------------------------------------------------------------------------


def _memory(snapshot: Snapshot) -> RenderableType:
    memory, process = snapshot.memory, snapshot.process
    rows = []
    if process is not None:
        rows.append((process.rss_bytes, f"{RSS.label}: {RSS.meaning} (see hakmem why)"))
        if process.swap_bytes:
            rows.append((process.swap_bytes, SWAP.meaning))
    for figure in MEMORY:
        value = figure.of(memory)
        if value is not None and (value or figure is not QUARANTINE):
            rows.append((int(value), f"{figure.label}: {figure.meaning}"))
    parts: list[RenderableType] = [
        Sheet("Memory", ["bytes", "<where"], [(bytes_text(value), where) for value, where in rows]),
        Text(f"{NOT_RSS} (hakmem why shows those)", "dim"),
    ]
    if any(snapshot.memory.superslabs_by_fill):
        parts.append(_by_fill(snapshot.memory.superslabs_by_fill))
    return Group(*parts)


def _by_fill(counts: list[int]) -> Text:
    """SuperSlabs by how many of their slots are in use."""
    names = ["0 %", *(f"≤{step * 10} %" for step in range(1, len(counts)))]
    shown = ", ".join(f"{count} × {name}" for name, count in zip(names, counts, strict=True) if count)
    return Text(f"SuperSlabs by slots in use: {shown}", "dim")


# ---- limits, options -----------------------------------------------------------------------------------


def _limits(limits: LimitFigures) -> RenderableType:
    parts: list[RenderableType] = []
    if rows := limit_rows(limits):
        parts.append(Sheet("Limits", ["<limit", "bytes", "used", "<effect"], rows))
    parts += [Text(note, "yellow") for note in limit_notes(limits)]
    return Group(*parts)


def _options(snapshot: Snapshot) -> RenderableType:
    rows = [
        (item.variable, str(item.value), item.default or "none", WHERE[item.source])
        for item in snapshot.options_changed
    ]
    return Sheet("Options changed from the default", ["<option", "value", "default", "<from"], rows)


# ---- heaps -------------------------------------------------------------------------------------------


def _heaps(snapshot: Snapshot, everything: bool) -> RenderableType:
    """Made or named by the program.  A thread's heap keeps blocks for reuse: its live ones are not known."""
    heaps = snapshot.heaps
    shown = heaps if everything else heaps[:HEAPS_SHOWN]
    rows = ([cell.text for cell in heap_row(heap, snapshot.memory.live_bytes)] for heap in shown)
    title = "Heaps of the program: live bytes, and their share of all"
    parts: list[RenderableType] = [Sheet(title, HEAP_COLUMNS, rows)]
    if rest := heaps[len(shown) :]:
        live = bytes_text(sum(heap.live_bytes for heap in rest))
        parts.append(Text(f"… and {counted(len(rest), 'more heap')} with {live} (--all shows them)", "dim"))
    parts += [Text(note, "yellow") for note in limits_of_heaps(heaps)]
    return Group(*parts)


# ---- tiers, classes, threads -------------------------------------------------------------------------


def _tiers(snapshot: Snapshot) -> RenderableType:
    rows = [_tier_row(tier, [c for c in snapshot.classes if c.tier == tier]) for tier in TIERS]
    totals, counters, big = snapshot.totals, snapshot.counters, snapshot.big
    rows.append(
        (
            "big",
            bytes_text(totals.get("big_live_bytes", big.bytes)),
            "–" if big.blocks is None else count_text(big.blocks),
            bytes_text(snapshot.memory.ranges_cached_bytes or 0),
            "",
            count_text(counters.get("big_allocs", 0)),
            count_text(counters.get("big_frees", 0)),
        )
    )
    return Sheet("Tiers", ["<tier", "live", "blocks", "cached", "free", "fetched", "flushed"], rows)


def _tier_row(tier: str, classes: list[ClassFigures]) -> tuple[str, ...]:
    cached = sum(c.cached_blocks * c.block_bytes for c in classes)
    free = sum(((c.free_blocks or 0) + (c.remote_blocks or 0)) * c.block_bytes for c in classes)
    return (
        tier,
        bytes_text(sum(c.live_bytes for c in classes)),
        count_text(sum(c.live_blocks or 0 for c in classes)),
        bytes_text(cached),
        bytes_text(free),
        count_text(sum(c.refilled_blocks for c in classes)),
        count_text(sum(c.flushed_blocks for c in classes)),
    )


def _classes(classes: list[ClassFigures], everything: bool) -> RenderableType:
    columns = [
        "size",
        "request",
        "live",
        "bytes",
        "cached",
        "free",
        "remote",
        "slabs",
        "full",
        "fetched",
        "flushed",
    ]
    shown = [c for c in classes if everything or c.capacity_blocks or c.refilled_blocks]
    title = "Classes, in blocks (fetched, flushed: between magazines and slabs or ranges)"
    return Sheet(title, columns, (_class_row(c) for c in shown))


def _class_row(figures: ClassFigures) -> tuple[str, ...]:
    mean, capacity, live = figures.mean_request_bytes, figures.capacity_blocks or 0, figures.live_blocks or 0
    return (
        _narrow_bytes(figures.block_bytes),
        "–" if mean is None else _narrow_bytes(mean),
        _narrow(live),
        _narrow_bytes(figures.live_bytes),
        _narrow(figures.cached_blocks),
        _narrow(figures.free_blocks or 0),
        _narrow(figures.remote_blocks or 0),
        _narrow(figures.slabs or 0),
        f"{100 * live / capacity:.0f}%" if capacity else "–",
        _narrow(figures.refilled_blocks),
        _narrow(figures.flushed_blocks),
    )


def _narrow(count: float) -> str:
    return count_text(count).replace(" ", "")


def _narrow_bytes(count: float) -> str:
    """1.25 KiB → 1.25K: eleven columns must fit."""
    return bytes_text(count).replace(" ", "").replace("iB", "")


def _threads(threads: list[ThreadFigures], everything: bool) -> RenderableType:
    by_size = sorted(threads, key=lambda thread: thread.cached_bytes, reverse=True)
    shown = by_size if everything else by_size[:THREADS_SHOWN]
    columns = ["TID", "<name", "<state", *TIERS, "out", "slow paths"]
    counts = Counter(thread.state for thread in threads)
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    parts: list[RenderableType] = [
        Sheet(f"Threads ({states}): cached bytes", columns, map(_thread_row, shown))
    ]
    if rest := by_size[len(shown) :]:
        more, cached = counted(len(rest), "more heap"), bytes_text(sum(one.cached_bytes for one in rest))
        parts.append(Text(f"… and {more} with {cached} in caches (--all shows them)", "dim"))
    return Group(*parts)


def _thread_row(thread: ThreadFigures) -> tuple[str, ...]:
    return (
        str(thread.thread_id) if thread.thread_id else "–",
        thread.label or ("" if thread.thread_id or thread.state == "ended" else "(shared)"),
        thread.state,
        *(_narrow_bytes(thread.magazine_bytes.get(tier, 0)) for tier in TIERS),
        _narrow_bytes(thread.bytes_out),
        _narrow(thread.slow_paths),
    )


# ---- counters ----------------------------------------------------------------------------------------


def _counters(
    counters: Mapping[str, int], meta: Mapping[str, FieldMeta], everything: bool
) -> Iterator[RenderableType]:
    for group, names in grouped(counters).items():
        rows = [
            (f"{counters[name]:,}", name, meta[name].meaning if name in meta else "")
            for name in names
            if everything or counters[name]
        ]
        if rows:
            yield Sheet(group, ["count", "<counter", "<what it counts"], rows, key=1)


def _os_calls(totals: Mapping[str, int]) -> RenderableType:
    rows = [
        (call.name, f"{totals[call.count]:,}", _ms(totals.get(call.time, 0), totals[call.count]))
        for call in OS_CALLS
        if call.count in totals
    ]
    purged, refaulted = totals.get("purged_bytes", 0), totals.get("refaulted_bytes", 0)
    line = f"purged {bytes_text(purged)}, of which {bytes_text(refaulted)} were used again"
    if totals.get("os_failures"):
        line += f"; the system refused {counted(totals['os_failures'], 'call')}"
    return Group(Sheet("System calls", ["<call", "calls", "time"], rows), Text(line, "dim"))


def _ms(time_ns: int, calls: int) -> str:
    """The library does not time the first few calls."""
    if calls and not time_ns:
        return "–"
    return f"{time_ns / 1e6:,.1f} ms"


def _process(process: ProcessFigures) -> Text:
    return Text(
        f"Page faults: {process.minor_faults:,} minor, {process.major_faults:,} major (read from disk); "
        f"{counted(process.threads, 'thread')}; {process.cpu_s:,.2f} s of CPU time"
    )
