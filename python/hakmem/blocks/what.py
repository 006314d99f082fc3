"""Live blocks by content: `hakmem what`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import BlockMap, read_block_map
from hakmem.blocks.content import Content, Contents, Kind
from hakmem.blocks.files import Files
from hakmem.blocks.sampling import Row, Share, draw, rows_of
from hakmem.blocks.whose import Whose
from hakmem.layout.memory import Integers
from hakmem.target.target import Target, making_sense

DRAWS = 4000

Key = tuple[Kind, str]


@dataclass
class ContentRow:
    """Blocks of one kind and name."""

    kind: Kind
    name: str
    blocks_share: Share
    bytes_share: Share
    drawn: int
    example_address: int
    example: str  # "" unless asked for

    @property
    def title(self) -> str:
        return f"{self.kind.value} {self.name}".strip()


@dataclass
class SizeClass:
    """The contents of one size class; of Big blocks together."""

    block_bytes: int | None  # None: Big
    blocks: int
    bytes: int
    drawn: int
    contents: list[ContentRow]


@dataclass
class What(Whose):
    live_blocks: int
    live_bytes: int
    drawn: int
    seconds: float
    contents: list[ContentRow]
    classes: list[SizeClass]
    notes: list[str] = field(default_factory=list)


def what_lives(
    target: Target,
    block_bytes: int | None = None,
    draws: int = DRAWS,
    examples: bool = False,
    progress: Progress = no_progress,
) -> What:
    with making_sense(target):
        began_s = time.monotonic()
        block_map = read_block_map(target, progress)
        blocks = block_map.live_blocks()
        if block_bytes is not None:
            blocks = of_class(block_map, blocks, block_bytes)
        files = Files(target)
        rows, classes = describe(block_map, Contents(block_map, files), blocks, draws, examples)
        return What(
            **Whose.head_of(target),
            live_blocks=len(blocks),
            live_bytes=int(block_map.sizes_of(blocks).sum()),
            drawn=sum(item.drawn for item in classes),
            seconds=round(time.monotonic() - began_s, 3),
            contents=rows,
            classes=classes,
            notes=notes_of(rows, files),
        )


def of_class(block_map: BlockMap, blocks: Integers, wanted_bytes: int) -> Integers:
    """Blocks of the size class that serves requests of `wanted_bytes`."""
    sizes = block_map.class_bytes
    fitting = sizes[sizes >= wanted_bytes]
    if wanted_bytes <= 0 or not len(fitting):
        raise HakmemError(
            f"no size class has blocks of {wanted_bytes} bytes; the largest has {int(sizes.max()):,}, and "
            "larger blocks have none: leave out --class"
        )
    chosen: Integers = blocks[block_map.classes_of(blocks) == int(np.argmax(sizes >= wanted_bytes))]
    return chosen


def describe(
    block_map: BlockMap, contents: Contents, blocks: Integers, draws: int, examples: bool
) -> tuple[list[ContentRow], list[SizeClass]]:
    """The contents of these blocks: of all together, and by size class."""
    if not len(blocks):
        return [], []
    strata = draw(block_map, blocks, draws, np.random.default_rng())
    drawn = np.concatenate([stratum.drawn for stratum in strata])
    known = dict(zip(drawn.tolist(), contents.of(drawn), strict=True))

    def rows(chosen: Sequence[Any]) -> list[ContentRow]:
        found = rows_of(chosen, lambda block: (known[block].kind, known[block].name))
        return [content_row(block_map, row, known, examples) for row in found]

    classes = []
    by_class: dict[int, list[Any]] = {}
    for stratum in strata:
        by_class.setdefault(int(block_map.classes_of(stratum.drawn[:1])[0]), []).append(stratum)
    for number, chosen in by_class.items():
        size = int(block_map.class_bytes[number]) if number >= 0 else None
        held = sum(stratum.bytes for stratum in chosen)
        count = sum(len(stratum.drawn) for stratum in chosen)
        classes.append(SizeClass(size, sum(s.blocks for s in chosen), held, count, rows(chosen)))
    return rows(strata), sorted(classes, key=lambda item: -item.bytes)


def content_row(block_map: BlockMap, row: Row[Key], known: dict[int, Content], examples: bool) -> ContentRow:
    kind, name = row.key
    return ContentRow(
        kind=kind,
        name=name,
        blocks_share=row.of_blocks,
        bytes_share=row.of_bytes,
        drawn=row.drawn,
        example_address=int(block_map.starts_of(np.array([row.example]))[0]),
        example=known[row.example].text if examples else "",
    )


def notes_of(rows: Sequence[ContentRow], files: Files) -> list[str]:
    """Warnings against misreading the rows."""
    notes = []
    if any(row.kind is Kind.UNTOUCHED and row.bytes_share.share > 0.01 for row in rows):
        notes.append("blocks that are not resident were never touched, or are swapped out: they are not read")
    if files.missing:
        notes.append(
            f"no names of {', '.join(sorted(files.missing))}: not found where the core says, or another "
            "build by now; name copies with --files"
        )
    return notes
