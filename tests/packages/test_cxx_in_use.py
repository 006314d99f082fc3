"""hakmem::heap_in_use, and the examples of docs/guides/C.md; that it compiles: test_cxx_heaps.py."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from packages.test_cxx_heaps import GUIDE, IN_USE


@pytest.mark.parametrize(("standard", "library"), [("c++11", "lib"), ("c++20", "static_lib")])
def test_it_does_what_it_says(
    request: pytest.FixtureRequest, compile_c: Callable, plain: Callable, standard: str, library: str
) -> None:
    path: Path = request.getfixturevalue(library)
    program = compile_c(IN_USE, f"-std={standard}", path, f"-Wl,-rpath,{path.parent}")
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
