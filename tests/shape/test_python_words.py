"""The tool speaks technical English: phrases that it once used, and that are none, do not come back."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "hakmem"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.j2")])
# Phrase → what stands for it.
FORBIDDEN = {
    r"what helps": "to fix",
    r"(is|are) not to be (found|had|read)|to be had": "not found, unavailable, unreadable",
    r"\b(is|are) no (?!such|more|longer)\w+": "is not a",
    r"calls? of the (operating )?system": "system call",
    r"\bbehind\b": "after",
    r"\bin all\b": "total",
    r"\bat last\b": "at the end",
    r"\bdear\b": "expensive",
    r"\b(his|him|nobody|somebody|who(?!le)|whoever)\b": "it, a process, a thread, a user",
    r"\b(the|its|their) begin\b": "start",
    r"\boutbox": "remote-free buffer",
    r"\bnursery\b": "starter heap",
    r"\bmust-reuse gate\b": "supply ladder",
    r"looke?d? into\b": "read, examine",
}
PLACEHOLDER_PLURAL = re.compile(r"\{len\([^{}]*\)\} [a-z]+s\b")  # "1 threads": base/sizes.counted


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and strings of a module; all of a template."""
    if path.suffix != ".py":
        yield 1, path.read_text()
        return
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], " ".join(token.string.split())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_words(path: Path) -> None:
    found = [
        f"{path.name}:{line}: {match[0]!r}; say: {better}"
        for line, text in texts(path)
        for phrase, better in FORBIDDEN.items()
        for match in re.finditer(phrase, text, re.IGNORECASE)
        if not re.search(r"(there|or) $", text[: match.start()], re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_numbers_agree_with_their_nouns(path: Path) -> None:
    found = [f"{path.name}:{line}: {text}" for line, text in texts(path) if PLACEHOLDER_PLURAL.search(text)]
    assert not found, "\n".join(found)


def test_the_phrases_are_found_where_they_are() -> None:
    old = (
        "it is no ELF file",
        "What helps: x",
        "calls of the system",
        "who describes it",
        "from cheap to dear",
    )
    for text in old:
        assert any(re.search(phrase, text, re.IGNORECASE) for phrase in FORBIDDEN), text
    assert PLACEHOLDER_PLURAL.search("{len(line.details)} threads keep them")
