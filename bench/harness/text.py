"""Numbers and sentences as all outputs write them."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

TITLES = {
    "ns_per_op": "Time per operation",
    "cpu_ns_per_op": "CPU time per operation, all threads",
    "peak_rss_kib": "Peak resident memory, MiB",
}


def digits(value: float) -> str:
    """Three significant digits, no exponents."""
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def row_unit(row: dict[str, Any], measure: str) -> tuple[str, float]:
    """The unit to show behind the row's name, the same for all allocators of a row, and the divisor."""
    if measure == "peak_rss_kib":
        return "", 1024.0
    slowest = max((cell[measure]["median"] for cell in row["cells"].values()), default=0.0)
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


def method_sentence(document: Document) -> str:
    """How the figures came about."""
    length = f"{document['seconds']:g} s a run where the program runs for a time"
    rounds = f"{document['rounds']} interleaved round{'s' if document['rounds'] != 1 else ''}"
    return f"Median of {rounds}, {length}; lower is better; who served each run was checked."


def footnotes(document: Document) -> list[str]:
    """What the reader must know besides: what is missing, what failed, what was tuned."""
    notes = [f"missing: {sentence}" for sentence in document["missing"]]
    notes += [f"failed: {sentence}" for sentence in document["failures"]]
    notes += [f"environment: {name}={value}" for name, value in document["environment"].items()]
    return notes
