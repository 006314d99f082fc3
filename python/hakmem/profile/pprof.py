"""A profile as pprof's profile.proto, compressed: pprof, speedscope, Pyroscope, Parca and Perfetto read it.

Values are estimates of the truth, not counts of samples: scaled, rounded once.  Each row is one stack and
class:

    inuse_objects inuse_space inuse_requested inuse_samples     of live blocks
    alloc_objects alloc_space alloc_requested alloc_samples     of all mallocs since the profile began

The columns of samples let a reader compute the intervals.  Samples of one row have about the same age: its
labels age_min and age_max are those of the youngest and of the oldest.

Bytes that are counted but not sampled are rows with a name in brackets, so that the sum is the exact one.
The header is a string that nothing refers to: `hakmem profile` reads it, and others do not show it.
"""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import count

from hakmem.profile.labels import Labels
from hakmem.profile.model import ByAddress, Frame, Mapping, Mode, Profile, Sample, Stack
from hakmem.profile.protobuf import Message
from hakmem.profile.sites import factors_of, site_table
from hakmem.profile.wrappers import DROP_FRAMES

HEADER_PREFIX = "hakmem profile: "
BEFORE_NAME = "[before the profile began]"
UNSAMPLED_NAME = "[not sampled yet]"
INCOMPLETE_NAME = "[incomplete stack]"
COLUMNS = (("objects", "count"), ("space", "bytes"), ("requested", "bytes"), ("samples", "count"))
LIVE_PREFIX, ALLOCATED_PREFIX = "inuse", "alloc"
YOUNGEST, OLDEST = "age_min", "age_max"  # labels
NS_PER_S = 1_000_000_000


# Samples with the same key are one row: stack, class, block bytes, is it complete, rough age, thread, weight.
RowKey = tuple[Stack, int, int, bool, int | None, int, int]


@dataclass
class Row:
    """Sums of one row, for one prefix."""

    blocks: float = 0.0
    bytes: float = 0.0
    requested: float = 0.0
    samples: int = 0
    ages_ms: list[int] = field(default_factory=list)

    def add(self, one: Sample, of_bytes: float, of_blocks: float) -> None:
        """Multiplied with these factors."""
        self.blocks += one.weight_blocks * of_blocks
        self.bytes += one.weight_bytes * of_bytes
        self.requested += one.requested_bytes * one.weight_blocks * of_blocks
        self.samples += one.samples
        self.ages_ms += [age for age in (one.age_ms, one.age_max_ms) if age is not None]

    @property
    def values(self) -> list[int]:
        return [round(self.blocks), round(self.bytes), round(self.requested), self.samples]


def to_pprof(profile: Profile) -> bytes:
    return gzip.compress(bytes(_Writer(profile).message()), compresslevel=6, mtime=0)


class _Writer:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._strings: dict[str, int] = defaultdict(count().__next__)  # a new one gets the next number
        _ = self._strings[""]  # the first one
        self._out = Message()
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[int | str, int] = {}
        self._label, self._places = cache(self._new_label), cache(self._new_places)
        self._mappings = ByAddress(profile.mappings)
        self._numbers = {one: number for number, one in enumerate(self._mappings.mappings, start=1)}
        is_allocated = profile.header.mode is Mode.ALLOCATED
        has_live = bool(profile.samples) or not (is_allocated or profile.allocated)
        has_allocated = bool(profile.allocated) or is_allocated
        self._prefixes = [ALLOCATED_PREFIX] * has_allocated + [LIVE_PREFIX] * has_live

    def message(self) -> Message:
        for prefix in self._prefixes:
            for name, unit in COLUMNS:
                self._out.nested(1, self._value_type(f"{prefix}_{name}", unit))
        for prefix in self._prefixes:
            self._samples(prefix)
        for mapping, number in self._numbers.items():
            self._out.nested(3, self._mapping(number, mapping))
        self._header()
        for text in self._strings:  # complete only now
            self._out.data(6, text.encode(errors="replace"))
        return self._out

    # ---- samples -----------------------------------------------------------------------------------

    def _samples(self, prefix: str) -> None:
        is_allocated = prefix == ALLOCATED_PREFIX
        profile = self._profile
        samples = profile.allocated if is_allocated else profile.samples
        rows: dict[RowKey, Row] = defaultdict(Row)
        factors, folded = factors_of(samples, profile.classes, is_allocated), cache(Labels(profile).folded)
        for one in samples:
            age_ms = rough(one.age_ms)
            key = (
                folded(one.stack), one.class_number, one.block_bytes, one.is_complete, age_ms, one.thread_id,
                weight_step(one),
            )  # fmt: skip
            rows[key].add(one, *factors[one.class_number])
        for key, row in rows.items():
            stack, class_number, block_bytes, is_complete, _, thread_id, _ = key
            labels = self._label("bytes", block_bytes, "bytes") + self._label("class", class_number)
            if row.ages_ms:
                labels += self._label(YOUNGEST, min(row.ages_ms), "milliseconds")
                labels += self._label(OLDEST, max(row.ages_ms), "milliseconds")
            labels += self._label("thread", thread_id) if thread_id else b""
            self._sample(prefix, self._places(stack, is_complete), row.values, labels)
        self._sample_of_the_rest(prefix)

    def _sample_of_the_rest(self, prefix: str) -> None:
        mode = self._profile.header.mode
        if (mode is Mode.ALLOCATED) != (prefix == ALLOCATED_PREFIX):
            return
        table = site_table(self._profile)
        for name, rest in ((BEFORE_NAME, table.before.value), (UNSAMPLED_NAME, table.unsampled_bytes)):
            if held := round(rest):
                place = bytes(Message().packed(1, [self._location(name)]))
                self._sample(prefix, place, [0, held, held, 0], b"")

    def _sample(self, prefix: str, places: bytes, values: list[int], labels: bytes) -> None:
        row: list[int] = []
        for other in self._prefixes:
            row += values if other == prefix else [0] * len(COLUMNS)
        self._out.data(2, places + bytes(Message().packed(2, row)) + labels)

    def _new_label(self, key: str, number: int, unit: str = "") -> bytes:
        """As the field of a sample; most occur again."""
        label = Message().number(1, self._strings[key]).number(3, number).number(4, self._strings[unit])
        return bytes(Message().nested(3, label))

    def _new_places(self, stack: Stack, is_complete: bool) -> bytes:
        """The numbers of a stack's places."""
        places: list[int | str] = [*stack, *([] if is_complete else [INCOMPLETE_NAME])]
        return bytes(Message().packed(1, map(self._location, places)))

    # ---- places ------------------------------------------------------------------------------------

    def _location(self, place: int | str) -> int:
        """The number of an address, or of a name without one."""
        if place in self._locations:
            return self._locations[place]
        number = self._locations[place] = len(self._locations) + 1
        address, frames = (
            (0, (Frame(place),)) if isinstance(place, str) else (place, self._profile.names.get(place, ()))
        )
        mapping = self._mappings.at(address)
        message = Message().number(1, number).number(2, self._numbers[mapping] if mapping else 0)
        message.number(3, address)
        for frame in frames:
            message.nested(4, Message().number(1, self._function(frame)).number(2, frame.line))
        self._out.nested(4, message)
        return number

    def _function(self, frame: Frame) -> int:
        key = (frame.function, frame.file)
        if key not in self._functions:
            number = self._functions[key] = len(self._functions) + 1
            name, file = self._strings[frame.function], self._strings[frame.file]
            # pprof removes template arguments: `<module>`, a name of Python's, would be one.
            linked = 0 if frame.function.startswith("<") and frame.function.endswith(">") else name
            self._out.nested(5, Message().number(1, number).number(2, name).number(3, linked).number(4, file))
        return self._functions[key]

    def _mapping(self, number: int, mapping: Mapping) -> Message:
        message = Message().number(1, number).number(2, mapping.start).number(3, mapping.end)
        message.number(4, mapping.offset).number(5, self._strings[mapping.path])
        message.number(6, self._strings[mapping.build_id])
        inside = [a for a in self._locations if isinstance(a, int) and a in mapping]
        known = [self._profile.names.get(address, ()) for address in inside]
        has_lines = any(frame.line for frames in known for frame in frames)
        # pprof names the remaining addresses itself, from the file or by its build id.
        message.number(7, bool(known) and all(known))
        message.number(8, has_lines).number(9, has_lines)
        return message.number(10, any(len(frames) > 1 for frames in known))

    # ---- the rest ----------------------------------------------------------------------------------

    def _value_type(self, name: str, unit: str) -> Message:
        return Message().number(1, self._strings[name]).number(2, self._strings[unit])

    def _header(self) -> None:
        header, out = self._profile.header, self._out
        out.number(7, self._strings[DROP_FRAMES])
        out.number(9, round(header.began_s * NS_PER_S)).number(10, round(header.seconds * NS_PER_S))
        out.nested(11, self._value_type("space", "bytes")).number(12, header.rate_bytes)
        about = {"header": asdict(header), "classes": list(map(asdict, self._profile.classes))}
        comments = [
            f"{header.program} (process {header.pid}) on hakmem {header.version}, {header.mode} blocks",
            *header.comments,
        ]
        _ = self._strings[HEADER_PREFIX + json.dumps(about, separators=(",", ":"))]
        out.packed(13, [self._strings[text] for text in comments])
        default = ALLOCATED_PREFIX if header.mode is Mode.ALLOCATED else LIVE_PREFIX
        out.number(14, self._strings[f"{default}_space"])


def rough(age_ms: int | None) -> int | None:
    """The largest power of two below: by exact ages each block would be a row."""
    return age_ms if not age_ms else 1 << (age_ms.bit_length() - 1)


def weight_step(one: Sample) -> int:
    """Two to a doubling of the blocks that each of its samples stands for.  A row says how many samples it
    has, not how they differ: with a sample of a far larger R among them its interval would be too narrow."""
    return round(2 * math.log2(one.weight_blocks / one.samples)) if one.samples > 0 < one.weight_blocks else 0
