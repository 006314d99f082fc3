"""The result of `hakmem leaks` as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.blocks.conclusion import HOUR_S, MS_PER_S, Conclusion, is_slow, rate_text
from hakmem.blocks.evidence import Evidence, Site
from hakmem.blocks.leaks import Leaks, Sum
from hakmem.profile.growth import Grown
from hakmem.profile.session import Spent
from hakmem.views.profile_text import site_text, span_text
from hakmem.views.screen import Sheet, one_line
from hakmem.views.what_text import COMMAND_SHOWN, hidden, print_contents

SITES_SHOWN = 10
AGES_MS = (16, 128, 1024, 8192, 65536, 524288, 4194304)  # ends of the sampler's rows

INTERIOR = (
    "reachable, but nothing points at their first byte: usual for Python objects, strings with a header and "
    "C++ classes with several bases"
)


def print_leaks(console: Console, found: Conclusion, everything: bool) -> None:
    what = "core of" if found.is_core else "process"
    command = escape(one_line(found.command, COMMAND_SHOWN))
    whole = found.reached.live if found.reached else None
    live = f", of {bytes_text(whole.bytes)} in {counted(whole.blocks, 'live block')}" if whole else ""
    console.print(f"[bold]Leaks in {what} {found.pid}[/] ({command}){live}{spent_text(found.spent)}\n")
    console.print(Text(found.verdict, style="bold"))
    console.print()
    if found.evidence is not None:
        print_sites(console, found.evidence, everything)
    if found.reached is not None:
        print_reached(console, found.reached, everything)
    for note in found.all_notes:
        console.print(Text(note, style="yellow"))
    if found.reached is not None:
        console.print(Text(how(found.reached), style="dim"))


def spent_text(spent: Spent | None) -> str:
    """The process's cost of its samples."""
    if spent is None:
        return ""
    own, whole = (duration_text(seconds) for seconds in (spent.sampling_s, spent.cpu_s))
    return f"; sampling took {own} of {whole} of processor time"


# ---- sites -----------------------------------------------------------------------------------------


def print_sites(console: Console, evidence: Evidence, everything: bool) -> None:
    """Sites that grew by more than chance, or lost blocks; then how long their blocks live."""
    grown = evidence.grown
    chosen = [
        one
        for one in evidence.sites
        if everything or one.growth.is_significant or (one.lost and one.lost.lost_samples)
    ]
    shown_sites = chosen if everything else chosen[:SITES_SHOWN]
    length = duration_text(grown.seconds)
    if shown_sites:
        is_by_hour = all(is_slow(grown.rate(one.growth.bytes)) for one in shown_sites)
        rate = "an hour" if is_by_hour else "a second"
        columns = ["growth", "95 % interval", rate, "for certain", "unreachable", "<site"]
        rows = [growth_row(one, grown, HOUR_S if is_by_hour else 1) for one in shown_sites]
        console.print(Sheet(f"Growth by site, in {length}", columns, rows))
        hidden(console, len(chosen) - len(shown_sites), "site")
        ages = ages_of(shown_sites)
        columns = [*(duration_text(age / MS_PER_S) for age in ages), "freed", "live", "<site"]
        rows = [survival_row(one, ages) for one in shown_sites]
        title = "Blocks that live longer than …, and the lower end of the interval"
        console.print(Sheet(title, columns, rows))
        console.print()
    console.print(Text(" ".join(sites_notes(evidence)), style="dim"))
    console.print()


def growth_row(site: Site, grown: Grown, seconds: int) -> list[str | Text]:
    """`seconds`: of the rate, the same in all rows."""
    one = site.growth
    certain = "" if one.certain is None else bytes_text(max(0, round(one.certain.value)))
    return [
        bytes_text(round(one.bytes)),
        span_text(*one.interval) or "exact",
        bytes_text(round(grown.rate(one.bytes) * seconds)),
        certain,
        lost_text(site),
        site_text(site.frames),
    ]


def lost_text(site: Site) -> str:
    """`93 %`, of what it holds."""
    if site.lost is None or not site.lost.samples:
        return ""
    return share_text(site.lost.lost_weight, site.lost.weight)


def ages_of(sites: Sequence[Site]) -> list[int]:
    """The ages that tell the most in a few columns: up to what the oldest block has reached."""
    oldest = max((max(one.survival.oldest_ms, one.survival.last_freed_ms or 0) for one in sites), default=0)
    return [age for age in AGES_MS if age <= oldest]


def survival_row(site: Site, ages: Sequence[int]) -> list[str | Text]:
    cells = []
    for age in ages:
        point = site.survival.at(age)
        cells.append("" if point is None else f"{share_text(point.share, 1)} (≥ {share_text(point.low, 1)})")
    counts = [f"{site.survival.freed_samples:,}", f"{len(site.survival.ages_ms):,}"]
    return [*cells, *counts, site_text(site.frames)]


def sites_notes(evidence: Evidence) -> Iterator[str]:
    """How much is known, and what would not be seen."""
    grown = evidence.grown
    length = duration_text(grown.seconds)
    if grown.live_bytes is not None:
        yield f"All live blocks together changed by {bytes_text(grown.live_bytes)} in {length}."
    yield f"Sampled live blocks: {len(evidence.profile.samples):,}."
    if evidence.visible_bytes_per_second:
        yield f"A site that keeps less than {rate_text(evidence.visible_bytes_per_second)} may not be seen."


# ---- what nothing reaches --------------------------------------------------------------------------


def print_reached(console: Console, found: Leaks, everything: bool) -> None:
    """The sums, then what the lost blocks are."""
    console.print(Sheet("Unreachable blocks", ["<", "bytes", "blocks", "<what it means"], sum_rows(found)))
    console.print()
    lost = found.definite if found.definite.blocks else found.perhaps
    if not lost.blocks:
        return
    title = "Definitely lost, by content" if found.definite.blocks else "Perhaps lost, by content"
    print_contents(console, title, found, lost.bytes, lost.blocks, everything)
    largest = ", ".join(found.addresses[:3])
    console.print(Text(f"The largest begin at {largest}", style="dim"))


def sum_rows(found: Leaks) -> list[list[str]]:
    """One row for each sum that is not zero; "definitely" always."""

    rows = [("definitely lost", found.definite, groups_text(found.definite))]
    if found.perhaps.blocks:
        rows.append(("perhaps lost", found.perhaps, perhaps_text(found)))
    if found.freed_only.blocks:
        rows.append(
            ("of the lost", found.freed_only, "blocks whose owner has been freed, and still points to them")
        )
    if found.interior.blocks:
        rows.append(("interior only", found.interior, INTERIOR))
    return [[name, bytes_text(one.bytes), f"{one.blocks:,}", text] for name, one, text in rows]


def groups_text(one: Sum) -> str:
    if not one.blocks:
        return "nothing"
    return f"{counted(one.groups, 'block')} that nothing points to, and the blocks that only these lead to"


def perhaps_text(found: Leaks) -> str:
    if not found.is_whole and not found.freeze_tells:
        return "no pointer that was seen leads to them, but some memory was not seen"
    if not found.is_whole:
        return "unreachable and unchanged in each scan, but the scans do not agree; --freeze tells"
    seen = f"{counted(found.unseen_registers, 'register')} of {counted(found.threads, 'thread')}"
    return f"the largest groups, as many as {seen} that cannot be seen may hold; --freeze tells"


def how(found: Leaks) -> str:
    """The basis of the answer."""
    slowest = max(found.scans, key=lambda scan: scan["seconds"])
    read = bytes_text(slowest["read_bytes"])
    way = "One scan" if len(found.scans) == 1 else f"{counted(len(found.scans), 'scan')}, each"
    length = f"at most {duration_text(slowest['seconds'])}" if len(found.scans) > 1 else ""
    length = length or duration_text(slowest["seconds"])
    stopped = ", for which the process was stopped" if found.is_frozen else ""
    rate = bytes_text(slowest["read_bytes"] / max(slowest["processor_seconds"], 1e-3))
    return f"{way} of {read} in {length}{stopped}: {rate} per CPU second."
