"""Numbers and sentences as all outputs write them."""

from __future__ import annotations

from statistics import geometric_mean
from typing import Any

from .estimate import PAIRS_MIN, mean_spread
from .workload import KINDS

Document = dict[str, Any]

TITLES = {
    "cpu_ns_per_op": "Processor time per operation, all threads",
    "peak_rss_kib": "Peak resident memory, MiB",
}
PAIRS = "hakmem's time over the other's, 95 % interval"
FAULTS_WORTH_SHOWING = 0.05  # minor page faults per operation


def digits(value: float) -> str:
    """Three significant digits, no exponents."""
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def row_unit(row: dict[str, Any], measure: str) -> tuple[str, float]:
    """The unit to show after the row's name, the same for all allocators of a row, and the divisor."""
    if measure == "peak_rss_kib":
        return "", 1024.0
    slowest = max((cell[measure]["median"] for cell in row["cells"].values()), default=0.0)
    if slowest >= 10_000_000:
        return "ms", 1e6
    return ("µs", 1e3) if slowest >= 10_000 else ("ns", 1.0)


def interval(pair: dict[str, Any]) -> str:
    """A ratio of times with its interval, or that alone when it is wide; of too few pairs their number."""
    if pair["pairs"] < PAIRS_MIN:
        return f"not known ({pair['pairs']} pairs)"
    ends = f"{pair['low']:.3f} to {pair['high']:.3f}"
    return f"{pair['ratio']:.3f} ({ends})" if pair["known"] else f"not known ({ends})"


def hakmem_ratio(row: dict[str, Any], measure: str) -> str:
    """hakmem's ratio to the best peer, its name, and of times the interval; empty when there is none."""
    if "hakmem" not in row["cells"] or measure not in row["best_peer"]:
        return ""
    best = row["best_peer"][measure]
    pair = row["cells"][best][measure].get("pair")
    if pair is not None:
        ratio, _, ends = interval(pair).rpartition(" (")
        return f"{ratio} {best} ({ends}"
    return f"{row['cells']['hakmem'][measure]['ratio']:.2f} {best}"


def machine_sentence(document: Document) -> str:
    """The machine in one line."""
    machine = document["machine"]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"Linux {machine['kernel']}, {machine['libc']}, huge pages {machine['huge_pages']}, "
        f"load at start {machine['load_at_start']}, {machine['date']}"
    )


def allocators_sentence(document: Document) -> str:
    """Which versions took part."""
    return ", ".join(f"{name} ({what})" for name, what in document["allocators"].items())


def pair_rows(document: Document) -> list[tuple[str, list[str]]]:
    """Each row's name with the intervals of the ratios of times, for each allocator but the first; and the
    means of those of PAIRS_MIN pairs, known or not: their intervals are part of the mean's."""
    others = [name for name in document["allocators"] if name != document["reference"]]
    rows = document["benchmarks"]
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    return [
        *((row["name"], [_pair_text(row["cells"].get(name)) for name in others]) for row in rows),
        *(
            (f"geometric mean, {kind}", [_pair_mean(some, name) for name in others])
            for kind, some in kinds.items()
            if some
        ),
    ]


def _pair_mean(rows: list[dict[str, Any]], name: str) -> str:
    """With its interval and the number of rows."""
    cells = [row["cells"].get(name, {}).get("cpu_ns_per_op", {}) for row in rows]
    pairs = [cell["pair"] for cell in cells if cell.get("pair", {}).get("pairs", 0) >= PAIRS_MIN]
    if not pairs:
        return ""
    mean = geometric_mean(each["ratio"] for each in pairs)
    spread = mean_spread(pairs)
    return f"{mean:.3f} ({mean / spread:.3f} to {mean * spread:.3f}), {len(pairs)} rows"


def _pair_text(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "failed"
    pair = cell["cpu_ns_per_op"].get("pair")
    return interval(pair) if pair else ""


def mean_rows(document: Document, measure: str) -> list[tuple[str, list[str]]]:
    """The geometric means with their labels, a text for each allocator: of all loads and, where there are
    such, of real programs, of loads that are not, and of cases."""
    found = []
    for which, means in document["geometric_means"].items():
        if count := means["benchmarks"][measure]:
            texts = [_mean_text(means, measure, name) for name in document["allocators"]]
            found.append((f"geometric mean of {count} of {means['rows']} ratios, {which}", texts))
    return found


def _mean_text(means: dict[str, Any], measure: str, name: str) -> str:
    if name not in means[measure]:
        return ""
    mean = means[measure][name]
    if name != "hakmem" or measure != "cpu_ns_per_op":
        return f"{mean:.2f}"
    low, high = (mean * factor for factor in means["interval"])
    return f"{mean:.2f} ({low:.3f} to {high:.3f})"


def extra_name(row: dict[str, Any]) -> str:
    """The head of a row of `extras`."""
    return " ".join(word for word in (row["benchmark"], row["label"], row["unit"]) if word)


def extra_ratio(row: dict[str, Any]) -> str:
    """hakmem's ratio to the best peer in a row of `extras`; empty when there is none."""
    ratio = row["cells"].get("hakmem", {}).get("ratio")
    return "" if ratio is None else f"{ratio:.2f} {row['best_peer']}"


def method_sentence(document: Document) -> str:
    """How the figures came about."""
    noise = document["noise"]
    return (
        f"{noise['runs']:,} runs of {document['seconds']:g} s where the program runs for a time, "
        f"{noise['repeated']:.0f} of them repeated after a disturbance; lower is better; time is processor "
        "time, its ratios are those of pairs of runs; who served each run was checked."
    )


def noise_sentence(document: Document) -> str:
    """The disturbances in the median of the runs."""
    noise = document["noise"]
    pressure = f"{noise['pressure']:.0%}" if "pressure" in noise else "unknown"
    return (
        f"waiting for a processor {pressure} of the time, stolen {noise.get('steal', 0):.1%} of a processor, "
        f"{noise.get('switches', 0):.0f} involuntary switches a second"
    )


def footnotes(document: Document) -> list[str]:
    """Notes for the reader: missing peers, failures, tuning."""
    notes = [f"missing: {sentence}" for sentence in document["missing"]]
    notes += [f"left out for want of time: {', '.join(document['left_out'])}"] if document["left_out"] else []
    notes.append(f"uncertain: {document['uncertain']}")
    notes += [f"failed: {sentence}" for sentence in document["failures"]]
    notes += [f"environment: {name}={value}" for name, value in document["environment"].items()]
    return notes
