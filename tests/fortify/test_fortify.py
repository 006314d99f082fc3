"""libhakmem-fortify.so: no function of the C library touches more of a block than there is."""

import re
import signal
import subprocess
from pathlib import Path

import pytest
from results import Result, Run

HERE = Path(__file__).resolve().parent
HARDEN = {"HAKMEM_HARDEN": "1"}
CASES = re.findall(r'CASE\(\s*"([a-z_0-9 ]+)"', (HERE / "beyond.c").read_text())
READERS = {"memchr", "memcmp", "bcmp", "strlen", "strnlen", "strdup", "strndup", "wcslen", "wcsdup"}
READERS |= {"write", "pwrite", "pwrite64", "send", "sendto", "fwrite", "fwrite_unlocked"}
WIDE_BYTES = 4
# They find the end of what is there first: what they write begins behind it.
BEHIND_THE_TEXT = {"strlcat": 3, "wcslcat": 3 * WIDE_BYTES, "memcpy inside": 13}


@pytest.fixture
def beyond(run_program: Run, fortify_lib: Path, lib: Path) -> Run:
    """beyond(case, extra, **options) on both libraries."""

    def run(case: str, extra: int, library: Path = lib, **options: str) -> Result:
        env = HARDEN | {"LD_PRELOAD": f"{fortify_lib}:{library}"} | options
        return run_program(HERE / "beyond.c", "preload", args=[case, str(extra)], env=env, stats=False)

    return run


def expected(case: str) -> str:
    function = case.split()[0]
    is_read = function in READERS or "source" in case
    width = WIDE_BYTES if function.startswith("w") and not function.startswith("write") else 1
    offset = BEHIND_THE_TEXT.get(case, 0)
    return (
        rf"hakmem: {'over-read' if is_read else 'overflow'} in {function} of (0x[0-9a-f]+): "
        rf"{'reads' if is_read else 'writes'} {40 + width - offset} bytes, the block of 40 bytes at "
        rf"(0x[0-9a-f]+) has {40 - offset} left \(tiny class \d+, of thread \d+\)"
    )


def test_the_cases_are_found() -> None:
    assert len(CASES) > 90
    assert set(BEHIND_THE_TEXT) <= set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_one_more_is_stopped(case: str, beyond: Run) -> None:
    result = beyond(case, 1)
    assert result.returncode == -signal.SIGABRT, result
    first, stack, *frames = result.stderr.splitlines()
    line = re.fullmatch(expected(case), first)
    assert line, result.stderr
    assert int(line[1], 16) - int(line[2], 16) == BEHIND_THE_TEXT.get(case, 0)
    assert re.fullmatch(rf"hakmem:   {case.split()[0]} by thread \d+:", stack)
    assert "/fortify-beyond-" in frames[0], "the stack begins with who called it"


def test_what_is_right_is_silent(beyond: Run, debug_lib: Path) -> None:
    for options in ({}, {"HAKMEM_HARDEN": "2"}, {"HAKMEM_HARDEN": "0"}, {"HAKMEM_GUARD": "1"}):
        result = beyond("all", 0, **options)
        assert (result.returncode, result.stderr) == (0, ""), options
    result = beyond("all", 0, library=debug_lib)
    assert (result.returncode, result.stderr) == (0, "")


def test_more_may_be_named_than_is_touched(beyond: Run) -> None:
    result = beyond("loose", 0)
    assert (result.returncode, result.stderr) == (0, "")


def test_warned_of_and_done_all_the_same(beyond: Run) -> None:
    result = beyond("all", 1, HAKMEM_ON_MISUSE="warn")
    assert result.returncode == 0
    said = [line for line in result.stderr.splitlines() if re.match(r"hakmem: over(flow|-read) in ", line)]
    assert len(said) == len(CASES), "each once"
    assert beyond("all", 1, HAKMEM_ON_MISUSE="ignore").stderr == ""


def test_freed_blocks(beyond: Run) -> None:
    result = beyond("freed", 0)
    assert result.returncode == -signal.SIGABRT
    line = (
        r"hakmem: use after free in memcpy of 0x\w+: writes 8 bytes, the block of \d+ bytes at 0x\w+ is free "
    )
    assert re.match(line, result.stderr)


@pytest.mark.parametrize("size", ["16", "5000", "100000", "3000000"])
def test_the_size_of_a_free_block(size: str, run_program: Run) -> None:
    program = HERE / "object_size_of_freed.c"
    result = run_program(program, "linked", args=[size], env=HARDEN, stats=False)
    assert (result.returncode, result.stdout) == (-signal.SIGABRT, "0\n"), result
    line = r"hakmem: double malloc_object_size of 0x\w+: the block of \d+ bytes is free already "
    assert re.match(line, result.stderr), result.stderr
    options = HARDEN | {"HAKMEM_ON_MISUSE": "ignore"}
    result = run_program(program, "linked", args=[size], env=options, stats=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "0\n0\n", "")


def test_guarded_blocks(beyond: Run) -> None:
    result = beyond("memset", 1, HAKMEM_HARDEN="0", HAKMEM_GUARD="1", HAKMEM_GUARD_RATE="1")
    line = (
        r"hakmem: overflow in memset of 0x\w+: writes 41 bytes, the block of 40 bytes at 0x\w+ has 40 left "
    )
    assert re.match(line + r"\(guarded\)", result.stderr), result.stderr


def test_by_default_the_usable_size_counts(beyond: Run) -> None:
    assert beyond("all", 1, HAKMEM_HARDEN="0").returncode == 0
    result = beyond("memset", 100, HAKMEM_HARDEN="0")
    assert re.match(r"hakmem: overflow in memset of 0x\w+: writes 140 bytes, the block of 48 ", result.stderr)


def test_without_hakmem_it_says_so_and_does_nothing(run_program: Run, fortify_lib: Path) -> None:
    env = {"LD_PRELOAD": str(fortify_lib)}
    result = run_program(HERE / "beyond.c", "preload", args=["all", "0"], env=env, stats=False)
    line = "hakmem: warning: libhakmem-fortify.so checks nothing without libhakmem.so\n"
    assert (result.returncode, result.stderr) == (0, line)


@pytest.mark.parametrize("binding", ["-Wl,-z,now", "-Wl,-z,lazy"])
def test_early_and_anywhere(
    binding: str, cc: str, run_program: Run, fortify_lib: Path, lib: Path, tmp_path: Path
) -> None:
    early = tmp_path / "libearly.so"
    words = [cc, "-shared", "-fPIC", "-fno-builtin", "-O1", binding, HERE / "early.c", "-o", early]
    subprocess.run([str(word) for word in words], check=True)
    flags = [early, f"-Wl,-rpath,{tmp_path}", binding]
    for preloaded in (f"{fortify_lib}:{lib}", f"{lib}:{fortify_lib}", str(fortify_lib)):
        env = HARDEN | {"LD_PRELOAD": preloaded}
        result = run_program(HERE / "sound.c", "preload", *flags, env=env, stats=False)
        said = [line for line in result.stderr.splitlines() if "checks nothing without" not in line]
        assert (result.returncode, said) == (0, []), preloaded
