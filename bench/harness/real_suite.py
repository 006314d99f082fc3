"""The real programs: the task of each, and its size.  Sizes make a full run take about a second."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .build import BuildError
from .paths import REAL
from .postgres_program import PostgresServer
from .real_inputs import make_once, write_history, write_json, write_text, write_xml
from .real_program import CommandProgram, Job, RealProgram
from .server_program import NginxServer, RedisServer

PYTHON = "/usr/bin/python3"  # Debian's: a version manager's wrapper would start other processes
IMAGEMAGICK = "convert-im6.q16"  # its convert
GIT_VARIABLES = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "pack.threads",
    "GIT_CONFIG_VALUE_0": "2",
    "GIT_CONFIG_KEY_1": "safe.directory",
    "GIT_CONFIG_VALUE_1": "*",
}


def _script(name: str, rounds: int, **variables: str) -> Job:
    """A script for CPython."""
    words = [PYTHON, "-s", "-P", str(REAL / name), str(rounds)]
    return Job(words, {"PYTHONHASHSEED": "0", **variables})


def _python(_folder: Path, rounds: int) -> Job:
    return _script("objects.py", rounds, PYTHONMALLOC="malloc")


def _own_python(_folder: Path, rounds: int) -> Job:
    """With CPython's own allocator of small objects before malloc."""
    return _script("objects.py", rounds)


def _python_texts(_folder: Path, rounds: int) -> Job:
    return _script("texts.py", rounds, PYTHONMALLOC="malloc")


def _ruby(_folder: Path, rounds: int) -> Job:
    return Job(["ruby", "--disable=gems", str(REAL / "objects.rb"), str(rounds)])


def _node(_folder: Path, rounds: int) -> Job:
    return Job(["node", str(REAL / "buffers.mjs"), str(rounds)])


def _gawk(_folder: Path, rounds: int) -> Job:
    return Job(["gawk", "-v", f"rounds={rounds}", "-f", str(REAL / "words.awk")])


def _perl_texts(_folder: Path, rounds: int) -> Job:
    return Job(["perl", str(REAL / "texts.pl"), str(rounds)], {"PERL_HASH_SEED": "0"})


def _perl(_folder: Path, rounds: int) -> Job:
    return Job(["perl", str(REAL / "hashes.pl"), str(rounds)], {"PERL_HASH_SEED": "0"})


def _lua(_folder: Path, rounds: int) -> Job:
    return Job(["lua5.4", str(REAL / "tables.lua"), str(rounds)])


def _sqlite(_folder: Path, rows: int) -> Job:
    size = f"CREATE TABLE size AS SELECT {rows} AS n"
    return Job(["sqlite3", "-batch", "-bail", "-cmd", size, ":memory:"], input=REAL / "rows.sql")


def _compile(compiler: str, width: int) -> Job:
    source = str(REAL / "templates.cpp")
    return Job([compiler, "-std=c++17", "-O1", f"-DWIDTH={width}", "-c", source, "-o", "templates.o"])


def _gcc(_folder: Path, width: int) -> Job:
    return _compile("g++", width)


def _clang(_folder: Path, width: int) -> Job:
    return _compile("clang++", width)


def _jq(folder: Path, items: int) -> Job:
    make_once(folder / "items.json", items, write_json)
    return Job(["jq", "-c", "-f", str(REAL / "shapes.jq"), "items.json"])


def _xml(folder: Path, items: int) -> Job:
    make_once(folder / "items.xml", items, write_xml)
    return Job(["xmllint", "--xpath", "count(//item[@owner mod 7 = 0]/tag)", "items.xml"])


def _xslt(folder: Path, items: int) -> Job:
    make_once(folder / "items.xml", items, write_xml)
    return Job(["xsltproc", "-o", "list.xml", str(REAL / "items.xsl"), "items.xml"])


def _image(_folder: Path, width: int) -> Job:
    steps = "-resize 50% -blur 0x2 -rotate 7 -modulate 110,90"
    made = ["-limit", "thread", "2", "-seed", "1", "-size", f"{width}x{width}", "plasma:tomato-steelblue"]
    return Job([IMAGEMAGICK, *made, *steps.split(), "-colors", "64", "image.png"])


def _video(_folder: Path, frames: int) -> Job:
    made = ["-f", "lavfi", "-i", f"testsrc2=size=640x360:rate=25:duration={frames / 25}"]
    coded = ["-threads", "2", "-c:v", "mpeg4", "video.avi"]
    return Job(["ffmpeg", "-nostdin", "-v", "error", "-y", *made, *coded])


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
            importing = ["git", "-C", str(path), "fast-import", "--quiet"]
            subprocess.run(importing, stdin=history, env=environment, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"the repository of real-git-gc: {error}") from error
    stream.unlink()


def _git(folder: Path, commits: int) -> Job:
    """`git gc` changes the repository: every run gets a copy."""
    original = make_once(folder / "original.git", commits, _write_repository)

    def fresh_copy(run: Path) -> None:
        shutil.copytree(original, run / "copy.git")

    command = ["git", "-C", "copy.git", "gc", "-q", "--aggressive", "--prune=now"]
    return Job(command, GIT_VARIABLES | {"HOME": str(folder)}, before=fresh_copy)


REAL_SUITE: tuple[RealProgram, ...] = (
    RedisServer("real-redis", "redis-benchmark", "redis-tools", 60_000, 20_000, 1.4),
    NginxServer("real-nginx", "ab", "apache2-utils", 14_000, 4_000),
    PostgresServer("real-postgres", "pgbench", "postgresql", 12, 4, 1.2),
    CommandProgram("real-sqlite", "sqlite3", "sqlite3", 200_000, 60_000, make=_sqlite),
    CommandProgram("real-python", PYTHON, "python3", 16, 5, make=_python),
    CommandProgram("real-perl", "perl", "perl", 32, 10, make=_perl),
    CommandProgram("real-lua", "lua5.4", "lua5.4", 200, 60, make=_lua),
    CommandProgram("real-jq", "jq", "jq", 40_000, 12_000, make=_jq),
    CommandProgram("real-xmllint", "xmllint", "libxml2-utils", 120_000, 30_000, make=_xml),
    CommandProgram("real-g++", "g++", "g++", 4, 1, 1.2, make=_gcc),
    CommandProgram("real-clang", "clang++", "clang", 4, 1, 1.2, make=_clang),
    CommandProgram("real-git-gc", "git", "git", 150, 40, make=_git),
    CommandProgram("real-python-own", PYTHON, "python3", 20, 6, make=_own_python),
    CommandProgram("real-python-texts", PYTHON, "python3", 15, 5, make=_python_texts),
    CommandProgram("real-perl-texts", "perl", "perl", 56, 18, make=_perl_texts),
    CommandProgram("real-ruby", "ruby", "ruby", 28, 8, make=_ruby),
    CommandProgram("real-node", "node", "nodejs", 70, 22, make=_node),
    CommandProgram("real-gawk", "gawk", "gawk", 12, 4, make=_gawk),
    CommandProgram("real-xsltproc", "xsltproc", "xsltproc", 110_000, 35_000, make=_xslt),
    CommandProgram("real-imagemagick", IMAGEMAGICK, "imagemagick", 1_200, 600, make=_image),
    CommandProgram("real-ffmpeg", "ffmpeg", "ffmpeg", 1_000, 320, make=_video),
    CommandProgram("real-xz", "xz", "xz-utils", 18 * 1024, 6 * 1024, make=_xz),
)
