"""The ladders, the kinds of blocks, the reasons to give memory back, and the limits: as in the sources.

Each row's sentence stands in the source beside it: a string of the row, or the comment in front of it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from doc_tables import arguments, table

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
# Packages of the tool; each imports itself and lower ones, from low to high.
ROOMS = "base layout target census profile blocks trace launch doctor views commands".split()
# The bounds that a page lists, by the first name of their declaration.
REFILL = """GLANCES_MAX FRESH_BATCH_BYTES PENDING_BUDGET_SLABS ENDED_PROBES ROUTE_P_PROBES route_p PROBES
SLABS_TO_POPULATE""".split()
FREE = "GROUP_BLOCKS FREE_SLABS_KEPT EMPTY_SLOTS_MAX".split()
RANGES = """CLOSED_AT_ONCE VISIT_EVERY_BYTES STORE_SEEN_MS ROW_BYTES FIT_PROBES AGE_PROBES JOIN_PROBES
GROWTH_DIVISOR UNMAPPED_TRIES CLEARED_BY_PURGE_BYTES MOVE_PAGES_MIN_BYTES ROOMY_MIN_BYTES""".split()
ROUND = """PURGE_LEAST_MS RECLAIM_ROUNDS_PER_DECAY PURGE_STEP_NS PURGE_SLABS_A_STEP PAGE_CALLS_A_SCAN
ALLOWANCE_OWNERS_MAX ROUND_NS SCANS_A_ROUND PAGE_DECAY_MIN_MS""".split()


@cache
def text() -> str:
    """All of src; a declaration is found in whichever file it stands."""
    return "\n".join(path.read_text() for path in sorted(SRC.rglob("*.[ch]")))


def one(pattern: str) -> re.Match[str]:
    found = list(re.finditer(pattern, text(), re.MULTILINE | re.DOTALL))
    assert len(found) == 1, f"{len(found)} of {pattern!r} in src"
    return found[0]


def sentence(comment: str) -> str:
    """A comment's text, in one line."""
    return " ".join(re.sub(r"^/\*|\*/$|\n \*", " ", comment.strip()).split()).removesuffix(".")


def macro(name: str, row: str) -> list[list[str]]:
    """The arguments of each row of a table macro, the comment in front of it first."""
    lines = one(rf"^#define {name}\b.*?[^\\]$")[0].replace("\\\n", "\n")
    found = re.findall(rf"(/\*.*?\*/)?\s*{row}\((.*?)\)\s*$", lines, re.MULTILINE | re.DOTALL)
    return [[sentence(comment), *arguments(inner)] for comment, inner in found]


# ---- ladders and kinds ---------------------------------------------------------------------------------

USERS = {"ALL": "all", "MAGAZINE": "magazines"}


def rungs() -> str:
    rows = [
        (
            f"`{find}`",
            ast.literal_eval(gives),
            USERS[users.removeprefix("FOR_")],
            "yes" if touches == "true" else "no",
            f"`unstable_{counter.removeprefix('COUNT_')}`",
        )
        for _, find, counter, _, users, touches, gives in macro("SUPPLY_LADDER", "RUNG")
    ]
    return table("rung | gives | for | may touch fresh pages | counter of its hits", rows)


def requests() -> str:
    rows = []
    for _, whose, must, _, gives in macro("REQUEST_LADDER", "RUNG"):
        condition = re.sub(r"^UNLIKELY\((.*)\)$", r"\1", whose)
        otherwise = "the request fails" if must == "MUST" else "the next one"
        rows.append((f"`{condition}`" if whose != "true" else "all", ast.literal_eval(gives), otherwise))
    return table("requests | are served from | else", rows)


def kinds() -> str:
    rows = [
        (f"`{kind}`", what, f"`{free}`", f"`{ask}`", f"`{resize}`")
        for what, kind, free, ask, resize in macro("KINDS", "KIND")
    ]
    return table("kind | block | free | ask | realloc in place", rows)


# ---- reasons to give memory back -------------------------------------------------------------------------


def reasons() -> str:
    told = dict(re.findall(r"(RECLAIM_\w+),\s*/\* (.*?) \*/", one(r"^enum reclaim_reason \{.*?\};")[0]))
    rows = re.findall(r"\[(RECLAIM_\w+)\] = \{(\w+), (\w+), (\w+)\}", one(r"\} rows\[RECLAIM.*?^\};")[0])
    assert {name for name, *_ in rows} == set(told)
    by_age = {"true": "old, or too much", "false": "all free"}
    by_bound = {"STEP": "a step", "ROUND": "a round", "ALL": "none"}
    return table(
        "reason | when | memory | bound | addresses",
        [
            (f"`{name}`", told[name], by_age[age], by_bound[bound], {"true": "go", "false": "stay"}[gives])
            for name, age, bound, gives in rows
        ],
    )


# ---- limits ----------------------------------------------------------------------------------------------

UNITS = {"BYTES": ((1 << 20, "MiB"), (1 << 10, "KiB")), "NS": ((10**6, "ms"), (10**3, "µs"))}
COMMENT = r"(?P<comment>/\*(?:(?!\*/).)*\*/)\n"


def value(name: str, expression: str) -> str:
    """The constant, in the unit that its name ends with."""
    number = eval(re.sub(r"\((?:u?int64_t|size_t|int)\)|UINT64_C|\bU?LL?\b", "", expression))  # arithmetic
    unit = name.upper().rpartition("_")[2]
    for size, suffix in UNITS.get(unit, ()):
        if number % size == 0:
            return f"{number // size} {suffix}"
    return f"{number} ms" if unit == "MS" else f"{number:,}"


def limit(name: str) -> tuple[str, str]:
    """The names of a declaration with their values, and the comment in front of it."""
    if name == "route_p":
        # Its fields have their values apart from their comment.
        comment = one(rf"{COMMENT}struct {name} \{{")["comment"]
        pairs = re.findall(r"\.(\w+) = (\w+)", one(rf"^struct {name} {name} = \{{.*?\}};")[0])
    elif defined := re.search(rf"{COMMENT}#define {name} (?P<value>[^\n]+)", text(), re.DOTALL):
        comment, pairs = defined["comment"], [(name, defined["value"])]
    else:
        found = one(rf"{COMMENT}enum \{{\s*{name} = (?P<rest>[^}}]*)\}};")
        comment, pairs = found["comment"], re.findall(r"(\w+) = ([^,]+)", f"{name} = {found['rest']}")
    return ", ".join(f"`{one}` = {value(one, number)}" for one, number in pairs), sentence(comment)


def limits(names: list[str]) -> str:
    return table("limit | of", [limit(name) for name in names])


# ---- sequentially consistent operations; rooms of the tool -----------------------------------------------


def seq_operations() -> str:
    """Objects by name, each with the functions that have such an operation on it."""
    found: dict[str, set[str]] = {}
    function = ""
    for line in text().splitlines():
        if head := re.match(r"[A-Za-z][\w\s*]*?\b(\w+)\(", line):
            function = head[1]
        for name in re.findall(r"\w_seq\((?:&(?:\w+(?:\[\w+\])*(?:->|\.))*)?(\w+)", line):
            found.setdefault(name, set()).add(function)
    del found["object"]  # of the operations' own definitions
    rows = [(f"`{name}`", ", ".join(f"`{one}`" for one in sorted(found[name]))) for name in sorted(found)]
    return table("object | functions with a seq operation on it", rows)


def rooms() -> str:
    rows = []
    for room in ROOMS:
        modules = sorted((ROOT / "python" / "hakmem" / room).glob("*.py"))
        holds = ast.get_docstring(ast.parse(modules[0].read_text())) or ""
        rows.append((f"`{room}`", " ".join(holds.split()), ", ".join(path.stem for path in modules[1:])))
    return table("room | holds | modules", rows)


PARTS = {
    "supply ladder": rungs,
    "request ladder": requests,
    "kinds": kinds,
    "reasons": reasons,
    "limits of a refill": lambda: limits(REFILL),
    "limits of a free": lambda: limits(FREE),
    "limits of ranges": lambda: limits(RANGES),
    "limits of a round": lambda: limits(ROUND),
    "seq operations": seq_operations,
    "rooms": rooms,
}
