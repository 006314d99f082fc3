"""hakmem ps: who runs on what.  All processes run at once, and are listed once."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hakmem.commands import ps
from hakmem.target.process import Process
from preload import clean_environment, preload_environment
from results import Compile
from tool.conftest import Tool
from tool.processes import wait_until

OTHERS = {
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2*",
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "tbbmalloc": "libtbbmalloc_proxy.so.2",
}
SLEEP = ["sleep", "300"]


@dataclass
class Listing:
    """What ps tells of the processes, by our names for them; and how it looks."""

    pids: dict[str, int]
    lines: dict[int, dict[str, Any]]
    shown: list[str]

    def of(self, name: str) -> dict[str, Any]:
        line = self.lines[self.pids[name]]
        assert line["rss_bytes"] > 0
        return line


@pytest.fixture(scope="module")
def listing(tool: Tool, lib: Path, static_lib: Path, compiled: Compile) -> Iterator[Listing]:
    """One of each, all at once."""
    plain, other_format = clean_environment(), compiled("other_format", "-DFORMAT=2", "-shared", "-fPIC")
    wanted: dict[str, tuple[list[Any], dict[str, str], str]] = {
        "preloaded": (SLEEP, preload_environment(lib), lib.name),
        "other format": (SLEEP, preload_environment(other_format), other_format.name),
        "glibc": (SLEEP, plain, "libc.so.6"),
        "bundled": ([compiled("own_malloc")], plain, "own_malloc"),
    }
    for name, flags in (
        ("linked", ("-static", "-s", static_lib)),
        ("static", ("-static",)),
        ("static-pie", ("-static-pie",)),
    ):
        wanted[name] = ([program := compiled("blocks", *flags)], plain, program.name)
    for name, pattern in OTHERS.items():
        if found := sorted(Path("/usr/lib").glob(f"*/{pattern}")):
            wanted[name] = (SLEEP, preload_environment(found[0]), "libc.so.6")
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, (words, environment, _) in wanted.items():
            started[name] = subprocess.Popen(
                [str(word) for word in words],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
        for name, process in started.items():
            wait_until_mapped(process.pid, wanted[name][2])
        pids = {name: process.pid for name, process in started.items()}
        lines = {line["pid"]: line for line in tool.json("ps")["processes"]}
        yield Listing(pids, lines, tool("ps", COLUMNS="80").stdout.splitlines())
    finally:
        for process in started.values():
            process.kill()
            process.communicate()


def wait_until_mapped(pid: int, name: str) -> None:
    """The program, and what is preloaded into it."""
    maps = Path(f"/proc/{pid}/maps")
    wait_until(lambda: name in maps.read_text(), f"{name} is not mapped")


@pytest.mark.long("a second of processor time")
def test_hakmem_and_its_version(listing: Listing, tool: Tool) -> None:
    version = tool("--version").stdout.split()[-1]
    for name in ("preloaded", "linked"):
        assert (listing.of(name)["allocator"], listing.of(name)["version"]) == ("hakmem", version)
    assert max(map(len, listing.shown)) <= 80
    pid = str(listing.pids["preloaded"])
    assert any(pid in line and f"hakmem {version}" in line for line in listing.shown)


def test_hakmem_of_another_format(listing: Listing) -> None:
    """It cannot be read, but told."""
    line = listing.of("other format")
    assert (line["allocator"], line["version"]) == ("hakmem", "not this tool's format")


@pytest.mark.parametrize("name", ["glibc", "static", "static-pie"])
def test_others(listing: Listing, name: str) -> None:
    assert listing.of(name)["allocator"] == name.removesuffix("-pie")
    assert not listing.of(name)["is_bundled"]


def test_bundled(listing: Listing) -> None:
    assert (listing.of("bundled")["allocator"], listing.of("bundled")["is_bundled"]) == ("mimalloc", True)


@pytest.mark.parametrize("name", OTHERS)
def test_other_libraries(listing: Listing, name: str) -> None:
    if name not in listing.pids:
        pytest.skip(f"{name} is not installed (make bench does)")
    assert (listing.of(name)["allocator"], listing.of(name)["is_bundled"]) == (name, False)


def test_a_process_that_ends_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """After all has been read but its user."""

    class Ending(Process):
        def smaps_rollup(self) -> dict[str, int]:
            found = super().smaps_rollup()
            sleeping.kill()
            sleeping.wait()
            return found

    sleeping = subprocess.Popen(SLEEP)
    wait_until_mapped(sleeping.pid, "libc.so.6")
    monkeypatch.setattr(ps, "all_processes", lambda: [Ending(sleeping.pid)])
    assert ps.listing() == ([], 0)


def test_a_file_that_is_only_read_is_no_allocator(tool: Tool, tmp_path: Path) -> None:
    """The tool itself maps the libraries that it looks at: it was called jemalloc, sometimes."""
    library = tmp_path / "libjemalloc.so.2"
    library.write_bytes(b"\0" * 4096)
    code = (
        "import mmap, sys\n"
        f"file = open({str(library)!r}, 'rb')\n"
        "mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", code]
    with subprocess.Popen(
        words, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"ready\n"
        (line,) = (line for line in tool.json("ps")["processes"] if line["pid"] == one.pid)
        one.kill()
    assert line["allocator"] not in ("jemalloc", "hakmem")


@pytest.mark.long("4 seconds")
def test_pss_and_groups(listing: Listing, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared page counts once in sums of PSS; a process that grows while it is read has PSS below RSS."""
    monkeypatch.setattr(Process, "figures", Mock(return_value=Mock(rss_bytes=1)))
    lines = [line for line in ps.listing()[0] if line.rss_bytes]
    assert all(line.pss_bytes and line.pss_bytes <= line.rss_bytes for line in lines)
    for by, key in (("command", "name"), ("container", "container")):
        name = listing.of("preloaded")[key]
        (group,) = (one for one in tool.json("ps", "--by", by)["groups"] if one["name"] == name)
        members = [listing.lines[pid] for pid in listing.pids.values() if listing.lines[pid][key] == name]
        assert group["processes"] >= len(members) >= 3
        assert group["allocators"]["hakmem"] >= 2
        assert sum(group["allocators"].values()) == group["processes"]
        assert 0 < group["pss_bytes"] < group["rss_bytes"]
    shown = tool("ps", "--by", "command", COLUMNS="80").stdout
    assert re.search(r"^sleep +[0-9]+ .*hakmem [0-9]", shown, re.MULTILINE)
