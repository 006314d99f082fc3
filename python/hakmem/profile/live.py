"""The sampler's tables, of a process or a core, as a profile.

    start = read_start(target)                      just before the switch, if it can be had
    profile = read_profile(target, Mode.LIVE, start)

Nothing is stopped: a sample that changes while it is read is one sample more or less.  Segments are never
moved or given back, so that every pointer stays good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile

import numpy as np

from hakmem.census.census import count
from hakmem.census.figures import Snapshot
from hakmem.census.reading import Reading, read_full
from hakmem.census.snapshot import snapshot_of
from hakmem.layout.memory import Doubles
from hakmem.layout.schema import Schema
from hakmem.profile.merging import KEY_BUSY, NS_PER_MS, Stack, merged
from hakmem.profile.model import ClassCount, Header, Lifetimes, Mode, Profile, Rate, Sample, calls_of
from hakmem.profile.model import Stack as Calls
from hakmem.profile.names import mappings_of
from hakmem.target.process import Mapping as ProcessMapping
from hakmem.target.python_frames import PythonFrames
from hakmem.target.switch import is_asked_for, monotonic_ms, read_state
from hakmem.target.target import Target, making_sense

MS_PER_S = 1000
NEVER_MS = 1 << 63
WEIGHTS = ("bytes", "requested", "blocks", "variance")  # of the allocations at a site
NO_CLASS = -1  # of what was allocated at a site, whatever the class


def counted(snapshot: Snapshot, schema: Schema) -> dict[int, tuple[int, int]]:
    """The live blocks and bytes of each class, by number; Big blocks have the one of their samples."""
    found = {item.number: (item.live_blocks or 0, item.live_bytes) for item in snapshot.classes}
    found[schema.constant("map_class_big")] = (snapshot.big.blocks or 0, snapshot.big.bytes)
    return found


@dataclass(frozen=True)
class Start:
    """The state when a profile began: live blocks by class; and what earlier ones had counted."""

    live: dict[int, tuple[int, int]]
    allocated: Doubles  # WEIGHTS of each site: the sampler's sums go on from one profile to the next
    profiled: tuple[int, int]  # blocks, bytes
    at_s: float = 0.0  # when; since 1970
    sessions: int = 0  # how many profiles there were: until there is one more, no thread has seen the new one


def read_start(target: Target) -> Start:
    with making_sense(target):
        state = read_state(target)
        sites = _weights(_site_rows(target, state))
        at_s, (snapshot, profiled) = time.time(), read_counts(target)
        return Start(counted(snapshot, target.schema), sites, profiled, at_s, int(state["sessions"]))


def read_profile(
    target: Target,
    mode: Mode = Mode.LIVE,
    start: Start | None = None,
    *,
    with_counts: bool = True,
    is_merged: bool = False,
    since_s: float = 0.0,
    snapshot: Snapshot | None = None,
) -> Profile:
    """The profile that is on, or was; without `start` what is from before is not known.  Without counts the
    sites are not scaled, and there is no row of what is from before.

    `is_merged`: for views of live blocks that read again and again.  Samples that are alike are one, those
    born after `since_s` apart; threads and what was allocated are left out.  `snapshot`: a full one, where it
    was just taken."""
    with making_sense(target):
        state = read_state(target)
        maps = target.maps()
        segments = list(_segments(target, state, "sample"))  # before the sites: those of all are known
        stacks, weights, lifetimes = _read_sites(target, read_state(target), maps)
        profile = Profile(_header(target, state, mode, start), mappings_of(maps, target.file_of))
        if is_merged:
            younger_ms = (profile.header.ended_s - since_s) * MS_PER_S if since_s else 0.0
            now_ms = clock_ms(target, state)
            profile.samples = list(merged(segments, stacks, target.schema, now_ms, younger_ms))
        else:
            began_ms = int(state["began_ms"]) if profile.header.rates else NEVER_MS
            for address, born_ns, sample in _read_samples(
                target, state, segments, stacks, began_ms if mode is Mode.NEW else 0
            ):
                profile.blocks.append(address)
                profile.births_ns.append(born_ns)
                profile.samples.append(sample)
            profile.lifetimes = _by_stack(lifetimes, stacks)
            profile.allocated = list(_allocated(stacks, weights, start))
        profile.classes = class_counts(target, start, snapshot) if with_counts else []
        return profile


def read_counts(target: Target) -> tuple[Snapshot, tuple[int, int]]:
    """A full snapshot, and the blocks and bytes that were allocated while profiles were on."""
    snapshot = snapshot_of(count(reading := read_full(target)))
    return snapshot, _profiled(reading, snapshot.counters)


def class_counts(target: Target, start: Start | None, snapshot: Snapshot | None) -> list[ClassCount]:
    """Exact; a snapshot that was just taken does not have what was allocated."""
    if snapshot is not None:
        return live_counts(snapshot, target.schema, start)
    snapshot, (blocks, size) = read_counts(target)
    earlier = start.profiled if start else (0, 0)
    allocated = ClassCount(
        NO_CLASS, 0, allocated_blocks=blocks - earlier[0], allocated_bytes=size - earlier[1]
    )
    return [*live_counts(snapshot, target.schema, start), allocated]


def live_counts(snapshot: Snapshot, schema: Schema, start: Start | None) -> list[ClassCount]:
    """Without `start` all that lives now may be from then."""
    now = counted(snapshot, schema)
    before = start.live if start else now
    sizes = {item.number: item.block_bytes for item in snapshot.classes}
    found = [
        ClassCount(number, sizes.get(number, 0), *live, *before.get(number, (0, 0)))
        for number, live in now.items()
    ]
    return [one for one in found if one.live_blocks or one.before_blocks]


def _profiled(reading: Reading, counters: dict[str, int]) -> tuple[int, int]:
    """Big blocks by their requests."""
    big = counters.get("unstable_profiled_big_blocks", 0), counters.get("unstable_profiled_big_bytes", 0)
    by_class = reading.class_counters["profiled_blocks"]
    return big[0] + int(by_class.sum()), big[1] + int((by_class * reading.class_bytes).sum())


def read_stacks(target: Target) -> dict[int, Calls]:
    """The call stacks of all sites, by the process's numbers."""
    with making_sense(target):
        stacks = _read_sites(target, read_state(target), target.maps())[0]
        return {number: calls_of(stack.frames) for number, stack in stacks.items()}


def live_births(target: Target) -> set[tuple[int, int]]:
    """Where each live sample is, and its birth in nanoseconds."""
    with making_sense(target):
        found = set[tuple[int, int]]()
        mask = np.uint64((1 << target.schema.constant("sample_halvings_shift")) - 1)
        for segment in _segments(target, read_state(target), "sample"):
            used = segment["keys"] > KEY_BUSY
            addresses, births = segment["keys"][used] & mask, segment["samples"]["born_ns"][used]
            found.update(zip(addresses.tolist(), births.tolist(), strict=True))
        return found


# ---- samples --------------------------------------------------------------------------------------------


def _read_samples(
    target: Target, state: np.void, segments: list[np.void], stacks: dict[int, Stack], since_ms: int
) -> Iterator[tuple[int, int, Sample]]:
    """Samples with the sampler's key of each (its block's address, or that of its first granule) and its
    birth in nanoseconds."""
    schema, now_ms = target.schema, clock_ms(target, state)
    shift = np.uint64(schema.constant("sample_halvings_shift"))
    address_mask = (1 << int(shift)) - 1
    lost = stacks[schema.constant("site_lost")]
    for segment in segments:
        keys = segment["keys"]
        rows = np.flatnonzero(keys > KEY_BUSY)
        for row, key in zip(segment["samples"][rows], keys[rows], strict=True):
            stack = stacks.get(int(row["site"]), lost)
            if not row["block_bytes"] or int(row["born_ns"]) // NS_PER_MS < since_ms:
                continue  # its thread is still writing it, or it is an earlier profile's
            yield (
                int(key) & address_mask,
                int(row["born_ns"]),
                Sample.of(
                    stack.frames,
                    int(row["class"]),
                    int(row["block_bytes"]),
                    int(row["requested_bytes"]),
                    float(row["period_bytes"]),
                    halvings=int(key >> shift),
                    is_complete=stack.is_complete,
                    age_ms=max(0, now_ms - int(row["born_ns"]) // NS_PER_MS),
                    thread_id=int(row["thread_id"]),
                ),
            )


def _segments(target: Target, state: np.void, kind: str) -> Iterator[np.void]:
    dtype = target.schema.dtype(f"{kind}_segment")
    for address in state[f"{kind}_segments"].tolist():
        if address:
            yield target.memory.array(address, dtype, 1)[0]


# ---- sites ----------------------------------------------------------------------------------------------


def _read_sites(
    target: Target, state: np.void, maps: list[ProcessMapping]
) -> tuple[dict[int, Stack], Doubles, dict[int, Lifetimes]]:
    """The stacks, what was allocated at each, and how long freed samples lived, by the site's number."""
    schema = target.schema
    rows = _site_rows(target, state)
    used = {number: row for number, row in enumerate(rows) if row["frame_count"]}
    depth, python = schema.constant("profile_depth_max"), PythonFrames.of(target)
    if python is not None:
        depth += schema.constant("profile_python_words_max")
    sizes = [min(int(row["frame_count"]), depth) * 8 for row in used.values()]
    pieces = target.memory.read_many(
        [(int(r["frames"]), n) for r, n in zip(used.values(), sizes, strict=True)]
    )
    own = _own_code(target, maps)

    def calls(piece: bytes) -> tuple[int, ...]:
        """Without hakmem's own frames, which come first."""
        words = tuple(
            dropwhile(
                lambda at: any(start < at <= end for start, end in own),
                np.frombuffer(piece, np.uint64).tolist(),
            )
        )
        return words if python is None else python.woven(words)

    stacks = {
        number: Stack(calls(piece), bool(row["is_complete"]))
        for (number, row), piece in zip(used.items(), pieces, strict=True)
    }
    lost = Stack((), is_complete=False)
    stacks.setdefault(schema.constant("site_lost"), lost)
    # No frame was found: of a static program that is so at each of its sites.
    stacks |= {n: lost for n, row in enumerate(rows) if n not in stacks and row["allocated"]["blocks"] > 0}
    lifetimes = {
        number: tuple(row["lifetimes"].tolist()) for number, row in used.items() if row["freed_samples"]
    }
    return stacks, _weights(rows), lifetimes


def _by_stack(lifetimes: dict[int, Lifetimes], stacks: dict[int, Stack]) -> dict[Calls, Lifetimes]:
    """Several sites may have one stack: of those that were made at the same moment one is used on."""
    found: dict[Calls, Lifetimes] = {}
    for number, counts in lifetimes.items():
        calls = calls_of(stacks[number].frames)
        before = found.get(calls, (0,) * len(counts))
        found[calls] = tuple(map(sum, zip(before, counts, strict=True)))
    return found


def _site_rows(target: Target, state: np.void) -> list[np.void]:
    rows = [row for segment in _segments(target, state, "site") for row in segment["sites"]]
    return rows[: int(state["site_count"])]


def _weights(rows: list[np.void]) -> Doubles:
    return np.array([[float(row["allocated"][name]) for name in WEIGHTS] for row in rows]).reshape(-1, 4)


def _own_code(target: Target, maps: list[ProcessMapping]) -> list[tuple[int, int]]:
    """Where libhakmem.so lies; nothing when hakmem is linked into the program."""
    path = next((m.path for m in maps if m.start <= target.address < m.end), "")
    if "hakmem" not in path.rsplit("/", 1)[-1] or path == maps[0].path:
        return []
    return [(m.start, m.end) for m in maps if m.path == path]


def _allocated(stacks: dict[int, Stack], weights: Doubles, start: Start | None) -> Iterator[Sample]:
    """Each site's allocations since the start, as one sample whose count gives the counted variance."""
    known = len(start.allocated) if start else 0
    weights[:known] -= start.allocated[: len(weights)] if start else 0
    for number, (size, requested, blocks, variance) in enumerate(weights.tolist()):
        # Without new blocks the difference of two sums of doubles is less than a block.
        if number not in stacks or size <= 0 or blocks < 0.5:
            continue
        yield Sample(
            stack=calls_of(stacks[number].frames),
            class_number=NO_CLASS,
            block_bytes=round(size / blocks),
            requested_bytes=round(max(0.0, requested) / blocks),
            weight_bytes=size,
            weight_blocks=blocks,
            samples=max(1, round(size * size / (max(0.0, variance) + size * size / blocks))),
            is_complete=stacks[number].is_complete,
        )


# ---- whose it is ----------------------------------------------------------------------------------------


def _header(target: Target, state: np.void, mode: Mode, start: Start | None) -> Header:
    """A profile asked for just now may not have begun: the state is of the profile before, then."""
    now_s = time.time() if target.time_s is None else target.time_s
    is_on = is_asked_for(target, clock_ms(target, state))
    is_seen = not is_on or state["status"] == target.schema.constant("profile_is_on")
    has_begun = is_seen and int(state["sessions"]) != (start.sessions if start else 0)
    end_ms = clock_ms(target, state) if is_on else int(state["ended_ms"])
    length_s = max(0, end_ms - int(state["began_ms"])) / MS_PER_S if has_begun else 0.0
    return Header(
        process_name=target.process.name if target.process else target.command[0].rsplit("/", 1)[-1],
        pid=target.pid,
        version=target.schema.version,
        command=target.command,
        mode=mode,
        began_s=now_s - length_s,
        ended_s=now_s,
        counted_s=start.at_s if start else 0.0,
        rates=[Rate(0, int(state["period_bytes"]))] if has_begun else [],
        lost_samples=int(state["lost_samples"]),
        merged_samples=int(state["halvings"]),
    )


def clock_ms(target: Target, state: np.void) -> int:
    """The process's clock; a core's is its last known time, mostly that of its youngest sample."""
    if target.process is not None:
        return monotonic_ms(target.process.memory_id)
    births = (
        int(segment["samples"]["born_ns"][segment["keys"] > KEY_BUSY].max(initial=0)) // NS_PER_MS
        for segment in _segments(target, state, "sample")
    )
    return max(int(state["began_ms"]), int(state["ended_ms"]), *births)
