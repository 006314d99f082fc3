"""A profile, and the difference between two, as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError
from hakmem.base.sizes import bytes_text, count_text, counted, share_text
from hakmem.census.catalogue import SITES_BEFORE, SITES_UNSAMPLED
from hakmem.profile.difference import Change, Difference, difference
from hakmem.profile.estimate import Estimate
from hakmem.profile.json_format import sites_to_json, with_ends
from hakmem.profile.labels import DEPTH, Labels, caller_text, frame_text
from hakmem.profile.model import Frame, Header, Mode, Profile
from hakmem.profile.sites import Site, SiteTable, site_table
from hakmem.views.screen import Sheet, console, one_line, print_json

SITES_SHOWN = 20
CALLER = " ← "
WIDE_SHARE = 0.5
MANY = 400  # samples of one R are enough for ± 10 %
SLACK_MS = 100  # between the profile's beginning by the process and by the tool
COLUMNS = ["bytes", "95 % interval", "blocks", "share", "<site"]
TITLES = {
    Mode.LIVE: "Live blocks by site",
    Mode.NEW: "Live blocks allocated since the profile began, by site",
    Mode.ALLOCATED: "Allocated since the profile began, by site",
    Mode.PEAK: "Live blocks at the peak, by site",
}


def show_profile(
    profile: Profile,
    *,
    depth: int = DEPTH,
    rows_max: int = SITES_SHOWN,
    as_json: bool = False,
    stderr: bool = False,
    advice: str = "",
    with_internals: bool = False,
) -> None:
    """Prints the table of sites, or the same as JSON; `advice`: how to get more samples; `with_internals`:
    sites are not folded to the program's own functions."""
    if as_json:
        print_json(sites_to_json(profile))
        return
    labels = Labels(profile, with_internals=with_internals)
    sites = site_table(profile, labels.key(depth))
    lines = [*(Text(line) for line in heading(profile)), Text("")]
    rows = site_rows(sites, labels, depth, rows_max)
    shown = Sheet(TITLES[profile.header.mode], COLUMNS, rows)
    parts: list[RenderableType] = [*lines, shown, *(Text(line) for line in hints(profile, sites, advice))]
    console(stderr).print(Group(*parts))


def heading(profile: Profile) -> Iterator[str]:
    """The profiled program, and how much the profile knows."""
    header = profile.header
    name = one_line(header.command or [header.process_name], 60)
    length = f", {duration_text(header.seconds)}" if header.seconds else ""
    yield f"{name or 'a program'} ({whose(header)}){length}"
    samples = profile.shown
    count = sum(one.samples for one in samples)
    rates = sorted({rate.rate_bytes for rate in header.rates})
    span = " to ".join(bytes_text(rate) for rate in dict.fromkeys((rates[0], rates[-1]))) if rates else ""
    earlier = samples_before(profile)
    kept = f" ({earlier:,} from earlier profiles)" if earlier else ""
    since = " since" if earlier else ""
    yield f"{counted(count, 'sample')}{kept}{f', one in {span} on average{since}' if count and span else ''}"
    cut = sum(one.samples for one in samples if not one.is_complete)
    if cut:
        yield f"incomplete stacks: {share_text(cut, count)}; the frames shown are right, callers are missing"
    if header.lost_samples:
        lost = counted(header.lost_samples, "sample")
        yield f"{lost} found no room and {'is' if header.lost_samples == 1 else 'are'} missing from the sums"


def samples_before(profile: Profile) -> int:
    """Samples older than the profile, left by earlier ones."""
    header = profile.header
    if header.mode is Mode.ALLOCATED or any(one.samples > 1 for one in profile.samples):
        return 0  # merged samples come from files, where only the youngest's and the oldest's age are known
    length_ms = 1000 * header.seconds + SLACK_MS
    return sum(one.samples for one in profile.samples if one.age_ms is not None and one.age_ms > length_ms)


def hints(profile: Profile, sites: SiteTable, advice: str) -> Iterator[str]:
    """Advice when the figures are too uncertain to tell one site from another."""
    largest = sites.sites[0].bytes if sites.sites else None
    if largest is None and not round(sites.unsampled_bytes + sites.before.value):
        return
    if largest is not None and not is_wide(largest):
        return
    count = sum(one.samples for one in profile.shown)
    said, to_do = f"Too few samples ({count:,})", f": {advice}"
    if count >= MANY:
        said = "The intervals are wide: a few samples, drawn when R was larger, stand for most of the bytes"
        to_do = f"; {advice}"
    if not count:
        said = "Nothing was sampled: the process allocated little"
        said += "" if profile.header.mode is Mode.ALLOCATED else ", or kept none of it"
        to_do = f"; {advice}"
    said += f"{to_do if advice else ''}."
    if advice and profile.header.mode is not Mode.ALLOCATED:
        said += " A program that keeps little of what it allocates has more samples with --of allocated."
    yield said


def is_wide(estimate: Estimate) -> bool:
    """More than ± 50 %: the true figure may be half as much, or half as much again."""
    low, high = estimate.interval
    reach = max((high - low) / 2, estimate.value - low)
    return estimate.value > 0 and reach > WIDE_SHARE * estimate.value


def whose(header: Header) -> str:
    """`process 1234 on hakmem 1.0`; less of a profile that another tool made."""
    process = f"process {header.pid}" if header.pid else "an unknown process"
    return f"{process} on hakmem {header.version}" if header.version else process


def site_rows(sites: SiteTable, labels: Labels, depth: int, rows_max: int) -> Iterator[Sequence[str | Text]]:
    """The largest sites, then what makes them add up to the total."""
    for site in sites.sites[:rows_max]:
        yield site_row(site, sites.total_bytes, site_text(labels.site(site.stack, depth), site))
    rest = sites.sites[rows_max:]
    if rest:
        whole = Site((), ())
        for site in rest:
            whole.bytes, whole.blocks = whole.bytes + site.bytes, whole.blocks + site.blocks
        yield site_row(whole, sites.total_bytes, Text(counted(len(rest), "other site"), "dim"))
    for label, one in sites.rests:
        if round(one.value):
            share = share_text(one.value, sites.total_bytes)
            yield [bytes_text(one.value), span_text(*one.interval), "", share, Text(label, "dim")]
    exact = "total" if sites.is_exact else "total, estimated"
    low_high = "" if sites.is_exact else interval_text(sites.sampled)
    yield [Text(bytes_text(sites.total_bytes), "bold"), low_high, "", "", Text(exact, "bold")]


def site_row(site: Site, total_bytes: float, name: Text) -> list[str | Text]:
    held = [bytes_text(site.bytes.value), interval_text(site.bytes), count_text(round(site.blocks.value))]
    return [*held, share_text(site.bytes.value, total_bytes), name]


def interval_text(estimate: Estimate) -> str:
    """The interval of a sampled figure; "exact" if nothing is uncertain."""
    return span_text(*estimate.interval) or ("exact" if estimate.samples else "")


def span_text(low: float, high: float) -> str:
    """`1.20 MiB – 1.90 MiB`; empty for a single value."""
    return f"{bytes_text(round(low))} – {bytes_text(round(high))}" if round(low) < round(high) else ""


def site_text(frames: Sequence[Frame], site: Site | None = None) -> Text:
    """The innermost frame and its callers."""
    text = Text(one_line([frame_text(frames[0])]) if frames else "unknown")
    for frame in frames[1:]:
        text.append(CALLER + one_line([caller_text(frame)]), "dim")
    if site is not None and not site.is_complete:
        text.append(" …", "dim")
    return text


# ---- differences --------------------------------------------------------------------------------------


def show_difference(
    before: Profile,
    after: Profile,
    *,
    depth: int,
    rows_max: int,
    everything: bool,
    as_json: bool,
    with_internals: bool,
) -> None:
    """Prints the sites that changed significantly; with `everything`, all."""
    for_both = {before.header.mode, after.header.mode}
    for mode, of_it in ((Mode.ALLOCATED, "allocations"), (Mode.NEW, "new ones")):
        if mode in for_both and len(for_both) > 1:
            raise HakmemError(f"one profile is of live blocks, the other of {of_it}; compare two of a kind")
    found = difference(before, after, depth, with_internals=with_internals)
    if as_json:
        print_json(difference_to_json(found))
        return
    shown = found.changes if everything else found.significant[:rows_max]
    rows = [change_row(change) for change in shown]
    others = [] if everything else [change for change in found.changes if change not in shown]
    if others:
        changed, name = sum(change.bytes for change in others), counted(len(others), "other site")
        rows.append([signed_bytes(changed), "", "", "", "", Text(f"{name}; --all shows them", "dim")])
    unsampled = found.after.unsampled_bytes - found.before.unsampled_bytes
    has_older = any(round(one.before.value) for one in (found.before, found.after))
    unseen = SITES_BEFORE.label if has_older else "error of the samples"
    for label, changed in ((unseen, found.unseen_bytes), (SITES_UNSAMPLED.label, unsampled)):
        if round(changed):
            rows.append([signed_bytes(changed), "", "", "", "", Text(label, "dim")])
    old = found.after.before.value - found.before.before.value
    total = found.after.total_bytes - found.before.total_bytes
    ends = bytes_text(found.before.total_bytes), bytes_text(found.after.total_bytes)
    rows.append([Text(signed_bytes(total), "bold"), "", *ends, "", Text("total", "bold")])
    columns = ["change", "95 % interval", "before", "after", "blocks", "<site"]
    title = "Sites that changed" if everything else "Sites that changed by more than chance (|z| > 3)"
    parts: list[RenderableType] = [Sheet(title, columns, rows)]
    if not found.significant:
        parts.insert(0, Text("No site changed by more than chance."))
    if old > total / 2 > 0:
        parts.append(Text(unseen_growth(before.header, after.header)))
    console().print(Group(*parts))


def unseen_growth(before: Header, after: Header) -> str:
    """A hint for profiles that each began when most blocks were there already."""
    if not after.pid or before.pid != after.pid:
        how = "sample both programs from their start: hakmem run -o FILE -- PROGRAM"
    else:
        do = f"hakmem profile {after.pid}"
        how = f"leave a profile on between the two: {do} --on, then {do} -o FILE twice, and {do} --off"
    return f"Most of the growth came while nothing was sampled: its sites are unknown. To find them, {how}."


def change_row(change: Change) -> list[str | Text]:
    low, high = change.interval
    span = "exact" if low == high else f"{signed_bytes(low)} – {signed_bytes(high)}"
    blocks = f"{'+' if change.blocks > 0 else ''}{count_text(round(change.blocks))}"
    held = bytes_text(change.before.value), bytes_text(change.after.value)
    return [signed_bytes(change.bytes), span, *held, blocks, site_text(change.frames)]


def signed_bytes(value: float) -> str:
    return ("+" if round(value) > 0 else "") + bytes_text(round(value) if abs(value) < 1024 else value)


def difference_to_json(found: Difference) -> dict[str, Any]:
    """All sites; `z` is null where both figures are exact and differ."""
    return {
        "mode": str(found.mode),
        "total_before_bytes": round(found.before.total_bytes),
        "total_after_bytes": round(found.after.total_bytes),
        "before_profile_bytes": round(found.after.before.value - found.before.before.value),
        "sites": [
            {
                **with_ends("bytes", change.bytes, change.interval),
                "before_bytes": round(change.before.value),
                "after_bytes": round(change.after.value),
                "blocks": round(change.blocks),
                "z": change.z if math.isfinite(change.z) else None,
                "is_significant": change.is_significant,
                "stack": list(map(asdict, change.frames)),
            }
            for change in found.changes
        ],
    }
