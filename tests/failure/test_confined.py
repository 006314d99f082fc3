"""Programs under filters of system calls (seccomp): what docs/RELIABILITY.md lists is all that is asked."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS, assert_silent
from results import Compile, Run, captured
from shape.sources import sources

HERE = Path(__file__).resolve().parent

ANY_TIME = "any time"
MODES: dict[str, dict[str, str]] = {
    "default": {},
    "rounds": {"HAKMEM_DECAY_MS": "1", "HAKMEM_HELPER_THREAD": "1"},
    "limits": {"HAKMEM_LIMIT_SOFT": "20M", "HAKMEM_DECAY_MS": "10"},
    "hardened": {"HAKMEM_HARDEN": "2"},
    "guarded": {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"},
    "profiled": {"HAKMEM_PROFILE": "1"},
}
# How the filter comes, and what the library must be told for it.
WAYS: dict[str, dict[str, str]] = {
    "prctl": {},
    "tsync": {},
    "fork": {},
    "exec": {},
    "raw": {"HAKMEM_CONFINED": "1"},
}

# Functions of the C library that hakmem calls beside the kernel itself, and the calls that they are.
CALLS = {
    "madvise": "madvise",
    "mmap": "mmap",
    "mremap": "mremap",
    "munmap": "munmap",
    "abort": "tgkill",
}
NO_CALLS = set(
    """
    _ZSt15get_new_handlerv _ZSt17__throw_bad_allocv __environ environ __errno_location
    __libc_single_threaded _dl_find_object dladdr dlsym fwrite getauxval memcmp
    dl_iterate_phdr memcpy memmove memset pthread_attr_init
    pthread_attr_setdetachstate pthread_attr_setstacksize pthread_getspecific pthread_key_create
    pthread_setspecific
    pthread_mutex_lock pthread_mutex_unlock pthread_setcancelstate sysconf __getauxval
    """.split()
)


def listed_calls(root: Path) -> dict[str, str]:
    """The table of system calls: name, and when it may come."""
    text = (root / "docs/RELIABILITY.md").read_text()
    section = text[text.index("## System calls") : text.index("## Limits")]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]+) \|", section, re.MULTILINE)
    return {name: when for names, when in rows for name in re.findall(r"`(\w+)`", names)}


def calls_of_sources(root: Path, lib: Path) -> set[str]:
    text = "".join(path.read_text() for path in (root / "src/os").glob("os_linux*.c"))
    made = set(re.findall(r"\bSYS_(\w+)", text))
    made |= {"clone3"} if "pthread_create(" in text else set()  # which is the library's own first
    made |= {"clone"} if 'os_next_symbol("clone")' in text else set()
    lines = captured(["nm", "-D", "--undefined-only", lib], check=True).stdout.splitlines()
    for name in {line.split()[-1].split("@")[0] for line in lines} - NO_CALLS:
        assert name in CALLS, f"{name}: which system call is it?"
        made.add(CALLS[name])
    return made


def test_the_list_is_that_of_the_sources(root: Path, lib: Path) -> None:
    assert set(listed_calls(root)) == calls_of_sources(root, lib)


def test_no_call_is_made_elsewhere() -> None:
    """But for a processor whose instruction is not known."""
    here = ("os_linux", "system_call")
    others = [path for path in sources(".c", ".h") if not path.name.startswith(here)]
    assert not [path for path in others if re.search(r"\bSYS_\w+|\bsyscall\(", path.read_text())]


@pytest.fixture
def allowed(root: Path) -> str:
    return ",".join(name for name, when in listed_calls(root).items() if when == ANY_TIME)


@pytest.fixture
def program(compile_c: Compile) -> Path:
    return compile_c(HERE / "confined.c", INCLUDE_TESTS)


def test_at_any_time_come_those_of_every_malloc(program: Path, allowed: str, plain: Run) -> None:
    """The program and its filters are right: the C library's malloc passes."""
    for threads in ("single", "threads"):
        assert plain([program, "kill", "prctl", threads, allowed]).returncode == 0


def test_what_is_not_listed_ends_the_process(program: Path, allowed: str, lib: Path, plain: Run) -> None:
    fewer = ",".join(name for name in allowed.split(",") if name != "madvise")
    result = plain([program, "kill", "prctl", "single", fewer], env={"LD_PRELOAD": str(lib)})
    assert result.returncode != 0


@pytest.fixture
def goes_through(
    program: Path, allowed: str, lib: Path, plain: Run
) -> Callable[[str, str, str, dict[str, str]], None]:
    def run(action: str, way: str, threads: str, mode: dict[str, str]) -> None:
        environment = {"LD_PRELOAD": str(lib)} | WAYS[way] | mode
        result = plain([program, action, way, threads, allowed], env=environment, timeout=60)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), threads

    return run


# A way is how the filter is noticed, a mode decides which calls are made then: two rows of each are whole.
KILLED = [
    (way, mode) for way in WAYS for mode in MODES if way in ("prctl", "fork") or mode in ("default", "rounds")
]


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize(("way", "mode"), KILLED)
def test_filters_that_kill(way: str, mode: str, goes_through: Callable[..., None]) -> None:
    for threads in ("single", "threads"):
        goes_through("kill", way, threads, MODES[mode])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("action", ["eperm", "enosys"])
def test_filters_that_refuse(action: str, way: str, goes_through: Callable[..., None]) -> None:
    for threads in ("single", "threads"):
        goes_through(action, way, threads, MODES["rounds"])


@pytest.mark.parametrize("way", WAYS)
def test_threads_have_ended_before(way: str, goes_through: Callable[..., None]) -> None:
    """A helper thread that is still there must not end: that takes calls that the filter may not list."""
    goes_through("kill", way, "ended", {"HAKMEM_DECAY_MS": "100"})


def test_linked_with_the_archive(static_lib: Path, allowed: str, compile_c: Compile, plain: Run) -> None:
    program = compile_c(HERE / "confined.c", INCLUDE_TESTS, static_lib)
    for action in ("kill", "eperm"):
        assert_silent(plain([program, action, "prctl", "single", allowed], env={"HAKMEM_CONFINED": "1"}))
