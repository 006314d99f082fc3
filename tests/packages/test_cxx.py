"""hakmem/hakmem.hpp: C++11 to C++20, gcc and clang, with and without exceptions, under AddressSanitizer."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from results import captured, one_of_installed

CONTAINERS = Path(__file__).with_name("containers.cc")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wold-style-cast", "-Werror"]
# Uses everything, throws nothing.
WITHOUT_EXCEPTIONS = """
#include <hakmem/hakmem.hpp>
#include <vector>
int main() {
  std::vector<int, hakmem::allocator<int>> numbers(10, 1);
  std::pmr::vector<int> others(10, 1, hakmem::resource());
  return hakmem::resource()->is_equal(*hakmem::resource()) ? numbers[9] - others[9] : 1;
}
"""


compiler = one_of_installed("g++", "clang++")


def compile_only(compiler: str, *words: str | Path, text: str | None = None) -> None:
    root = Path(__file__).resolve().parents[2]
    command = [compiler, *WARNINGS, f"-I{root / 'include'}", INCLUDE_TESTS, "-fsyntax-only", *map(str, words)]
    step = captured(command, input=text)
    assert step.returncode == 0, step.stderr


@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
def test_it_compiles_without_a_warning(compiler: str, standard: str) -> None:
    compile_only(compiler, f"-std={standard}", CONTAINERS)


def test_it_compiles_without_exceptions_and_type_information(compiler: str) -> None:
    options = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-x", "c++", "-"]
    compile_only(compiler, *options, text=WITHOUT_EXCEPTIONS)


@pytest.mark.parametrize(
    ("standard", "library", "said"),
    [("c++11", "lib", "containers\n"), ("c++20", "static_lib", "containers and std::pmr\n")],
)
def test_it_does_what_it_says(
    request: pytest.FixtureRequest,
    compile_c: Callable,
    plain: Callable,
    standard: str,
    library: str,
    said: str,
) -> None:
    path: Path = request.getfixturevalue(library)
    program = compile_c(CONTAINERS, INCLUDE_TESTS, f"-std={standard}", path, f"-Wl,-rpath,{path.parent}")
    ended = plain([program])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said, "")
    wrong = plain([program, "wrong size"])
    assert wrong.returncode == 0
    assert re.match(
        r"hakmem: warning: mismatched free of \S+: size argument 1000 does not match the block of 112 bytes;",
        wrong.stderr,
    )


def test_it_is_clean_under_the_address_sanitizer(
    compile_c: Callable, plain: Callable, core_lib: Path
) -> None:
    """hakmem under its own names, beside the sanitizer's malloc."""
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = compile_c(CONTAINERS, INCLUDE_TESTS, *flags, core_lib)
    ended = plain([program])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "containers and std::pmr\n", "")
