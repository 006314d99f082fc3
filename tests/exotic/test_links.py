"""Programs that are linked in less usual ways, and programs that bring a malloc of their own."""

import re
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS, assert_clean
from preload import run_clean
from results import Compile, Run

TESTS = Path(__file__).resolve().parents[1]
FUZZ = TESTS / "concurrency" / "fuzz.c"
ARGUMENTS = ["21", "4", "4", "10000"]
JEMALLOC = ["-Wl,-Bstatic", "-ljemalloc", "-Wl,-Bdynamic", "-lm", "-ldl", "-lstdc++"]


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize(
    ("mode", "flags"),
    [
        ("static", ["-static-pie", "-fPIE"]),
        ("static", ["-static"]),
        ("static", ["-no-pie"]),
        ("static", ["-flto"]),
        ("linked", ["-fno-plt", "-Wl,-z,now"]),
        ("preload", ["-fno-plt", "-Wl,-z,now"]),
        ("preload", ["-Wl,-z,lazy"]),
        ("static-debug", ["-static-pie", "-fPIE"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_links(mode: str, flags: list[str], run_program: Run) -> None:
    assert_clean(run_program(FUZZ, mode, *flags, args=ARGUMENTS))


@pytest.mark.parametrize("flags", [["-static"], ["-static-pie", "-fPIE"]], ids=" ".join)
def test_a_static_program_is_profiled_from_its_first_malloc(flags: list[str], run_program: Run) -> None:
    """Which is the C library's, before its tables of the program's code are there."""
    result = run_program(FUZZ, "static", *flags, args=ARGUMENTS, env={"HAKMEM_PROFILE": "64"})
    assert_clean(result)


@pytest.mark.parametrize("source", [FUZZ, TESTS / "api" / "new_forms.cc"], ids=lambda path: path.name)
def test_preload_goes_before_another_malloc_in_a_library(
    source: Path, compile_c: Compile, preload: Run
) -> None:
    """The dynamic linker asks preloaded libraries first: hakmem serves, jemalloc is loaded in vain."""
    program = compile_c(source, INCLUDE_TESTS, "-Wl,--no-as-needed", "-ljemalloc")
    result = preload([program, *(ARGUMENTS if source == FUZZ else [])])
    assert_clean(result)
    assert result.stats[0]["counters"]["foreign_frees"] == 0


@pytest.mark.parametrize("which", ["lib", "debug_lib"])
def test_jemallocs_own_calls_are_preloaded_too(
    which: str, compile_c: Compile, preload: Run, request: pytest.FixtureRequest
) -> None:
    """Its malloc is hakmem's when that is preloaded, so its sdallocx has to be, too, as in valkey."""
    program = compile_c(TESTS / "api" / "jemalloc_calls.c", INCLUDE_TESTS, "-Wl,--no-as-needed", "-ljemalloc")
    library = request.getfixturevalue(which)
    assert_clean(preload([program], library=library))


def test_another_malloc_within_the_program_goes_first(compile_c: Compile, preload: Run) -> None:
    """The program comes before all libraries, preloaded ones too: jemalloc serves, hakmem does not."""
    program = compile_c(FUZZ, INCLUDE_TESTS, *JEMALLOC)
    result = preload([program, *ARGUMENTS])
    assert (result.returncode, result.stdout) == (0, "")
    said = r"hakmem: no report: process \d+ uses another malloc; this libhakmem served no request\n"
    assert re.fullmatch(said, result.stderr)
    assert not result.stats


def test_a_plugin_that_brings_another_malloc(compile_c: Compile, preload: Run) -> None:
    """With RTLD_DEEPBIND the plugin finds its own malloc: each side frees what it allocated."""
    tls = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=8192"}  # jemalloc wants more than there is
    concurrency = TESTS / "concurrency"
    flags = ["-DBRINGS_ITS_MALLOC", "-shared", "-fPIC", "-Wl,--no-as-needed", "-ljemalloc"]
    plugin = compile_c(concurrency / "plugin.c", *flags)
    host = compile_c(concurrency / "dlopen_plugin.c", INCLUDE_TESTS)
    assert_clean(preload([host, plugin, "within", "deepbind"], env=tls))
    assert_clean(preload([host, plugin, "to-main"], env=tls))


PROBED = """
#include <stdlib.h>
#include "base/probe.h"
static unsigned short counted;
int main(void) {
  PROBE_1("mine", "begin", "0", &counted);
  free(malloc(100));
}
"""


@pytest.mark.parametrize("flags", [[], ["-static"]], ids="".join)
def test_a_program_with_probes_of_its_own(
    flags: list[str], root: Path, compile_c: Compile, static_lib: Path, tmp_path: Path
) -> None:
    """The base of all probes is kept once: that of the program, whose object comes first."""
    source = tmp_path / "probed.c"
    source.write_text(PROBED)
    program = compile_c(source, f"-I{root / 'src'}", *flags, static_lib)
    ended = run_clean([program], HAKMEM_STATS="1")
    assert ended.returncode == 0
    assert "blocks fetched past the magazines" in ended.stderr
    notes = run_clean(["readelf", "-n", program]).stdout
    bases = set(re.findall(r"Base: (0x[0-9a-f]+)", notes))
    assert {"mine", "otel_memory"} <= set(re.findall(r"Provider: (\w+)", notes))
    assert len(bases) == 1, notes
