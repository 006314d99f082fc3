"""docs/MEMORY_ORDER.md lists every atomic object, and every operation that orders says what it orders.

Tests read the sources as they are laid out here: a function's head stands at the beginning of a line.
base/atomic.h is what defines the operations, and is left out."""

import re
from dataclasses import dataclass
from pathlib import Path

from shape.sources import ROOT, name_of, sources, text_of

PAGE = ROOT / "docs" / "MEMORY_ORDER.md"
SOURCES = [path for path in sources(".c", ".h") if path.name != "atomic.h"]

# A declaration of an atomic object or of a pointer to atomic objects; pointers with an initialiser are
# local names for something that is declared elsewhere.
DECLARATION = re.compile(
    r"^\s*(?:RARE_DATA |SELDOM_WRITTEN )?(?:static )?(?:CACHE_ALIGNED |_Alignas\(\w+\) )?ATOMIC\([^()]+\)\s*"
    r"(?P<star>\*?)\s*(?P<names>[\w\[\], ]+?)(?P<initialiser>\s*=[^;]*)?;",
    re.MULTILINE,
)
SHOWN = re.compile(r"^\s*SHOWN\([^;]+,\s+(\w+)\);", re.MULTILINE)
ORDERED_USE = re.compile(
    r"\b(?P<operation>load_(?:acquire|seq)|store_(?:release|seq)|exchange_(?:acquire|seq)"
    r"|fetch_\w+_(?:seq|release)|cas_\w+)\((?P<object>[^,()]*)"
)
FUNCTION_HEAD = re.compile(r"^[A-Za-z][\w\s*]*?\b(\w+)\(")
# A comment that says what is ordered uses one of these words.
SAYS_WHAT_IS_ORDERED = re.compile(r"\b(pairs?|acquire|release|seq|before|after\w*|hint|order\w*)\b")
COMMENT_LINES = 4  # how far above a use its comment may end


@dataclass(frozen=True)
class Row:
    """One object of a line of the page's tables: | `object`, … | `file` | prose … |"""

    name: str
    file: str
    prose: str


def rows() -> list[Row]:
    found = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `([\w/.]+)` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    return [Row(name, file, prose) for names, file, prose in found for name in re.findall(r"\w+", names)]


def declared() -> set[tuple[str, str]]:
    found = set()
    for path in SOURCES:
        found |= {(name, name_of(path)) for name in SHOWN.findall(text_of(path))}
        for match in DECLARATION.finditer(text_of(path)):
            if match["star"] and match["initialiser"]:
                continue
            for name in re.sub(r"\[\w*\]", "", match["names"]).split(","):
                found.add((name.strip(), name_of(path)))
    return found


@dataclass(frozen=True)
class Use:
    path: Path
    line: int
    function: str
    operation: str
    field: str  # "" where the object is reached through a local pointer

    def __str__(self) -> str:
        return f"{name_of(self.path)}:{self.line}: {self.operation} in {self.function}"


def ordered_uses(path: Path) -> list[Use]:
    function, found = "", []
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        if head := FUNCTION_HEAD.match(line):
            function = head[1]
        for match in ORDERED_USE.finditer(line):
            named = re.fullmatch(r"&(?:\w+(?:\[\w+\])?(?:->|\.))*(\w+)(?:\[.*)?", match["object"].strip())
            found.append(Use(path, number, function, match["operation"], named[1] if named else ""))
    return found


def comment_near(use: Use) -> str:
    """The comments on the line of the use and on the few lines above it, within the function."""
    lines = text_of(use.path).splitlines()
    first = use.line - 1
    while first > max(0, use.line - 1 - COMMENT_LINES) and lines[first - 1] != "}":
        first -= 1
    near = "\n".join(lines[first : use.line])
    if "*/" in near and near.find("*/") < (near.find("/*") if "/*" in near else len(near)):
        near = "/*" + near  # begins above
    return " ".join(re.findall(r"/\*.*?\*/", near, re.DOTALL))


def is_explained(use: Use, page: list[Row]) -> bool:
    if SAYS_WHAT_IS_ORDERED.search(comment_near(use)):
        return True
    about = [row for row in page if not use.field or row.name == use.field]
    return any(f"`{use.function}`" in row.prose for row in about)


USES = [use for path in SOURCES for use in ordered_uses(path)]


def test_the_sources_are_understood() -> None:
    """Else the other tests would pass for want of anything to look at."""
    assert ("latch", "slab/owner.h") in declared()
    assert ("inline_remote", "slab/record.h") in declared()
    assert {use.operation for use in USES if use.function == "latch_give"} == {"store_release"}
    assert all(use.function for use in USES)


def test_every_atomic_object_is_listed_where_it_is_declared() -> None:
    listed = [(row.name, row.file) for row in rows()]
    assert len(listed) == len(set(listed)), "listed twice"
    assert set(listed) == declared()


def test_names_on_the_page_exist() -> None:
    text = "\n".join(text_of(path) for path in sources(".c", ".h", ".def", ".map"))
    words = set(re.findall(r"\w+", text))
    named = set(re.findall(r"`(\w+)`", PAGE.read_text()))
    assert not named - words


def test_each_use_says_what_it_orders_and_what_it_pairs_with() -> None:
    """By a comment beside it, or by its object's row, which then names the function."""
    page = rows()
    assert not [str(use) for use in USES if not is_explained(use, page)]
