"""The figures of docs/PERFORMANCE.md and README.md, from the data in docs/performance.

The rest of these pages has no figure that was measured: a new campaign changes the figures alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "performance"
TIME, MEMORY, IDLE = (
    "Processor time per operation, all threads",
    "Peak resident memory, MiB",
    "RSS after idle",
)
PAIRS = "hakmem's time over the other's, 95 % interval"
MEASURES = {TIME: "time", MEMORY: "peak memory"}
KINDS = REAL, MADE_UP = "real programs", "made-up loads"
# Above these a row is named: a difference below is little beside the spread of a shared machine.
TIME_BOUND, MEMORY_BOUND = 1.10, 1.25

Row = list[str]


def rows_of(name: str) -> list[Row]:
    return [line.split("\t") for line in (DATA / name).read_text().splitlines()]


def is_of(kind: str, name: str) -> bool:
    """Whether the row is one of these; geometric means have their kind's name."""
    if name.startswith("geometric mean"):
        return name.endswith(kind)
    return name.startswith("real-") == (kind == REAL)


@dataclass(frozen=True)
class Mean:
    counted: str  # how many rows count, such as "10 of 22"
    cells: dict[str, str]  # by allocator; "" if it is not known

    @property
    def of(self) -> dict[str, float]:
        return {name: first_number(cell) for name, cell in self.cells.items() if cell}


@dataclass(frozen=True)
class Campaign:
    """The tables of the real programs, or of the made-up loads, by the heading of their first column, and
    the notes."""

    kind: str
    tables: dict[str, list[Row]]
    notes: list[str]

    @classmethod
    def read(cls, kind: str) -> Campaign:
        tables: dict[str, list[Row]] = {}
        notes: list[str] = []
        current: list[Row] | None = None
        for row in rows_of("real.tsv" if kind == REAL else "campaign.tsv"):
            if row[0].startswith("# "):
                notes.append(row[0].removeprefix("# "))
            elif row == [""]:
                current = None
            elif current is None:
                current = tables[row[0]] = [row]
            elif current[0][0] == "Target" or is_of(kind, row[0]):
                current.append(row)
        return cls(kind, tables, notes)

    def versions(self) -> str:
        """Each peer's own version, where the note on allocators has it."""
        found = re.findall(r"([\w-]+) \(([^:()]*(?:\([^()]*\))?): [\w-]+(?: [\w.]+)? of ", self.notes[2])
        return "; ".join(f"{name} is {version}" for name, version in found)

    def missed(self) -> list[Row]:
        return [row for row in self.tables["Target"][1:] if row[3] == "missed"]

    def mean(self, table: str) -> Mean:
        """The geometric means of the ratios to each row's best peer."""
        head, *rows = self.tables[table]
        row = next((row for row in rows if row[0].startswith("geometric mean")), [""])
        said = re.search(r"of (\d+(?: of \d+)?) ratios", row[0])
        return Mean(said[1] if said else "all", dict(zip(head[1:], row[1:], strict=False)))

    def losses(self, table: str, bound: float) -> list[tuple[str, float, str]]:
        """Known rows in which hakmem is above `bound` of the best peer, worst first: name, ratio, peer."""
        found = []
        for row in self.tables[table][1:]:
            ratio, _, rest = row[-1].partition(" ")
            if rest and ratio != "not" and float(ratio) > bound:
                name = row[0].rsplit(" ", 1)[0] if table != MEMORY else row[0]
                found.append((name, float(ratio), rest.split()[0]))
        return sorted(found, key=lambda loss: -loss[1])

    def pairs(self) -> dict[str, str]:
        """The mean of the ratios to each peer's time, with its interval and the number of rows."""
        return {name: cell for name, cell in self.mean(PAIRS).cells.items() if cell}

    def known(self) -> str:
        """The rows of which that ratio is known, such as "20 of 22"."""
        rows = len(self.tables[TIME]) - 2  # without the heading and the mean
        return f"{rows - len(self.unknown())} of {rows}"

    def unknown(self) -> list[str]:
        """Rows of which hakmem's ratio of times to the best peer is not known."""
        return [row[0].rsplit(" ", 1)[0] for row in self.tables[TIME][1:] if row[-1].startswith("not known")]


def all_campaigns() -> dict[str, Campaign]:
    return {kind: Campaign.read(kind) for kind in KINDS}


def markdown(head: Row, rows: list[Row]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'---:|' * (len(head) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def targets(campaigns: dict[str, Campaign]) -> Iterator[str]:
    yield "### Missed targets"
    yield ""
    yield f"{missed_targets(campaigns)} targets; they were written against five older peers."
    yield ""
    yield "| loads | target | value | bound |\n|---|---|---|---|"
    for kind, campaign in campaigns.items():
        for name, value, bound, _ in campaign.missed():
            yield f"| {kind} | {name} | {value} | {bound} |"
    yield ""


def missed_targets(campaigns: dict[str, Campaign]) -> str:
    """How many, such as "20 of 51"."""
    missed = sum(len(campaign.missed()) for campaign in campaigns.values())
    return f"{missed} of {sum(len(campaign.tables['Target']) - 1 for campaign in campaigns.values())}"


def losses(campaign: Campaign, table: str, bound: float, noun: str) -> Iterator[str]:
    found = campaign.losses(table, bound)
    for is_case, kind in ((False, "loads"), (True, "cases, single situations that were bad once")):
        named = [
            f"{name.removeprefix('case-')} {ratio:.2f} ({peer})"
            for name, ratio, peer in found
            if name.startswith("case-") == is_case
        ]
        if named:
            yield f"* **{noun}**, {len(named)} {kind}: {', '.join(named)}."


def means(campaign: Campaign) -> Iterator[str]:
    allocators = campaign.tables[TIME][0][1:-1]
    yield f"Geometric means of the ratios to each row's best peer, {campaign.kind}:"
    yield ""
    rows = [
        [measure, *(campaign.mean(table).cells.get(name, "") for name in allocators)]
        for table, measure in MEASURES.items()
    ]
    pairs = campaign.pairs()
    cells = [short(pairs.get(name, "")) for name in allocators]
    rows.append(["hakmem's time over the other's, measured rows", *cells])
    yield from markdown(["", *allocators], rows)


def short(pair: str) -> str:
    """A mean of pairs without its interval: the ratio and the number of rows."""
    return re.sub(r"^(\d+\.\d+) .*, (\d+) rows$", r"\1 (\2)", pair)


def unknown(campaign: Campaign) -> Iterator[str]:
    if rows := campaign.unknown():
        yield f"**Not known** is the time of {len(rows)} rows: {', '.join(rows)}."
        yield ""


def idle(campaign: Campaign) -> Iterator[str]:
    head, *rows = campaign.tables[IDLE]
    yield "### Memory after five idle seconds, MiB"
    yield ""
    yield from markdown(["", *head[1:]], rows)


def span(rows: list[Row], head: Row, allocator: str, kind: str = "") -> str:
    column = head.index(allocator)
    values = sorted(float(row[column]) for row in rows if row[0].endswith(kind))
    return f"{values[0]:,.0f} to {values[-1]:,.0f}"


# Columns in the table of programs: the heading, the file, and the rest of a row's name there.
COUNTED = (
    ("instructions a call", "instructions.tsv", ""),
    ("D1 misses a call", "instructions.tsv", " D1 misses"),
    ("LL misses a call", "instructions.tsv", " LL misses"),
    ("page walks a million instructions", "tlb.tsv", " walks"),
    ("page faults", "instructions.tsv", " faults"),
    ("system calls", "instructions.tsv", " system calls"),
)


def counted(file: str, name: str) -> str:
    """hakmem's count, and the least of the peers'; "" without such a row."""
    head, *rows = rows_of(file)
    row = next((row for row in rows if row[0] == name), None)
    if row is None:
        return ""
    of = {peer: float(cell) for peer, cell in zip(head[2:], row[2:], strict=True) if cell != "-"}
    ours, (least, peer) = of.pop("hakmem"), min((value, peer) for peer, value in of.items())
    return f"{ours:,.1f} ({peer} {least:,.1f})".replace(".0 ", " ").replace(".0)", ")")


def programs(campaign: Campaign) -> Iterator[str]:
    """A row for each real program: its figures that depend on the machine, and its counts."""
    peaks = {row[0]: row[-1] for row in campaign.tables[MEMORY][1:]}
    yield "Time and peak memory: hakmem's ratio to the best peer. Counts: hakmem's, and the least of a peer."
    yield ""
    kinds = [kind for kind in COUNTED if any(row[0].endswith(kind[2]) for row in rows_of(kind[1])[1:])]
    rows = []
    for row in campaign.tables[TIME][1:]:
        name = row[0].rsplit(" ", 1)[0]
        if name.startswith("real-"):
            counts = [counted(file, f"{name}{rest}") for _, file, rest in kinds]
            rows.append([name.removeprefix("real-"), row[-1], *counts, peaks.get(name, "")])
    yield from markdown(["program", "time", *(kind[0] for kind in kinds), "peak memory"], rows)


def others() -> Iterator[str]:
    """The least and the most of each allocator, in the smaller measurements."""
    head, *rows = rows_of("instructions.tsv")
    rows = [
        row for row in rows if int(row[1]) > 10_000 and " " not in row[0]
    ]  # else the start of a process is most of it
    spans = ", ".join(f"{name} {span(rows, head, name)}" for name in head[2:])
    yield f"* **Instructions** for a malloc with its free, in {len(rows)} programs: {spans}."
    head, *rows = rows_of("tlb.tsv")
    spans = ", ".join(f"{name} {span(rows, head, name, 'walks')}" for name in head[2:])
    yield f"* **Page walks** of a simulated TLB in a million instructions: {spans}."
    spans = ", ".join(f"{name} {span(rows, head, name, 'L1')}" for name in head[2:])
    yield f"* **First-level misses** of it: {spans}."
    head, *rows = rows_of("musl.tsv")
    faster = sorted(float(row[head.index(each)]) for row in rows for each in head if "times" in each)
    ours, musls = head.index("preloaded, MiB"), head.index("musl, MiB")
    memory = max(float(row[ours]) / float(row[musls]) for row in rows)
    times = f"{faster[0]:g} to {faster[-1]:g} times faster"
    yield f"* **On musl**, {times} than musl's malloc, at up to {memory:.1f} times the memory."


def head(campaign: Campaign) -> Iterator[str]:
    yield campaign.notes[0]
    yield ""
    yield campaign.notes[1]
    yield ""
    yield f"Peers: {campaign.versions()}."
    yield ""


def document() -> str:
    """The generated part."""
    campaigns = all_campaigns()
    real, made_up = campaigns.values()
    lines = [
        *targets(campaigns),
        *("### Real programs", ""),
        *head(real),
        *means(real),
        *unknown(real),
        *programs(real),
        *("### Made-up loads", ""),
        *head(made_up),
        f"Above {TIME_BOUND:.2f} of the best peer's time, or {MEMORY_BOUND:.2f} of its peak memory:",
        "",
        *losses(made_up, TIME, TIME_BOUND, "Time"),
        *losses(made_up, MEMORY, MEMORY_BOUND, "Peak memory"),
        "",
        *unknown(made_up),
        *means(made_up),
        *idle(made_up),
        *("### Smaller measurements", ""),
        *others(),
    ]
    return "\n".join(lines) + "\n"


def peers() -> str:
    """For README.md: first where a peer is ahead."""
    lost, won = [], []
    campaigns = all_campaigns()
    for table, measure in MEASURES.items():
        for kind, campaign in campaigns.items():
            if not (of := campaign.mean(table).of):
                ratio, peer = max((first_number(cell), name) for name, cell in campaign.pairs().items())
                cell = re.sub(r" \((.*)\), ", r", \1, in ", campaign.pairs()[peer])
                (won if ratio < 1 else lost).append(f"{measure} of {kind} ({peer}'s times {cell})")
                continue
            ours, (best, peer) = of.pop("hakmem"), min((mean, name) for name, mean in of.items())
            said = f"{measure} of {kind} (hakmem {ours:.2f}, {peer} {best:.2f})"
            (won if ours < best else lost).append(said)
    made_up = campaigns[MADE_UP]
    (slow, time, faster), *_ = made_up.losses(TIME, TIME_BOUND)
    (large, memory, leaner), *_ = made_up.losses(MEMORY, MEMORY_BOUND)
    _, *idle_rows = made_up.tables[IDLE]
    led = sum(first_number(ours) < min(map(first_number, others)) for _, ours, *others, _ in idle_rows)
    known = " and ".join(f"{campaign.known()} {kind}" for kind, campaign in campaigns.items())
    return f"""\
* **A peer is ahead** in {listed(lost)}.
  At worst, {slow} takes {time:.2f} times {faster}'s time, {large} {memory:.2f} times {leaner}'s memory.
  hakmem misses {missed_targets(campaigns)} targets.
* **hakmem is ahead** in {listed(won)},
  and has the least memory after five idle seconds in {led} of {len(idle_rows)} loads.
* The ratio of times to the best peer is known of {known}
  (to 3 %, or a fifth of the difference)."""


def first_number(cell: str) -> float:
    return float(cell.split()[0])


def listed(items: list[str]) -> str:
    return " and\n  ".join(filter(None, (",\n  ".join(items[:-1]), *items[-1:])))


def defragmentation() -> str:
    head, *rows = rows_of("defrag.tsv")
    return "\n".join(markdown(head, rows))


PARTS = {"campaign": document, "peers": peers, "defragmentation": defragmentation}
