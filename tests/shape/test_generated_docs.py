"""The pages say what the tables of the sources say, no figure is without its place, and the library's own
help lists the options of the page."""

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import doc_mechanism
import doc_options
import doc_stats
import pytest
from hakmem.census import catalogue
from hakmem.census.figures import MemoryFigures
from hakmem.census.heap_figures import NamedHeapFigures

ROOT = Path(__file__).resolve().parents[2]
COUNTERS = ROOT / "src" / "base" / "counters.def"


def test_every_line_of_the_table_is_understood() -> None:
    text = "\n".join(doc_stats.lines())
    grouped = [figure for _, figures in doc_stats.counters_by_group() for figure in figures]
    assert len(grouped) == len(re.findall(r"^(?:UNSTABLE_)?COUNTER\(", text, re.MULTILINE)) > 40
    assert len(doc_stats.totals()) == len(re.findall(r"^(?:UNSTABLE_)?TOTAL\(", text, re.MULTILINE)) > 10
    assert doc_stats.class_counters()
    assert all(fields for _, fields in doc_stats.records())


def test_pages_say_what_the_sources_say(load_script: Callable[[str], ModuleType]) -> None:
    docs = load_script("docs")
    texts = [page.read_text() for page in docs.pages()]
    stale = [page.name for page, text in zip(docs.pages(), texts, strict=True) if text != docs.written(text)]
    assert not stale, "run scripts/docs"
    assert sorted(found["name"] for text in texts for found in docs.MARKED.finditer(text)) == sorted(
        docs.PARTS
    )


def test_a_part_that_differs_is_found(load_script: Callable[[str], ModuleType]) -> None:
    docs = load_script("docs")
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    assert docs.written(page.replace("`PENDING_BUDGET_SLABS` = 4", "`PENDING_BUDGET_SLABS` = 5")) == page


def test_help_lists_every_option(preload: Callable) -> None:
    names = [option.name for option in doc_options.options()]
    assert len(names) == len(re.findall(r"^OPTION\(", doc_options.TABLE.read_text(), re.MULTILINE)) > 10
    result = preload(["true"], env={"HAKMEM_HELP": "1"}, stats=False)
    assert result.returncode == 0
    assert re.findall(r"HAKMEM_[A-Z_]+", result.stderr) == names


def test_names_carry_their_units() -> None:
    """A quantity's name ends in its unit where it is not a number of things."""
    figures = [*doc_stats.totals(), *doc_stats.class_counters()]
    figures += [figure for _, group in doc_stats.counters_by_group() for figure in group]
    for unit in ("bytes", "ns"):
        assert all(figure.name.endswith(f"_{unit}") for figure in figures if figure.unit == unit)
    assert not [figure for figure in figures if figure.name.endswith("_bytes") and figure.unit != "bytes"]


def test_figures_of_heaps_are_those_of_the_tool() -> None:
    known = {field.name for field in fields(NamedHeapFigures)}
    told = {figure.name for figure in doc_stats.heaps()}
    assert told == known - {"number", "name", "tag", "kind", "thread_id", "serial"}


def test_figures_of_the_catalogue_have_names_of_their_own_and_a_meaning() -> None:
    known = {field.name for field in fields(MemoryFigures)} - {"superslabs_by_fill"}
    assert {figure.key for figure in catalogue.MEMORY} == known
    groups = "MEMORY PROCESS LIMITS CLASSES HEAP_GAUGES HEAP_COUNTERS SITES EXPORTER".split()
    figures = [figure for group in groups for figure in getattr(catalogue, group)]
    assert len({figure.name for figure in figures}) == len(figures)
    assert not [figure.name for figure in figures if not figure.meaning or figure.meaning.endswith(".")]
    assert all(line.meaning and line.advice.endswith(".") for line in catalogue.LINES.values())


# ---- tables of the mechanism --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "row", "read"),
    [
        ("supply.h", "RUNG", "SUPPLY_LADDER"),
        ("allocate.c", "RUNG", "REQUEST_LADDER"),
        ("kinds.h", "KIND", "KINDS"),
    ],
)
def test_each_row_of_a_table_is_read(table: str, row: str, read: str) -> None:
    """All have the same number of arguments; kinds have their sentence in front of them."""
    (path,) = ROOT.glob(f"src/*/{table}")
    rows = doc_mechanism.macro(read, row)
    assert len(rows) == len(re.findall(rf"^ +{row}\(", path.read_text(), re.MULTILINE)) > 5
    assert len({len(cells) for cells in rows}) == 1
    assert all(cells[0] for cells in rows) == (row == "KIND")


def test_each_counter_of_refills_is_a_rungs() -> None:
    """Else what serves refills would be counted in a place of its own again."""
    counted = set(re.findall(r"^UNSTABLE_COUNTER\((refill_\w+),", COUNTERS.read_text(), re.MULTILINE))
    rungs = doc_mechanism.macro("SUPPLY_LADDER", "RUNG")
    assert counted <= {cells[2].removeprefix("COUNT_") for cells in rungs}
