"""Libraries loaded while the program runs: hakmem itself, libraries linked against it, and libraries
that look into the C library first (RTLD_DEEPBIND)."""

from pathlib import Path

import pytest
from modes import INCLUDE_TESTS, assert_clean, assert_silent
from preload import json_stats_option, read_reports, served
from results import Compile, Run

HERE = Path(__file__).resolve().parent


@pytest.fixture
def host(compile_c: Compile) -> Path:
    return compile_c(HERE / "dlopen_plugin.c", INCLUDE_TESTS)


@pytest.fixture
def libc_plugin(compile_c: Compile) -> Path:
    return compile_c(HERE / "plugin.c", "-shared", "-fPIC")


@pytest.fixture
def hakmem_plugin(compile_c: Compile, lib: Path) -> Path:
    needed = ["-Wl,--no-as-needed", lib, f"-Wl,-rpath,{lib.parent}"]
    return compile_c(HERE / "plugin.c", "-shared", "-fPIC", *needed)


@pytest.mark.parametrize("build", ["lib", "debug_lib"])
def test_dlopen_of_hakmem_itself(
    build: str, request: pytest.FixtureRequest, compile_c: Compile, plain: Run, tmp_path: Path
) -> None:
    program = compile_c(HERE / "dlopen_library.c", INCLUDE_TESTS)
    library = request.getfixturevalue(build)
    assert_silent(plain([program, library], env={"HAKMEM_STATS": json_stats_option(tmp_path)}))
    (report,) = read_reports(tmp_path)
    assert served(report) > 0
    assert report["counters"]["foreign_frees"] >= 3


@pytest.mark.parametrize("direction", ["within", "to-main", "to-plugin"])
def test_plugin_of_a_preloaded_program(direction: str, host: Path, libc_plugin: Path, preload: Run) -> None:
    result = preload([host, libc_plugin, direction])
    assert_clean(result)
    assert result.stats[0]["counters"]["foreign_frees"] == 0


@pytest.mark.parametrize("build", ["lib", "debug_lib"])
@pytest.mark.parametrize("direction", ["within", "to-main", "to-plugin"])
def test_deepbind_plugin(
    direction: str, build: str, request: pytest.FixtureRequest, host: Path, libc_plugin: Path, preload: Run
) -> None:
    """Also while it is loaded: its constructor frees a block that the C library made, and makes one."""
    result = preload([host, libc_plugin, direction, "deepbind"], library=request.getfixturevalue(build))
    assert_clean(result)
    assert result.stats[0]["counters"]["foreign_frees"] == 0


@pytest.mark.parametrize("build", ["lib", "debug_lib"])
def test_a_library_is_looked_for_beside_its_caller(
    build: str, request: pytest.FixtureRequest, compile_c: Compile, host: Path, preload: Run
) -> None:
    """dlopen searches the run path of the library that calls it: hakmem's own stands between unseen."""
    inner = compile_c(HERE / "plugin.c", "-shared", "-fPIC")
    flags = ["-shared", "-fPIC", f'-DINNER="{inner.name}"', "-Wl,-rpath,$ORIGIN"]
    outer = compile_c(HERE / "plugin.c", *flags)
    assert_clean(preload([host, outer, "within"], library=request.getfixturevalue(build)))


@pytest.mark.parametrize("direction", ["within", "to-main", "to-plugin"])
def test_plugin_linked_against_hakmem(direction: str, host: Path, hakmem_plugin: Path, plain: Run) -> None:
    """Without RTLD_DEEPBIND the program's libc comes first, and hakmem is loaded but not asked."""
    assert_silent(plain([host, hakmem_plugin, direction]))


@pytest.mark.parametrize("direction", ["within", "to-plugin"])
def test_deepbind_plugin_linked_against_hakmem(
    direction: str, host: Path, hakmem_plugin: Path, plain: Run, tmp_path: Path
) -> None:
    """The plugin runs on hakmem, the program on libc: the plugin's free forwards libc's blocks."""
    environment = {"HAKMEM_STATS": json_stats_option(tmp_path)}
    assert_silent(plain([host, hakmem_plugin, direction, "deepbind"], env=environment))
    (report,) = read_reports(tmp_path)
    assert served(report) > 0
    of_its_constructor = 1  # a block of the C library's strdup
    assert (report["counters"]["foreign_frees"] > of_its_constructor) == (direction == "to-plugin")


@pytest.mark.parametrize("plugin", ["libc_plugin", "hakmem_plugin"])
def test_a_plugin_loaded_and_closed_many_times(
    plugin: str, request: pytest.FixtureRequest, compile_c: Compile, preload: Run
) -> None:
    program = compile_c(HERE / "dlopen_loop.c", INCLUDE_TESTS)
    result = preload([program, request.getfixturevalue(plugin), "1000"])
    assert_clean(result)
    assert result.stats[0]["counters"]["foreign_frees"] == 0
