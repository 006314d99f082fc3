"""The targets of hakmem, computed from a result: each target with its figure, met or missed.

Targets whose benchmarks were not run, or whose peer was not there, are left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .extras import AFTER_IDLE, LATENCY, MEMORY
from .figures import Figure, make_figure
from .goals import case_figures
from .workload import CASE

Document = dict[str, Any]
Row = dict[str, Any]

TIME = "cpu_ns_per_op"
SHOWN = 4  # rows that a target's value names at most


def _rows(document: Document) -> dict[str, Row]:
    return {row["name"]: row for row in document["benchmarks"]}


def _median(row: Row | None, name: str, measure: str) -> float | None:
    if row is None or name not in row["cells"]:
        return None
    return float(row["cells"][name][measure]["median"])


def _named(pairs: Iterable[tuple[str, float]]) -> str:
    """The worst ones with their ratios, and how many there are besides."""
    found = sorted(pairs, key=lambda pair: -pair[1])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in found[:SHOWN]) + more


def _compared(
    document: Document, measure: str, title: str, mean_limit: float, row_limit: float
) -> list[Figure]:
    """The geometric mean, and no single row far worse.  Of times only the known ones count."""
    means = document["geometric_means"]["all loads"]
    mean = means.get(measure, {}).get("hakmem")
    ratios = [
        (row["name"], row["cells"]["hakmem"][measure]["ratio"])
        for row in document["benchmarks"]
        if "hakmem" in row["cells"] and row["kind"] != CASE and _is_known(row, measure)
    ]
    above = [(name, ratio) for name, ratio in ratios if ratio > row_limit]
    value = f"{len(above)} of {len(ratios)}: {_named(above)}" if above else f"none of {len(ratios)}"
    name = f"{title}, geometric mean against the best peers"
    figures = [make_figure(name, f"{mean:.3f}", f"≤ {mean_limit:.2f}", mean <= mean_limit)] if mean else []
    if ratios:
        name = f"{title}, rows above {row_limit:.2f} of the best peer"
        figures.append(make_figure(name, value, "none", not above))
    return figures


def _is_known(row: Row, measure: str) -> bool:
    """hakmem's ratio to the best peer."""
    best = row["best_peer"].get(measure)
    return best is not None and bool(row["cells"][best][measure].get("pair", {"known": True})["known"])


def _pair(row: Row | None, peer: str) -> float | None:
    """hakmem's time over the peer's."""
    cell = row["cells"].get(peer) if row is not None and "hakmem" in row["cells"] else None
    return float(cell[TIME]["pair"]["ratio"]) if cell is not None and "pair" in cell[TIME] else None


def _extra_rows(document: Document, title: str) -> list[Row]:
    return [row for table in document["extras"] if table["title"] == title for row in table["rows"]]


def _not_above_best(rows: list[Row], name: str) -> list[Figure]:
    """One figure for all rows but cases, which have their own: hakmem's median against the best peer's."""
    compared = [
        row
        for row in rows
        if "ratio" in row["cells"].get("hakmem", {}) and not row["benchmark"].startswith("case-")
    ]
    if not compared:
        return []
    worst = max(compared, key=lambda row: row["cells"]["hakmem"]["ratio"])
    value = f"worst {worst['cells']['hakmem']['ratio']:.2f} of {worst['best_peer']} ({worst['benchmark']})"
    met = all(row["cells"]["hakmem"]["ratio"] <= 1 for row in compared)
    return [make_figure(name, value, "≤ 1.00 of the best peer", met)]


def _startup(document: Document) -> list[Figure]:
    """Against glibc: the cost of starting up."""
    found = []
    for name, row in _rows(document).items():
        if name.startswith("startup") and (ratio := _pair(row, "glibc")) is not None:
            found.append(make_figure(f"{name}, time against glibc", f"{ratio:.3f}", "≤ 1.05", ratio <= 1.05))
    for row in _extra_rows(document, MEMORY):
        cells = row["cells"]
        if row["benchmark"].startswith("startup") and {"hakmem", "glibc"} <= cells.keys():
            more = (cells["hakmem"]["median"] - cells["glibc"]["median"]) * 1024
            name = f"{row['benchmark']}, peak of a process above glibc's"
            found.append(make_figure(name, f"{more:+.0f} KiB", "≤ 300 KiB", more <= 300))
    return found


def _idle_threads(document: Document) -> list[Figure]:
    return [
        make_figure(f"{row['benchmark']}, memory of an idle thread", f"{kib:.1f} KiB", "≤ 16 KiB", kib <= 16)
        for row in _extra_rows(document, MEMORY)
        if row["label"] == "per idle thread" and "hakmem" in row["cells"]
        for kib in [row["cells"]["hakmem"]["median"]]
    ]


def _keeps_up(document: Document, name: str, few: str, many: str) -> list[Figure]:
    """hakmem's throughput in row `many` is not below that of row `few` by more than noise."""
    rows = _rows(document)
    before, after = (_median(rows.get(which), "hakmem", "ns_per_op") for which in (few, many))
    if before is None or after is None:
        return []
    part = before / after
    title = f"{name}, throughput of {many} against {few}"
    return [make_figure(title, f"{part:.0%}", "≥ 95 %", part >= 0.95)]


def _against(document: Document, target: str, names: Iterable[str], peer: str, part: float) -> list[Figure]:
    """Throughput in percent of one peer's."""
    rows, found = _rows(document), []
    for name in names:
        if (ratio := _pair(rows.get(name), peer)) is not None:
            reached = 1 / ratio
            title = f"{target} {name}, throughput against {peer}"
            found.append(make_figure(title, f"{reached:.0%}", f"≥ {part:.0%}", reached >= part))
    return found


def _against_best(document: Document, target: str, names: Iterable[str]) -> list[Figure]:
    rows, found = _rows(document), []
    for name in names:
        row = rows.get(name)
        if row is not None and "hakmem" in row["cells"] and TIME in row["best_peer"]:
            ratio = row["cells"]["hakmem"][TIME]["ratio"]
            value = f"{ratio:.2f} of {row['best_peer'][TIME]}"
            found.append(
                make_figure(f"{target} {name}, time against the best peer", value, "≤ 1.00", ratio <= 1)
            )
    return found


def _larson_memory(document: Document) -> list[Figure]:
    """A12."""
    ratios = [
        (name, row["cells"]["hakmem"]["peak_rss_kib"]["ratio"])
        for name, row in _rows(document).items()
        if name.startswith("larson-") and "hakmem" in row["cells"] and "peak_rss_kib" in row["best_peer"]
    ]
    if not ratios:
        return []
    above = [(name, ratio) for name, ratio in ratios if ratio > 1.10]
    value = _named(above or [max(ratios, key=lambda pair: pair[1])])
    return [make_figure("A12 larson-*, peak memory against the leanest peer", value, "≤ 1.10", not above)]


def _like(document: Document, prefix: str) -> list[str]:
    return [name for name in _rows(document) if name.startswith(prefix)]


def targets(document: Document) -> list[Figure]:
    """All of them, in the order of the documentation."""
    latency = [row for row in _extra_rows(document, LATENCY) if row["label"] == "p99.99"]
    return [
        *_compared(document, TIME, "Time", 0.95, 1.10),
        *_compared(document, "peak_rss_kib", "Peak memory", 1.00, 1.25),
        *_not_above_best(_extra_rows(document, AFTER_IDLE), "RSS after idle"),
        *_not_above_best(latency, "p99.99 of single calls"),
        *_startup(document),
        *_idle_threads(document),
        *_keeps_up(document, "More threads than cores", "oversubscribed-1x", "oversubscribed"),
        *_against(document, "A2", ("larson-mid-1t", "larson-mid-4t"), "mimalloc", 1.0),
        *_keeps_up(document, "A5 Scaling", "mid_large_mt-4t", "mid_large_mt-8t"),
        *_against(document, "A6", _like(document, "mid_large_mt-"), "mimalloc", 1.0),
        *_against(document, "A8", ("tiny_hot",), "glibc", 1.5),
        *_against(document, "A9", _like(document, "random_mixed-"), "mimalloc", 1.0),
        *_against_best(document, "A10", ("json", "mir", "vm")),
        *_larson_memory(document),
        *case_figures(document),
    ]
