"""The seed's findings, and whether they are found here, computed from the run.

A loss of speed must show twice: in operations a second, and in processor time for an operation.  Other
programs on the machine disturb the first; the second does not see threads that wait."""

# ruff: noqa: RUF001
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

from .figures import Cell, Ratio, Samples, cost_ratio, speed_ratio

REPRODUCED, NOT_REPRODUCED, UNDECIDED, MEASURED = "reproduced", "not reproduced", "undecided", "measured"
REUSE_TARGET = 0.90  # A1
HOPED_REUSE = 0.70
OWN_BASELINE_TARGET = 1.5  # A2
MANY = 4  # the notes' number of threads
# Threads beyond the cores wait, they do not contend: contention is judged with as many as run at once.
AT_ONCE = MANY if len(os.sched_getaffinity(0)) >= MANY else 2

Cells = dict[tuple[str, int], Cell]


@dataclass(frozen=True)
class Verdict:
    """One line of the table of findings."""

    name: str
    seed: str
    here: str
    verdict: str
    reason: str

    def as_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class OwnBaseline:
    """A2's second half at one number of threads."""

    threads: int
    speed: Ratio
    cost: Ratio

    @property
    def is_met(self) -> bool:
        return self.speed.median >= OWN_BASELINE_TARGET


@dataclass(frozen=True)
class Finding:
    """A finding of the notes: the seed's figure, how it is judged, and what to say then."""

    name: str
    seed: str
    judge: Callable[[Finding, Samples, Cells], tuple[str, str]]  # figure here, verdict
    if_so: str
    if_not: str
    base: str = "sharded-mutex"
    threads: int = MANY


def _judge_loss(*measures: Ratio) -> str:
    """Both quartiles of all measures below 1, or above it."""
    if all(measure.high < 1 for measure in measures):
        return REPRODUCED
    return NOT_REPRODUCED if all(measure.low > 1 for measure in measures) else UNDECIDED


def _speed_text(finding: Finding, samples: Samples) -> str:
    parts = []
    for threads in sorted({finding.threads, MANY} if finding.threads == AT_ONCE else {finding.threads}):
        cost = cost_ratio(samples, finding.name, finding.base, threads)
        speed = speed_ratio(samples, finding.name, finding.base, threads)
        parts.append(
            f"{threads} thread{'s' * (threads > 1)}: {cost.median:.2f}× {finding.base} in CPU time "
            f"({cost.low:.2f} … {cost.high:.2f}), {speed}× in ops/s"
        )
    return "; ".join(parts)


def _is_slower(finding: Finding, samples: Samples, _: Cells) -> tuple[str, str]:
    pair = (finding.name, finding.base, finding.threads)
    verdict = _judge_loss(cost_ratio(samples, *pair), speed_ratio(samples, *pair))
    return _speed_text(finding, samples), verdict


def _reuse_text(cell: Cell) -> str:
    assert cell.reuse is not None and cell.new_pages is not None
    text = f"{cell.reuse:.2%} reuse, {cell.new_pages:,.0f} new pages, {cell.new_pages_per_s:,.0f} a second"
    return text + (" (until the pages were used up)" if cell.ran_out_of_pages else "")


def _reuses_little(finding: Finding, _: Samples, cells: Cells) -> tuple[str, str]:
    cell = cells[finding.name, finding.threads]
    return _reuse_text(cell), REPRODUCED if (cell.reuse or 0) < REUSE_TARGET else NOT_REPRODUCED


def _is_the_baseline(finding: Finding, _: Samples, cells: Cells) -> tuple[str, str]:
    one, many = cells[finding.name, 1], cells[finding.name, MANY]
    scaling = many.ops_per_s / one.ops_per_s
    text = f"{one.ops_per_s / 1e6:.1f} M/s and {many.ops_per_s / 1e6:.1f} M/s, {scaling:.2f}×; "
    text += f"CPU {one.cpu_ns_per_op:.0f} → {many.cpu_ns_per_op:.0f} ns an operation"
    return text, REPRODUCED if many.cpu_ns_per_op > 1.2 * one.cpu_ns_per_op else NOT_REPRODUCED


def _hope(finding: Finding, samples: Samples, cells: Cells) -> tuple[str, str]:
    cell = cells[finding.name, MANY]
    verdict = "hope met" if (cell.reuse or 0) >= HOPED_REUSE else "hope not met"
    return f"{_reuse_text(cell)}; {_speed_text(finding, samples)}", verdict


def _only_measure(finding: Finding, samples: Samples, cells: Cells) -> tuple[str, str]:
    return f"{_reuse_text(cells[finding.name, MANY])}; {_speed_text(finding, samples)}", MEASURED


FINDINGS = (
    Finding(
        "sharded-mutex", "4.03 M/s with 1 thread, 13.78 M/s with 4 (3.42×)", _is_the_baseline,
        "The same work costs more processor time as soon as threads share: blocks, links, heads and locks "
        "wander from core to core.",
        "An operation costs the same with 4 threads: the shards kept the threads apart here.",
    ),
    Finding(
        "cas-walk", "-3 %", _is_slower,
        "A walk over up to 32 links is repeated at every collision, and the lines bounce as before.",
        "Collisions are rare on few cores, and an interrupted holder of a lock costs its waiters a sleep.",
        threads=AT_ONCE,
    ),
    Finding(
        "cas-singles", "-6.6 %", _is_slower,
        "32 compare-and-swaps on one line cost more than one walk.",
        "As with cas-walk; on few cores single pops rarely collide either.",
        threads=AT_ONCE,
    ),
    Finding(
        "adopt-at-once", "40 % reuse, 227,000 new pages", _reuses_little,
        "Pages that only their owner frees into are never announced; adoption takes the others, and the "
        "owner makes new ones.",
        "Remote frees are frequent enough in this load to announce every page in time.",
    ),
    Finding(
        "threshold-4", "0.6 % reuse", _reuses_little,
        "Pages below the threshold are lost; a page of two or three blocks never reaches it.",
        "Enough pages reach the threshold in this load.",
    ),
    Finding(
        "threshold-2", "3.6 % reuse", _reuses_little,
        "Pages below the threshold are lost.",
        "Enough pages reach the threshold in this load.",
    ),
    Finding(
        "reenqueue", "6.2 % reuse, 230,000 new pages", _reuses_little,
        "Queueing a page again when it is left does not help those that their owner frees into later.",
        "Pages that are queued again are enough for this load.",
    ),
    Finding(
        "adopt-announced", "not tried", _only_measure,
        "Announcing the owner's frees as well is what separates this from adopt-at-once: the notes' loss was "
        "in the silence, not in the stealing.  The price is an atomic operation for almost every free.",
        "",
    ),
    Finding(
        "thread-list", "+7 % time, 1 thread", _is_slower,
        "With one thread there is no contention to save.",
        "Here the list saves the lock of almost every free, an atomic operation even without contention; in "
        "the notes it stood in front of a pool whose operations were rarer and larger.",
        threads=1,
    ),
    Finding(
        "magazine-64", "-1 %", _is_slower,
        "Blocks move from array to list and back, which one list alone spares.",
        "64 slots are enough for this load: it has no batches.  The notes' load freed 100 blocks at once.",
        base="thread-list",
    ),
    Finding(
        "global-cache", "-3 … -8 %", _is_slower,
        "Everybody writes to one cache line at every malloc.",
        "Two cores do not fight enough over one line.",
        threads=AT_ONCE,
    ),
    Finding(
        "route-s", "70–80 % reuse hoped for", _hope,
        "The supply ladder finds a page before it makes one.  What sleeping owners hold is out of reach: "
        "new pages come from there.",
        "",
    ),
    Finding(
        "route-p", "not measured", _only_measure,
        "Its five conditions rarely hold in this load; without magazines the owner pays for the latch at "
        "each free into a page that is not active.",
        "",
        base="route-s",
    ),
)  # fmt: skip


def judge(samples: Samples, cells: Cells) -> list[Verdict]:
    """One verdict for each finding."""
    verdicts = []
    for finding in FINDINGS:
        here, verdict = finding.judge(finding, samples, cells)
        undecided = (
            "Rounds, or operations a second and processor time, contradict each other: "
            "a lock makes threads wait, a compare-and-swap makes them work again."
        )
        reason = {UNDECIDED: undecided, NOT_REPRODUCED: finding.if_not}.get(verdict, finding.if_so)
        verdicts.append(Verdict(finding.name, finding.seed, here, verdict, reason))
    return verdicts


def own_baseline(samples: Samples) -> list[OwnBaseline]:
    """A2: the product against the sharded mutexes."""
    if ("hakmem", 1) not in samples:
        return []
    both = ("hakmem", "sharded-mutex")
    return [OwnBaseline(t, speed_ratio(samples, *both, t), cost_ratio(samples, *both, t)) for t in (1, MANY)]
