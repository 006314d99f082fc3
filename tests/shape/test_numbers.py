"""The numbers that only fall: how large hakmem is, counted in this tree and compared with numbers.txt.

A number above its gate fails, and so does one more than a hundredth below it: then the gate goes down."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GATES = Path(__file__).with_name("numbers.txt")
SOURCES = (".c", ".h", ".def")
COLUMNS = 100
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


NOT_CODE_OF_C = r"/\*.*?\*/|//[^\n]*|\\\n"  # comments, and the ends of a macro's lines
NOT_CODE_OF_PYTHON = r"#[^\n]*"
TOKEN = re.compile(r"[A-Za-z_]\w*|[0-9][\w.]*|[^\w\s]")


@cache
def code(path: Path) -> str:
    """Without comments."""
    is_python = path.suffix in {".py", ".sh"}
    return re.sub(NOT_CODE_OF_PYTHON if is_python else NOT_CODE_OF_C, "", path.read_text(), flags=re.DOTALL)


def files(folder: str, *suffixes: str) -> list[Path]:
    found = [
        path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    return [path for path in found if not suffixes or path.suffix in suffixes]


def tokens(folder: str, *suffixes: str) -> int:
    """Names, numbers and signs: a size that no layout of lines changes."""
    return sum(len(TOKEN.findall(code(path))) for path in files(folder, *suffixes))


def long_lines() -> int:
    """Of C; tables (.def) and rows of macros have longer ones."""
    paths = [
        path
        for folder in ("src", "include", "fortify", "replay", "walk")
        for path in files(folder, ".c", ".h", ".hpp")
    ]
    lines = [line for path in paths for line in path.read_text().splitlines()]
    return sum(len(line) > COLUMNS and not line.endswith("\\") for line in lines)


def table(path: str, row: str) -> int:
    return len(re.findall(row, (ROOT / path).read_text(), re.MULTILINE))


def documentation_words() -> int:
    """As written by hand: tables that the sources print are counted there."""
    pages = files("docs", ".md") + files("lab", ".md") + list(ROOT.glob("*.md"))
    printed = re.compile(r"written by scripts/docs -->.*?<!-- end -->", re.DOTALL)
    return sum(len(printed.sub("", path.read_text()).split()) for path in pages)


# ---- ideas: the things that a reader has to know --------------------------------------------------------


def by_file(pattern: str, outside: str = "") -> dict[Path, list[str]]:
    """Each place in the code of src, but for one folder."""
    of_src = [path for path in files("src", *SOURCES) if path.parent.name != outside]
    found = {path: re.findall(pattern, code(path), re.MULTILINE) for path in of_src}
    return {path: places for path, places in found.items() if places}


def in_src(pattern: str, outside: str = "") -> list[str]:
    return [place for places in by_file(pattern, outside).values() for place in places]


def glossary_words() -> int:
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    section = text.partition("\n## Glossary\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!word \|)(.+?) \| \S", section, re.MULTILINE)
    return sum(len(row.split(", ")) for row in rows)


# What sends a thread out of its fast paths: a poke, a call, a wait, a trace, arming, packing, passes.
ATTENTION = (
    r"\b(?:bool|enum attention) ((?:heap|magazine|tracing|sampler|sampling|divert|profile|steps|reclaim)_"
    r"(?:attention|pass|begin|are_due|is_(?:wanted|armed|armed_by|packing|plain|due)"
    r"|may_be_armed_by|pops_passed|wants_\w+))\("
)


def attention_uses() -> int:
    names = "|".join(in_src(ATTENTION)) or "none"
    return len(in_src(rf"\b(?:{names})\("))


# How much free memory stays, and when it goes: files of the memory policy.
POLICY = {"allowance", "steps", "due", "reclaim", "purge", "purge_credit", "limits"}


def policy_constants() -> int:
    found = by_file(r"\b[A-Z][A-Z0-9_]+ = [\w(]|^#define [A-Z]\w+ \S")
    return sum(len(places) for path, places in found.items() if path.stem in POLICY)


def atomics() -> list[str]:
    """The files of all, from the page that test_memory_order.py compares with the declarations."""
    page = (ROOT / "docs/MEMORY_ORDER.md").read_text()
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `(\w+/[\w.]+)` \|", page, re.MULTILINE)
    return [file for names, file in rows for _ in names.split(", ")]


def locks() -> int:
    """Objects of that type, and words (os/lock.h) that threads take without one."""
    objects = in_src(r"^\s*(?:static )?(?:CACHE_ALIGNED )?struct lock \w+(?: =|;)")
    return len(objects) + len(set(in_src(r"word_try\(&(?:\w+(?:->|\.))*(\w+)")) - {"word"})


# options.harden, the window's class, an owner's or an entry's bit.
HARDENED = r"\boptions\.harden\b|\bwindow\.hardened_bit\b|\bowner_is_hardened\b|\bMAP_HARDENED\b"

COUNTED: dict[str, Callable[[], int]] = {
    "tokens of src": lambda: tokens("src", *SOURCES),
    "tokens of the core": lambda: sum(tokens(f"src/{folder}", *SOURCES) for folder in CORE),
    "tokens of fortify and replay": lambda: tokens("fortify", *SOURCES) + tokens("replay", *SOURCES),
    "tokens of walk": lambda: tokens("walk", *SOURCES),
    "tokens of python/hakmem": lambda: tokens("python/hakmem", ".py"),
    "tokens of tests": lambda: tokens("tests", ".c", ".h", ".cc", ".py", ".rs", ".sh"),
    "lines above 100 columns": long_lines,
    "words of documentation": documentation_words,
    "stable counters": lambda: table("src/base/counters.def", r"^(?:COUNTER|TOTAL)\("),
    "ideas: words in the glossary": glossary_words,
    "ideas: options": lambda: table("src/config/options.def", r"^OPTION\("),
    "ideas: kinds of blocks": lambda: table("src/heap/kinds.h", r"^ +KIND\("),
    "ideas: predicates of a heap's attention": lambda: len(set(in_src(ATTENTION))),
    "ideas: uses of these predicates": attention_uses,
    "ideas: atomic objects": lambda: len(atomics()),
    "ideas: atomic objects of the memory policy": lambda: sum(
        Path(file).stem in POLICY for file in atomics()
    ),
    "ideas: constants of the memory policy": policy_constants,
    "ideas: slab allocators": lambda: len(by_file(r"= acquire_slab\(|\bATOMIC\(uint64_t\) in_use\[")),
    "ideas: protocols of guarded pages": lambda: len(by_file(r"\bos_open_pages\(", outside="os")),
    "ideas: questions for hardened mode outside hardened": lambda: len(in_src(HARDENED, outside="hardened")),
    "ideas: locks": locks,
    "ideas: decision records in force": lambda: table(
        "docs/decisions/README.md", r"^\* \[\d{4}\](?!.*\(replaced by)"
    ),
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
