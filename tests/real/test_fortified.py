"""Real programs in hardened mode, with the C library's functions checked: the same output, and not a word."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from real.sides import Command, Side, Sides
from results import Find

PROGRAMS = Path(__file__).parent / "programs"
PYTHON = """
import bz2, json, lzma, re, sqlite3, subprocess, threading, zlib
text = json.dumps({str(key): ["ä" * (key % 90), key / 7] for key in range(5000)})
assert json.loads(text)["77"][1] == 11.0
for pack in (zlib, bz2, lzma):
    assert pack.decompress(pack.compress(text.encode())).decode() == text
base = sqlite3.connect(":memory:")
base.execute("create table t(a, b)")
base.executemany("insert into t values (?, ?)", [(key, str(key) * 30) for key in range(20000)])
print(base.execute("select sum(length(b)), max(b) from t where a % 3").fetchone())
print(len(re.sub(r"(\\d+)", lambda found: found[1] * 2, text)))
threads = [threading.Thread(target=json.loads, args=[text]) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(subprocess.run(["sh", "-c", "echo $((6 * 7))"], capture_output=True, text=True).stdout)
"""
CXX = """
#include <iostream>
#include <map>
#include <string>
int main() {
  std::map<std::string, std::map<int, std::string>> names;
  for (std::string name; std::cin >> name;) names[name][int(name.size())] += name;
  for (auto &[name, lengths] : names) std::cout << name << lengths.size() << std::endl;
}
"""
SHELL = """
printf 'int main(void) { return 0; }\\n' > main.c
gcc -O2 -g -o main main.c && ./main
tar -cf all.tar main main.c && tar -tf all.tar && gzip -f all.tar && gzip -l all.tar.gz | wc -l
sort -R /etc/services | sort | md5sum; awk '{ n += length($0) } END { print n }' /etc/services
sed -e 's/tcp/TCP/g' /etc/services | grep -c TCP; find /etc -maxdepth 1 2>/dev/null | sort | tail -3
"""


def hardened(
    side: Side, command: Command, *, level: str = "1", processes: int = 1, stdin: str | None = None
) -> str:
    env = {}
    if side.library is not None:
        fortify = side.library.with_name("libhakmem-fortify.so")
        env = {"LD_PRELOAD": f"{fortify}:{side.library}", "HAKMEM_HARDEN": level}
    result = side.run(command, env=env, processes=processes, stdin=stdin)
    assert "hakmem: " not in result.stderr
    return result.stdout


@pytest.mark.long("3 seconds each; a whole program; tests/fortify checks each function")
@pytest.mark.parametrize("level", ["1", "2"])
def test_python(sides: Sides, program: Find, level: str) -> None:
    python = program("/usr/bin/python3")
    for allocator in ("pymalloc", "malloc"):
        words: Sequence[str | Path] = ["env", f"PYTHONMALLOC={allocator}", python, "-c", PYTHON]
        assert sides.same(lambda side, words=words: hardened(side, words, level=level))


@pytest.mark.long("4 seconds; a whole program; tests/fortify checks each function")
def test_perl(sides: Sides, program: Find) -> None:
    words = [program("perl"), PROGRAMS / "work.pl"]
    assert sides.same(lambda side: hardened(side, words))


@pytest.mark.long("2 seconds; a whole program; tests/fortify checks each function")
def test_sqlite(sides: Sides, program: Find) -> None:
    script = (PROGRAMS / "rows.sql").read_text().replace("1000000", "50000")
    words = [program("sqlite3"), "-batch", "-bail", "rows.db"]
    assert sides.same(lambda side: hardened(side, words, stdin=script))


def test_git(sides: Sides, program: Find) -> None:
    git = program("git")

    def job(side: Side) -> str:
        who = [git, "-c", "user.name=a", "-c", "user.email=b", "-c", "init.defaultBranch=main"]
        date = ["env", "GIT_AUTHOR_DATE=@1000000000 +0000", "GIT_COMMITTER_DATE=@1000000000 +0000", *who]
        hardened(side, [*who, "init", "-q", "."])
        for name in ("work.pl", "rows.sql", "history.py"):
            (side.folder / name).write_bytes((PROGRAMS / name).read_bytes())
            hardened(side, [*who, "add", name])
            hardened(side, [*date, "commit", "-q", "-m", f"adds {name}"])
        hardened(side, [*who, "gc", "-q", "--aggressive", "--prune=now"])
        log = hardened(side, [git, "log", "-p", "--stat", "-M"])
        return log + hardened(side, [git, "fsck", "--full", "--strict", "--no-progress"])

    assert sides.same(job).count("commit ") >= 3


def test_compiler(sides: Sides, program: Find) -> None:
    compiler = program("g++")

    def job(side: Side) -> str:
        (side.folder / "large.cc").write_text(CXX)
        hardened(side, [compiler, "-std=c++17", "-O1", "-c", "large.cc", "-o", "large.o"], processes=3)
        return hashlib.sha256((side.folder / "large.o").read_bytes()).hexdigest()

    assert sides.same(job)


def test_shell_and_its_tools(sides: Sides) -> None:
    assert sides.same(lambda side: hardened(side, ["sh", "-c", SHELL], processes=5)).count("\n") > 8
