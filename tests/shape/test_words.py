"""The glossary of docs/ARCHITECTURE.md is kept: words and turns that it has replaced do not come back.

Decisions and the changelog are history, and keep theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROSE = (".c", ".h", ".def", ".map", ".py", ".md", ".j2")

FILES = [
    ROOT / "README.md",
    *sorted(
        path
        for folder in ("src", "include", "python", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in PROSE and path.parent.name != "decisions"
    ),
]

ANTECEDENT = "the thread that, the caller that, …"
# What is wrong, and what to say instead.
EVERYWHERE = {
    r"\b[Cc]alls? of the system\b": "system call",
    r"\bnot to be found\b": "not found",
    r"\b(he|his|him|himself)\b": "it, its: an owner is a heap",
    r"\bdear(er|est)?\b(?!,)": "expensive",
    r"\bbehind\b": "after, past, below",
    r"\b(the|its|a|\w+'s) begin\b": "start",
    r"\b([Ff]or|[Bb]y|[Oo]f|[Tt]o|[Ff]rom|[Tt]han|[Ww]ith) who(m|ever)?\b": ANTECEDENT,
    r"(^|[.:;(*] +|/\* )Who\b(?![^.]*\?)": ANTECEDENT,
    r"\bin all\b(?=[.,;:)])": "in total",
    r"\boutbox(es)?\b": "remote-free buffer",
    r"\bnurser(y|ies)\b": "starter heap",
    r"\bthrift\b": "purge credit",
}
# Numbers of the mission's targets say nothing to a reader of the code; lab/MISSION.md maps them to files.
IN_SOURCES = {r"(?<![\w$<])(T[1-7]|M[1-6]|L[1-3]|L2\.5|B1|P[1-5]|O[1-4])(?![\w>])": "the thing itself"}


def faults(path: Path) -> list[str]:
    patterns = EVERYWHERE | (IN_SOURCES if path.is_relative_to(ROOT / "src") else {})
    found = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        for pattern, instead in patterns.items():
            if match := re.search(pattern, line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0].strip()!r}: say {instead}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_those_of_the_glossary(path: Path) -> None:
    assert not faults(path)
