"""The numbers that only fall: how large hakmem is, counted in this tree and compared with numbers.txt.

A number above its gate fails, and so does one more than a hundredth below it: then the gate goes down."""

import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GATES = Path(__file__).with_name("numbers.txt")
SOURCES = (".c", ".h", ".def")
# What a newcomer reads; all other folders of src/ are optional parts.
CORE = (
    "base",
    "os",
    "config",
    "map",
    "purge",
    "pool",
    "slab",
    "ranges",
    "cache",
    "reclaim",
    "heap",
    "report",
    "api",
)


COMMENT_OF_C = r"/\*.*?\*/|//[^\n]*"
COMMENT_OF_PYTHON = r"#[^\n]*"
TOKEN = re.compile(r"[A-Za-z_]\w*|[0-9][\w.]*|[^\w\s]")


def tokens(folder: str, *suffixes: str) -> int:
    """Names, numbers and signs, comments apart: a size that no layout of lines changes."""
    count = 0
    for path in files(folder, *suffixes):
        comment = COMMENT_OF_PYTHON if path.suffix in {".py", ".sh"} else COMMENT_OF_C
        count += len(TOKEN.findall(re.sub(comment, "", path.read_text(), flags=re.DOTALL)))
    return count


def files(folder: str, *suffixes: str) -> list[Path]:
    found = [
        path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    return [path for path in found if not suffixes or path.suffix in suffixes]


def table(path: str, row: str) -> int:
    return len(re.findall(row, (ROOT / path).read_text(), re.MULTILINE))


def glossary_words() -> int:
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    section = text.partition("\n## Glossary\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!word \|)(.+?) \| \S", section, re.MULTILINE)
    return sum(len(row.split(", ")) for row in rows)


def documentation_words() -> int:
    pages = files("docs", ".md") + files("lab", ".md") + list(ROOT.glob("*.md"))
    return sum(len(path.read_text().split()) for path in pages)


def asks_for_hardened_mode() -> int:
    """Outside hardened/, where the question is answered, and the start of the process."""
    asked = "".join(path.read_text() for path in files("src", *SOURCES) if path.parent.name != "hardened")
    return len(re.findall(r"\boptions\.harden\b", asked))


COUNTED: dict[str, Callable[[], int]] = {
    "tokens of src": lambda: tokens("src", *SOURCES),
    "tokens of the core": lambda: sum(tokens(f"src/{folder}", *SOURCES) for folder in CORE),
    "tokens of fortify and replay": lambda: tokens("fortify", *SOURCES) + tokens("replay", *SOURCES),
    "tokens of python/hakmem": lambda: tokens("python/hakmem", ".py"),
    "tokens of tests": lambda: tokens("tests", ".c", ".h", ".cc", ".py", ".rs", ".sh"),
    "words of documentation": documentation_words,
    "words in the glossary": glossary_words,
    "options": lambda: table("src/config/options.def", r"^OPTION\("),
    "stable counters": lambda: table("src/base/counters.def", r"^(?:COUNTER|TOTAL)\("),
    "options.harden outside hardened": asks_for_hardened_mode,
}


def gates() -> dict[str, int]:
    rows = [
        line.rpartition(" ") for line in GATES.read_text().splitlines() if line and not line.startswith("#")
    ]
    return {name.strip(): int(number) for name, _, number in rows}


def test_each_number_has_a_gate() -> None:
    assert list(gates()) == list(COUNTED)


def complaint(name: str, count: int, gate: int) -> str:
    if count > gate:
        return f"{count} {name}, the gate is {gate}: do it with fewer, or say in the issue what needs more"
    if count < gate - gate // 100:
        return f"{count} {name}: lower the gate from {gate} in {GATES.name}"
    return ""


def test_numbers_only_fall() -> None:
    complaints = [complaint(name, count(), gates()[name]) for name, count in COUNTED.items()]
    assert not any(complaints), "\n".join(filter(None, complaints))


def test_a_number_that_rises_or_falls_is_noticed() -> None:
    assert [bool(complaint("options", count, 200)) for count in (201, 200, 198, 197)] == [1, 0, 0, 1]
