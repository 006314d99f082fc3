"""The explanation of `why` as text."""

from __future__ import annotations

from typing import Any

from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.census.explanation import Explanation
from hakmem.census.lines import Line
from hakmem.views.screen import one_line

BAR_CELLS = 12
TABLE_FROM_COLUMNS = 44  # narrower terminals have no room for figures beside text
BAR_FROM_COLUMNS = 72  # narrower terminals have no room for bars
COMMAND_SHOWN = 60
FIGURE_COLUMNS = 8  # "1023 KiB"
ADVISED_SHARE = 0.05  # of RSS: larger lines get their advice without --all
DETAILS_SHOWN = 3


def print_explanation(console: Console, explanation: Explanation, everything: bool) -> None:
    what = f"{explanation.malloc}'s memory in the core of" if explanation.is_core else "RSS of"
    command = escape(one_line(explanation.command, COMMAND_SHOWN))
    console.print(
        f"[bold]{what} process {explanation.pid}[/] ({command}): "
        f"[bold]{bytes_text(explanation.rss_bytes)}[/]\n"
    )
    if console.width >= TABLE_FROM_COLUMNS:
        console.print(lines_table(explanation, everything, console.width >= BAR_FROM_COLUMNS))
    else:
        console.print(lines_list(explanation, everything))
    console.print(f"[dim]{'':>2}≈ estimated; all others are exact.[/]\n")
    for note in explanation.notes:
        console.print(f"[yellow]{escape(note)}[/]")
    console.print(Text("Verdict: ", style="bold").append(Text(explanation.verdict, style="not bold")))
    if explanation.heaps_text:
        console.print(Text("Heaps: ", style="bold").append(Text(explanation.heaps_text, style="not bold")))
    if explanation.purgeable_bytes:
        console.print(Text("Purge: ", style="bold").append(Text(purge_text(explanation), style="not bold")))
    for note in explanation.limit_notes:
        console.print(Text("Limits: ", style="bold").append(Text(note, style="not bold yellow")))


def purge_text(explanation: Explanation) -> str:
    purgeable_bytes = explanation.purgeable_bytes
    size = f"{bytes_text(purgeable_bytes)} ({share_text(purgeable_bytes, explanation.rss_bytes)})"
    if explanation.malloc != "hakmem":
        return f"malloc_trim(0) would return about {size}."
    return (
        f"hak_purge(true), or malloc_trim, would return about {size}, plus the caches of the calling thread. "
        "Without a call it is purged after HAKMEM_DECAY_MS."
    )


def lines_table(explanation: Explanation, everything: bool, has_bars: bool) -> Table:
    """One row per line, large ones with their explanation; text wraps in narrow terminals."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("bytes", justify="right", overflow="fold", min_width=FIGURE_COLUMNS)
    table.add_column("", no_wrap=True)
    table.add_column("share", justify="right", overflow="fold", min_width=5)
    if has_bars:
        table.add_column("", no_wrap=True, width=BAR_CELLS)
    table.add_column("meaning, and how to reduce it", overflow="fold")
    rss_bytes = explanation.rss_bytes
    for line in explanation.lines:
        table.add_row(
            bytes_text(line.bytes),
            "" if line.exact else "≈",
            share_text(line.bytes, rss_bytes),
            *([bar(line.bytes / rss_bytes if rss_bytes else 0)] if has_bars else []),
            description(line, rss_bytes, everything),
        )
    total = sum(line.bytes for line in explanation.lines)
    table.add_section()
    gap = [""] if has_bars else []
    whole = Text("sum of the lines", style="dim")
    table.add_row(bytes_text(total), "", share_text(total, rss_bytes), *gap, whole)
    return table


def lines_list(explanation: Explanation, everything: bool) -> Group:
    """`lines_table` as a list, with the text below the figures."""
    rss_bytes = explanation.rss_bytes
    parts: list[RenderableType] = []
    for line in explanation.lines:
        sign = "" if line.exact else "≈ "
        parts.append(Text(f"{sign}{bytes_text(line.bytes)}, {share_text(line.bytes, rss_bytes)}"))
        parts.append(Padding(description(line, rss_bytes, everything), (0, 0, 0, 2)))
    total = sum(line.bytes for line in explanation.lines)
    parts.append(Text(f"{bytes_text(total)}, {share_text(total, rss_bytes)}: sum of the lines"))
    return Group(*parts)


def description(line: Line, rss_bytes: int, everything: bool) -> Text:
    """The name; for large lines also the largest details and the advice."""
    is_large = everything or line.bytes >= ADVISED_SHARE * rss_bytes
    details = len(line.details) if everything else DETAILS_SHOWN
    text = Text(line.name, style="bold" if is_large else "")
    if not is_large:
        return text
    for detail in line.details[:details]:
        text.append(f"\n{detail_text(detail)}", style="not bold")
    if line.details[details:]:
        text.append(f"\n… and {len(line.details) - details} more (--all)", style="not bold dim")
    return text.append(f"\n{line.advice}", style="not bold dim")


def detail_text(detail: dict[str, Any]) -> str:
    """One line of a detail, by its kind."""
    size = bytes_text(detail["bytes"])
    if "kind" in detail:
        return f"{size}: {detail['kind']}"
    if "thread_id" in detail:
        name = detail["name"] or "thread"
        return f"{size}: {name} ({detail['thread_id'] or 'heap ' + str(detail['heap'])})"
    block_bytes = detail["block_bytes"]
    blocks = "Big blocks" if block_bytes is None else f"blocks of {bytes_text(block_bytes)}"
    if "slabs" in detail:
        pages = detail["free_page_bytes"]
        return (
            f"{size}: {blocks} in {counted(detail['slabs'], 'slab')}, on average "
            f"{detail['live_blocks_per_slab']:g} of {detail['capacity_blocks_per_slab']:g} live"
            + (f"; {bytes_text(pages)} in completely free pages" if pages else "")
        )
    if "mean_request_bytes" in detail:
        return f"{size}: {blocks} for requests of {detail['mean_request_bytes']:g} B on average"
    if "live_blocks" in detail:
        count = detail["live_blocks"]
        return f"{size}: {count:,} × {bytes_text(block_bytes)} = {bytes_text(count * block_bytes)}"
    return f"{size}: {blocks}"


def bar(share: float) -> Bar:
    return Bar(8 * BAR_CELLS, 0, round(8 * BAR_CELLS * share), width=BAR_CELLS, color="cyan")
