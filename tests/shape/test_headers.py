"""Each header compiles alone and twice over, with gcc and clang; the public one also as C++ and strict C.

A source that includes its own header first shows with each build that the header needs no other."""

import re
from collections.abc import Iterator

import pytest
from results import captured, one_of_installed
from shape.sources import ROOT, name_of, sources, text_of

PUBLIC = "hakmem/hakmem.h"
INCLUDED_FIRST = {
    first[1]
    for path in sources(".c")
    if (first := re.search(r'^#include ["<](.+)[">]', text_of(path), re.MULTILINE))
}


compiler = one_of_installed("gcc", "clang")


def compile_headers(compiler: str, language: str, standard: str, headers: list[str]) -> str:
    """Returns what the compiler has to say."""
    words = [compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    words += ["-Isrc", "-Iinclude", "-I.", "-fsyntax-only", "-"]
    text = "".join(f'#include "{header}"\n' for header in headers) + "extern int compiled;\n"
    return captured(words, cwd=ROOT, input=text).stderr


def headers() -> Iterator[str]:
    return map(name_of, sources(".h"))


def test_headers_compile_alone(compiler: str) -> None:
    alone = [header for header in headers() if header not in INCLUDED_FIRST]
    assert len(alone) < len(INCLUDED_FIRST)
    said = {header: compile_headers(compiler, "c", "gnu17", [header]) for header in alone}
    assert not {header: text for header, text in said.items() if text}


@pytest.mark.parametrize("library", ["hakmem", "fortify"])
def test_headers_compile_together_and_twice_over(compiler: str, library: str) -> None:
    own = [name for name in headers() if name.startswith("fortify/") == (library == "fortify")]
    assert own
    assert not compile_headers(compiler, "c", "gnu17", own * 2)


@pytest.mark.parametrize(("language", "standard"), [("c", "c11"), ("c", "c17"), ("c++", "c++17")])
def test_public_header_is_portable(compiler: str, language: str, standard: str) -> None:
    assert not compile_headers(compiler, language, standard, [PUBLIC, PUBLIC])
