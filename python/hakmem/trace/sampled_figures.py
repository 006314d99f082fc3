"""The figures of sampled lives: the same as of a whole trace where they can be told, and those of sites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hakmem.layout.memory import Doubles, Flags, Integers
from hakmem.profile.labels import DEPTH
from hakmem.profile.model import Frame
from hakmem.trace.figures import QUANTILES, SizeRow, power_of_size
from hakmem.trace.sampled import SampledLives

SITES_MAX = 200


@dataclass(frozen=True)
class SiteRow:
    """The blocks of one call stack."""

    frames: tuple[Frame, ...]  # innermost first; none: no name was found in time
    samples: int
    blocks: float
    bytes: float
    living_bytes: float  # at the end
    median_life_ns: float | None  # None: none was freed
    freed_elsewhere: float  # share of the freed blocks


@dataclass(frozen=True)
class SampledFigures:
    """They are estimates: each sample stands for a number of blocks."""

    samples: int
    seconds: float
    threads: int
    allocated_blocks: float
    allocated_bytes: float
    freed_blocks: float
    living_bytes: float
    freed_elsewhere: float
    life_quantiles_ns: dict[str, float]
    sizes: list[SizeRow]
    sites: list[SiteRow]  # those with the most bytes


class _Columns:
    def __init__(self, lives: SampledLives) -> None:
        self.sizes = lives.columns["size"].astype(np.int64)
        self.sites = lives.columns["site"].astype(np.int64)
        self.blocks = lives.columns["blocks"].astype(np.float64)
        self.bytes = self.blocks * self.sizes
        self.lived_ns = lives.columns["lived_ns"].astype(np.int64)
        self.is_freed = lives.columns["is_freed"].astype(bool)
        self.is_elsewhere = lives.columns["freed_by"] != lives.columns["thread"]

    def median(self, rows: Flags) -> float | None:
        dead = rows & self.is_freed
        return _quantile(self.lived_ns[dead], self.blocks[dead], 0.5) if dead.any() else None

    def elsewhere(self, rows: Flags) -> float:
        dead = self.blocks[rows & self.is_freed].sum()
        return float(self.blocks[rows & self.is_freed & self.is_elsewhere].sum() / dead) if dead else 0.0


def _quantile(values: Integers, weights: Doubles, share: float) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(reached, share * reached[-1])]])


def _size_row(columns: _Columns, power: int, rows: Flags) -> SizeRow:
    return SizeRow(
        1 << power,
        round(columns.blocks[rows].sum()),
        round(columns.bytes[rows].sum()),
        columns.median(rows),
        round(columns.bytes[rows & ~columns.is_freed].sum()),
    )


def _site_rows(columns: _Columns, lives: SampledLives) -> list[SiteRow]:
    """Stacks whose innermost frames are the same are one site."""
    groups: dict[tuple[Frame, ...], list[int]] = {}
    for number in range(int(columns.sites.max(initial=-1)) + 1):
        frames = tuple(Frame(*frame) for frame in lives.sites.get(number, ()))[:DEPTH]
        groups.setdefault(frames, []).append(number)
    rows = [_site_row(columns, frames, np.isin(columns.sites, group)) for frames, group in groups.items()]
    return sorted(rows, key=lambda row: -row.bytes)[:SITES_MAX]


def _site_row(columns: _Columns, frames: tuple[Frame, ...], rows: Flags) -> SiteRow:
    return SiteRow(
        frames,
        int(rows.sum()),
        float(columns.blocks[rows].sum()),
        float(columns.bytes[rows].sum()),
        float(columns.bytes[rows & ~columns.is_freed].sum()),
        columns.median(rows),
        columns.elsewhere(rows),
    )


def sampled_figures_of(lives: SampledLives) -> SampledFigures:
    """From the first sample to the last."""
    columns, every = _Columns(lives), np.ones(len(lives.columns["site"]), bool)
    powers = power_of_size(columns.sizes)
    dead = columns.is_freed
    quantiles = {
        f"p{100 * share:g}": _quantile(columns.lived_ns[dead], columns.blocks[dead], share)
        for share in QUANTILES
        if dead.any()
    }
    end_ns = (lives.columns["born_ns"] + lives.columns["lived_ns"]).max(initial=0)
    return SampledFigures(
        samples=len(every),
        seconds=float((lives.end or {}).get("seconds", end_ns / 1e9)),
        threads=len(np.unique(lives.columns["thread"])),
        allocated_blocks=float(columns.blocks.sum()),
        allocated_bytes=float(columns.bytes.sum()),
        freed_blocks=float(columns.blocks[dead].sum()),
        living_bytes=float(columns.bytes[~dead].sum()),
        freed_elsewhere=columns.elsewhere(every),
        life_quantiles_ns=quantiles,
        sizes=[_size_row(columns, power, powers == power) for power in np.unique(powers).tolist()],
        sites=_site_rows(columns, lives),
    )
