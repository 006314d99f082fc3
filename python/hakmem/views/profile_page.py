"""A profile as a page: a flame graph to zoom, search and invert, and a table of sites that sorts."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.census.catalogue import SITES_BEFORE
from hakmem.profile.labels import DEPTH, Labels
from hakmem.profile.model import Header, Profile
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
