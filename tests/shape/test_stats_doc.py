"""docs/STATS.md says what counters.def and records.def say, and no figure is without its place."""

import re
from collections.abc import Callable
from dataclasses import fields
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


def test_the_page_is_what_the_table_says(generator: ModuleType) -> None:
    assert generator.DOCUMENT.read_text() == generator.document(), "run scripts/stats-doc"


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
