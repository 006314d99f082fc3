"""A program that has operators new and delete of its own: the forms that it leaves out come to them."""

import re
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS, assert_clean
from results import Compile, Run, captured

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "own_operators.cc"
EARLY = HERE / "early_library.cc"
SIZED = "-fsized-deallocation"  # clang 14 has it off by default
OPERATORS = 20  # replaceable forms
OWN_MALLOC = """
#include <stdlib.h>
static char memory[1000];
void *malloc(size_t size) { return size < sizeof memory ? memory : NULL; }
void free(void *block) { (void)block; }
int main(void) { free(malloc(10)); }
"""
COMPILERS = ["g++", pytest.param("clang++", marks=pytest.mark.long("the same linker and archives"))]
FORMS = [[], ["-DARRAYS"], ["-DDELETE_ARRAY"], ["-DALIGNED"], ["-DARRAYS", "-DALIGNED"]]
NOT_PLAIN = [["-DNO_PLAIN", "-DARRAYS"], ["-DNO_PLAIN", "-DALIGNED"]]
FLAGS = [SIZED, "-Wno-sized-deallocation", "-Wno-unknown-warning-option"]


@pytest.mark.long("compiled in each way", keep=2)
@pytest.mark.parametrize("options", [{}, {"HAKMEM_HARDEN": "1"}, {"HAKMEM_PROFILE": "64"}], ids=str)
@pytest.mark.parametrize("forms", FORMS + NOT_PLAIN, ids="".join)
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "linked", "static", "static-debug"])
def test_all_other_forms_come_to_its_own(
    mode: str, forms: list[str], options: dict[str, str], run_program: Run
) -> None:
    assert_clean(run_program(PROGRAM, mode, *FLAGS, *forms, env=options))


@pytest.mark.parametrize("options", [{}, {"HAKMEM_HARDEN": "1"}], ids=str)
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "linked", "static"])
def test_a_new_without_a_delete(mode: str, options: dict[str, str], run_program: Run) -> None:
    assert_clean(run_program(HERE / "new_alone.cc", mode, SIZED, env=options))


@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_no_nothrow_form_of_the_c_plus_plus_library(mode: str, compile_c: Compile, run_program: Run) -> None:
    """It is within the program, and not seen by a plug-in: ours goes to the program's plain form at once."""
    plugin = compile_c(HERE / "nothrow_plugin.cc", "-shared", "-fPIC", compiler="gcc")
    flags = ["-Wno-sized-deallocation", "-static-libstdc++", "-rdynamic"]
    assert_clean(run_program(HERE / "nothrow_host.cc", mode, *flags, args=[plugin]))


@pytest.mark.parametrize("mode", ["preload", "linked"])
def test_while_a_library_is_loaded_nobody_waits_for_the_dynamic_linker(
    mode: str, compile_c: Compile, run_program: Run
) -> None:
    library = compile_c(HERE / "loading_library.c", "-shared", "-fPIC")
    flags = ["-Wno-sized-deallocation", "-faligned-new", "-rdynamic"]
    assert_clean(run_program(HERE / "loading_host.cc", mode, *flags, args=[library]))


@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_a_library_is_initialised_before_hakmem(mode: str, compile_c: Compile, run_program: Run) -> None:
    """Its blocks are the program's, too: which operators there are is known before the first is made."""
    library = compile_c(EARLY, "-shared", "-fPIC")
    assert_clean(run_program(PROGRAM, mode, *FLAGS, "-Wl,--no-as-needed", library))


@pytest.mark.long("compiled in each way", keep=1)
@pytest.mark.parametrize("forms", [[], ["-DALIGNED"], ["-DNO_PLAIN", "-DARRAYS"]], ids="".join)
@pytest.mark.parametrize("linked", ["-static", "-pie"])
@pytest.mark.parametrize("place", ["after", "all before", "all after"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_archive_gives_way(
    compiler: str, place: str, linked: str, forms: list[str], static_lib: Path, run_program: Run
) -> None:
    """To the program's operators, wherever it stands; its first initialiser is run before hakmem's own."""
    whole = f"-Wl,--whole-archive,{static_lib},--no-whole-archive"
    files = {"after": [PROGRAM], "all before": [whole, PROGRAM], "all after": [PROGRAM, whole]}[place]
    assert_clean(run_program(EARLY, "static", *FLAGS, *forms, linked, *files, compiler=compiler))


@pytest.mark.long("compiled in each way", keep=1)
@pytest.mark.parametrize("linked", ["-static", "-static-libstdc++", "-pie"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_program_with_none_has_those_of_the_archive(
    compiler: str, linked: str, static_lib: Path, compile_c: Compile, run_program: Run
) -> None:
    """Not those of the C++ library's archive, which are not weak."""
    words = [SIZED, linked, PROGRAM, "-DNO_PLAIN"]
    program = compile_c(EARLY, INCLUDE_TESTS, *words, static_lib, compiler=compiler)
    names = captured(["nm", program], check=True).stdout
    operators = re.findall(r" (\w) (_Zn[aw]m\w*|_Zd[al]Pv\w*)$", names, re.MULTILINE)
    assert len(operators) == OPERATORS
    assert {kind for kind, _ in operators} == {"W"}
    assert_clean(run_program(EARLY, "static", *words, compiler=compiler))


def test_without_the_c_plus_plus_library(run_program: Run) -> None:
    flags = [*FLAGS, "-nostdinc++", "-fno-exceptions", "-fno-rtti", "-static"]
    assert_clean(run_program(HERE / "bare_operators.cc", "static", *flags, compiler="gcc"))


def test_a_malloc_of_the_program_s_own_is_refused_by_the_linker(static_lib: Path, tmp_path: Path) -> None:
    source = tmp_path / "own_malloc.c"
    source.write_text(OWN_MALLOC)
    command = ["gcc", "-static", source, static_lib, "-pthread", "-o", tmp_path / "program"]
    linker = captured(command)
    assert linker.returncode != 0
    assert "multiple definition of `malloc'" in linker.stderr


@pytest.mark.parametrize("options", [{}, {"HAKMEM_HARDEN": "1"}, {"HAKMEM_PROFILE": "64"}], ids=str)
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "linked", "static"])
def test_a_program_that_takes_their_addresses_has_none_of_its_own(
    mode: str, options: dict[str, str], run_program: Run
) -> None:
    """Its stubs for them, found by name, lead back to hakmem's."""
    flags = ["-no-pie", "-fno-pic", "-faligned-new", SIZED]
    assert_clean(run_program(HERE / "taken_operators.cc", mode, *flags, env=options))
