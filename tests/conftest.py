"""Fixtures that all Python tests share.

`lib`, `debug_lib`, `static_lib`   what `make` built
`core_lib`, `fake_lib`             archives with hak_* names only, on the real and on the fake OS
`cc`, `cxx`                        the compilers (CC and CXX, else gcc and g++)
`compile_c(source, *flags)`        builds a test program (C, or C++ by its suffix) and returns its path
`preload(cmd, ...)`                runs a program on hakmem and returns a Result with all its reports
`plain(cmd, ...)`                  runs the same program without hakmem, to compare
`run_program(source, mode, ...)`   builds a program and runs it in one of the ways of modes.py
`tally(number, what)`              adds to the closing lines of `make test`: how much was tried

`make test` runs three modules at a time; tests that measure memory or time, or change
other programs, are marked `alone`.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import target
from compiling import Compiler
from modes import run_program
from preload import clean_environment, json_stats_option, preload_environment, read_reports
from results import Compile, Result, Run, Tally
from tiers import keep_few, pytest_runtest_makereport, pytest_runtest_setup

__all__ = ["pytest_runtest_makereport", "pytest_runtest_setup", "run_program"]

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / target.FOLDER
DEFAULT_TIMEOUT_S = 120.0
CXX_SUFFIXES = {".cc", ".cpp", ".cxx"}
LINKING_ONLY = ("-l", "-Wl,", "-static", "-pie", "-rdynamic")  # flags whose objects are those without them

Command = Sequence[str | Path]


# Python itself ignores these; the programs that it starts do not.
IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}


@pytest.fixture(scope="session", autouse=True)
def _usual_signals() -> None:
    """Background jobs of a shell ignore SIGINT and SIGQUIT, and what nohup starts SIGHUP; all programs of the
    tests would inherit that.  The tests themselves survive a hangup, as nohup was told."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: lambda *_: None}
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handlers.get(number, signal.SIG_DFL))


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell exports its width, a worker of pytest does under Python 3.13: the tool would fit its tables."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


def run_group(
    cmd: Command, environment: Mapping[str, str], timeout: float, stdin: str | None, cwd: Path | None
) -> Result:
    """Runs `cmd` in a process group of its own, so that a timeout ends all of its processes."""
    if target.NAME:
        return run_there(cmd, environment, timeout, stdin, cwd)
    process = subprocess.Popen(
        [str(word) for word in cmd],
        env=dict(environment),
        cwd=cwd,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        pytest.fail(f"{cmd[0]} ran past {timeout:g} s\nstdout: {stdout[-2000:]}\nstderr: {stderr[-2000:]}")
    return Result(process.returncode, stdout, stderr)


def run_there(
    cmd: Command, environment: Mapping[str, str], timeout: float, stdin: str | None, cwd: Path | None
) -> Result:
    ended = target.run(cmd, environment, timeout, stdin, cwd)
    if ended.returncode is None:
        pytest.fail(f"{cmd[0]} ran past {timeout:g} s\nstdout: {ended.stdout}\nstderr: {ended.stderr}")
    return Result(ended.returncode, ended.stdout, ended.stderr)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--few", action="store_true", help="only the cases that `make test` runs (tests/tiers.py)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("few"):
        kept = set(keep_few(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    for item in items:
        for mark in item.iter_markers("long"):
            assert mark.args[0], f"{item.nodeid}: why is it not in make test?"
        if reason := target.skipped(item.path):
            item.add_marker(pytest.mark.skip(reason=reason))


def built(name: str) -> Path:
    path = BUILD / name
    if not path.exists():
        pytest.fail(f"{path.relative_to(ROOT)} is missing; run make", pytrace=False)
    return path


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


def built_file(name: str) -> Callable[[], Path]:
    """A fixture: the file of the build."""

    @pytest.fixture(scope="session")
    def given() -> Path:
        return built(name)

    return given


lib = built_file("libhakmem.so")
debug_lib = built_file("debug/libhakmem.so")
static_lib = built_file("libhakmem.a")
core_lib = built_file("debug/libhakmem_core.a")
fake_lib = built_file("debug/libhakmem_fake.a")


@pytest.fixture(scope="session")
def cc() -> str:
    return os.environ.get("CC") or target.command_of("gcc")[0]


@pytest.fixture(scope="session")
def cxx() -> str:
    return os.environ.get("CXX") or target.command_of("g++")[0]


@pytest.fixture(scope="session")
def compile_c(cc: str, cxx: str) -> Compile:
    """compile_c(source, *flags, compiler=None) builds one program into build/tests/.

    Built-in knowledge of malloc is off, so that the compiler removes no allocation under test, and so are
    the checks that Ubuntu's compilers add, which end a program before hakmem sees its mistake.  Flags
    may name libraries (static_lib, "-ldl") and more sources.  Programs that differ in libraries alone are
    compiled once, and no source twice in a run, whichever worker asks for it."""
    make = Compiler(BUILD / "tests").make

    def build(source: str | Path, *flags: str | Path, compiler: str | None = None) -> Path:
        path = Path(source).resolve()
        is_cxx = path.suffix in CXX_SUFFIXES
        driver = compiler or (cxx if is_cxx else cc)
        standard = "-std=gnu++17" if is_cxx else "-std=gnu17"
        keep = ["-fno-builtin"] if "clang" in driver else ["-fno-builtin", "-fno-allocation-dce"]
        words = [str(flag) for flag in flags]
        linked = [word for word in words if not word.startswith("-") or word.startswith(LINKING_ONLY)]
        fixed = [standard, "-O2", "-g", "-Wall", "-Wextra", "-pthread", "-U_FORTIFY_SOURCE"]
        command = [*target.command_of(driver), *fixed, *keep]
        command += [f"-I{ROOT / 'include'}", *(word for word in words if word not in linked)]
        files = [object_of(word, command) if is_source(word) else word for word in linked]
        return make(path, "", *command, object_of(str(path), command), *files)

    def object_of(source: str, command: list[str]) -> str:
        return str(make(Path(source), ".o", *command, "-c", source))

    def is_source(word: str) -> bool:
        return Path(word).suffix in {".c", *CXX_SUFFIXES}

    return build


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Tally:
    """tally(number, what), with one of the names in scripts/test."""
    return lambda number, what: record_property("tally", f"{number} {what}")


@pytest.fixture
def preload(lib: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """preload(cmd, env=None, timeout=120, stats=True, stdin=None, cwd=None, library=lib) -> Result.

    `env` is added to the clean environment.  With `stats` every process leaves a report; without,
    HAKMEM_STATS is whatever `env` says.  `library` may be debug_lib."""
    folders: list[Path] = []

    def run(
        cmd: Command,
        env: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        stats: bool = True,
        stdin: str | None = None,
        cwd: Path | None = None,
        library: Path = lib,
    ) -> Result:
        folder = tmp_path_factory.mktemp("reports")
        folder.chmod(0o777)  # programs that change their user write here too
        folders.append(folder)
        environment = preload_environment(library, json_stats_option(folder) if stats else "")
        result = run_group(cmd, environment | dict(env or {}), timeout, stdin, cwd)
        return Result(result.returncode, result.stdout, result.stderr, read_reports(folder))

    yield run
    for folder in folders:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def plain() -> Run:
    """plain(cmd, env=None, timeout=120, stdin=None, cwd=None) -> Result, on the C library's malloc."""

    def run(
        cmd: Command,
        env: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        stdin: str | None = None,
        cwd: Path | None = None,
    ) -> Result:
        return run_group(cmd, clean_environment() | dict(env or {}), timeout, stdin, cwd)

    return run
