"""A profile as JSON, whole: every sample, and the table of sites for those that want no more.

    {"format": "hakmem-profile", "format_version": 1, "tool_version": …,
     "header": {…},                       of the process and the profile
     "total_bytes", "before_bytes" (and _low, _high), "unsampled_bytes": …,
     "sites": [{"bytes", "bytes_low", "bytes_high", "blocks", "rounding_bytes", "samples", "is_complete",
                "stack": [{"function", "file", "line"}, …]}, …],        innermost first, largest first
     "classes": [{…}, …],                 exact counts
     "mappings": [{"start": "0x…", "end", "offset", "path", "build_id"}, …],
     "names": {"0x…": [{"function", "file", "line"}, …]},
     "stacks": [["0x…", …], …],
     "sample_columns": ["stack", …], "samples": [[…], …], "allocated": [[…], …]}

Addresses are text: JSON's numbers end at 2^53 for many readers."""

from __future__ import annotations

import json
from collections.abc import Mapping as MappingType
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

from hakmem import __version__
from hakmem.base.errors import HakmemError
from hakmem.base.validity import built, check_format, undamaged
from hakmem.profile.labels import Labels
from hakmem.profile.model import ClassCount, Frame, Header, Mapping, Profile, Sample, Stack
from hakmem.profile.sites import site_table

FORMAT_NAME, FORMAT_VERSION = "hakmem-profile", 1
RECORDING_NAME = "hakmem-run"  # of views/recording.py, which may be given for a profile
COLUMNS = tuple(item.name for item in fields(Sample))
ADDRESSES = ("start", "end", "offset")


def to_json(profile: Profile) -> str:
    stacks: dict[Stack, int] = {}
    values = attrgetter(*COLUMNS)
    data = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "header": asdict(profile.header),
        **sites_to_json(profile),
        "classes": list(map(asdict, profile.classes)),
        "mappings": [
            asdict(m) | {name: hex(getattr(m, name)) for name in ADDRESSES} for m in profile.mappings
        ],
        "names": {hex(address): list(map(asdict, frames)) for address, frames in profile.names.items()},
        "sample_columns": COLUMNS,
        "samples": [row_of(values(one), stacks) for one in profile.samples],
        "allocated": [row_of(values(one), stacks) for one in profile.allocated],
        "stacks": [],
    }
    data["stacks"] = [list(map(hex, stack)) for stack in stacks]
    return json.dumps(data, separators=(",", ":")) + "\n"


def sites_to_json(profile: Profile) -> dict[str, Any]:
    """The table of sites: also what `--json` prints."""
    labels, table = Labels(profile), site_table(profile)
    sites = [
        {
            **with_ends("bytes", site.bytes.value, site.bytes.interval),
            "blocks": round(site.blocks.value),
            "rounding_bytes": round(site.rounding.value),
            "samples": site.bytes.samples,
            "is_complete": site.is_complete,
            "stack": [asdict(frame) for frame in labels.frames(site.stack)],
        }
        for site in table.sites
    ]
    return {
        "total_bytes": round(table.total_bytes),
        **with_ends("before_bytes", table.before.value, table.before.interval),
        "unsampled_bytes": round(table.unsampled_bytes),
        "sites": sites,
    }


def with_ends(name: str, value: float, interval: tuple[float, float]) -> dict[str, int]:
    """A figure, and the ends of its interval."""
    return {name: round(value), f"{name}_low": round(interval[0]), f"{name}_high": round(interval[1])}


def row_of(values: tuple[Any, ...], stacks: dict[Stack, int]) -> list[Any]:
    """The stack, which comes first, by its number."""
    return [stacks.setdefault(values[0], len(stacks)), *values[1:]]


def is_a_recording(name: str) -> HakmemError:
    """Why it cannot be read."""
    return HakmemError(f"{name} is a recording, not a heap profile; hakmem record {name} makes its page")


def from_json(data: Any, name: str) -> Profile:  # noqa: ANN401 - any JSON value
    """HakmemError if it is not a profile; `name` is that of the file."""
    if not isinstance(data, dict) or data.get("format") != FORMAT_NAME:
        kind = data.get("format") if isinstance(data, dict) else None
        if kind == RECORDING_NAME:
            raise is_a_recording(name)
        raise HakmemError(f"{name} is not a heap profile; use a file of `hakmem profile`")
    check_format(data, name, FORMAT_VERSION)
    with undamaged(name):
        profile = _profile(data)
    return profile  # noqa: RET504 - the type checker wants it outside


def _profile(data: MappingType[str, Any]) -> Profile:
    stacks = [tuple(int(address, 16) for address in stack) for stack in data["stacks"]]
    names = built(dict[str, list[Frame]], data["names"])
    return Profile(
        header=header_from_json(data["header"]),
        mappings=[
            built(Mapping, {**item, **{name: int(item[name], 16) for name in ADDRESSES}})
            for item in data["mappings"]
        ],
        samples=[_sample(row, data["sample_columns"], stacks) for row in data["samples"]],
        allocated=[_sample(row, data["sample_columns"], stacks) for row in data["allocated"]],
        classes=built(list[ClassCount], data["classes"]),
        names={int(at, 16): tuple(frames) for at, frames in names.items()},
    )


def _sample(row: list[Any], columns: list[str], stacks: list[Stack]) -> Sample:
    values = dict(zip(columns, row, strict=True))
    number = values.pop("stack")
    if not isinstance(number, int) or not 0 <= number < len(stacks):
        raise ValueError("a sample of a stack that is not there")
    one = Sample(stack=stacks[number], **values)
    numbers = (one.class_number, one.block_bytes, one.requested_bytes, one.samples, one.thread_id)
    ages = [age for age in (one.age_ms, one.age_max_ms) if age is not None]
    if not all(type(value) is int for value in (*numbers, *ages)):
        raise ValueError("a sample has an invalid value")
    if not (float(one.weight_bytes) >= 0 and float(one.weight_blocks) > 0 and one.samples > 0):
        raise ValueError("a sample that stands for nothing")
    return one


# ---- read from comments of pprof files, too ------------------------------------------------------------


def header_from_json(data: MappingType[str, Any]) -> Header:
    """ValueError, KeyError or TypeError if it is not a header."""
    return built(Header, {name: data[name] for name in asdict(Header())})
