"""Each header compiles alone, twice over, with gcc and clang; the public one also as C++ and strict C."""

import pytest
from results import captured, one_of_installed
from shape.sources import ROOT, name_of, sources

HEADERS = [name_of(path) for path in sources(".h")]
PUBLIC = "hakmem/hakmem.h"


compiler = one_of_installed("gcc", "clang")


def compile_alone(compiler: str, language: str, standard: str, header: str) -> None:
    words = [compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    words += ["-Isrc", "-Iinclude", "-I.", "-fsyntax-only", "-"]
    text = f'#include "{header}"\n' * 2 + "extern int compiled;\n"
    step = captured(words, cwd=ROOT, input=text)
    assert step.returncode == 0, step.stderr


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_header_compiles_alone(compiler: str, header: str) -> None:
    compile_alone(compiler, "c", "gnu17", header)


@pytest.mark.parametrize(("language", "standard"), [("c", "c11"), ("c", "c17"), ("c++", "c++17")])
def test_public_header_is_portable(compiler: str, language: str, standard: str) -> None:
    compile_alone(compiler, language, standard, PUBLIC)
