"""Code that belongs in one folder stays there: compiler-specific code in base/, the system in os/.

Tests read the code without comments and string literals."""

import functools
import re
from pathlib import Path

import pytest
from shape.sources import layer_of, name_of, sources, text_of

SOURCES = sources(".c", ".h")

COMPILER_SPECIFIC = re.compile(
    r"\b(__builtin_\w+|__attribute__|__asm__|asm|_Atomic|stdatomic|__thread|_Thread_local)\b"
)

# Standard headers that neither call the system nor need it.
PLAIN_HEADERS = {"errno.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"}
# Allowed to a layer beyond those: base/ wraps the atomics, api/ and fortify/ need the declarations of
# what they replace; fortify/, a library of its own, has no os/ below it and finds what it replaces itself.
REPLACED_BY_FORTIFY = {"stdio.h", "stdlib.h", "strings.h", "sys/socket.h", "unistd.h", "wchar.h"}
ALSO_ALLOWED = {
    "base": {"stdatomic.h"},
    "api": {"malloc.h", "stdio.h", "stdlib.h"},
    "fortify": {"dlfcn.h", *REPLACED_BY_FORTIFY},
}


@functools.cache
def code_of(path: Path) -> str:
    """The text without comments and string literals; line numbers stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda found: "\n" * found[0].count("\n"), text_of(path))


def numbered(pattern: re.Pattern[str], code: str) -> list[str]:
    lines = enumerate(code.splitlines(), start=1)
    return [f"line {number}: {line.strip()}" for number, line in lines if pattern.search(line)]


def outside(layer: str) -> list[Path]:
    return [path for path in SOURCES if layer_of(path) != layer]


def test_compiler_specific_code_is_in_base() -> None:
    found = {name_of(path): numbered(COMPILER_SPECIFIC, code_of(path)) for path in outside("base")}
    assert not {name: lines for name, lines in found.items() if lines}


def test_system_headers_are_in_os() -> None:
    found = {}
    for path in outside("os"):
        included = set(re.findall(r"^\s*#\s*include\s+<([^>]+)>", code_of(path), re.MULTILINE))
        found[name_of(path)] = included - PLAIN_HEADERS - ALSO_ALLOWED.get(layer_of(path), set())
    assert not {name: headers for name, headers in found.items() if headers}


@pytest.mark.parametrize("layer", ["heap", "api"])
def test_no_conditional_compilation_inside_functions(layer: str) -> None:
    """The layers of the fast paths: every build runs the code as a reader sees it."""
    paths = [path for path in SOURCES if layer_of(path) == layer]
    assert paths
    assert not [fault for path in paths for fault in conditionals_inside_functions(path)]


def conditionals_inside_functions(path: Path) -> list[str]:
    depth, found = 0, []
    for number, line in enumerate(code_of(path).splitlines(), start=1):
        if depth and re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else)\b", line):
            found.append(f"{name_of(path)}:{number}: {line.strip()}")
        if not line.lstrip().startswith("#"):
            depth += line.count("{") - line.count("}")
    return found
