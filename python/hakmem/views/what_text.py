"""The result of `hakmem what` as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, count_text, counted, share_text
from hakmem.blocks.block_map import CHUNK, HeapName
from hakmem.blocks.content import Content
from hakmem.blocks.leaks import Leaks
from hakmem.blocks.one_block import OneBlock
from hakmem.blocks.referrers import Referrer
from hakmem.blocks.sampling import Share
from hakmem.blocks.what import ContentRow, SizeClass, What
from hakmem.census.figures import TIERS
from hakmem.census.heap_figures import heap_text as named_text
from hakmem.census.heap_figures import quoted
from hakmem.views.profile_text import CALLER
from hakmem.views.screen import Sheet, one_line

TIERS_OF_SLABS = TIERS[:2]
COMMAND_SHOWN = 60
NAME_SHOWN = 60
ROWS_SHOWN, CLASSES_SHOWN, ROWS_OF_CLASS_SHOWN = 20, 8, 3
RARE = 0.001  # smaller shares are shown with --all


def print_what(console: Console, answer: What, everything: bool) -> None:
    what = "core of" if answer.is_core else "process"
    console.print(
        f"[bold]Live blocks in {what} {answer.pid}[/] ({escape(one_line(answer.command, COMMAND_SHOWN))}): "
        f"[bold]{bytes_text(answer.live_bytes)}[/] in {counted(answer.live_blocks, 'block')}\n"
    )
    if not answer.live_blocks:
        console.print("No block is live.")
        return
    print_contents(console, "By content", answer, answer.live_bytes, answer.live_blocks, everything)
    for note in answer.notes:
        console.print(Text(note, style="yellow"))
    drawn = counted(answer.drawn, "block")
    console.print(Text(f"Estimated from {drawn} drawn at random; ± is the 95 % interval.", style="dim"))


def print_contents(
    console: Console, title: str, found: What | Leaks, whole_bytes: int, whole_blocks: int, everything: bool
) -> None:
    """By content, then by size class."""
    rows = found.contents if everything else shown(found.contents, ROWS_SHOWN)
    console.print(contents_table(title, rows, whole_bytes, whole_blocks))
    hidden(console, len(found.contents) - len(rows), "rare content")
    classes = found.classes if everything else found.classes[:CLASSES_SHOWN]
    console.print(classes_table(classes, everything))
    hidden(console, len(found.classes) - len(classes), "size class", "size classes")


def hidden(console: Console, count: int, thing: str, things: str = "") -> None:
    """What --all would add."""
    if count > 0:
        console.print(Text(f"… and {counted(count, thing, things)} more (--all)", style="dim"))
    console.print()


def shown(rows: Sequence[ContentRow], count: int) -> list[ContentRow]:
    """The large ones, in bytes or in blocks."""
    return [row for row in rows if max(row.bytes_share.share, row.blocks_share.share) >= RARE][:count]


def contents_table(title: str, rows: Sequence[ContentRow], whole_bytes: int, whole_blocks: int) -> Sheet:
    has_examples = any(row.example for row in rows)
    measured = ("share", "±")
    columns = ["<content", "bytes", *measured, "blocks", *measured]
    if has_examples:
        columns.append("<example")
    cells = [
        [
            name_of(row),
            bytes_text(row.bytes_share.share * whole_bytes),
            *share_cells(row.bytes_share),
            count_text(round(row.blocks_share.share * whole_blocks)),
            *share_cells(row.blocks_share),
            *([one_line([row.example], NAME_SHOWN)] if has_examples else []),
        ]
        for row in rows
    ]
    return Sheet(title, columns, cells)


def name_of(row: ContentRow) -> str:
    """C++ object: std::string."""
    name = one_line([row.name], NAME_SHOWN)
    if row.kind.value == "structure" or not name or name == "to code":
        return f"{row.kind.value} {name}".rstrip()
    return f"{row.kind.value}: {name}"


def share_cells(share: Share) -> tuple[str, str]:
    """12 %, 0.8 %: the wider half of the interval."""
    half = max(share.high - share.share, share.share - share.low)
    return share_text(share.share, 1), "exact" if half < 1e-9 else share_text(half, 1)


def classes_table(classes: Sequence[SizeClass], everything: bool) -> Sheet:
    def prevailing(item: SizeClass) -> str:
        rows = sorted(item.contents, key=lambda row: -row.bytes_share.share)
        if not everything:
            rows = [row for row in rows if row.bytes_share.share >= 0.01][:ROWS_OF_CLASS_SHOWN]
        return ", ".join(f"{share_text(row.bytes_share.share, 1)} {name_of(row)}" for row in rows)

    cells = [
        [
            "Big" if item.block_bytes is None else f"{item.block_bytes:,} B",
            bytes_text(item.bytes),
            count_text(item.blocks),
            prevailing(item),
        ]
        for item in classes
    ]
    return Sheet("By size class", ["class", "bytes", "blocks", "<what prevails, of the bytes"], cells)


# ---- one block -------------------------------------------------------------------------------------


def print_block(console: Console, block: OneBlock, examples: bool) -> None:
    """Lines "what  answer"."""
    console.print(f"[bold]{block.address:#x}[/] in process {block.pid}")
    for name, text in block_lines(block, examples):
        console.print(Text(f"  {name:<12}", style="dim").append(text, style="not dim"), soft_wrap=True)
    if block.start is None:
        return
    if block.path is not None:
        console.print(Text("\nPath from the block to a root", style="bold"))
        for one in block.path:
            console.print(Text(f"  {referrer_text(one)}"), soft_wrap=True)
        if not block.path:
            console.print(Text(f"  none found: {block.notes[-1]}"), soft_wrap=True)
    title = f"\nPointed at by {counted(block.referrer_count, 'word')}"
    console.print(Text(title, style="bold"))
    for one in block.referrers:
        console.print(Text(f"  {referrer_text(one)}"), soft_wrap=True)
    if block.referrer_count > len(block.referrers):
        console.print(Text(f"  … and {block.referrer_count - len(block.referrers):,} more", style="dim"))


def block_lines(block: OneBlock, examples: bool) -> Iterator[tuple[str, str]]:
    if block.start is None or block.block_bytes is None:
        yield "place", block.place
        return
    size = "Big" if block.size_class is None else f"size class {block.size_class}, {block.tier.capitalize()}"
    is_hakmems = block.tier != CHUNK
    of_class = f" ({size})" if is_hakmems else ""
    yield "block", f"{block.start:#x} + {block.address - block.start}, {block.block_bytes:,} B{of_class}"
    yield "state", block.state_text
    if block.cached_by:
        yield "cached by", heap_text(block.cached_by)
    if is_hakmems:
        yield "owner", owner_text(block)
    if block.content:
        yield "content", content_text(block.content, examples)
    if asked := block.asked:  # a sample of a profile
        cut = "" if asked.is_complete else " …"
        yield "asked by", CALLER.join(one_line([frame]) for frame in asked.call_site) + cut
        size, age = f"{asked.requested_bytes:,} B", duration_text(asked.age_seconds)
        yield "", f"{size}, {age} ago, by thread {asked.thread_id} (a sample of a profile)"


def owner_text(block: OneBlock) -> str:
    if block.heap is not None:
        return f"heap {named_text(block.heap.name, block.heap.tag)}, made by the program"
    if block.owner is not None:
        return heap_text(block.owner)
    if block.tier in TIERS_OF_SLABS:
        return "no heap's: its slab is for the samples of a profile"
    return "no heap's: Large and Big blocks have no owner"


def heap_text(heap: HeapName) -> str:
    thread = f"thread {heap.thread_id}" if heap.thread_id else "no thread"
    name = f" ({heap.thread_name})" if heap.thread_name else ""
    called = f" {quoted(heap.heap_name)}" if heap.heap_name else ""
    return f"heap {heap.number}{called}, {thread}{name}, {heap.state}"


def content_text(content: Content, examples: bool) -> str:
    text = f"{content.kind.value}{': ' if content.name else ''}{content.name}"
    if content.pointer_share:
        text += f"; {share_text(content.pointer_share, 1)} of its words that are not 0 are pointers"
    if content.entropy_bits is not None:
        text += f"; {content.entropy_bits:.1f} bits of entropy a byte"
    return text + (f"; “{one_line([content.text], NAME_SHOWN)}”" if examples and content.text else "")


def referrer_text(one: Referrer) -> str:
    """Where the word is, and where it points."""
    bytes_in = counted(one.points_at_offset, "byte")
    at = "points to its start" if one.points_at_offset == 0 else f"points {bytes_in} into the block"
    content = one.content
    type_name = f", {content.kind.value}: {one_line([content.name])}" if content and content.name else ""
    size = f" ({one.block_bytes:,} B{type_name})" if one.block_bytes else ""
    place = "" if one.is_root and one.kind in ("register", "kernel") else f"{one.address:#x}  "
    kind = "root: " if one.is_root else f"variable {one_line([one.variable])}: " if one.variable else ""
    return f"{place}{kind}{one.where}{size}, {at}"
