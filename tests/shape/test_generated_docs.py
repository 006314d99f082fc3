"""docs/STATS.md says what counters.def and records.def say, and no figure is without its place;
docs/OPTIONS.md what options.def says, and the library's own help lists the same options."""

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest
from hakmem.census import catalogue
from hakmem.census.figures import MemoryFigures
from hakmem.census.heap_figures import NamedHeapFigures


@pytest.fixture(scope="module")
def generator(load_script: Callable[[str], ModuleType]) -> ModuleType:
    return load_script("stats-doc")


def test_every_line_of_the_table_is_understood(generator: ModuleType) -> None:
    text = "\n".join(generator.lines())
    grouped = [figure for _, figures in generator.counters_by_group() for figure in figures]
    assert len(grouped) == len(re.findall(r"^(?:UNSTABLE_)?COUNTER\(", text, re.MULTILINE)) > 40
    assert len(generator.totals()) == len(re.findall(r"^(?:UNSTABLE_)?TOTAL\(", text, re.MULTILINE)) > 10
    assert generator.class_counters()
    assert all(fields for _, fields in generator.records())


@pytest.mark.parametrize("name", ["stats-doc", "options-doc"])
def test_the_page_is_what_the_table_says(name: str, load_script: Callable[[str], ModuleType]) -> None:
    made = load_script(name)
    assert made.DOCUMENT.read_text() == made.document(), f"run scripts/{name}"


def test_help_lists_every_option(load_script: Callable[[str], ModuleType], preload: Callable) -> None:
    made = load_script("options-doc")
    names = [option.name for option in made.options()]
    assert len(names) == len(re.findall(r"^OPTION\(", made.TABLE.read_text(), re.MULTILINE)) > 10
    result = preload(["true"], env={"HAKMEM_HELP": "1"}, stats=False)
    assert result.returncode == 0
    assert re.findall(r"HAKMEM_[A-Z_]+", result.stderr) == names


def test_names_carry_their_units(generator: ModuleType) -> None:
    """A quantity's name ends in its unit where it is not a number of things."""
    figures = [*generator.totals(), *generator.class_counters()]
    figures += [figure for _, group in generator.counters_by_group() for figure in group]
    for unit in ("bytes", "ns"):
        assert all(figure.name.endswith(f"_{unit}") for figure in figures if figure.unit == unit)
    assert not [figure for figure in figures if figure.name.endswith("_bytes") and figure.unit != "bytes"]


def test_figures_of_heaps_are_those_of_the_tool(generator: ModuleType) -> None:
    known = {field.name for field in fields(NamedHeapFigures)}
    told = {figure.name for figure in generator.heaps()}
    assert told == known - {"number", "name", "tag", "kind", "thread_id", "serial"}


def test_figures_of_the_catalogue_have_names_of_their_own_and_a_meaning() -> None:
    known = {field.name for field in fields(MemoryFigures)} - {"superslabs_by_fill"}
    assert {figure.key for figure in catalogue.MEMORY} == known
    groups = "MEMORY PROCESS LIMITS CLASSES HEAP_GAUGES HEAP_COUNTERS SITES EXPORTER".split()
    figures = [figure for group in groups for figure in getattr(catalogue, group)]
    assert len({figure.name for figure in figures}) == len(figures)
    assert not [figure.name for figure in figures if not figure.meaning or figure.meaning.endswith(".")]
    assert all(line.meaning and line.advice.endswith(".") for line in catalogue.LINES.values())


# ---- the supply ladder, as docs/ARCHITECTURE.md has it ---------------------------------------------------


ROOT = Path(__file__).resolve().parents[2]
COUNTERS = ROOT / "src" / "base" / "counters.def"


def rungs() -> list[tuple[str, str]]:
    """Name and counter of each."""
    text = (ROOT / "src" / "cache" / "supply.h").read_text()
    return re.findall(r"^ *RUNG\((\w+), (\w+), ", text, re.MULTILINE)


def test_the_page_names_the_rungs_in_order() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    sentence = re.search(r"\*\*The supply ladder\*\*.*?Its rungs: (.*?)\. ", page, re.DOTALL)
    assert sentence
    assert re.findall(r"`(\w+)`", sentence[1]) == [name for name, _ in rungs()]


def test_each_counter_of_refills_is_a_rungs() -> None:
    """Else what serves refills would be counted in a place of its own again."""
    counted = set(re.findall(r"^UNSTABLE_COUNTER\((refill_\w+),", COUNTERS.read_text(), re.MULTILINE))
    assert counted <= {counter for _, counter in rungs()}
