"""The real programs: the task of each, and its size.  Sizes make a full run take about a second."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
from pathlib import Path

from .build import BuildError
from .paths import REAL
from .real_inputs import make_once, write_history, write_json, write_text, write_xml
from .real_program import CommandProgram, Job, RealProgram
from .redis_server import RedisServer

PYTHON = "/usr/bin/python3"  # Debian's: a version manager's wrapper would start other processes
GIT_VARIABLES = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "pack.threads",
    "GIT_CONFIG_VALUE_0": "2",
    "GIT_CONFIG_KEY_1": "safe.directory",
    "GIT_CONFIG_VALUE_1": "*",
}


def _python(_folder: Path, rounds: int) -> Job:
    variables = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    return Job([PYTHON, "-s", "-P", str(REAL / "objects.py"), str(rounds)], variables)


def _perl(_folder: Path, rounds: int) -> Job:
    return Job(["perl", str(REAL / "hashes.pl"), str(rounds)], {"PERL_HASH_SEED": "0"})


def _lua(_folder: Path, rounds: int) -> Job:
    return Job(["lua5.4", str(REAL / "tables.lua"), str(rounds)])


def _sqlite(_folder: Path, rows: int) -> Job:
    size = f"CREATE TABLE size AS SELECT {rows} AS n"
    return Job(["sqlite3", "-batch", "-bail", "-cmd", size, ":memory:"], input=REAL / "rows.sql")


def _compiler(_folder: Path, width: int) -> Job:
    source = str(REAL / "templates.cpp")
    return Job(["g++", "-std=c++17", "-O1", f"-DWIDTH={width}", "-c", source, "-o", "templates.o"])


def _jq(folder: Path, items: int) -> Job:
    make_once(folder / "items.json", items, write_json)
    return Job(["jq", "-c", "-f", str(REAL / "shapes.jq"), "items.json"])


def _xml(folder: Path, items: int) -> Job:
    make_once(folder / "items.xml", items, write_xml)
    return Job(["xmllint", "--xpath", "count(//item[@owner mod 7 = 0]/tag)", "items.xml"])


def _xz(folder: Path, kib: int) -> Job:
    make_once(folder / "text", kib, write_text)
    return Job(["xz", "-T2", "-2", "--block-size=1MiB", "-k", "-c", "text"])


def _write_repository(path: Path, commits: int) -> None:
    stream = path.with_suffix(".history")
    write_history(stream, commits)
    environment = os.environ | GIT_VARIABLES | {"HOME": str(path.parent)}
    try:
        subprocess.run(["git", "init", "-q", "--bare", path], env=environment, check=True)
        with stream.open() as history:
            importing = ["git", "-C", path, "fast-import", "--quiet"]
            subprocess.run(importing, stdin=history, env=environment, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"the repository of real-git-gc: {error}") from error
    stream.unlink()


def _git(folder: Path, commits: int) -> Job:
    """`git gc` changes the repository: every run gets a copy."""
    original = make_once(folder / "original.git", commits, _write_repository)
    copy = folder / f"copy-{os.getpid()}.git"

    def remove_copy() -> None:
        shutil.rmtree(copy, ignore_errors=True)

    def fresh_copy() -> None:
        remove_copy()
        shutil.copytree(original, copy)

    atexit.register(remove_copy)
    command = ["git", "-C", copy.name, "gc", "-q", "--aggressive", "--prune=now"]
    return Job(command, GIT_VARIABLES | {"HOME": str(folder)}, before=fresh_copy)


REAL_SUITE: tuple[RealProgram, ...] = (
    RedisServer("real-redis", "redis-benchmark", "redis-tools", 60_000, 20_000, 1.4),
    CommandProgram("real-sqlite", "sqlite3", "sqlite3", 200_000, 60_000, make=_sqlite),
    CommandProgram("real-python", PYTHON, "python3", 16, 5, make=_python),
    CommandProgram("real-perl", "perl", "perl", 32, 10, make=_perl),
    CommandProgram("real-lua", "lua5.4", "lua5.4", 200, 60, make=_lua),
    CommandProgram("real-jq", "jq", "jq", 40_000, 12_000, make=_jq),
    CommandProgram("real-xmllint", "xmllint", "libxml2-utils", 120_000, 30_000, make=_xml),
    CommandProgram("real-g++", "g++", "g++", 4, 1, 1.2, make=_compiler),
    CommandProgram("real-git-gc", "git", "git", 150, 40, make=_git),
    CommandProgram("real-xz", "xz", "xz-utils", 18 * 1024, 6 * 1024, make=_xz),
)
