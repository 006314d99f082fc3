"""hakmem/hakmem.hpp: C++11 to C++20, gcc and clang, with and without exceptions, under AddressSanitizer; and
the examples about heaps of docs/guides/C.md, as they are there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from results import captured, one_of_installed

CONTAINERS, HEAPS, IN_USE = (
    Path(__file__).with_name(name) for name in ("containers.cc", "heaps.cc", "heap_in_use.cc")
)
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "C.md"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wold-style-cast", "-Werror"]
# They use everything, and throw nothing.
WITHOUT_EXCEPTIONS = """
#include <hakmem/hakmem.hpp>
#include <vector>
int main() {
  std::vector<int, hakmem::allocator<int>> numbers(10, 1);
  std::pmr::vector<int> others(10, 1, hakmem::resource());
  hakmem::heap heap("h");
  hakmem::heap_resource resource(heap), same(heap.get());
  heap.deallocate(heap.allocate(10), 10);
  if (resource.is_equal(same) && heap.figures().live_blocks) return 1;
  return hakmem::resource()->is_equal(*hakmem::resource()) ? numbers[9] - others[9] : 1;
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
WRONG_SIZE = (
    r"hakmem: warning: mismatched free of \S+: size argument 1000 does not match the block of 112 bytes;"
)
TWO_BLOCKS = "report: 2 blocks\n"


compiler = one_of_installed("g++", "clang++")


def compile_only(compiler: str, *words: str | Path, text: str | None = None) -> None:
    root = Path(__file__).resolve().parents[2]
    command = [compiler, *WARNINGS, f"-I{root / 'include'}", INCLUDE_TESTS, "-fsyntax-only", *map(str, words)]
    step = captured(command, input=text)
    assert step.returncode == 0, step.stderr


@pytest.mark.long("2 seconds of compilation each", keep=1)
@pytest.mark.parametrize("program", [CONTAINERS, HEAPS, IN_USE], ids=lambda path: path.stem)
@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
def test_it_compiles_without_a_warning(compiler: str, standard: str, program: Path) -> None:
    compile_only(compiler, f"-std={standard}", program)


@pytest.mark.parametrize(
    ("standard", "text"),
    [("c++17", WITHOUT_EXCEPTIONS), ("c++11", IN_USE_WITHOUT_EXCEPTIONS)],
    ids=["heaps", "in use"],
)
def test_it_compiles_without_exceptions_and_type_information(compiler: str, standard: str, text: str) -> None:
    compile_only(compiler, f"-std={standard}", "-fno-exceptions", "-fno-rtti", "-x", "c++", "-", text=text)


@pytest.mark.long("3 seconds of compilation each", keep=1)
@pytest.mark.parametrize(("standard", "library"), [("c++11", "lib"), ("c++20", "static_lib")])
@pytest.mark.parametrize(
    ("program", "said"),
    [(CONTAINERS, "containers"), (HEAPS, "heaps"), (IN_USE, "uses")],
    ids=["containers", "heaps", "uses"],
)
def test_it_does_what_it_says(
    request: pytest.FixtureRequest,
    compile_c: Callable,
    plain: Callable,
    program: Path,
    said: str,
    standard: str,
    library: str,
) -> None:
    path: Path = request.getfixturevalue(library)
    built = compile_c(program, INCLUDE_TESTS, f"-std={standard}", path, f"-Wl,-rpath,{path.parent}")
    if (program, standard) == (CONTAINERS, "c++20"):
        said += " and std::pmr"
    for harden in ("0", "1"):
        ended = plain([built], env={"HAKMEM_HARDEN": harden})
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{said}\n", "")
    if program != IN_USE:
        wrong = plain([built, "wrong size"])
        assert wrong.returncode == 0
        assert re.match(WRONG_SIZE, wrong.stderr)


@pytest.mark.long("8 seconds of compilation; without it the same program runs")
def test_it_is_clean_under_the_address_sanitizer(
    compile_c: Callable, plain: Callable, core_lib: Path
) -> None:
    """hakmem under its own names, beside the sanitizer's malloc."""
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = compile_c(CONTAINERS, INCLUDE_TESTS, *flags, core_lib)
    ended = plain([program])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "containers and std::pmr\n", "")


@pytest.mark.long("a second of compilation each", keep=1)
@pytest.mark.parametrize(
    ("section", "language", "said"),
    [
        ("Heaps", "c", "cache: 3072 of 67108864 bytes, 0 refused\n"),
        ("Heaps", "cpp", ""),
        ("Heaps for code that knows of none", "c", TWO_BLOCKS),
        ("Heaps for code that knows of none", "cpp", TWO_BLOCKS),
    ],
)
def test_the_guides_example_runs(
    compile_c: Callable, plain: Callable, lib: Path, tmp_path: Path, section: str, language: str, said: str
) -> None:
    text = GUIDE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (example,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    source = tmp_path / ("of_the_guide.c" if language == "c" else "of_the_guide.cc")
    source.write_text(example)
    ended = plain([compile_c(source, "-Werror", lib, f"-Wl,-rpath,{lib.parent}")])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said, "")
