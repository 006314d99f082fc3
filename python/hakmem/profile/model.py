"""A heap profile as data: header, mappings, samples, exact counts.

The sampler's tables, a file, or a test make one; estimates (`sites`), names and formats work on it.  A sample
is one block, or several of the same stack and class that were merged: its weights, which `Sample.of`
makes, say how many blocks it stands for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Generic, TypeVar

from hakmem.profile.estimate import probability
from hakmem.target.process import Mapping as ProcessMapping

# Innermost first.  Addresses inside the calls: one less than the return addresses, which may be another
# function's already.
Stack = tuple[int, ...]
StackKey = Callable[[Stack], Hashable]  # groups the stacks of one site
# How many freed samples lived less than 1 ms, less than 2 ms, 4 ms … the last: longer.
Lifetimes = tuple[int, ...]


AnyMapping = TypeVar("AnyMapping", "Mapping", ProcessMapping)


class Mode(StrEnum):
    LIVE = "live"  # blocks that the program holds now
    NEW = "new"  # of those, the ones that came since the profile began
    ALLOCATED = "allocated"  # every malloc since the profile began
    PEAK = "peak"  # blocks that it held when it held most


@dataclass(frozen=True)
class Rate:
    """One draw in `rate_bytes` on average, from this time on."""

    since_ms: int  # since the profile began
    rate_bytes: int


@dataclass
class Header:
    """The profiled program and the profile's settings; times are seconds since 1970, 0 for unknown."""

    process_name: str = ""
    pid: int = 0
    version: str = ""  # of hakmem in the process
    command: list[str] = field(default_factory=list)
    mode: Mode = Mode.LIVE
    began_s: float = 0.0
    ended_s: float = 0.0
    counted_s: float = 0.0  # when earlier live blocks were counted, if not at the beginning
    rates: list[Rate] = field(default_factory=list)
    lost_samples: int = 0  # no room in a table: missing from the sums
    merged_samples: int = 0  # dropped by chance when the table was full, their weight on others: sums hold
    comments: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended_s - self.began_s)

    @property
    def program(self) -> str:
        """The name of its file."""
        return PurePosixPath(self.command[0]).name if self.command else self.process_name

    @property
    def rate_bytes(self) -> int:
        """The last one; 0 for unknown."""
        return self.rates[-1].rate_bytes if self.rates else 0


@dataclass(frozen=True)
class Mapping:
    """A mapped file, with what is needed to name its addresses later and elsewhere."""

    start: int
    end: int
    offset: int  # in the file, of `start`
    path: str
    build_id: str = ""  # hexadecimal; "" for a file without one

    def __contains__(self, address: int) -> bool:
        return self.start <= address < self.end


class ByAddress(Generic[AnyMapping]):
    """Mappings that do not overlap, by the addresses in them."""

    def __init__(self, mappings: Iterable[AnyMapping]) -> None:
        self.mappings: list[AnyMapping] = sorted(mappings, key=lambda one: one.start)
        self._starts: list[int] = [mapping.start for mapping in self.mappings]

    def at(self, address: int) -> AnyMapping | None:
        place = bisect_right(self._starts, address) - 1
        return self.mappings[place] if place >= 0 and address < self.mappings[place].end else None


@dataclass(frozen=True)
class Frame:
    """One function at an address; an address with inlined calls has several.  Unknown parts are empty."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Blocks of one stack and one class; `samples` of them were seen, for `weight_blocks` in truth."""

    stack: Stack
    class_number: int  # hakmem's; blocks of one class are scaled together
    block_bytes: int  # that such a block takes; the mean of Big ones that were merged
    requested_bytes: int
    weight_bytes: float
    weight_blocks: float
    samples: int = 1
    is_complete: bool = True  # the stack reaches the thread's start
    age_ms: int | None = None  # when the profile ended; of several the youngest's
    thread_id: int = 0
    age_max_ms: int | None = None  # of several the oldest's, if that is another

    @classmethod
    def of(
        cls,
        return_addresses: Iterable[int],
        class_number: int,
        block_bytes: int,
        requested_bytes: int,
        rate_bytes: float,
        *,
        halvings: int = 0,
        is_complete: bool = True,
        age_ms: int | None = None,
        thread_id: int = 0,
    ) -> Sample:
        """A sampled block as the sampler keeps it: `rate_bytes` is R when it was drawn, `halvings` how often
        the table was halved since."""
        blocks = 2.0**halvings / probability(block_bytes, rate_bytes)
        return cls(
            stack=calls_of(return_addresses),
            class_number=class_number,
            block_bytes=block_bytes,
            requested_bytes=requested_bytes,
            weight_bytes=block_bytes * blocks,
            weight_blocks=blocks,
            is_complete=is_complete,
            age_ms=age_ms,
            thread_id=thread_id,
        )

    @property
    def rounding_weight(self) -> float:
        """Bytes that the class added to the requests."""
        return max(0, self.block_bytes - self.requested_bytes) * self.weight_blocks


@dataclass(frozen=True)
class ClassCount:
    """The exact counts of a class; 0 where it did not count.

    The live blocks of today are those from before the profile and those since: `before` bounds the former."""

    class_number: int
    block_bytes: int  # 0: blocks of several sizes (Big)
    live_blocks: int = 0
    live_bytes: int = 0
    before_blocks: int = 0  # live when the profile began
    before_bytes: int = 0
    allocated_blocks: int = 0  # since then
    allocated_bytes: int = 0


@dataclass
class Profile:
    """One profile.  `samples` are of live blocks (of the peak, with Mode.PEAK); `allocated` of all mallocs
    since it began: a profile may have either, or both."""

    header: Header = field(default_factory=Header)
    mappings: list[Mapping] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    allocated: list[Sample] = field(default_factory=list)
    classes: list[ClassCount] = field(default_factory=list)
    names: dict[int, tuple[Frame, ...]] = field(default_factory=dict)  # by address, inlined calls first
    # From a process or a core; files do not keep them.
    blocks: list[int] = field(default_factory=list)  # where the sampler has found each of `samples`
    births_ns: list[int] = field(default_factory=list)  # when it did: another block has another
    lifetimes: dict[Stack, Lifetimes] = field(default_factory=dict)

    @property
    def shown(self) -> list[Sample]:
        """The samples that its mode is about."""
        return self.allocated if self.header.mode is Mode.ALLOCATED else self.samples

    def addresses(self) -> set[int]:
        """All that occur in its stacks."""
        return {address for one in (*self.samples, *self.allocated) for address in one.stack}


def whole_stack(stack: Stack) -> Hashable:
    """Each stack is a site of its own."""
    return stack


def calls_of(return_addresses: Iterable[int]) -> Stack:
    """The stack as samples have it, from one that an unwinder made."""
    return tuple(address - 1 for address in return_addresses)
