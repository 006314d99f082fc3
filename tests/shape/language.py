"""The words and turns that hakmem does not use, each with the better one: one list for C, Python,
docs and commit subjects.

`tests/shape/language.budget` counts those that stand in the tree; a count may only fall.  To write it:
`python3 tests/shape/language.py > tests/shape/language.budget`."""

import bisect
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUDGET = Path(__file__).with_name("language.budget")
PROSE = (".c", ".h", ".def", ".map", ".py", ".md", ".j2")

SENTENCE = r"(?:^|(?<=[.!?] ))[*_\"(\[]*"
CLAUSE = r"(?:^|(?<=[.!?:] ))[*_\"(\[]*"
QUESTION = r"(?![^.:!\n]*\?)"
ANTECEDENT = "the thread that, the caller that, …"


@dataclass(frozen=True)
class Pattern:
    name: str
    text: str
    better: str
    trees: tuple[str, ...] = ()  # all if empty

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.text, re.MULTILINE)


PATTERNS = [
    # Grammar: the subject is named.
    Pattern(
        "what", rf"{CLAUSE}[Ww]hat [a-z`]{QUESTION}", "name the subject: the bytes that, the call that, …"
    ),
    Pattern("Who", rf"{CLAUSE}[Ww]ho\b{QUESTION}", ANTECEDENT),
    Pattern("whom", r"(?i:\b(for|by|of|to|from|than|with) who(m|ever)?\b)", ANTECEDENT),
    Pattern("who", r"(?i:\bwho\b)", "it, a process, a thread, a user", ("python",)),
    Pattern("nobody", r"(?i:\b(nobody|somebody|whoever)\b)", "no thread, another process, the next user, …"),
    Pattern("Of", rf"{SENTENCE}Of (?!course\b)", "begin with the subject"),
    Pattern(
        "is no",
        r"(?i)(?<!there )(?<!or )\b(is|are) no (?!such\b|more\b|longer\b|\w+er than\b)[a-z]+",
        "is not a, does not, has no",
    ),
    Pattern("in vain", r"(?i)\bin vain\b", "without effect, found nothing"),
    Pattern("is told", r"(?i)\b(is|are) told\b(?! apart)", "is reported, learns, gets"),
    Pattern(
        "so many",
        r"(?i)\bso (many|much)\b(?!( \w+){0,2} (that|as)\b)",
        "the number, or that many, as many as",
    ),
    Pattern(
        "not to be",
        r"(?i)(is|are) not to be (found|had|read)|\bto be had\b|\bnot to be found\b",
        "not found, unavailable",
    ),
    Pattern("what helps", r"(?i)\bwhat helps\b", "to fix"),
    Pattern("the own", r"\b(the own \w|go(es)? home|for no longer)", "the owning, to its slab, drop"),
    Pattern("in all", r"\bin all\b(?=[.,;:)])", "in total"),
    # Words.
    Pattern("call of the system", r"(?i)\bcalls? of the (operating )?system\b", "system call"),
    Pattern("behind", r"(?i)\bbehind\b", "after, past, below"),
    Pattern("at last", r"(?i)\bat last\b", "at the end, finally"),
    Pattern("dear", r"(?i)\bdear(er|est)?\b(?!,)", "expensive"),
    Pattern("his", r"(?i)\b(he|his|him|himself)\b", "it, its: an owner is a heap"),
    Pattern("begin", r"\b(the|its|their|a|\w+'s) begin\b", "start"),
    Pattern("look into", r"(?i)\blook(ed|s)? into\b", "read, examine"),
    # The glossary of docs/ARCHITECTURE.md: names that it has replaced.
    Pattern("nursery", r"(?i)\b(nurser|thrift|must-reuse gate)", "starter heap, purge credit, supply ladder"),
    # Numbers of the mission's targets mean nothing in the code; MISSION.md maps them to files.
    Pattern(
        "target",
        r"(?<![\w$<])(T[1-7]|M[1-6]|L[1-3]|L2\.5|B1|P[1-5]|O[1-4])(?![\w>])",
        "the thing itself",
        ("src",),
    ),
]
TREES = {
    "src": ("src", "fortify", "replay", "walk"),
    "include": ("include",),
    "docs": (".", "docs"),
    "python": ("python",),
    "scripts": ("scripts",),
    "bench": ("bench",),
    "lab": ("lab",),
}


def files(tree: str) -> list[Path]:
    """Decisions are history, and keep their words."""
    found = []
    for folder in TREES[tree]:
        top = ROOT / folder
        found += top.glob("*.md") if folder == "." else top.rglob("*")
    return sorted(
        path for path in found if path.is_file() and "decisions" not in path.parts and _is_prose(path)
    )


def _is_prose(path: Path) -> bool:
    if path.suffix:
        return path.suffix in PROSE
    with path.open("rb") as file:
        return file.read(2) == b"#!"


C_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\])*"(?:\s*"(?:\\.|[^"\\])*")*)|'(?:\\.|[^'\\])+'""",
    re.DOTALL,
)


def _c(source: str) -> Iterator[tuple[int, str]]:
    """Comments, strings, and the lines of code between them."""
    at = 0
    for token in C_TOKEN.finditer(source):
        if not token["comment"] and not token["string"]:
            continue
        yield from _lines(source, at, token.start())
        if token["comment"]:
            text = re.sub(
                r"\n\s*\*(?!/)", "\n", token[0].removeprefix("/*").removeprefix("//").removesuffix("*/")
            )
        else:
            text = re.sub(r'"\s*"', "", token[0]).strip('"')
        for start, paragraph in _paragraphs(text):
            yield source.count("\n", 0, token.start()) + start, paragraph
        at = token.end()
    yield from _lines(source, at, len(source))


def _lines(source: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    first = source.count("\n", 0, start) + 1
    for number, line in enumerate(source[start:end].splitlines(), start=first):
        if line.strip():
            yield number, "\t" + line


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    first, held = 1, []
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            first = first if held else number
            held.append(line.strip())
        elif held:
            yield first, " ".join(held)
            held = []


def _python(source: str) -> Iterator[tuple[int, str]]:
    """Comments and strings, those that follow each other as one, and the names of each line of code."""
    first, kind, held = 1, tokenize.NL, []
    names: list[str] = []
    for token in _tokens(source):
        if held and (token.type != kind or token.line[: token.start[1]].strip()):
            yield from _joined(first, held)
            held = []
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            first = first if held else token.start[0]
            kind = token.type
            held.append(re.sub(r"^#+ ?|^\w*(\"{3}|[\"'])|(\"{3}|[\"'])$", "", token.string))
        elif token.type == tokenize.NAME:
            names.append(token.string)
        elif token.type == tokenize.NEWLINE and names:
            yield token.start[0], "\t" + " ".join(names)
            names = []


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    """Without layout, and an f-string as one string, which newer Pythons cut into parts."""
    lines = source.splitlines(keepends=True)
    opened: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            opened.append(token)
        elif name == "FSTRING_END":
            start = opened.pop()
            if not opened:
                rows = lines[start.start[0] - 1 : token.end[0]]
                rows[-1] = rows[-1][: token.end[1]]
                text = "".join(rows)[start.start[1] :]
                yield tokenize.TokenInfo(tokenize.STRING, text, start.start, token.end, start.line)
        elif not opened and token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            yield token


def _joined(first: int, held: list[str]) -> Iterator[tuple[int, str]]:
    return ((first + start - 1, text) for start, text in _paragraphs("\n".join(held)))


def _shell(source: str) -> Iterator[tuple[int, str]]:
    """Comments, those that follow each other as one, and the lines of code."""
    first, held = 1, []
    for number, line in enumerate([*source.splitlines(), ""], start=1):
        if line.lstrip().startswith("#"):
            first = first if held else number
            held.append(line.strip(" #"))
            continue
        if held:
            yield first, " ".join(held)
            held = []
        code, mark, comment = line.partition(" # ")
        yield number, "\t" + code.strip()
        if mark:
            yield number, comment.strip()


def _markdown(source: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, items, cells of tables; headings, which may begin with "What", and the rest by the line."""
    first, held = 1, []
    fenced = False
    for number, line in enumerate([*source.splitlines(), ""], start=1):
        plain = line.strip()
        item = re.match(r"[-*] |\d+\. ", plain)
        fenced ^= plain.startswith("```")
        alone = fenced or plain.startswith(("#", "|", "```"))
        if held and (alone or item or not plain):
            yield first, " ".join(held)
            held = []
        if plain.startswith("|") and not fenced:
            for cell in plain.strip("|").split("|"):
                yield number, cell.strip()
        elif alone:
            yield number, "\t" + plain
        elif plain:
            first = first if held else number
            held.append(plain[item.end() :] if item else plain)


def _template(source: str) -> Iterator[tuple[int, str]]:
    return ((number, line.strip()) for number, line in enumerate(source.splitlines(), start=1))


@cache
def texts(path: Path) -> list[tuple[int, str]]:
    return list(texts_of(path.suffix, path.read_text()))


def texts_of(suffix: str, source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each comment, string, paragraph; code has a tab before it: it begins no sentence."""
    if suffix in (".c", ".h", ".def", ".map"):
        return _c(source)
    if suffix == ".py" or re.match(r"#!.*python", source):
        return _python(source)
    if suffix == ".md":
        return _markdown(source)
    return _template(source) if suffix == ".j2" else _shell(source)


@dataclass(frozen=True)
class Fault:
    place: str
    pattern: Pattern
    found: str

    def __str__(self) -> str:
        return f"{self.place}: {self.found!r}: say {self.pattern.better}"


def faults_of(text: str, tree: str) -> Iterator[tuple[int, Pattern, str]]:
    """(offset, pattern, what matched), of texts that a newline ends each."""
    for pattern in PATTERNS:
        if not pattern.trees or tree in pattern.trees:
            for match in pattern.compiled.finditer(text):
                yield match.start(), pattern, text[match.start() : text.find("\n", match.end())][:60]


@cache
def faults(tree: str) -> list[Fault]:
    found = []
    for path in files(tree):
        parts = texts(path)
        starts, at = [], 0
        for _, text in parts:
            starts.append(at)
            at += len(text) + 1
        for offset, pattern, match in faults_of("".join(text + "\n" for _, text in parts), tree):
            line = parts[bisect.bisect(starts, offset) - 1][0]
            found.append(Fault(f"{path.relative_to(ROOT)}:{line}", pattern, match))
    return found


def counts(tree: str) -> Counter[str]:
    return Counter(fault.pattern.name for fault in faults(tree))


def budget(tree: str) -> dict[str, int]:
    """Pattern → how many of them the tree may have; 0 if it is not in the file."""
    rows = (line.split(maxsplit=2) for line in BUDGET.read_text().splitlines())
    return {name: int(count) for count, of_tree, name in rows if of_tree == tree}


def complaints(tree: str) -> list[str]:
    """What differs from the budget, with the places where it is more."""
    now, allowed = counts(tree), budget(tree)
    found = []
    for name in sorted(now.keys() | allowed.keys()):
        most = allowed.get(name, 0)
        if now[name] > most:
            found.append(f"{tree}: {name!r}: {now[name]} times, {most} at most:")
            found += [f"  {fault}" for fault in faults(tree) if fault.pattern.name == name]
        elif now[name] < most:
            found.append(f"{tree}: {name!r}: {now[name]} times, fewer than {most}: lower it in {BUDGET.name}")
    return found


if __name__ == "__main__":
    if sys.argv[1:]:  # trees whose places to list
        for name in sys.argv[1:]:
            print(*faults(name), sep="\n")
    else:
        for tree in TREES:
            for name, count in sorted(counts(tree).items()):
                print(f"{count:4} {tree:8} {name}")
