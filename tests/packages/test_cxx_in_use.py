"""hakmem::heap_in_use; the examples about heaps in use of docs/guides/C.md, as they are there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from packages.test_cxx import compile_only, compiler
from packages.test_cxx_heaps import GUIDE

__all__ = ["compiler"]

PROGRAM = Path(__file__).with_name("heap_in_use.cc")
WITHOUT_EXCEPTIONS = """
#include <hakmem/hakmem.hpp>
int main() {
  hakmem::heap heap("h");
  hakmem::heap_in_use use(heap), other(nullptr);
  return 0;
}
"""


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_it_compiles_without_a_warning(compiler: str, standard: str) -> None:
    compile_only(compiler, f"-std={standard}", PROGRAM)


def test_it_compiles_without_exceptions_and_type_information(compiler: str) -> None:
    compile_only(
        compiler, "-std=c++11", "-fno-exceptions", "-fno-rtti", "-x", "c++", "-", text=WITHOUT_EXCEPTIONS
    )


@pytest.mark.parametrize(("standard", "library"), [("c++11", "lib"), ("c++20", "static_lib")])
def test_it_does_what_it_says(
    request: pytest.FixtureRequest, compile_c: Callable, plain: Callable, standard: str, library: str
) -> None:
    path: Path = request.getfixturevalue(library)
    program = compile_c(PROGRAM, f"-std={standard}", path, f"-Wl,-rpath,{path.parent}")
    for harden in ("0", "1"):
        ended = plain([program], env={"HAKMEM_HARDEN": harden})
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "uses\n", "")


@pytest.mark.parametrize(("language", "suffix"), [("c", ".c"), ("cpp", ".cc")])
def test_the_guides_example_runs(
    compile_c: Callable, plain: Callable, lib: Path, tmp_path: Path, language: str, suffix: str
) -> None:
    section = GUIDE.read_text().partition("\n## Heaps for code that knows of none\n")[2].partition("\n## ")[0]
    (example,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    source = tmp_path / f"heap_in_use_of_the_guide{suffix}"
    source.write_text(example)
    ended = plain([compile_c(source, "-Werror", lib, f"-Wl,-rpath,{lib.parent}")])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "report: 2 blocks\n", "")
