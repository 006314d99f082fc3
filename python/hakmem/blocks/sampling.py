"""Live blocks drawn at random, and what their shares say of all.

Blocks are drawn from strata: one for each size class, and for Big blocks one for each power of two.  A
stratum gets draws by the mean of its shares in blocks and in bytes, as many small blocks and a few large
ones both matter.  A share of all blocks, or of all bytes, is the mean of the strata's shares by their
weight in blocks, or in bytes; its interval is Wilson's (1927) with the number of independent draws that
would have the same variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from hakmem.blocks.block_map import NONE, BlockMap
from hakmem.layout.memory import Flags, Integers
from hakmem.profile.estimate import Z_95

Key = TypeVar("Key", bound=Hashable)

DRAWS_MIN = 24  # of each stratum
RARE_HITS = 2  # of the draws, or misses: fewer say nothing about how strata differ
BIG = 1000  # numbers of strata from here on are Big blocks'


@dataclass
class Stratum:
    """Blocks of about the same size."""

    blocks: int
    bytes: int
    drawn: Integers  # numbers of blocks
    sizes: Integers  # theirs

    @property
    def is_whole(self) -> bool:
        return len(self.drawn) == self.blocks


@dataclass(frozen=True)
class Share:
    """A share of a whole, with its 95 % interval."""

    share: float
    low: float
    high: float


@dataclass
class Row(Generic[Key]):
    """The blocks with one key: their share in blocks and in bytes."""

    key: Key
    of_blocks: Share
    of_bytes: Share
    example: int  # a block that has it
    drawn: int


def draw(block_map: BlockMap, blocks: Integers, count: int, chance: np.random.Generator) -> list[Stratum]:
    """About `count` of these blocks; all if there are no more."""
    sizes = block_map.sizes_of(blocks)
    numbers = block_map.classes_of(blocks)
    is_big = numbers == NONE
    numbers[is_big] = BIG + np.log2(np.maximum(sizes[is_big], 1)).astype(np.int64)
    members = [np.flatnonzero(numbers == number) for number in np.flatnonzero(np.bincount(numbers))]
    all_bytes = max(int(sizes.sum()), 1)
    strata = []
    for rows in members:
        held = int(sizes[rows].sum())
        wanted = count * (len(rows) / len(blocks) + held / all_bytes) / 2
        number = min(len(rows), max(DRAWS_MIN, math.ceil(wanted)))
        chosen = np.sort(chance.choice(rows, number, replace=False, shuffle=False))
        strata.append(Stratum(len(rows), held, blocks[chosen], sizes[chosen]))
    return strata


def rows_of(strata: Sequence[Stratum], key_of: Callable[[int], Key]) -> list[Row[Key]]:
    """One row for each key, largest in bytes first."""
    keys = [[key_of(block) for block in stratum.drawn.tolist()] for stratum in strata]
    distinct = dict.fromkeys(key for part in keys for key in part)
    found = []
    for key in distinct:
        hits = [np.array([one == key for one in part], bool) for part in keys]
        first = next(int(s.drawn[h.argmax()]) for s, h in zip(strata, hits, strict=True) if h.any())
        found.append(
            Row(
                key=key,
                of_blocks=estimate(strata, hits, [float(s.blocks) for s in strata], by_bytes=False),
                of_bytes=estimate(strata, hits, [float(s.bytes) for s in strata], by_bytes=True),
                example=first,
                drawn=int(sum(int(h.sum()) for h in hits)),
            )
        )
    return sorted(found, key=lambda row: (-row.of_bytes.share, -row.of_blocks.share))


def estimate(
    strata: Sequence[Stratum], hits: Sequence[Flags], weights: Sequence[float], by_bytes: bool
) -> Share:
    """The share of hits."""
    whole = sum(weights) or 1.0
    share = variance = alike = 0.0
    for stratum, hit, weight in zip(strata, hits, weights, strict=True):
        part, count = weight / whole, len(hit)
        values = stratum.sizes.astype(float) if by_bytes else np.ones(count)
        share += part * float((values * hit).sum() / max(values.sum(), 1e-300))
        # Where all draws agree the rest may still differ: half a hit more, and half a miss.
        likely = (float(hit.sum()) + 0.5) / (count + 1)
        rest = 0.0 if stratum.is_whole else (stratum.blocks - count) / max(stratum.blocks - 1, 1)
        effective = count / (1 + float(np.var(values) / max(np.mean(values) ** 2, 1e-300)))
        variance += part * part * likely * (1 - likely) / effective * rest
        alike += part * part / effective * rest
    share = min(1.0, max(0.0, share))
    if not alike:
        return Share(share, share, share)
    spread = share * (1 - share)
    return wilson(share, 1 / alike if spread < RARE_HITS * alike else max(1.0, spread / variance))


def wilson(share: float, draws: float) -> Share:
    """The interval of a share that `draws` independent draws gave."""
    z2 = Z_95**2
    middle = (share + z2 / (2 * draws)) / (1 + z2 / draws)
    half = Z_95 / (1 + z2 / draws) * math.sqrt(share * (1 - share) / draws + z2 / (4 * draws * draws))
    return Share(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))
