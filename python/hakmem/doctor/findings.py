"""Findings of `hakmem doctor`: each has a verdict, and advice unless it is ok."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hakmem.base.sizes import bytes_text, counted
from hakmem.target.cgroup import Limits

FULL_SHARE = 0.9  # of a limit: more is a problem


class Verdict(StrEnum):
    OK = "ok"
    ADVICE = "advice"  # works, but could be better, or is worth knowing
    PROBLEM = "problem"  # does not work, or will soon fail


@dataclass(frozen=True)
class Finding:
    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Finding:
    return Finding(name, Verdict.OK, found)


def advice(name: str, found: str, what_to_do: str) -> Finding:
    return Finding(name, Verdict.ADVICE, found, what_to_do)


def problem(name: str, found: str, what_to_do: str) -> Finding:
    return Finding(name, Verdict.PROBLEM, found, what_to_do)


def of_limit(name: str, found: str, share: float, what_to_do: str) -> Finding:
    """A problem when nearly all of a limit is used."""
    return problem(name, found, what_to_do) if share > FULL_SHARE else ok(name, found)


def map_count(name: str, found: str, count: int, limit: int) -> Finding:
    remedy = f"mmap will fail soon: sudo sysctl vm.max_map_count={limit * 4}"
    return of_limit(name, found, count / limit if limit else 0, remedy)


def memory_limit(limits: Limits) -> Finding:
    if limits.memory_bytes is None:
        return ok("memory limit", f"none ({limits.kind})")
    used = limits.used_bytes or 0
    found = f"{bytes_text(used)} of {bytes_text(limits.memory_bytes)} used ({limits.kind})"
    remedy = f"raise the limit ({limits.memory_setting}), or purge sooner: HAKMEM_DECAY_MS=100"
    if limits.oom_kills:
        killed = counted(limits.oom_kills, "process was", "processes were")
        return problem("memory limit", f"{found}; {killed} killed", remedy)
    return of_limit("memory limit", found, used / limits.memory_bytes, remedy)
