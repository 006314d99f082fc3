"""jemalloc's options: MALLOC_CONF, its Rust name, the program's variable and /etc/malloc.conf."""

import random
import signal
from pathlib import Path

import pytest
from results import Compile, Result, Run, captured

HERE = Path(__file__).resolve().parent
COMPAT = "compat/libjemalloc.so.2"
# The linker exports variables where the program is linked with a library that has the name.
EXPORTED = "-rdynamic"


@pytest.fixture
def told(compile_c: Compile, preload: Run, lib: Path) -> Run:
    """told(conf, name, *flags, **other variables): a name's value in a program on hakmem; on the library
    with jemalloc's name, if the flags make the program say something."""

    def run(conf: str, name: str, *flags: str, **env: str) -> Result:
        program = compile_c(HERE / "tell.c", f"-I{HERE.parent}", *flags)
        library = lib.parent / COMPAT if flags else lib
        return preload([program, name], env={"MALLOC_CONF": conf} | env, stats=False, library=library)

    return run


@pytest.mark.parametrize(
    ("conf", "name", "value"),
    [
        ("dirty_decay_ms:0,narenas:2,background_thread:true", "opt.narenas", "2"),
        ("dirty_decay_ms:0,narenas:2,background_thread:true", "opt.background_thread", "1"),
        ("dirty_decay_ms:5000", "arena.0.dirty_decay_ms", "5000"),
        ("dirty_decay_ms:-1", "arena.0.dirty_decay_ms", "-1"),
        ("dirty_decay_ms:99999999999", "arena.0.dirty_decay_ms", "86400000"),
        ("background_thread:false", "background_thread", "0"),
        ("prof:true,lg_prof_sample:12", "prof.active", "1"),
        ("prof:true,lg_prof_sample:12", "prof.lg_sample", "12"),
        ("prof:true,lg_prof_sample:50", "prof.lg_sample", "45"),
        ("prof:true,prof_active:false", "prof.active", "0"),
        ("prof_prefix:/tmp/heap", "opt.prof_prefix", "/tmp/heap"),
        ("junk:alloc,zero:true,thp:always,hpa:true,bin_shards:1-8:4|16-64:2", "opt.zero", "1"),
        ("narenas:1,narenas:4,", "opt.narenas", "4"),
        ("", "opt.narenas", "1"),
        ("", "opt.background_thread", "0"),
    ],
)
def test_option(conf: str, name: str, value: str, told: Run) -> None:
    result = told(conf, name)
    assert (result.returncode, result.stdout, result.stderr) == (0, value + "\n", "")


def test_a_later_place_comes_before_an_earlier_one(told: Run) -> None:
    of_program = ('-DCONF="narenas:2,tcache:false"', EXPORTED)
    assert told("", "opt.narenas", *of_program).stdout == "2\n"
    assert told("narenas:3", "opt.narenas", *of_program).stdout == "3\n"
    assert told("narenas:3", "opt.narenas", *of_program, _RJEM_MALLOC_CONF="narenas:4").stdout == "4\n"
    assert told("narenas:3", "opt.tcache", *of_program).stdout == "0\n"


def test_options_of_hakmem_win(told: Run) -> None:
    conf = "dirty_decay_ms:5,background_thread:true,prof:true"
    own = {"HAKMEM_DECAY_MS": "7", "HAKMEM_HELPER_THREAD": "0", "HAKMEM_PROFILE": "0"}
    names = {"arena.0.dirty_decay_ms": "7", "background_thread": "0", "prof.active": "0"}
    assert {name: told(conf, name, **own).stdout.strip() for name in names} == names


@pytest.mark.parametrize(
    "conf", ["narenas", "narenas:many", "zero:1", "dirty_decay_ms:--1", "a:b,:,c", "narenas:1," * 400]
)
def test_a_fault_is_told_and_ends_the_program_if_wanted(conf: str, told: Run) -> None:
    result = told(conf, "opt.zero")
    assert (result.returncode, result.stdout) == (0, "0\n")
    if conf != "a:b,:,c":
        assert result.stderr.startswith("hakmem: warning: MALLOC_CONF: ")
        ended = told(conf, "opt.zero", _RJEM_MALLOC_CONF="abort_conf:true")
        assert ended.returncode == -signal.SIGABRT


def test_confirm_conf_tells_all_places(told: Run) -> None:
    lines = told("confirm_conf:true", "opt.zero").stderr.splitlines()
    assert 'hakmem: MALLOC_CONF: "confirm_conf:true"' in lines
    assert len(lines) == 4


def test_stats_print_and_prof_final_come_at_the_end(told: Run, tmp_path: Path) -> None:
    result = told(f"stats_print:true,prof:true,prof_final:true,prof_prefix:{tmp_path}/p", "opt.zero")
    assert "End jemalloc statistics" in result.stderr
    assert [path.read_text()[:8] for path in tmp_path.glob("p.*.m0.heap")] == ["heap_v2/"]


def test_the_program_writes_reports(told: Run) -> None:
    result = told("stats_print:true", "opt.narenas", "-DMESSAGE", EXPORTED)
    assert (result.stdout[:5], result.stderr) == ("1\n___", "")


def test_any_bytes(compile_c: Compile, preload: Run) -> None:
    program = compile_c(HERE / "tell.c", f"-I{HERE.parent}")
    chance = random.Random(1)
    pieces = [
        "narenas",
        "prof_prefix",
        "dirty_decay_ms",
        ":",
        ",",
        "-1",
        "true",
        "\udcff",
        "\x01",
        '"',
        "9" * 30,
    ]
    for _ in range(60):
        conf = "".join(chance.choices(pieces, k=chance.randrange(12)))
        result = preload([program, "opt.zero"], env={"MALLOC_CONF": conf}, stats=False)
        assert result.returncode == 0, conf


def test_link_is_read_by_the_library_with_jemallocs_name(lib: Path, compile_c: Compile) -> None:
    """In a file system of its own: /etc is the machine's."""
    program = compile_c(HERE / "tell.c", f"-I{HERE.parent}")
    link = "mount -t tmpfs none /etc && ln -s narenas:9 /etc/malloc.conf"
    inner = f"{link} && exec env LD_PRELOAD=$0 $1 opt.narenas"
    found = {}
    for library in (lib.parent / COMPAT, lib):
        words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inner, library, program]
        result = captured(words)
        if "unshare" in result.stderr or "mount" in result.stderr:
            pytest.skip(f"no file system of its own: {result.stderr.strip()}")
        found[library.name] = result.stdout
    assert found == {"libjemalloc.so.2": "9\n", "libhakmem.so": "1\n"}
