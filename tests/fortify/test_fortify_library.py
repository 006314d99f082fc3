"""libhakmem-fortify.so: what it shows to the world, what it asks of it, and that it is installed."""

import importlib
import re
import subprocess
from pathlib import Path

import pytest
from shape.sources import ROOT
from shape.test_library import exported_symbols, listed_symbols, output_of

LISTED = listed_symbols(ROOT, "fortify/fortify.map")


def test_exported_symbols_are_those_listed(fortify_lib: Path) -> None:
    assert exported_symbols(fortify_lib) == LISTED


def test_it_calls_none_of_what_it_replaces(fortify_lib: Path) -> None:
    """Neither by name nor because the compiler knew a loop as one: that would be itself."""
    lines = output_of("nm", "-D", "--undefined-only", fortify_lib).splitlines()
    wanted = {name.partition("@")[0]: kind for kind, name in (line.split() for line in lines)}
    assert not set(wanted) & LISTED
    assert {name for name, kind in wanted.items() if kind == "U"} <= {"__errno_location", "malloc"}
    inside = output_of("objdump", "-d", "--no-show-raw-insn", fortify_lib)
    assert not set(re.findall(r"(?:call|jmp) .*<(\w+)>", inside)) & LISTED


def test_it_needs_libc_alone_and_stays(fortify_lib: Path) -> None:
    dynamic = output_of("readelf", "--dynamic", fortify_lib)
    assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) == {"libc.so.6"}
    assert re.search(r"\(FLAGS_1\).*NOW.*NODELETE", dynamic)


def test_it_is_installed_where_the_tool_looks(lib: Path, tmp_path: Path) -> None:
    words = ["cmake", "--install", lib.parent, "--prefix", tmp_path]
    subprocess.run([str(word) for word in words], capture_output=True, check=True)
    (installed,) = tmp_path.rglob("libhakmem-fortify.so")
    (library,) = tmp_path.rglob("libhakmem.so")
    preload = pytest.importorskip("hakmem.launch.preload", reason="without a package index there is no tool")
    beside = importlib.import_module("hakmem.target.library").beside
    assert beside(library, preload.FORTIFY) == installed
