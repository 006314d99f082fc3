"""Statements of the pages that can be compared: links, names of files and options, figures, numbers."""

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import doc_options
import doc_performance
import pytest
from results import captured
from shape.sources import ROOT, sources, text_of

PAGES = sorted(
    ROOT / name
    for name in captured(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, check=True
    ).stdout.split()
    if (ROOT / name).exists()
)
# History: names in these pages are those of their time.
HISTORY = {"CHANGELOG.md", "PERFORMANCE.md"}
# Where a page's `folder/file.c` may begin.
BESIDE = re.compile(
    r"`(?P<file>[\w./-]+\.(?:c|h|cc|hpp|py))`,? \((?P<names>(?:`\w+`(?:, | and )?)+)\)"
    r"|(?P<name>`\w+`) (?:of|in) `(?P<its_file>[\w./-]+\.(?:c|h|cc|hpp|py))`"
)
ROOTS = ("", "src", "python", "python/hakmem", "tests", "tests/unit", "bench", "include", "scripts")
README_LINES_MAX = 120
OPTIONS_OF_OTHERS = {
    "HAKMEM_TOOL_DEBUG",
    "HAKMEM_FLAG",
    "HAKMEM_INSTALL",
    "HAKMEM_ASSERTIONS",
}  # the tool's; a placeholder; CMake's

# Linux's, Kubernetes', jemalloc's.
OF_OTHERS = """rt_sigaction rt_sigprocmask sched_getscheduler sched_setaffinity sched_setscheduler
kube_pod_info kube_pod_container_info
abort_conf dirty_decay_ms muzzy_decay_ms percpu_arena prof_leak stats_print tcache_max""".split()

OF_TODAY = [page for page in PAGES if page.name not in HISTORY and page.parent.name != "decisions"]


def on(pages: list[Path], pattern: str) -> list[tuple[Path, str]]:
    """What matches, with its page."""
    found = [(page, name) for page in pages for name in re.findall(pattern, text_of(page))]
    assert found
    return found


def test_links_lead_somewhere() -> None:
    targets = on(PAGES, r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
    assert not [
        (page.name, target)
        for page, target in targets
        if "://" not in target and not (page.parent / target).exists()
    ]


def test_files_that_are_named_exist() -> None:
    roots = [ROOT / root for root in ROOTS]
    named = on(OF_TODAY, r"`([\w./-]+/[\w.-]+\.(?:c|h|def|py|cmake|ld|map|cc))`")
    assert not [
        (page.name, name)
        for page, name in named
        if "NAME" not in name and not any((root / name).exists() for root in (page.parent, *roots))
    ]


@functools.cache
def words_of_files() -> dict[str, set[str]]:
    """File → the words in it, but for pages; TEST(x) of a unit test is test_x."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    step = captured(listed, cwd=ROOT, check=True)
    files = [name for name in step.stdout.split() if not name.endswith(".md") and (ROOT / name).is_file()]
    texts = {name: (ROOT / name).read_text(errors="ignore") for name in files}
    return {
        name: {Path(name).stem, *re.findall(r"\w+", re.sub(r"(?:CHILD_)?TESTS?\((\w+)", r"test_\1", text))}
        for name, text in texts.items()
    }


@functools.cache
def known_names() -> set[str]:
    """All but those that only tests have, and parts of options; names of tests."""
    found, of_tests = set(OF_OTHERS), set()
    for name, words in words_of_files().items():
        (of_tests if name.startswith("tests/") else found).update(words)
    found |= {name for name in of_tests if name.startswith("test_")}
    return found | set(re.findall(r"=(\w+)` \|", (ROOT / "docs/OPTIONS.md").read_text()))


def is_known(name: str) -> bool:
    """A table has a part of the name that Prometheus shows."""
    table = re.sub(
        r"^hakmem_(?:cgroup_|heap_|site_|ranges_|limit_)?|(?:_bytes|_blocks|_ratio)?(?:_total)?$", "", name
    )
    name = name.removeprefix("unstable_")
    return name in known_names() or (name.startswith("hakmem_") and table in known_names())


def test_functions_that_are_named_exist() -> None:
    named = set(on(OF_TODAY, r"`([a-z]\w*_\w+)(?:\(\))?`"))
    named -= {(page, name) for page in OF_TODAY for _, names in beside(text_of(page)) for name in names}
    assert not {(page.name, name) for page, name in named if not is_known(name)}


def beside(text: str) -> Iterator[tuple[str, list[str]]]:
    """Files of a page with the names that are said to be in them."""
    for found in BESIDE.finditer(text):
        yield found["file"] or found["its_file"], re.findall(r"\w+", found["names"] or found["name"])


def test_names_are_in_the_file_that_stands_beside_them() -> None:
    wrong = []
    for file, names in (pair for page in OF_TODAY for pair in beside(text_of(page))):
        texts = [found for path, found in words_of_files().items() if f"/{path}".endswith(f"/{file}")]
        wrong += [(file, name) for name in names if not any(name in text for text in texts)]
    assert not wrong


def test_options_that_are_named_exist() -> None:
    table = (ROOT / "src/config/options.def").read_text()
    known = {f"HAKMEM_{field.upper()}" for field in re.findall(r"^OPTION\(\w+, (\w+)", table, re.MULTILINE)}
    header = set(re.findall(r"\bHAKMEM_\w+", (ROOT / "include/hakmem/hakmem.h").read_text()))
    known |= header | OPTIONS_OF_OTHERS
    named = on(OF_TODAY, r"\bHAKMEM_[A-Z_]+[A-Z]\b")
    assert not {(page.name, name) for page, name in named if name not in known}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX


def test_the_chart_has_the_figures_of_the_campaign(load_script: Callable[[str], ModuleType]) -> None:
    chart = load_script("chart")
    picture = chart.PICTURE.read_text()
    for title, mean in chart.means().items():
        assert chart.heading(title, mean) in picture, "run scripts/chart"
        shown = re.findall(r">(\d+\.\d\d)<", picture)
        assert not mean.of or mean.of["hakmem"] > 0
        assert all(f"{value:.2f}" in shown for value in mean.of.values()), "run scripts/chart"


def test_the_page_of_findings_has_the_figures_of_the_data(load_script: Callable[[str], ModuleType]) -> None:
    """Between its marks all is made from docs/performance; elsewhere stands no figure that was measured."""
    page = (ROOT / "docs" / "PERFORMANCE.md").read_text()
    within = doc_performance.document()
    assert not measured_figures(load_script("docs").MARKED.sub("", page))
    campaign = doc_performance.Campaign.read(doc_performance.MADE_UP)
    assert within.index(campaign.missed()[0][0]) < within.index(
        "Geometric means"
    ), "what is missed stands first"


def test_the_readme_has_the_figures_of_the_data(load_script: Callable[[str], ModuleType]) -> None:
    """What is measured stands in the part that is made from docs/performance, or in output of commands."""
    by_hand = load_script("docs").MARKED.sub("", (ROOT / "README.md").read_text())
    assert not measured_figures(re.sub(r"^```.*?^```$", "", by_hand, flags=re.DOTALL | re.MULTILINE))


def measured_figures(text: str) -> list[str]:
    """Ratios, shares, times and sizes; parts as words, too."""
    ratio = r"(?<![.\d])\d+[.,]\d+\b(?![.\d]| or newer)"
    quantity = r"\b\d[\d.,]* (?:%|[MK]i?B|GiB|[nµm]s|times)"
    part = r"\b(?:third|half|quarter) (?:of|the)"
    return re.findall(f"{ratio}|{quantity}|{part}", re.sub(r"wheel: [\d.]+", "", text))


def test_a_measured_figure_is_found() -> None:
    assert measured_figures("keeps a third of it, 1.18, 14 MiB, 89 % and 166 ns") == [
        "third of", "1.18", "14 MiB", "89 %", "166 ns",
    ]  # fmt: skip
    assert not measured_figures(
        "x86-64 Linux, glibc 2.34 or newer (the wheel: 2.28), mimalloc 3.x, 64 threads"
    )


def test_operators_have_the_options_of_the_first_group() -> None:
    _, first = doc_options.groups()[0]
    page = (ROOT / "docs/OPERATING.md").read_text()
    assert len(first) == 6
    assert set(re.findall(r"^\| `(HAKMEM_\w+)=", page, re.MULTILINE)) == {option.name for option in first}


def test_operators_have_the_lines_of_why() -> None:
    catalogue = pytest.importorskip("hakmem.census.catalogue")
    page = (ROOT / "docs/OPERATING.md").read_text()
    cells = set(re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE))
    own = {line.label for line in catalogue.OWN_LINES}
    assert own
    assert own <= cells


# ---- numbers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fact:
    """A sentence of a page and the line of a source that it tells; their groups are compared in order.
    The page is in docs/ and the source in src/, unless they begin with a slash."""

    page: str
    sentence: str
    source: str
    line: str


WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "eight": 8, "sixteen": 16}

FACTS = (
    Fact("/lab/MISSION.md", r"(\d+) slots at most at first", "cache/capacity.c", r"\bINITIAL_SLOTS = (\d+)"),
    Fact(
        "/lab/MISSION.md",
        r"doubled on the second swing, ([\d,]+) at most",
        "cache/capacity.c",
        r"\bSLOTS_MAX = (\d+)",
    ),
    Fact("SAFETY.md", r"it has (\d+) to [\d,]+ slots", "cache/capacity.c", r"\bINITIAL_SLOTS = (\d+)"),
    Fact("SAFETY.md", r"it has \d+ to ([\d,]+) slots", "cache/capacity.c", r"\bSLOTS_MAX = (\d+)"),
    Fact("SAFETY.md", r"each of a heap's first (\d+) refills", "cache/glance.h", r"\bGLANCES_MAX = (\d+)"),
    Fact("SAFETY.md", r"the (\w+) youngest blocks", "cache/glance.c", r"\bGLANCED_AT = (\d+)"),
    Fact("ARCHITECTURE.md", r"(\d+) slab classes", "map/size_class.h", r"\bSLAB_CLASS_COUNT = (\d+)"),
    Fact("ARCHITECTURE.md", r"(\d+) Large classes", "map/size_class.h", r"\bLARGE_CLASS_COUNT = (\d+)"),
    Fact(
        "/lab/MISSION.md",
        r"so has a (\w+) or (\w+) inside the allocator",
        "os/os_linux_crash.c",
        r"= \{(\w+), (\w+)\}",
    ),
    Fact("SAFETY.md", r"\((\d+) instructions now\)", "/tests/shape/fast_path.golden", r" free \d+ (\d+)"),
    Fact(
        "SAFETY.md", r"instructions of (\d+) in `free`", "/tests/shape/fast_path.golden", r" free \d+ (\d+)"
    ),
    Fact(
        "PROFILING.md",
        r"at most ([\d.]+) instructions more \(aligned_alloc ([\d.]+), operator new ([\d.]+)",
        "/tests/switch/test_cost.py",
        r'"malloc": ([\d.]+).*"aligned": ([\d.]+), "new": ([\d.]+)',
    ),
    Fact("ARCHITECTURE.md", r"tag << (\d+) \| class", "map/window.h", r"MAP_TAG_SHIFT (\d+)"),
    Fact(
        "/lab/MISSION.md",
        r"for lists of (named), parked and (lost) heaps, for one (round) at a time and for the (start) ",
        "os/lock.h",
        r"LOCK_RANK_(NAMED), LOCK_RANK_HEAPS, LOCK_RANK_(LOST), LOCK_RANK_(ROUND), LOCK_RANK_(START) \}",
    ),
    Fact(
        "/README.md",
        r"one exclusive or and (\w+) branches make it `free`'s fast path",
        "/tests/shape/fast_path.golden",
        r" free(?: +\d+){4} +(\d+)",
    ),
)


def values(path: Path, pattern: str) -> list[str]:
    text = " ".join(text_of(path).split())
    found = re.search(pattern, text)
    assert found, f"{path.name} says nothing like {pattern!r} any more: mend or remove the fact"
    return [str(WORDS.get(group, group)).replace(",", "").lower() for group in found.groups()]


def test_numbers_are_those_of_the_sources() -> None:
    said = [(fact, values(place("docs", fact.page), fact.sentence)) for fact in FACTS]
    assert not [fact for fact, told in said if told != values(place("src", fact.source), fact.line)]


def place(folder: str, name: str) -> Path:
    return ROOT / name[1:] if name.startswith("/") else ROOT / folder / name


def test_the_exporter_has_one_port_and_not_that_of_another() -> None:
    """9100 to 9999 are allocated to other exporters, 9100 to node_exporter."""
    texts = [text_of(page) for page in OF_TODAY]
    texts.append((ROOT / "python/hakmem/commands/export.py").read_text())
    ports = {
        port
        for text in texts
        for port in re.findall(r"(?:hakmem export [\d.]*|host-\d\S*?):(\d{4,5})\b", text)
    }
    assert ports == {"19100"}


# What `make test-all` leaves out for its time or its needs, and the command that runs it.
ELSEWHERE = {
    "tests/compilers/": "make test-compilers",
    "tests/fresh/": "make fresh",
    "tests/kernels/": "make test-kernels",
    "tests/musl/": "make test-musl",
    "tests/programs/": "make test-programs",
    "tests/soak/": "make soak",
    "tests/wheels/": "make test-wheels",
    "tests/aarch64/": "make test-aarch64",
}


def test_rows_of_reliability_name_the_command_that_runs_them() -> None:
    text = (ROOT / "docs/RELIABILITY.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for folder, command in ELSEWHERE.items():
        of_it = [row for row in rows if f"`{folder}`" in row]
        assert of_it
        assert any(command in row for row in of_it), folder


def test_sanitizers_check_all_functions_but_the_one_that_is_named() -> None:
    """docs/RELIABILITY.md: "no suppressions"."""
    text = "".join(text_of(path) for path in sources(".c", ".h"))
    assert re.findall(r"no_sanitize.*?\(", text) == ["no_sanitize("]
    assert re.findall(r"^READS_ANY_STACK \w+ (\w+)", text, re.MULTILINE) == ["word_at"]
    assert "(`word_at`)" in (ROOT / "docs/RELIABILITY.md").read_text()


def scripts() -> Iterator[str]:
    for path in sorted((ROOT / "scripts").iterdir()):
        if path.is_file() and path.read_text().startswith("#!/usr/bin/env python3"):
            yield path.name


@pytest.mark.parametrize("name", scripts())
def test_what_scripts_import_exists(name: str, load_script: Callable[[str], ModuleType]) -> None:
    assert load_script(name).__doc__
