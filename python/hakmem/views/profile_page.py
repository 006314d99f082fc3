"""A profile as a page: a flame graph to zoom, search and invert, and a table of sites that sorts."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.census.catalogue import SITES_BEFORE
from hakmem.profile.labels import DEPTH, Labels, frame_text, whole_text
from hakmem.profile.model import Frame, Header, Profile
from hakmem.profile.pprof import BEFORE_NAME, INCOMPLETE_NAME, UNSAMPLED_NAME
from hakmem.profile.short_names import short_name
from hakmem.profile.sites import SiteTable, site_table
from hakmem.profile.wrappers import without_wrappers
from hakmem.views.page import Tile, rendered
from hakmem.views.profile_text import TITLES, whose

ROWS_MAX = 1000
STACKS_MAX = 20_000
OTHERS_NAME = "[smaller stacks]"


def render(profile: Profile, depth: int = DEPTH) -> str:
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
        rows=[(site, labels.site(site.stack, depth)) for site in table.sites[:ROWS_MAX]],
        others=others(table),
        total=table.total_bytes,
    )


def when(header: Header) -> str:
    if not header.began_s:
        return ""
    began = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(header.began_s))
    return f", {began}, {duration_text(header.seconds)}"


def tiles(profile: Profile, table: SiteTable) -> list[Tile]:
    header, samples = profile.header, profile.shown
    count = sum(one.samples for one in samples)
    whole = sum(one.samples for one in samples if one.is_complete)
    rate = f"one in {bytes_text(header.rate_bytes)} at the end" if header.rate_bytes else "at an unknown rate"
    found = [
        ("Total", bytes_text(table.total_bytes), "counted" if table.is_exact else "estimated"),
        ("Sites", f"{len(table.sites):,}", f"in {bytes_text(table.sampled.value)}"),
        ("Samples", f"{count:,}", rate),
        ("Complete stacks", share_text(whole, count), "reach the thread's start"),
    ]
    if table.before.value:
        found.append(("Older", bytes_text(table.before.value), SITES_BEFORE.label))
    if header.lost_samples:
        found.append(("Lost", f"{header.lost_samples:,}", "samples without room in a table"))
    return found


def others(table: SiteTable) -> list[tuple[str, float, tuple[float, float]]]:
    """Rows that make the table add up to the total: name, bytes, interval."""
    rest, certain = table.sites[ROWS_MAX:], (0.0, 0.0)
    rows = (
        [(counted(len(rest), "other site"), sum(site.bytes.value for site in rest), certain)] if rest else []
    )
    rows += [(name, one.value, one.interval) for name, one in table.rests]
    total = "total" if table.is_exact else "total, estimated"
    return [*(row for row in rows if round(row[1])), (total, table.total_bytes, certain)]


def flame_data(profile: Profile, labels: Labels) -> dict[str, Any]:
    """Stacks with their bytes and blocks, outermost frame first; names by number, the shorter ones to show,
    and the name of each one's function, by which the page can group them."""
    table = site_table(profile)
    numbers: dict[str, int] = {}
    shorts: dict[int, str] = {}
    functions: dict[int, int] = {}
    stacks: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])

    def number(name: str, short: str) -> int:
        found = numbers.setdefault(name, len(numbers))
        if short != name:
            shorts[found] = short
        return found

    @cache
    def line(frame: Frame) -> int:
        found = number(whole_text(frame), frame_text(frame))
        function = number(frame.function, short_name(frame.function))
        if function != found:
            functions[found] = function
        return found

    def add(frames: Iterable[Frame], of_bytes: float, blocks: float) -> None:
        values = stacks[tuple(map(line, frames))]
        values[0] += of_bytes
        values[1] += blocks

    for place, site in enumerate(table.sites):
        frames = [*reversed(without_wrappers(labels.frames(site.stack)))]
        if not site.is_complete:
            frames.insert(0, Frame(INCOMPLETE_NAME))
        add(frames if place < STACKS_MAX else [Frame(OTHERS_NAME)], site.bytes.value, site.blocks.value)
    add([Frame(BEFORE_NAME)], table.before.value, 0)
    add([Frame(UNSAMPLED_NAME)], table.unsampled_bytes, 0)
    kept = [(names, values) for names, values in stacks.items() if round(values[0])]
    return {
        "names": list(numbers),
        "shorts": shorts,
        "functions": functions,
        "stacks": [[names, *map(round, values)] for names, values in kept],
    }
