"""hakmem::heap and hakmem::heap_resource; the examples about heaps of docs/guides/C.md, as they are there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from packages.test_cxx import compile_only, compiler

__all__ = ["compiler"]

HEAPS = Path(__file__).with_name("heaps.cc")
IN_USE = Path(__file__).with_name("heap_in_use.cc")
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "C.md"
# Uses everything, throws nothing.
WITHOUT_EXCEPTIONS = """
#include <hakmem/hakmem.hpp>
int main() {
  hakmem::heap heap("h");
  hakmem::heap_resource resource(heap), same(heap.get());
  heap.deallocate(heap.allocate(10), 10);
  return resource.is_equal(same) && heap.figures().live_blocks ? 1 : 0;
}
"""
IN_USE_WITHOUT_EXCEPTIONS = """
#include <hakmem/hakmem.hpp>
int main() {
  hakmem::heap heap("h");
  hakmem::heap_in_use use(heap), other(nullptr);
  return 0;
}
"""


@pytest.mark.parametrize("program", [HEAPS, IN_USE], ids=lambda path: path.stem)
@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_it_compiles_without_a_warning(compiler: str, standard: str, program: Path) -> None:
    compile_only(compiler, f"-std={standard}", program)


@pytest.mark.parametrize(
    ("standard", "text"),
    [("c++17", WITHOUT_EXCEPTIONS), ("c++11", IN_USE_WITHOUT_EXCEPTIONS)],
    ids=["heaps", "in use"],
)
def test_it_compiles_without_exceptions_and_type_information(compiler: str, standard: str, text: str) -> None:
    compile_only(compiler, f"-std={standard}", "-fno-exceptions", "-fno-rtti", "-x", "c++", "-", text=text)


@pytest.mark.parametrize(("standard", "library"), [("c++11", "lib"), ("c++20", "static_lib")])
def test_it_does_what_it_says(
    request: pytest.FixtureRequest, compile_c: Callable, plain: Callable, standard: str, library: str
) -> None:
    path: Path = request.getfixturevalue(library)
    program = compile_c(HEAPS, INCLUDE_TESTS, f"-std={standard}", path, f"-Wl,-rpath,{path.parent}")
    ended = plain([program])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "heaps\n", "")
    wrong = plain([program, "wrong size"])
    assert wrong.returncode == 0
    assert re.match(
        r"hakmem: warning: mismatched free of \S+: size argument 1000 does not match the block of 112 bytes;",
        wrong.stderr,
    )


@pytest.mark.parametrize(
    ("language", "suffix", "said"),
    [("c", ".c", "cache: 3072 of 67108864 bytes, 0 refused\n"), ("cpp", ".cc", "")],
)
def test_the_guides_example_runs(
    compile_c: Callable, plain: Callable, lib: Path, tmp_path: Path, language: str, suffix: str, said: str
) -> None:
    section = GUIDE.read_text().partition("\n## Heaps\n")[2].partition("\n## ")[0]
    (example,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    source = tmp_path / f"heaps_of_the_guide{suffix}"
    source.write_text(example)
    ended = plain([compile_c(source, "-Werror", lib, f"-Wl,-rpath,{lib.parent}")])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said, "")
