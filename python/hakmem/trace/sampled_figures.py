"""The figures of sampled lives: the same as of a whole trace where they can be told, and those of sites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hakmem.profile.labels import DEPTH
from hakmem.profile.model import Frame
from hakmem.trace.figures import NS_PER_S, Blocks, Figures, Row, Tally
from hakmem.trace.sampled import SampledLives

SITES_MAX = 200


@dataclass(frozen=True)
class SiteRow(Row):
    frames: tuple[Frame, ...]  # innermost first; none: no name was found in time
    samples: int
    freed_elsewhere: float  # share of the freed blocks


@dataclass(frozen=True)
class SampledFigures(Figures):
    """They are estimates: each sample stands for a number of blocks."""

    samples: int
    sites: list[SiteRow]  # those with the most bytes


def _sites(lives: SampledLives, blocks: Blocks) -> list[SiteRow]:
    """Stacks whose innermost frames are the same are one site."""
    groups: dict[tuple[Frame, ...], list[int]] = {}
    for number in np.unique(lives.columns["site"]).tolist():
        frames = tuple(Frame(*frame) for frame in lives.sites.get(number, ()))[:DEPTH]
        groups.setdefault(frames, []).append(number)
    rows = []
    for frames, group in groups.items():
        some = blocks.at(np.isin(lives.columns["site"], group))
        found = Tally()
        found.add(some)
        rows.append(SiteRow(*found.row(), frames, len(some.sizes), found.freed_elsewhere))
    return sorted(rows, key=lambda row: -row.bytes)[:SITES_MAX]


def sampled_figures_of(lives: SampledLives) -> SampledFigures:
    """From the first sample to the last.  Those that were freed stand for lost ones, too."""
    columns = lives.columns
    is_freed = columns["is_freed"].astype(bool)
    blocks = Blocks(
        columns["size"].astype(np.int64),
        columns["blocks"] * np.where(is_freed, 1 + lives.lost / max(1, int(is_freed.sum())), 1.0),
        columns["lived_ns"].astype(np.int64),
        np.ones(len(columns["size"]), bool),
        is_freed,
        columns["freed_by"] != columns["thread"],
    )
    tally = Tally()
    tally.add(blocks)
    end_ns = (columns["born_ns"] + columns["lived_ns"]).max(initial=0)
    return SampledFigures(
        **tally.figures,
        samples=len(blocks.sizes),
        seconds=float((lives.end or {}).get("seconds", end_ns / NS_PER_S)),
        threads=len(np.unique(columns["thread"])),
        sites=_sites(lives, blocks),
    )
