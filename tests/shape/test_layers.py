"""A folder of src/ is a layer, fortify/ the highest: a file includes its own folder and lower ones only."""

import re
from pathlib import Path

from results import captured
from shape.sources import SRC, layer_of, name_of, sources, text_of

LAYERS = """
    base os stack report config map purge pool slab profile ranges guard foreign hardened cache named reclaim
    checked heap observe api jemalloc fortify
""".split()  # low to high
# The public header is the top: it may be known where the public functions and their report are made.
PUBLIC_HEADER_LAYERS = ("observe", "api", "jemalloc")

SOURCES = sources(".c", ".h", ".def")
NAMES = {name_of(path) for path in SOURCES}


def quoted_includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', text_of(path), re.MULTILINE)


def fault(layer: str, included: str) -> str | None:
    """Why a file of `layer` may not include `included`; None when it may."""
    if included == "hakmem/hakmem.h":
        return None if layer in PUBLIC_HEADER_LAYERS else "the public header is above this layer"
    if included not in NAMES:
        return "includes are written from src/, as in base/bits.h"
    if LAYERS.index(included.split("/")[0]) > LAYERS.index(layer):
        return "that layer is above this one"
    return None


def test_every_folder_is_a_layer() -> None:
    assert {path.name for path in SRC.iterdir()} | {"fortify"} == set(LAYERS)


def test_includes_go_down() -> None:
    included = [(path, name) for path in SOURCES for name in quoted_includes(path)]
    assert len(included) > len(SOURCES)
    faults = {(name_of(path), name): fault(layer_of(path), name) for path, name in included}
    assert not {pair: why for pair, why in faults.items() if why}


def test_functions_are_called_downwards(lib: Path) -> None:
    """By one's own declaration, too; foreign/operators.c compares addresses of C++'s operators."""
    folder = lib.parent / "CMakeFiles/hakmem_objects.dir/src"
    objects = [folder / f"{name}.o" for name in NAMES if name.endswith(".c") and "operators" not in name]
    words = ["nm", "--print-file-name", *(path for path in objects if path.exists())]
    listed = captured(words, check=True).stdout
    rows = re.findall(r"/src/(\w+)/\S+:[ \w]* ([A-Zw]) (\S+)$", listed, re.MULTILINE)
    defined = {name: LAYERS.index(layer) for layer, kind, name in rows if kind not in "Uw"}
    assert "heap_free_slow" in defined
    called = {(layer, name) for layer, kind, name in rows if kind in "Uw" and name in defined}
    assert not [call for call in called if defined[call[1]] > LAYERS.index(call[0])]


def unit_of(name: str) -> str:
    """A source and its header are one unit."""
    return name.rsplit(".", 1)[0]


def units() -> dict[str, set[str]]:
    """What each unit includes, itself left out."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        unit = unit_of(name_of(path))
        included = {unit_of(name) for name in quoted_includes(path) if name in NAMES}
        found.setdefault(unit, set()).update(included - {unit})
    return found


def cycles() -> set[frozenset[str]]:
    """Units that include each other, directly or by others: those that each can be reached from the other."""
    graph = units()

    def reached_from(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = list(graph[start])
        while ahead:
            unit = ahead.pop()
            if unit not in seen:
                seen.add(unit)
                ahead += graph[unit]
        return seen

    reach = {unit: reached_from(unit) for unit in graph}
    return {
        frozenset(other for other in reach[unit] if unit in reach[other])
        for unit in graph
        if unit in reach[unit]
    }


def test_no_files_include_each_other_in_a_circle() -> None:
    assert not cycles()
