"""What `hakmem leaks` found, as text."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, counted
from hakmem.blocks.leaks import Leaks, Sum
from hakmem.views.screen import one_line, table
from hakmem.views.what_text import (
    CLASSES_SHOWN,
    COMMAND_SHOWN,
    ROWS_SHOWN,
    classes_table,
    contents_table,
    hidden,
    shown,
)

INTERIOR = (
    "reachable, but nothing points at their first byte: usual for Python objects, strings with a header and "
    "C++ classes with several bases"
)


def print_leaks(console: Console, found: Leaks, everything: bool) -> None:
    """The sums, the notes, then what the lost blocks are."""
    what = "core of" if found.is_core else "process"
    command = escape(one_line(found.command, COMMAND_SHOWN))
    live = f"{bytes_text(found.live.bytes)} in {counted(found.live.blocks, 'live block')}"
    console.print(f"[bold]Unreachable blocks in {what} {found.pid}[/] ({command}), of {live}\n")
    console.print(table("", ["<", "bytes", "blocks", "<what it means"], sum_rows(found), key=0))
    console.print()
    lost = found.definite if found.definite.blocks else found.perhaps
    if lost.blocks:
        rows = found.contents if everything else shown(found.contents, ROWS_SHOWN)
        title = "Definitely lost, by content" if found.definite.blocks else "Perhaps lost, by content"
        console.print(contents_table(title, rows, lost.bytes, lost.blocks))
        hidden(console, len(found.contents) - len(rows), "rare content")
        classes = found.classes if everything else found.classes[:CLASSES_SHOWN]
        console.print(classes_table(classes, everything))
        hidden(console, len(found.classes) - len(classes), "size class", "size classes")
        console.print(
            Text("The largest begin at " + ", ".join(f"{at:#x}" for at in found.addresses[:3]), style="dim")
        )
    for note in found.notes:
        console.print(Text(note, style="yellow"))
    console.print(Text(how(found), style="dim"))


def sum_rows(found: Leaks) -> list[list[str]]:
    """One row for each sum that is not zero; "definitely" always."""

    rows = [("definitely lost", found.definite, groups_text(found.definite))]
    if found.perhaps.blocks:
        rows.append(("perhaps lost", found.perhaps, perhaps_text(found)))
    if found.freed_only.blocks:
        rows.append(
            ("of these", found.freed_only, "freed blocks still point to them: their holder was freed first")
        )
    if found.interior.blocks:
        rows.append(("interior only", found.interior, INTERIOR))
    return [[name, bytes_text(one.bytes), f"{one.blocks:,}", text] for name, one, text in rows]


def groups_text(one: Sum) -> str:
    """How they hang together."""
    if not one.blocks:
        return "nothing"
    return f"{counted(one.groups, 'block')} that nothing points to, and what only these lead to"


def perhaps_text(found: Leaks) -> str:
    """Why not definitely."""
    if not found.is_whole:
        return "nothing that was seen leads to them, but not all was seen"
    seen = f"{counted(found.unseen_registers, 'register')} of {counted(found.threads, 'thread')}"
    return f"the largest groups, as many as {seen} that cannot be seen may hold; --freeze tells"


def how(found: Leaks) -> str:
    """What the answer rests on."""
    speeds = [scan["read_bytes"] / max(scan["seconds"], 1e-9) for scan in found.scans]
    read = bytes_text(found.scans[-1]["read_bytes"])
    way = "One scan" if len(found.scans) == 1 else f"{counted(len(found.scans), 'scan')}, each"
    stopped = (
        f"; the process was stopped for {duration_text(found.scans[0]['seconds'])}" if found.is_frozen else ""
    )
    return f"{way} of {read} at {bytes_text(min(speeds))}/s{stopped}."
