"""A package of python/hakmem is a room: a module imports its own room and lower ones only, and no import
leads back to where it came from."""

import ast
import functools
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from doc_mechanism import ROOMS

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "hakmem"
TOP = {"__init__", "__main__", "cli", "entry"}  # may import every room
LINES_MAX = 400

MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@functools.cache
def imported(module: str) -> frozenset[str]:
    return frozenset(imports_of(MODULES[module]))


def imports_of(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports, at its head, for types only, or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("hakmem."))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hakmem"):
            assert node.level == 0
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in inner)


def room_of(module: str) -> str:
    """The package below hakmem; "" for the modules at the top."""
    parts = module.split(".")
    return parts[1] if len(parts) > 2 or parts[-1] in ROOMS else ""


def fault(room: str, other: str) -> str | None:
    """Why a module of `room` may not import one of `other`; None when it may."""
    if not room:
        return None
    if not other:
        return "that module is above all rooms"
    return "that room is above this one" if ROOMS.index(other) > ROOMS.index(room) else None


def test_every_module_is_in_a_room() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(ROOMS)
    assert {path.stem for path in PACKAGE.glob("*.py")} == TOP
    assert all((PACKAGE / room / "__init__.py").exists() for room in ROOMS)


def test_imports_go_down() -> None:
    pairs = [(module, name) for module in MODULES for name in imported(module) if name != "hakmem"]
    assert len(pairs) > len(MODULES)
    faults = {pair: fault(*(room_of(name) for name in pair)) for pair in pairs}
    assert not {pair: why for pair, why in faults.items() if why}


def test_no_import_leads_back() -> None:
    graph = {module: imported(module) - {module, "hakmem"} for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_files_are_short() -> None:
    lines = {module: len(path.read_text().splitlines()) for module, path in MODULES.items()}
    assert not {module: count for module, count in lines.items() if count > LINES_MAX}
