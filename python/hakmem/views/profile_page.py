"""A profile as a page: a flame graph to zoom, search and invert, and a table of sites that sorts."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, count_text, counted, share_text
from hakmem.census.catalogue import SITES_BEFORE
from hakmem.profile.labels import DEPTH, Labels, frame_text
from hakmem.profile.model import Header, Profile
from hakmem.profile.pprof import BEFORE_NAME, INCOMPLETE_NAME, UNSAMPLED_NAME
from hakmem.profile.short_names import short_name
from hakmem.profile.sites import Site, SiteTable, site_table
from hakmem.profile.wrappers import without_wrappers
from hakmem.views.page import Tile, rendered
from hakmem.views.profile_text import (
    CALLER,
    TITLES,
    interval_text,
    span_text,
    whose,
)

ROWS_MAX = 1000
STACKS_MAX = 20_000
OTHERS_NAME = "[smaller stacks]"


@dataclass(frozen=True)
class Row:
    """One row of the table of sites."""

    bytes: float
    bytes_text: str
    width: float  # of the interval, relative: to sort by how much is known
    interval: str
    blocks: float
    blocks_text: str
    share: str
    rounding: float
    rounding_text: str
    site: str
    callers: str = ""
    whole: str = ""  # the functions of both, with all that was left out


def render(profile: Profile, depth: int = DEPTH) -> str:
    """The page as text."""
    labels = Labels(profile)
    table = site_table(profile, labels.key(depth))
    header = profile.header
    return rendered(
        "profile.html.j2",
        flame_data(profile, labels),
        header=header,
        title=TITLES[header.mode],
        whose=whose(header) + when(header),
        command=" ".join(header.command) or header.process_name,
        tiles=tiles(profile, table),
        rows=[row_of(site, table, labels, depth) for site in table.sites[:ROWS_MAX]],
        others=others(table),
    )


def when(header: Header) -> str:
    if not header.began_s:
        return ""
    began = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(header.began_s))
    return f", {began}, {duration_text(header.seconds)}"


def tiles(profile: Profile, table: SiteTable) -> list[Tile]:
    """The profile in a few figures."""
    header, samples = profile.header, profile.shown
    count = sum(one.samples for one in samples)
    whole = sum(one.samples for one in samples if one.is_complete)
    rate = f"one in {bytes_text(header.rate_bytes)} at the end" if header.rate_bytes else "at an unknown rate"
    found = [
        Tile("Total", bytes_text(table.total_bytes), "counted" if table.is_exact else "estimated"),
        Tile("Sites", f"{len(table.sites):,}", f"in {bytes_text(table.sampled.value)}"),
        Tile("Samples", f"{count:,}", rate),
        Tile("Complete stacks", share_text(whole, count), "reach the thread's start"),
    ]
    if table.before.value:
        found.append(Tile("Older", bytes_text(table.before.value), SITES_BEFORE.label))
    if header.lost_samples:
        found.append(Tile("Lost", f"{header.lost_samples:,}", "samples without room in a table"))
    return found


def row_of(site: Site, table: SiteTable, labels: Labels, depth: int) -> Row:
    frames = labels.site(site.stack, depth)
    low, high = site.bytes.interval
    return Row(
        bytes=site.bytes.value,
        bytes_text=bytes_text(site.bytes.value),
        width=(high - low) / max(1.0, site.bytes.value),
        interval=interval_text(site.bytes),
        blocks=site.blocks.value,
        blocks_text=count_text(round(site.blocks.value)),
        share=share_text(site.bytes.value, table.total_bytes),
        rounding=site.rounding.value,
        rounding_text=bytes_text(site.rounding.value),
        site=frame_text(frames[0]) if frames else "unknown",
        callers="".join(CALLER + short_name(frame.function) for frame in frames[1:]),
        whole=CALLER.join(frame.function for frame in frames),
    )


def others(table: SiteTable) -> list[dict[str, str]]:
    """Rows that make the table add up to the total."""
    rest = table.sites[ROWS_MAX:]
    rows = [(counted(len(rest), "other site"), sum(site.bytes.value for site in rest), "")] if rest else []
    rows += [(name, one.value, span_text(*one.interval)) for name, one in table.rests]
    total = [("total" if table.is_exact else "total, estimated", table.total_bytes, "")]
    return [
        {"site": n, "bytes_text": bytes_text(v), "interval": i, "share": share_text(v, table.total_bytes)}
        for n, v, i in [*(row for row in rows if round(row[1])), *total]
    ]


def flame_data(profile: Profile, labels: Labels) -> dict[str, Any]:
    """Stacks with their bytes and blocks, outermost frame first; names, and those to show, by number."""
    table = site_table(profile)
    numbers: dict[str, int] = {}
    stacks: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])

    def add(names: list[str], of_bytes: float, blocks: float) -> None:
        values = stacks[tuple(numbers.setdefault(name, len(numbers)) for name in names)]
        values[0] += of_bytes
        values[1] += blocks

    for number, site in enumerate(table.sites):
        names = [frame.function for frame in reversed(without_wrappers(labels.frames(site.stack)))]
        if not site.is_complete:
            names.insert(0, INCOMPLETE_NAME)
        add(names if number < STACKS_MAX else [OTHERS_NAME], site.bytes.value, site.blocks.value)
    add([BEFORE_NAME], table.before.value, 0)
    add([UNSAMPLED_NAME], table.unsampled_bytes, 0)
    kept = [(names, values) for names, values in stacks.items() if round(values[0])]
    return {
        "names": list(numbers),
        "shorts": {number: short for name, number in numbers.items() if (short := short_name(name)) != name},
        "stacks": [[names, *map(round, values)] for names, values in kept],
    }
