"""Names from outside: symbols, lines, inlined calls, separate files, maps of JIT compilers, debuginfod."""

import lzma
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from compiling import marked_lines
from hakmem.profile import lines
from hakmem.profile.debug_files import Debuginfod
from hakmem.profile.files import save, writer_of
from hakmem.profile.model import Frame, Mapping, Profile, Sample
from hakmem.profile.names import Sources, mappings_of, name_addresses
from hakmem.profile.perf_map import parsed, perf_map_of
from hakmem.target.demangle import demangled, readable_rust
from hakmem.target.elf import open_elf
from hakmem.target.functions import symbols_of
from hakmem.target.locate import file_of
from hakmem.target.process import Process
from results import Find, captured
from tool.conftest import Tool

SOURCE = Path(__file__).parent / "programs" / "sites.cc"
LINES = marked_lines(SOURCE)
GROW = "app::Cache<std::vector<int, std::allocator<int> > >::grow(unsigned long)"
LOADED_AT = 0x7F0000000000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with everything that a file can have."""
    path = tmp_path_factory.mktemp("names") / "server"
    words = ["g++", "-O2", "-g", "-Wl,--build-id", str(SOURCE), "-o", str(path)]
    subprocess.run(words, check=True)
    return path


@pytest.fixture(scope="module")
def call(server: Path) -> int:
    """The address of the call of malloc in it, before loading."""
    words = ["objdump", "-d", "--no-show-raw-insn", str(server)]
    text = captured(words, check=True).stdout
    body = text.split("<_ZN3app5CacheISt6vectorIiSaIiEEE4growEm>:", 1)[1]
    found = re.search(r"^\s+([0-9a-f]+):\s+(?:call|jmp)\w*\s.*<malloc", body, re.MULTILINE)
    assert found is not None, body[:2000]
    return int(found[1], 16)


def profile_of(path: Path, address: int, build_id: str | None = None) -> tuple[Profile, int]:
    """A profile of a process that had loaded the file; the address of the site in it."""
    file = open_elf(path)
    assert file is not None
    [segment] = [s for s in file.segments if s.address <= address < s.address + s.memory_bytes]
    start, offset = LOADED_AT + segment.address // 4096 * 4096, segment.offset // 4096 * 4096
    known = (file.build_id or "") if build_id is None else build_id
    mapping = Mapping(start, start + 0x10000, offset, str(path), known)
    site = LOADED_AT + address
    return Profile(mappings=[mapping], samples=[Sample((site,), 1, 64, 64, 64.0, 1.0)]), site


def named(path: Path, address: int, **options: object) -> tuple[Frame, ...]:
    profile, site = profile_of(path, address)
    name_addresses(profile, Sources(**options))  # type: ignore[arg-type]
    return profile.names.get(site, ())


def functions(frames: tuple[Frame, ...]) -> list[str]:
    return [frame.function for frame in frames]


def without_symbolic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "symbolic.debuginfo", None)


def check_lines(frames: tuple[Frame, ...]) -> None:
    inner, outer = frames
    assert re.match(r"(.*::)?raw|\(inlined\)$", inner.function)
    assert outer.function == GROW
    assert [(Path(frame.file).name, frame.line) for frame in frames] == [
        ("sites.cc", LINES["raw"]),
        ("sites.cc", LINES["grow"]),
    ]


def test_lines_and_inlined_calls_by_llvm(
    server: Path, call: int, monkeypatch: pytest.MonkeyPatch, program: Find
) -> None:
    program("llvm-symbolizer")
    without_symbolic(monkeypatch)
    check_lines(named(server, call))


def test_lines_and_inlined_calls_by_symbolic(
    server: Path, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("symbolic.debuginfo", reason="the extra hakmem[lines] is not installed")
    monkeypatch.setattr(lines, "_by_llvm", None)
    check_lines(named(server, call))


def test_lines_and_inlined_calls_by_addr2line(
    server: Path, call: int, monkeypatch: pytest.MonkeyPatch, program: Find
) -> None:
    program("addr2line")
    without_symbolic(monkeypatch)
    monkeypatch.setattr(lines, "_by_llvm", lambda *_: None)
    check_lines(named(server, call))
    monkeypatch.setattr(lines, "ADDR2LINE_TIMEOUT_S", 0.0)
    said: list[str] = []
    assert named(server, call, complain=said.append) == (Frame(GROW),)
    monkeypatch.setenv("PATH", "/nonesuch")
    assert named(server, call, complain=said.append) == (Frame(GROW),)
    why = ("it took too long", "nothing here reads them")
    assert said == [f"{server}: no lines: {one}; {lines.TO_FIX}" for one in why]


def test_a_debug_file_by_its_link(server: Path, stripped: Path, call: int, tmp_path: Path) -> None:
    debug = tmp_path / ".debug" / "server.debug"
    debug.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", server, debug], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", stripped], check=True)
    check_lines(named(stripped, call))


def test_functions_alone(server: Path, call: int) -> None:
    assert named(server, call, wants_lines=False) == (Frame(GROW),)


def test_a_program_without_debug_information(server: Path, call: int, tmp_path: Path) -> None:
    stripped = tmp_path / "server"
    subprocess.run(["strip", "-g", server, "-o", stripped], check=True)
    assert functions(named(stripped, call)) == [GROW]
    subprocess.run(["strip", stripped], check=True)
    assert named(stripped, call) == ()


def test_functions_in_gnu_debugdata(server: Path, stripped: Path, call: int, tmp_path: Path) -> None:
    """As Fedora strips its programs."""
    inner, packed = tmp_path / "inner", tmp_path / "packed"
    subprocess.run(["objcopy", "-S", "--only-keep-debug", "--keep-symbol=main", server, inner], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", "--strip-debug", server, inner], check=True)
    packed.write_bytes(lzma.compress(inner.read_bytes()))
    subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={packed}", stripped], check=True)
    assert functions(named(stripped, call)) == [GROW]
    packed.write_bytes(lzma.compress(inner.read_bytes())[:400])
    subprocess.run(["objcopy", f"--update-section=.gnu_debugdata={packed}", stripped], check=True)
    assert named(stripped, call) == ()


@pytest.fixture
def stripped(server: Path, tmp_path: Path) -> Path:
    """The program as it is delivered: without any name."""
    path = tmp_path / "server"
    subprocess.run(["strip", server, "-o", path], check=True)
    return path


def separate(server: Path, root: Path) -> Path:
    """The stripped program; its debug file is by its build id in a file system of its own."""
    file = open_elf(server)
    assert file is not None
    build_id = file.build_id or ""
    debug = root / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", server, debug], check=True)
    stripped = root / "opt" / "server"
    stripped.parent.mkdir()
    subprocess.run(["strip", server, "-o", stripped], check=True)
    return stripped


def test_debug_files_in_the_file_system_of_the_process(server: Path, call: int, tmp_path: Path) -> None:
    stripped = separate(server, tmp_path)
    profile, site = profile_of(stripped, call)
    [mapping] = profile.mappings
    profile.mappings = [Mapping(mapping.start, mapping.end, mapping.offset, "/opt/server", mapping.build_id)]
    name_addresses(profile, Sources(root=tmp_path))
    check_lines(profile.names[site])


def test_a_profile_is_named_later_and_elsewhere(server: Path, call: int, tmp_path: Path, tool: Tool) -> None:
    """The program has moved; the build id says that it is the one."""
    profile, _ = profile_of(server, call)
    [mapping] = profile.mappings
    profile.mappings = [Mapping(mapping.start, mapping.end, mapping.offset, "/gone/server", mapping.build_id)]
    taken, page = tmp_path / "x.pb.gz", tmp_path / "x.html"
    save(profile, taken, writer_of(taken))
    assert "server+0x" in tool("profile", taken).stdout
    shown = tool("profile", taken, "--files", server.parent).stdout
    assert f"(sites.cc:{LINES['raw']})" in shown
    assert tool("profile", taken, "--files", server, "-o", page).status == 0
    assert "app::Cache" in page.read_text()
    refused = tool("profile", taken, "-o", tmp_path / "x.txt")
    assert (refused.status, refused.stderr.count("\n")) == (1, 1)
    assert "tells no format" in refused.stderr


def test_another_build_of_the_file_names_nothing(server: Path, call: int) -> None:
    profile, site = profile_of(server, call, build_id="00" * 20)
    name_addresses(profile, Sources())
    assert site not in profile.names
    profile, site = profile_of(server, call, build_id="")  # none to compare: by its path
    name_addresses(profile, Sources())
    assert functions(profile.names[site])[-1] == GROW


def test_names_that_are_there_stay(server: Path, call: int) -> None:
    profile, site = profile_of(server, call)
    profile.names[site] = (Frame("from elsewhere"),)
    name_addresses(profile, Sources())
    assert profile.names[site] == (Frame("from elsewhere"),)


def test_damaged_files_name_nothing_and_break_nothing(server: Path, call: int, tmp_path: Path) -> None:
    whole, file, said = server.read_bytes(), tmp_path / "file", list[str]()

    def names_in(content: bytes, **options: object) -> list[str]:
        file.write_bytes(content)
        profile, site = profile_of(server, call, build_id="")
        [mapping] = profile.mappings
        profile.mappings = [Mapping(mapping.start, mapping.end, mapping.offset, str(file), "")]
        name_addresses(profile, Sources(complain=said.append, **options))  # type: ignore[arg-type]
        return functions(profile.names.get(site, ()))

    for length in [*range(0, 4096, 173), *range(4096, len(whole), len(whole) // 60)]:
        assert names_in(whole[:length], wants_lines=False) == []
    assert names_in(whole, wants_lines=False) == [GROW]
    damaged = bytearray(whole)
    for place in range(64, len(damaged), 61):
        damaged[place] ^= 0x5A
    assert names_in(damaged) == []
    assert "is damaged or truncated" in said[-1]


def test_functions_of_a_file_are_those_of_nm(server: Path) -> None:
    file = open_elf(server)
    assert file is not None
    found = symbols_of(file)
    assert found is not None
    text = captured(["nm", "-S", server], check=True).stdout
    rows = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwW] (\S+)$", text, re.MULTILINE)
    assert len(rows) >= 3
    for start, size, name in rows:
        for address in (int(start, 16), int(start, 16) + int(size, 16) - 1):
            assert (found.at(address) or [None])[0] == name
    assert found.at(0) is None


# ---- mappings and maps of a process -------------------------------------------------------------------


@pytest.fixture
def sleeper() -> Iterator[Process]:
    """A process that has started up, and waits."""
    words = [sys.executable, "-c", "print('here', flush=True); input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        yield Process(child.pid)
        child.stdin.write(b"\n")
        child.stdin.close()


def test_mappings_of_a_process_have_build_ids(sleeper: Process) -> None:
    mappings = mappings_of(sleeper.maps(), lambda mapping: file_of(sleeper, mapping))
    libc = next(mapping for mapping in mappings if "libc.so" in mapping.path)
    file = open_elf(libc.path)
    assert file is not None
    assert libc.build_id == file.build_id
    site = libc.start + 0x40000
    profile = Profile(mappings=mappings, samples=[Sample((site,), 1, 64, 64, 64.0, 1.0)])
    name_addresses(profile, Sources.of_process(sleeper))
    assert profile.names or file.address_of(0x40000 + libc.offset) is not None


def test_code_of_jit_compilers_is_named_by_the_map_of_the_process(sleeper: Process) -> None:
    path = Path(f"/tmp/perf-{sleeper.pid}.map")
    path.write_text("1000 100 LazyCompile:~leak /srv/app.js:3:14\nno line\n1100 10 old\n1100 20 new\n")
    try:
        found = perf_map_of(sleeper)
        assert found is not None
        profile = Profile(
            mappings=[Mapping(0x1000, 0x2000, 0, "")],
            samples=[Sample((0x10FF, 0x1110), 1, 64, 64, 64.0, 1.0)],
        )
        name_addresses(profile, Sources.of_process(sleeper))
    finally:
        path.unlink()
    assert profile.names == {0x10FF: (Frame("leak", "/srv/app.js", 3),), 0x1110: (Frame("new"),)}
    assert perf_map_of(sleeper) is None


def test_a_map_of_anything() -> None:
    assert not parsed("").mappings
    assert parsed("zz 1 a\n10\n-1 5 x\n").at(1 << 40) is None
    assert [(one.end, one.path) for one in parsed("0x10 0x10 with 0x").mappings] == [(0x20, "with 0x")]


# ---- mangled names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("main", "main"),
        ("_ZN3app5CacheISt6vectorIiSaIiEEE4growEm", GROW),
        (
            "_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h0123456789abcdefE",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
        ),
        (
            "_ZN50_$LT$T$u20$as$u20$core..convert..Into$LT$U$GT$$GT$4into17h0123456789abcdefE",
            "<T as core::convert::Into<U>>::into",
        ),
        (
            "_ZN9hashbrown3raw21RawTable$LT$T$C$A$GT$14reserve_rehash17ha00a0b46c0985afeE.llvm.1234567890",
            "hashbrown::raw::RawTable<T,A>::reserve_rehash",
        ),
        (
            "_ZN3app4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
            "app::main::{{closure}}",
        ),
        ("_Z", "_Z"),
        ("_ZNSt" * 2000, "_ZNSt" * 2000),
        ("", ""),
    ],
)  # fmt: skip
def test_names_as_their_authors_wrote_them(mangled: str, name: str) -> None:
    assert demangled([mangled]) == {mangled: name}


def test_newer_names_of_rust() -> None:
    if not any(map(shutil.which, ("llvm-cxxfilt", "c++filt"))):
        pytest.skip("neither llvm-cxxfilt nor c++filt is installed (llvm, binutils)")
    mangled = "_RNvNtCs1234_7mycrate3foo3bar"
    local = f"{mangled}.llvm.1234567890"
    assert demangled([mangled, local, "main"]) == {
        mangled: "mycrate::foo::bar",
        local: "mycrate::foo::bar",
        "main": "main",
    }


def test_rusts_units_of_code_are_not_files() -> None:
    symbol = {"FunctionName": "main", "FileName": "app.9458f455e83e3168-cgu.3", "Line": 0}
    assert lines._frame_of(symbol) == Frame("main")


def test_without_a_library_a_program_demangles(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("c++filt") is None:
        pytest.skip("c++filt is not installed (binutils)")
    monkeypatch.setattr("hakmem.target.demangle._cxa_demangle", lambda: None)
    assert demangled(["_ZN3app3runEv"]) == {"_ZN3app3runEv": "app::run()"}
    monkeypatch.setenv("PATH", "/nonesuch")
    assert demangled(["_ZN3app3runEv"]) == {"_ZN3app3runEv": "_ZN3app3runEv"}


def test_what_only_looks_like_rust_stays() -> None:
    assert readable_rust("app::h0123::f(a..b)") == "app::h0123::f(a..b)"


# ---- debuginfod ---------------------------------------------------------------------------------------


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A server on this machine; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}"
        finally:
            http.shutdown()
            thread.join()


def debug_server(folder: Path) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        found = re.fullmatch(r"/buildid/([0-9a-f]+)/debuginfo", request.path)
        path = folder / found[1][:2] / f"{found[1][2:]}.debug" if found else None
        if path is None or not path.is_file():
            request.send_error(404)
            return
        request.send_response(200)
        request.end_headers()
        request.wfile.write(path.read_bytes())

    return answer


def test_a_debuginfod_server_names_a_stripped_program(server: Path, call: int, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    stripped = separate(server, tmp_path / "root")
    cache = tmp_path / "cache"
    with serving(debug_server(tmp_path / "root/usr/lib/debug/.build-id")) as url:
        asked = Debuginfod([f"{url}/"], 60, cache=cache)
        check_lines(named(stripped, call, debuginfod=asked))
    # The server is gone: it was kept.
    check_lines(named(stripped, call, debuginfod=Debuginfod(["http://127.0.0.1:1"], 60, cache=cache)))


def test_what_no_server_has_stays_without_a_name(stripped: Path, call: int, tmp_path: Path) -> None:
    said: list[str] = []
    with serving(lambda request: request.send_error(404)) as url:
        asked = Debuginfod([url], 60, said.append, tmp_path / "cache")
        assert named(stripped, call, debuginfod=asked) == ()
    assert said == []
    gone = Debuginfod([url, "ftp://x"], 60, said.append, tmp_path / "cache")
    assert named(stripped, call, debuginfod=gone) == ()
    assert len(said) == 2
    assert "its functions may stay without names" in said[0]
    assert "begins with http://" in said[1]
    assert not list((tmp_path / "cache").glob("*/*"))


def test_a_server_that_never_answers_is_left_in_time(stripped: Path, call: int, tmp_path: Path) -> None:
    """It takes the connection and says nothing: the time-out ends it."""
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asked = Debuginfod([url, url], 0.2, said.append, tmp_path / "cache")
        assert named(stripped, call, debuginfod=asked) == ()
    assert len(said) == 1, "the time is for all servers together"
    assert "timed out" in said[0]


def test_a_server_that_drips_is_left_in_time(stripped: Path, call: int, tmp_path: Path) -> None:
    """There is always a little more: the time is for the whole file, not for each piece."""
    said, is_over = list[str](), threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        with suppress(OSError):
            for _ in range(3000):
                request.wfile.write(b"x")
                if is_over.wait(0.01):
                    break

    with serving(drip) as url:
        try:
            asked = Debuginfod([url], 0.3, said.append, tmp_path / "cache")
            assert named(stripped, call, debuginfod=asked) == ()
        finally:
            is_over.set()
    assert len(said) == 1
    assert "not complete after 0.3 s" in said[0]


def test_a_wrong_file_from_a_server_is_not_believed(stripped: Path, call: int, tmp_path: Path) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        request.wfile.write(Path("/bin/sh").read_bytes())

    with serving(answer) as url:
        assert named(stripped, call, debuginfod=Debuginfod([url], 60, cache=tmp_path / "cache")) == ()
