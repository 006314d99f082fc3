"""Numbers and sentences as all outputs write them."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

TITLES = {
    "ns_per_op": "Time per operation",
    "cpu_ns_per_op": "CPU time per operation, all threads",
    "peak_rss_kib": "Peak resident memory, MiB",
}
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


def hakmem_ratio(row: dict[str, Any], measure: str) -> str:
    """hakmem's ratio to the best peer and that peer's name; empty when there is none."""
    if "hakmem" not in row["cells"] or measure not in row["best_peer"]:
        return ""
    return f"{row['cells']['hakmem'][measure]['ratio']:.2f} {row['best_peer'][measure]}"


def machine_sentence(document: Document) -> str:
    """The machine in one line."""
    machine = document["machine"]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"Linux {machine['kernel']}, {machine['libc']}, huge pages {machine['huge_pages']}, "
        f"load at start {machine['load_at_start']}"
    )


def allocators_sentence(document: Document) -> str:
    """Which versions took part."""
    return ", ".join(f"{name} ({what})" for name, what in document["allocators"].items())


def mean_rows(document: Document) -> list[tuple[str, dict[str, Any]]]:
    """The geometric means with their labels: of all loads and, where there are such, of real programs, of
    loads that are not, and of cases."""
    rows = [
        ("all loads", document["geometric_means"]),
        ("real programs", document["geometric_means_real"]),
        ("made-up loads", document["geometric_means_made_up"]),
        ("cases", document["geometric_means_cases"]),
    ]
    return [
        (f"geometric mean of {means['benchmarks']} ratios, {which}", means)
        for which, means in rows
        if means["benchmarks"]
    ]


def extra_name(row: dict[str, Any]) -> str:
    """The head of a row of `extras`."""
    return " ".join(word for word in (row["benchmark"], row["label"], row["unit"]) if word)


def extra_ratio(row: dict[str, Any]) -> str:
    """hakmem's ratio to the best peer in a row of `extras`; empty when there is none."""
    ratio = row["cells"].get("hakmem", {}).get("ratio")
    return "" if ratio is None else f"{ratio:.2f} {row['best_peer']}"


def method_sentence(document: Document) -> str:
    """How the figures came about."""
    length = f"{document['seconds']:g} s a run where the program runs for a time"
    rounds = f"{document['rounds']} interleaved round{'s' if document['rounds'] != 1 else ''}"
    if document["rounds"] < document["rounds_planned"]:
        rounds += f" (of {document['rounds_planned']}: no time for more)"
    return (
        f"Median of {rounds} in {document['minutes_taken']:.1f} minutes, {length}; lower is better; "
        "who served each run was checked."
    )


def footnotes(document: Document) -> list[str]:
    """Notes for the reader: missing peers, failures, tuning."""
    notes = [f"missing: {sentence}" for sentence in document["missing"]]
    notes += [f"left out for want of time: {', '.join(document['left_out'])}"] if document["left_out"] else []
    notes += [f"failed: {sentence}" for sentence in document["failures"]]
    notes += [f"environment: {name}={value}" for name, value in document["environment"].items()]
    return notes
