"""A snapshot of glibc's heap as text: the arenas, and the sizes of chunks."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from hakmem.base.durations import duration_text
from hakmem.base.signals import stoppable
from hakmem.base.sizes import bytes_text, count_text, counted
from hakmem.target.glibc import HEADER_BYTES, Arena, GlibcHeap, walk
from hakmem.target.target import Target, making_sense
from hakmem.views.screen import Sheet, console, one_line, print_json

ROWS_SHOWN, GROWN_SHOWN = 12, 5


def show_glibc(target: Target, *, as_json: bool, everything: bool) -> None:
    with making_sense(target):
        heap = walk(target)
        figures = target.process.figures() if target.process else None
    if as_json:
        whose = {"pid": target.pid, "command": target.command, "version": target.version}
        print_json(whose | {"process": figures and asdict(figures), "heap": asdict(heap)})
        return
    out = console()
    for part in glibc_parts(target, heap, figures.rss_bytes if figures else 0, everything):
        out.print(part)


def watch_glibc(target: Target, interval_s: float, *, once: bool) -> None:
    """The same again and again, with the sizes that have grown since the beginning; until Ctrl-C."""
    began_s, first = time.monotonic(), walk(target)
    with stoppable(), Live(console=console(), screen=not once, auto_refresh=False) as live:
        while True:
            time.sleep(interval_s)
            with making_sense(target):
                heap = walk(target)
            rss_bytes = target.process.figures().rss_bytes if target.process else 0
            grown = growth_table(first, heap, time.monotonic() - began_s)
            live.update(Group(*glibc_parts(target, heap, rss_bytes, False), Text(""), grown), refresh=True)
            if once:
                return


def growth_table(first: GlibcHeap, now: GlibcHeap, seconds: float) -> RenderableType:
    before = first.live_blocks
    grown = [(size, live - before.get(size, 0)) for size, live in now.live_blocks.items()]
    rows = sorted((one for one in grown if one[1] > 0), key=lambda one: -one[0] * one[1])[:GROWN_SHOWN]
    cells = [[bytes_text(size), f"+{count:,}", bytes_text(size * count)] for size, count in rows]
    return Sheet(f"Growth in {duration_text(seconds)}", ["block", "live", "bytes"], cells)


def glibc_parts(
    target: Target, heap: GlibcHeap, rss_bytes: int, everything: bool
) -> Iterator[RenderableType]:
    command = one_line([shlex.join(target.command)])
    yield Text.assemble((f"PID {target.pid}", "bold"), f"  {command}  ", (target.version, "cyan"))
    yield Text("")
    yield Sheet("", ["<memory", "bytes", "chunks"], sums(heap, rss_bytes))
    yield Text("")
    shown = heap.arenas if everything else sorted(heap.arenas, key=lambda one: -one.system_bytes)[:ROWS_SHOWN]
    columns = ["<arena", "threads", "size", "live", "free", "cached", "top", "resident"]
    yield Sheet(f"{counted(len(heap.arenas), 'arena')}", columns, [arena_row(one) for one in shown])
    yield from more(len(heap.arenas) - len(shown), "arena")
    yield Text("")
    sizes = sorted(heap.sizes, key=lambda one: -one[0] * one[1])
    chosen = sizes if everything else sizes[:ROWS_SHOWN]
    columns = ["block", "live", "bytes", "cached", "free"]
    yield Sheet("Blocks by size", columns, [size_row(*one) for one in chosen])
    yield from more(len(sizes) - len(chosen), "size")


def more(count: int, thing: str) -> Iterator[Text]:
    if count > 0:
        yield Text(f"… and {counted(count, 'more ' + thing)} (--all)", "dim")


def sums(heap: GlibcHeap, rss_bytes: int) -> list[list[str]]:
    rows = [
        ("live", heap.sum("live_bytes") + heap.mmapped_bytes, heap.sum("live_chunks") + heap.mmapped_chunks),
        ("of these with mappings of their own", heap.mmapped_bytes, heap.mmapped_chunks),
        (
            "cached by threads and in fastbins",
            heap.sum("tcache_bytes") + heap.sum("fastbin_bytes"),
            heap.sum("tcache_chunks") + heap.sum("fastbin_chunks"),
        ),
        ("free between live ones", heap.sum("free_bytes"), heap.sum("free_chunks")),
        ("top of the arenas", heap.sum("top_bytes"), len(heap.arenas)),
        ("not explained", heap.sum("unknown_bytes"), 0),
    ]
    found = [[name, bytes_text(size), f"{count:,}"] for name, size, count in rows if size]
    return [*found, ["RSS", bytes_text(rss_bytes), ""]] if rss_bytes else found


def arena_row(arena: Arena) -> list[str]:
    cached = arena.tcache_bytes + arena.fastbin_bytes
    parts = (
        arena.system_bytes,
        arena.live_bytes,
        arena.free_bytes,
        cached,
        arena.top_bytes,
        arena.resident.bytes,
    )
    name = "main" if arena.is_main else f"{arena.address:#x}"
    return [name, str(arena.threads), *map(bytes_text, parts)]


def size_row(chunk_bytes: int, live: int, cached: int, free: int) -> list[str]:
    block_bytes = chunk_bytes - HEADER_BYTES
    return [
        bytes_text(block_bytes),
        count_text(live),
        bytes_text(live * block_bytes),
        count_text(cached),
        count_text(free),
    ]
