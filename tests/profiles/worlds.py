"""Synthetic worlds: sites whose live blocks are known, and samples drawn of them as the sampler draws."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hakmem.profile.estimate import probability
from hakmem.profile.model import ClassCount, Header, Mode, Profile, Rate, Sample

RATE_BYTES = 512 << 10


@dataclass(frozen=True)
class Load:
    """Blocks of one site and one size."""

    site: int
    block_bytes: int
    blocks: int
    requested_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        return self.block_bytes * self.blocks

    @property
    def class_number(self) -> int:
        return self.block_bytes.bit_length()


def stack_of(site: int) -> tuple[int, ...]:
    """Return addresses."""
    return (0x1001 + 0x10 * site, 0x500001, 0x600001)


def drawn(
    loads: Sequence[Load],
    random: np.random.Generator,
    rates: Sequence[int] = (RATE_BYTES,),
    halvings: int = 0,
    is_merged: bool = False,
) -> list[Sample]:
    """Each block is sampled with its own probability; a share of the blocks meets each of the rates.

    `is_merged`: as one sample for all blocks of a load and a rate, which is quicker."""
    found = []
    for load in loads:
        for rate_bytes, blocks in zip(rates, split(load.blocks, len(rates)), strict=True):
            chance = probability(load.block_bytes, rate_bytes) / 2**halvings
            one = Sample.of(
                stack_of(load.site), load.class_number, load.block_bytes,
                load.requested_bytes or load.block_bytes, rate_bytes, halvings=halvings,
            )  # fmt: skip
            count = int(random.binomial(blocks, chance))
            found += [times(one, count)] * (count > 0) if is_merged else [one] * count
    return found


def times(one: Sample, count: int) -> Sample:
    return replace(
        one, weight_bytes=one.weight_bytes * count, weight_blocks=one.weight_blocks * count, samples=count
    )


def split(count: int, parts: int) -> list[int]:
    return [count // parts + (number < count % parts) for number in range(parts)]


def counts_of(loads: Sequence[Load], before: Sequence[Load] = ()) -> list[ClassCount]:
    """What hakmem would count: all that lives, and what lived when the profile began."""
    numbers = sorted({load.class_number for load in (*loads, *before)})
    return [count_of(number, loads, before) for number in numbers]


def count_of(number: int, loads: Sequence[Load], before: Sequence[Load]) -> ClassCount:
    since = [load for load in loads if load.class_number == number]
    old = [load for load in before if load.class_number == number]
    return ClassCount(
        number,
        max(load.block_bytes for load in (*since, *old)),
        live_blocks=sum(load.blocks for load in (*since, *old)),
        live_bytes=sum(load.total_bytes for load in (*since, *old)),
        before_blocks=sum(load.blocks for load in old),
        before_bytes=sum(load.total_bytes for load in old),
        allocated_blocks=sum(load.blocks for load in since),
        allocated_bytes=sum(load.total_bytes for load in since),
    )


def profile_of(
    samples: list[Sample], classes: list[ClassCount] | None = None, mode: Mode = Mode.LIVE
) -> Profile:
    header = Header(process_name="server", pid=1234, version="1.0", mode=mode, rates=[Rate(0, RATE_BYTES)])
    if mode is Mode.ALLOCATED:
        return Profile(header, allocated=samples, classes=classes or [])
    return Profile(header, samples=samples, classes=classes or [])
