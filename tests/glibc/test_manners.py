"""What programs know glibc's malloc by beside malloc and free: answers, figures, texts, errors, in all modes.

The behaviour is that of glibc 2.36, and of newer ones where these differ; its own tests look for it."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from modes import assert_silent
from results import Run

HERE = Path(__file__).resolve().parent
MODES = ("preload", "static", "preload-debug")
OPTIONS = {
    "default": {},
    "hardened": {"HAKMEM_HARDEN": "1"},
    "hardened-2": {"HAKMEM_HARDEN": "2"},
    "guarded": {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"},
}
IN_ALL = ["mallopt_answers", "natural_alignment", "realloc_stays"]
# A hardened or guarded block is as large as was asked for, so a smaller one moves; and it waits once freed.
IN_DEFAULT = ["mallopt_keeps", "memalign_reuses", "shrink_stays"]
ENVIRONMENT = {"mallopt_keeps": {"HAKMEM_DECAY_MS": "40"}}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", IN_ALL)
def test_program(name: str, mode: str, options: str, run_program: Run) -> None:
    assert_silent(run_program(HERE / f"{name}.c", mode, env=OPTIONS[options], stats=False))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", IN_DEFAULT)
def test_program_by_default(name: str, mode: str, run_program: Run) -> None:
    assert_silent(run_program(HERE / f"{name}.c", mode, env=ENVIRONMENT.get(name), stats=False))


def number(parent: ElementTree.Element, path: str, attribute: str = "size") -> int:
    element = parent.find(path)
    assert element is not None, path
    return int(element.attrib[attribute])


def check_heap(heap: ElementTree.Element) -> None:
    """A <heap>, or the totals of all: what glibc's parsers look for, and that it adds up."""
    fast, rest = number(heap, "total[@type='fast']"), number(heap, "total[@type='rest']")
    current, most = number(heap, "system[@type='current']"), number(heap, "system[@type='max']")
    assert current <= most
    assert fast + rest <= current
    assert number(heap, "total[@type='rest']", "count") >= 0
    assert number(heap, "aspace[@type='total']") > 0
    assert number(heap, "aspace[@type='mprotect']") > 0


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_malloc_info(mode: str, options: str, run_program: Run) -> None:
    result = run_program(HERE / "info_text.c", mode, env=OPTIONS[options], stats=False)
    assert (result.returncode, result.stderr) == (0, "")
    during, after = (ElementTree.fromstring(text) for text in result.stdout.split("<!-- freed -->"))
    for document in (during, after):
        assert (document.tag, document.attrib) == ("malloc", {"version": "1"})
        heaps = document.findall("heap")
        assert [heap.attrib["nr"] for heap in heaps] == [str(nr) for nr in range(len(heaps))]
        for heap in heaps:
            check_heap(heap)
            for size in heap.findall("sizes/*"):
                figures = {name: int(value) for name, value in size.attrib.items()}
                assert figures.keys() == {"from", "to", "total", "count"}
                assert figures["from"] <= figures["to"]
                assert figures["count"] > 0
                least, most = (figures[bound] * figures["count"] for bound in ("from", "to"))
                assert least <= figures["total"] <= most
        check_heap(document)
        assert bool(number(document, "total[@type='mmap']", "count")) == (options == "guarded")
    live = [
        number(document, "system[@type='current']")
        - number(document, "total[@type='fast']")
        - number(document, "total[@type='rest']")
        for document in (during, after)
    ]
    assert live[0] - live[1] >= 4 * 20000 * 40


STATS = r"""Arena 0:
system bytes     = +(\d+)
in use bytes     = +(\d+)
Total \(incl\. mmap\):
system bytes     = +(\d+)
in use bytes     = +(\d+)
max mmap regions = +(\d+)
max mmap bytes   = +(\d+)
hakmem .*"""


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_malloc_stats(mode: str, options: str, run_program: Run) -> None:
    result = run_program(HERE / "stats_text.c", mode, env=OPTIONS[options], stats=False)
    assert (result.returncode, result.stdout) == (0, "")
    match = re.fullmatch(STATS, result.stderr, re.S)
    assert match, result.stderr
    system, in_use, all_system, all_in_use, regions, bytes_mapped = map(int, match.groups())
    is_guarded = options == "guarded"  # the small block is mapped, too
    assert 1000 * (not is_guarded) <= in_use <= system
    assert 5 << 20 <= all_in_use <= in_use + (6 << 20)
    assert all_in_use <= all_system
    assert regions == 2 + is_guarded
    assert 8 << 20 <= bytes_mapped <= 9 << 20
