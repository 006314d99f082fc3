"""From samples to the figures of a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from harness.execute import Sample

# (subject's name, threads) -> one sample a round
Samples = dict[tuple[str, int], list[Sample]]


@dataclass(frozen=True)
class Ratio:
    """Speed against another subject in the same round, as a disturbance affects both.  `low` and `high`
    are the quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} … {self.high:.2f})"


@dataclass(frozen=True)
class Cell:
    """One subject at one number of threads.  None: the subject does not count that."""

    ops_per_s: float
    ops_low: float
    ops_high: float
    cpu_ns_per_op: float
    peak_rss_mib: float
    reuse: float | None
    new_pages: float | None
    new_pages_per_s: float | None
    cas_retries_per_mop: float | None
    locks_per_mop: float | None
    futex_per_mop: float | None
    counters: Sample  # medians of everything else
    ran_out_of_pages: bool

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _median(samples: list[Sample], key: str) -> float:
    return median(sample[key] for sample in samples)


def _ratio_of(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def cell(samples: list[Sample], counts: bool) -> Cell:
    """`counts` is false for references that tell nothing of themselves."""
    speeds = [sample["ops_per_s"] for sample in samples]

    def per_mop(*keys: str) -> float | None:
        if not counts:
            return None
        return median(sum(s[key] for key in keys) * 1e6 / s["ops"] for s in samples)

    reuses, new = sum(s["reuses"] for s in samples), sum(s["new_pages"] for s in samples)
    return Cell(
        ops_per_s=median(speeds),
        ops_low=min(speeds),
        ops_high=max(speeds),
        cpu_ns_per_op=median(cpu_ns_per_op(s) for s in samples),
        peak_rss_mib=_median(samples, "peak_rss_kib") / 1024,
        reuse=_ratio_of(reuses, reuses + new) if counts else None,
        new_pages=_median(samples, "new_pages") if counts else None,
        new_pages_per_s=median(s["new_pages"] / s["seconds"] for s in samples) if counts else None,
        cas_retries_per_mop=per_mop("cas_retries"),
        locks_per_mop=per_mop("locks"),
        futex_per_mop=per_mop("futex_waits", "futex_wakes"),
        counters={key: _median(samples, key) for key in samples[0]},
        ran_out_of_pages=any(s["out_of_pages"] for s in samples),
    )


def cpu_ns_per_op(sample: Sample) -> float:
    """Processor time of an operation, without the time in which other programs run."""
    return (sample["user_s"] + sample["sys_s"]) * 1e9 / sample["ops"]


def _ratio(values: list[float]) -> Ratio:
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return Ratio(middle, low, high)


def speed_ratio(samples: Samples, name: str, base: str, threads: int) -> Ratio:
    """How many operations a second `name` does for one of `base`."""
    pairs = zip(samples[name, threads], samples[base, threads], strict=True)
    return _ratio([mine["ops_per_s"] / theirs["ops_per_s"] for mine, theirs in pairs])


def cost_ratio(samples: Samples, name: str, base: str, threads: int) -> Ratio:
    """How many operations `name` does for one of `base` in the same processor time."""
    pairs = zip(samples[name, threads], samples[base, threads], strict=True)
    return _ratio([cpu_ns_per_op(theirs) / cpu_ns_per_op(mine) for mine, theirs in pairs])
