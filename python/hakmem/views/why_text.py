"""The explanation of `why` as text."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.census.explanation import Explanation
from hakmem.census.lines import Line
from hakmem.views.screen import Sheet, one_line

BAR_CELLS = 12
COMMAND_SHOWN = 60
ADVISED_SHARE = 0.05  # of RSS: larger lines get their advice without --all
DETAILS_SHOWN = 3


def print_explanation(console: Console, explanation: Explanation, everything: bool) -> None:
    what = f"{explanation.malloc}'s memory in the core of" if explanation.is_core else "RSS of"
    command = escape(one_line(explanation.command, COMMAND_SHOWN))
    console.print(
        f"[bold]{what} process {explanation.pid}[/] ({command}): "
        f"[bold]{bytes_text(explanation.rss_bytes)}[/]\n"
    )
    console.print(lines_table(explanation, everything))
    console.print(f"[dim]{'':>2}≈ estimated; all others are exact.[/]\n")
    for note in explanation.notes:
        console.print(f"[yellow]{escape(note)}[/]")
    said = [("Verdict", explanation.verdict), ("Heaps", explanation.heaps_text)]
    if explanation.purgeable_bytes:
        said.append(("Purge", purge_text(explanation)))
    if explanation.movable_bytes >= ADVISED_SHARE * explanation.rss_bytes:
        said.append(("Defragmentation", movable_text(explanation)))
    for name, text in [*said, *(("Limits", note) for note in explanation.limit_notes)]:
        if text:
            console.print(Text.assemble((f"{name}: ", "bold"), text))


def purge_text(explanation: Explanation) -> str:
    purgeable_bytes = explanation.purgeable_bytes
    size = f"{bytes_text(purgeable_bytes)} ({share_text(purgeable_bytes, explanation.rss_bytes)})"
    if explanation.malloc != "hakmem":
        return f"malloc_trim(0) would return about {size}."
    return (
        f"hak_purge(true), or malloc_trim, would return about {size}, plus the caches of the calling thread. "
        "Without a call it is purged after HAKMEM_DECAY_MS."
    )


def movable_text(explanation: Explanation) -> str:
    size_bytes = explanation.movable_bytes
    share = share_text(size_bytes, explanation.rss_bytes)
    classes = list(explanation.movable_classes.items())[:DETAILS_SHOWN]
    pinned = ", ".join(f"{bytes_text(part)} beside blocks of {bytes_text(size)}" for size, part in classes)
    return (
        f"moving live blocks into fewer slabs would return about {bytes_text(size_bytes)} ({share}): "
        f"{pinned}. Only the program can: redis and valkey by activedefrag, others by hak_worth_moving."
    )


def lines_table(explanation: Explanation, everything: bool) -> Sheet:
    """One row per line, large ones with their explanation."""
    rss_bytes, lines = explanation.rss_bytes, explanation.lines
    rows: list[list[str | Text]] = [
        [
            bytes_text(line.bytes),
            "" if line.exact else "≈",
            share_text(line.bytes, rss_bytes),
            Text("█" * round(BAR_CELLS * line.bytes / max(rss_bytes, 1)), "cyan"),
            description(line, rss_bytes, everything),
        ]
        for line in lines
    ]
    total = sum(line.bytes for line in lines)
    rows.append([bytes_text(total), "", share_text(total, rss_bytes), "", Text("sum of the lines", "dim")])
    return Sheet("", ["bytes", "<", "share", "<", "<meaning, and how to reduce it"], rows)


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
