"""Today's peers: the table, the choice, what is built when, and what is said of one that cannot be built."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from harness import allocators, peers, recipes
from harness.allocators import GLIBC, NEW, PEERS, Allocator, find_allocators, peer_names, placed_anew
from harness.cli import main
from harness.execute import allocator_environment
from harness.new_peers import NEW_PEERS, NewPeer
from harness.real_program import preload_variables
from harness.recipes import Commands, Compiled, Found, PeerError, Unpacked, fetch
from results import Compile, captured

SOURCE = "void *malloc(unsigned long size) { return (void *)(size - size); }\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The content of a package with one C file, where a fetched crate would lie."""
    folder = tmp_path / "sources" / "some-sys-1.2.3" / "crates" / "some-sys"
    folder.mkdir(parents=True)
    (folder / "malloc.c").write_text(SOURCE)
    (folder.parent.parent / "complete").touch()
    return folder


def peer_of(recipe: recipes.Recipe, registry: str = "crates.io") -> NewPeer:
    return NewPeer("some", registry, "some-sys", "1.2.3", "some 9", recipe)


def ignore(_line: str) -> None:
    """Tells nobody."""


def check_built(library: Path, symbol: str = "malloc") -> None:
    assert f" T {symbol}\n" in captured(["nm", "-D", library], check=True).stdout
    assert sorted(path.name for path in library.parent.iterdir()) == ["built", "libsome.so"]


def test_the_table() -> None:
    assert len({peer.name for peer in NEW_PEERS}) == len(NEW_PEERS)
    for peer in NEW_PEERS:
        assert peer.registry in ("crates.io", "PyPI", "Debian")
        assert re.fullmatch(r"\d+(\.\d+)+", peer.version) or peer.registry == "Debian", "versions are pinned"
        assert peer.holds in peer.origin
        assert peer.package in peer.origin
        assert peer.recipe.summary in peer.origin


def test_the_targets_name_a_peer_of_each_kind() -> None:
    """A2, A6 and A9 are against mimalloc."""
    assert "mimalloc" in {peer.name for peer in PEERS} & set(peer_names(NEW))


@pytest.mark.usefixtures("package")
def test_built_once_until_the_library_is_gone_or_the_table_changes(tmp_path: Path) -> None:
    """Listing, which has nothing to tell with, builds nothing."""
    told: list[str] = []
    peer = peer_of(Compiled(("malloc.c",), "-O2"))
    with pytest.raises(PeerError, match="is not built yet"):
        peers.library_of(peer, None, tmp_path)
    library = peers.library_of(peer, told.append, tmp_path)
    check_built(library)
    built = library.stat().st_mtime_ns
    assert [peers.library_of(peer, tell, tmp_path) for tell in (told.append, None)] == [library] * 2
    assert library.stat().st_mtime_ns == built
    assert told == [f"building some: {peer.origin}"]
    library.unlink()
    assert peers.library_of(peer, told.append, tmp_path).is_file()
    peers.library_of(peer_of(Compiled(("malloc.c",), "-O3")), told.append, tmp_path)
    assert ["-O3" in line for line in told] == [False, False, True]


def test_more_units_from_a_list(package: Path, tmp_path: Path) -> None:
    (package / "free.c").write_text("void free(void *p) { (void)p; }\n")
    (package / "build.rs").write_text('files(["free.c", "bridge.rs"])')
    recipe = Compiled(("malloc.c",), "-O2", listed_in="build.rs", listed_pattern=r'"(\w+\.c)"')
    check_built(peers.library_of(peer_of(recipe), ignore, tmp_path), "free")


@pytest.mark.usefixtures("package")
def test_its_own_build_system(tmp_path: Path) -> None:
    recipe = Commands(
        ("mkdir lib", "cc -shared -fPIC {source}/malloc.c -o {build}/lib/own.so"), "lib/own.so", "cc"
    )
    check_built(peers.library_of(peer_of(recipe), ignore, tmp_path))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (Compiled(("absent.c",), "-O2"), "the package has no absent.c"),
        (Compiled(("malloc.c",), "-O2 -Dmalloc=("), "error"),
        (Commands(("false",), "own.so", "false"), "false: no message"),
        (Commands(("true",), "own.so", "true"), "made no own.so"),
        (Commands(("no-such-tool-anywhere",), "own.so", ""), "no-such-tool-anywhere is not installed"),
        (Unpacked(("libsome.so",)), "no wheel"),
        (Found("/nowhere/libsome-{machine}.so"), "scripts/install-tools peers"),
    ],
)
def test_the_reason_is_told(tmp_path: Path, recipe: recipes.Recipe, reason: str) -> None:
    peer = peer_of(recipe)
    with pytest.raises(PeerError, match=re.escape(reason)):
        peers.library_of(peer, ignore, tmp_path)
    assert not peers.is_ready(peer, tmp_path), "the next campaign tries again"


def test_a_wheel(tmp_path: Path) -> None:
    folder = tmp_path / "sources" / "some-sys-1.2.3"
    folder.mkdir(parents=True)
    (folder / "complete").touch()
    with zipfile.ZipFile(folder / "some.whl", "w") as wheel:
        wheel.writestr("some.data/lib/libproxy.so", "proxy")
        wheel.writestr("some.data/lib/libsome.so", "itself")
    library = peers.library_of(peer_of(Unpacked(("libproxy.so", "libsome.so")), "PyPI"), ignore, tmp_path)
    assert library.read_text() == "proxy"
    assert (library.parent / "libsome.so").read_text() == "itself"


def test_a_proxy_is_preloaded_with_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader does not look beside it, says that it cannot be preloaded, and goes on without."""
    sources = {
        "libitself.so.2": "int served(void) { return 1; }",
        "libproxy.so.2": "int served(void) { return 2; }",
    }
    for name, source in sources.items():
        words = [*"cc -shared -fPIC -xc - -Wl,--no-as-needed".split(), f"-Wl,-soname,{name}", "-o", name]
        words += ["-L.", "-l:libitself.so.2"] if "proxy" in name else []
        subprocess.run(words, cwd=tmp_path, input=source, text=True, check=True)
    recipe = Unpacked(("libproxy.so.2", "libitself.so.2"))
    monkeypatch.setattr(allocators, "NEW_PEERS", (peer_of(recipe, "PyPI"),))
    monkeypatch.setattr(allocators, "library_of", lambda _peer, _tell: tmp_path / "libproxy.so.2")
    found, _ = find_allocators({}, NEW, ["some"])
    some = next(each for each in found if each.name == "some")
    assert some.expected_file == "libproxy.so.2"
    for environment in (allocator_environment(some), preload_variables(some)):
        words = ["env", f"LD_PRELOAD={environment['LD_PRELOAD']}", "cat", "/proc/self/maps"]
        done = captured(words, check=True)
        assert done.stderr == ""
        assert all(str(tmp_path / name) in done.stdout for name in sources)


def test_a_fetch_that_fails_leaves_nothing_that_looks_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(command: list[str], _folder: Path) -> None:
        raise PeerError(f"{command[0]} cannot reach its registry")

    monkeypatch.setattr(recipes, "run", refuse)
    for registry, client in (("crates.io", "cargo"), ("PyPI", Path(sys.executable).name)):
        with pytest.raises(PeerError, match=client):
            fetch(registry, "some", "1", tmp_path)
    assert not list(tmp_path.glob("sources/*/complete"))


def fake_library(tmp_path: Path) -> Compile:
    def library_of(peer: NewPeer, _tell: object) -> Path:
        if peer.name == "scudo":
            raise PeerError("could not be built: no such file")
        return tmp_path / f"lib{peer.name}.so"

    return library_of


def test_one_that_cannot_be_built_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocators, "library_of", fake_library(tmp_path))
    found, missing = find_allocators({"hakmem": tmp_path / "libhakmem.so"}, NEW)
    assert [each.name for each in found][:2] == ["hakmem", "glibc"]
    assert {each.name for each in found} == {"hakmem", "glibc", *peer_names(NEW)} - {"scudo"}
    assert missing == ["scudo could not be built: no such file"]


def test_only_what_is_wanted_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocators, "library_of", fake_library(tmp_path))
    found, missing = find_allocators({"rpmalloc": tmp_path / "own.so"}, NEW, ["mimalloc2", "rpmalloc"])
    assert {each.name for each in found if each.is_peer} == {"glibc", "mimalloc2", "rpmalloc"}
    assert next(each for each in found if each.name == "rpmalloc").library == tmp_path / "own.so"
    assert missing == []


def test_its_variables_hold_in_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tcmalloc is half as fast where glibc has taken the restartable sequences."""
    monkeypatch.setattr(allocators, "library_of", fake_library(tmp_path))
    found, _ = find_allocators({}, NEW, ["tcmalloc"])
    tcmalloc = next(each for each in found if each.name == "tcmalloc")
    for environment in (allocator_environment(tcmalloc), preload_variables(tcmalloc)):
        assert environment["GLIBC_TUNABLES"] == "glibc.pthread.rseq=0"
        assert environment["LD_PRELOAD"] == str(tmp_path / "libtcmalloc.so")
    assert "GLIBC_TUNABLES=glibc.pthread.rseq=0" in tcmalloc.origin


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--list"], "'old' is neither debian nor new"),
        (["--peers", "newest", "--list"], "'newest' is neither debian nor new"),
        (["--peers", "new", "--allocators", "snmallok", "--list"], "no such allocator: snmallok; there are"),
        (["--allocators", "snmalloc", "--list"], "no such allocator: snmalloc; there are"),
    ],
)
def test_wrong_choices(
    arguments: list[str],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PEERS", "old" if arguments == ["--list"] else "")
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert complaint in capsys.readouterr().err


def test_each_run_has_its_library_in_other_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of a file stay where they are until it is written anew."""
    monkeypatch.setattr(allocators, "OUTPUT", tmp_path / "bench")
    library, beside = tmp_path / "libpeer.so", tmp_path / "libmore.so"
    library.write_bytes(b"peer")
    beside.write_bytes(b"more")
    peer = Allocator("peer", library, needed=("libmore.so",))
    with (placed := placed_anew(peer).library or library).open("rb") as before:
        again = placed_anew(peer)
        assert again.library == placed != library and again.expected_file == peer.expected_file
        assert [Path(each).read_bytes() for each in again.preload.split(":")] == [b"peer", b"more"]
        assert placed.stat().st_ino != os.fstat(before.fileno()).st_ino
    assert placed_anew(GLIBC) is GLIBC
