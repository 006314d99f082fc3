"""Findings of `hakmem doctor`: each has a verdict, and advice unless it is ok."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
