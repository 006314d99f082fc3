"""Reads pprof's profile.proto: hakmem's own with everything that it wrote, and heap profiles of other tools.

Those have no column of samples: how many there were follows from the period, if it is given."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hakmem.base.errors import HakmemError
from hakmem.base.validity import built
from hakmem.profile.estimate import probability
from hakmem.profile.json_format import header_from_json
from hakmem.profile.model import ClassCount, Frame, Header, Mapping, Mode, Profile, Rate, Sample, Stack
from hakmem.profile.pprof import (
    BEFORE_NAME,
    HEADER_PREFIX,
    INCOMPLETE_NAME,
    NS_PER_S,
    OLDEST,
    UNSAMPLED_NAME,
    YOUNGEST,
)
from hakmem.profile.protobuf import Value, as_data, as_number, fields_of, numbers_of, signed

MARKS = frozenset((BEFORE_NAME, INCOMPLETE_NAME, UNSAMPLED_NAME))
GZIP_MAGIC = b"\x1f\x8b"
BYTES_MAX = 1 << 30  # uncompressed: a file that becomes larger is not a profile
NO_CLASS = -(1 << 48)  # classes that only such rows have count down from here
SYNTHETIC_ADDRESS = 1 << 63  # places without an address are numbered from here
# Names of columns for bytes and blocks, the first that is there; live, then allocated.
LIVE_COLUMNS = (("inuse_space", "inuse_objects"), ("space", "objects"), ("inuse_space", "inuse_object"))
ALLOCATED_COLUMNS = (("alloc_space", "alloc_objects"),)
_Places = tuple[int, int, int, int]  # of the columns of bytes, blocks, requested bytes and samples; or -1


@dataclass
class _Raw:
    """The messages of a file, strings resolved."""

    columns: list[tuple[str, str]] = field(default_factory=list)
    samples: list[memoryview] = field(default_factory=list)
    places: dict[int, tuple[int, tuple[Frame, ...]]] = field(default_factory=dict)  # address, frames
    mappings: dict[int, Mapping] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    time_ns: int = 0
    duration_ns: int = 0
    period: int = 0
    strings: list[str] = field(default_factory=list)
    # Earlier results, by their bytes.
    labels: dict[bytes, tuple[str, int]] = field(default_factory=dict)
    stacks: dict[tuple[bytes | int, ...], tuple[Stack, frozenset[str]]] = field(default_factory=dict)


def from_pprof(data: bytes, name: str) -> Profile:
    """HakmemError if it is damaged, or not of memory; `name` is that of the file."""
    try:
        raw = _raw(memoryview(uncompressed(data)))
        return _profile(raw, name)
    except (ValueError, LookupError, TypeError, EOFError, zlib.error, OSError, RecursionError) as error:
        why = str(error) or type(error).__name__
        raise HakmemError(f"{name} is not a pprof profile, or is damaged: {why}") from None


def uncompressed(data: bytes) -> bytes:
    """ValueError, EOFError, OSError or zlib.error if it is damaged, or too large."""
    if not data.startswith(GZIP_MAGIC):
        return data
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        found = file.read(BYTES_MAX + 1)
    if len(found) > BYTES_MAX:
        raise ValueError("it is larger than 1 GiB uncompressed")
    return found


# ---- messages -----------------------------------------------------------------------------------------


def _raw(data: memoryview) -> _Raw:
    raw, groups = _Raw(), _grouped(data)
    texts = raw.strings = [bytes(as_data(text)).decode(errors="replace") for text in groups[6]]
    if texts[:1] != [""]:
        raise ValueError("no table of strings")
    for part in _messages(groups[1]):
        raw.columns.append((texts[part[1]], texts[part[2]]))
    raw.samples = [as_data(item) for item in groups[2]]
    for part in _messages(groups[3]):
        raw.mappings[part[1]] = Mapping(part[2], part[3], part[4], texts[part[5]], texts[part[6]])
    functions = {p[1]: (texts[p[2]] or texts[p[3]], texts[p[4]]) for p in _messages(groups[5])}
    for item in groups[4]:
        place = _grouped(as_data(item))
        number, address = (as_number(place[key][-1]) if place[key] else 0 for key in (1, 3))
        frames = tuple(Frame(*functions[line[1]], signed(line[2])) for line in _messages(place[4]))
        raw.places[number] = address or SYNTHETIC_ADDRESS + number, frames
    last = (signed(as_number(groups[number][-1])) if groups[number] else 0 for number in (9, 10, 12))
    raw.time_ns, raw.duration_ns, raw.period = last
    raw.comments = [texts[number] for item in groups[13] for number in numbers_of(item)]
    return raw


def _grouped(data: memoryview) -> dict[int, list[Value]]:
    groups: dict[int, list[Value]] = defaultdict(list)
    for number, value in fields_of(data):
        groups[number].append(value)
    return groups


def _messages(items: Iterable[Value]) -> Iterator[dict[int, int]]:
    """The numbers in each message, 0 where it has none."""
    for item in items:
        found = fields_of(as_data(item))
        yield defaultdict(int, {number: value for number, value in found if isinstance(value, int)})


# ---- the profile --------------------------------------------------------------------------------------


def _profile(raw: _Raw, name: str) -> Profile:
    profile = _described(raw)
    live = _pick(raw.columns, LIVE_COLUMNS)
    allocated = _pick(raw.columns, ALLOCATED_COLUMNS)
    if live is None and allocated is None:
        found = ", ".join(f"{kind} ({unit})" for kind, unit in raw.columns) or "nothing"
        raise HakmemError(
            f"{name} is not a profile of memory: it has {found}; "
            "use a file of `hakmem profile`, or another heap profile with inuse_space or alloc_space"
        )
    if live is None:
        profile.header.mode = Mode.ALLOCATED
    profile.mappings = [raw.mappings[number] for number in sorted(raw.mappings)]
    profile.names |= {address: frames for address, frames in raw.places.values() if frames}
    has_counts = bool(profile.classes)
    for data in raw.samples:
        _add_sample(profile, raw, data, live, allocated, has_counts)
    return profile


def _described(raw: _Raw) -> Profile:
    """The header: hakmem's, or what every profile has of one."""
    own = next((text for text in raw.strings if text.startswith(HEADER_PREFIX)), None)
    if own is not None:
        about = json.loads(own.removeprefix(HEADER_PREFIX))
        return Profile(header_from_json(about["header"]), classes=built(list[ClassCount], about["classes"]))
    began_s = raw.time_ns / NS_PER_S
    main = next((raw.mappings[number].path for number in sorted(raw.mappings)), "")
    header = Header(
        process_name=main.rpartition("/")[2],
        began_s=began_s,
        ended_s=began_s + raw.duration_ns / NS_PER_S,
        rates=[Rate(0, raw.period)] if raw.period > 1 else [],
        comments=raw.comments,
    )
    return Profile(header)


def _pick(columns: Sequence[tuple[str, str]], choices: Sequence[tuple[str, str]]) -> _Places | None:
    names = [kind for kind, _ in columns]

    def place(kind: str) -> int:
        return names.index(kind) if kind in names else -1

    for of_bytes, of_blocks in choices:
        if of_bytes in names:
            prefix = of_bytes.removesuffix("space")
            return place(of_bytes), place(of_blocks), place(f"{prefix}requested"), place(f"{prefix}samples")
    return None


def _add_sample(
    profile: Profile,
    raw: _Raw,
    data: memoryview,
    live: _Places | None,
    allocated: _Places | None,
    has_counts: bool,
) -> None:
    stack, marks, values, labels = _sample_parts(raw, data)
    if marks & {BEFORE_NAME, UNSAMPLED_NAME}:
        if not has_counts:  # else they say it
            profile.classes.append(
                _count_of(BEFORE_NAME in marks, live, allocated, values, len(profile.classes))
            )
        return
    is_complete = INCOMPLETE_NAME not in marks
    for columns, samples in ((live, profile.samples), (allocated, profile.allocated)):
        if columns is None:
            continue
        of_bytes, blocks, requested, count = (values[c] if c >= 0 else 0 for c in columns)
        if of_bytes <= 0 or stack == ():
            continue
        youngest, oldest = labels.get(YOUNGEST), labels.get(OLDEST)
        # Rounding may have made a part of a block none at all.
        weight_blocks = float(blocks) if blocks > 0 else of_bytes / max(1, labels.get("bytes", of_bytes))
        block_bytes = labels.get("bytes") or max(1, round(of_bytes / weight_blocks))
        samples.append(
            Sample(
                stack=stack,
                class_number=labels.get("class", -block_bytes),
                block_bytes=block_bytes,
                requested_bytes=round(requested / weight_blocks) if columns[2] >= 0 else block_bytes,
                weight_bytes=float(of_bytes),
                weight_blocks=weight_blocks,
                samples=count if columns[3] >= 0 else _guessed(weight_blocks, block_bytes, raw.period),
                is_complete=is_complete,
                age_ms=youngest,
                thread_id=labels.get("thread", 0),
                age_max_ms=None if oldest == youngest else oldest,
            )
        )


def _count_of(
    is_before: bool,
    live: _Places | None,
    allocated: _Places | None,
    values: list[int],
    number: int,
) -> ClassCount:
    """A row of bytes that were not sampled, of a file that another tool has written again."""
    live_bytes = values[live[0]] if live is not None else 0
    allocated_bytes = values[allocated[0]] if allocated is not None else 0
    return ClassCount(
        NO_CLASS - number,
        0,
        live_bytes=live_bytes,
        before_bytes=live_bytes if is_before else 0,
        allocated_bytes=allocated_bytes,
    )


def _guessed(blocks: float, block_bytes: int, period: int) -> int:
    """How many samples stand for these blocks at this rate; at an unknown one, each block is one."""
    chance = probability(block_bytes, period) if period > 1 else 1.0
    return max(1, round(blocks * chance))


def _sample_parts(raw: _Raw, data: memoryview) -> tuple[Stack, frozenset[str], list[int], dict[str, int]]:
    """Its stack, the names in brackets on it, its values, and its labels with numbers."""
    places: list[bytes | int] = []
    values: list[int] = []
    labels: dict[str, int] = {}
    for key, value in fields_of(data):
        if key == 1:
            places.append(value if isinstance(value, int) else bytes(value))
        elif key == 2:
            values += map(signed, numbers_of(value))
        elif key == 3:
            packed = bytes(as_data(value))
            if packed not in raw.labels:
                (label,) = _messages([value])
                raw.labels[packed] = raw.strings[label[1]], signed(label[3])
            name, number = raw.labels[packed]
            labels[name] = number
    if len(values) != len(raw.columns):
        raise ValueError("a sample with another number of values than the header has")
    packed_places = tuple(places)
    if packed_places not in raw.stacks:
        raw.stacks[packed_places] = _stack_of(raw, packed_places)
    return *raw.stacks[packed_places], values, labels


def _stack_of(raw: _Raw, packed: tuple[bytes | int, ...]) -> tuple[Stack, frozenset[str]]:
    parts = (memoryview(one) if isinstance(one, bytes) else one for one in packed)
    places = [raw.places[number] for part in parts for number in numbers_of(part)]
    named = (frames[0].function for at, frames in places if at >= SYNTHETIC_ADDRESS and frames)
    marks = frozenset(named) & MARKS
    kept = places[:-1] if INCOMPLETE_NAME in marks else places
    return tuple(address for address, _ in kept), marks
