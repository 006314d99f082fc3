"""Hardened mode: a block goes back as it came: malloc to free, new to delete, new[] to delete[]."""

import re
import signal
from pathlib import Path

import pytest
from results import Result, Run

HERE = Path(__file__).resolve().parent / "operators"
HARDENED = {"HAKMEM_HARDEN": "1", "HAKMEM_HARDEN_OPERATORS": "2"}
GUARDS = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}
SIZES = ("60", "5000", "200000")
MAKERS = {
    "malloc": ["malloc", "calloc", "memalign", "realloc"],
    "new": ["new", "new-nothrow", "new-aligned", "new-aligned-nothrow"],
    "new[]": ["new[]", "new[]-nothrow", "new[]-aligned", "new[]-aligned-nothrow"],
}
FREERS = {
    "malloc": ["free", "realloc", "realloc-in-place"],
    "new": ["delete", "delete-nothrow", "delete-aligned", "delete-sized", "delete-sized-aligned"],
    "new[]": ["delete[]", "delete[]-nothrow", "delete[]-aligned", "delete[]-sized", "delete[]-sized-aligned"],
}
VERBS = {"malloc": "(?:free|realloc)", "new": "delete", "new[]": r"delete\[\]"}
# Every maker once with a freer of each other kind, and every freer with a maker of each other kind.
WRONG = sorted(
    {
        (made_by, maker, freed_as, freer)
        for made_by, makers in MAKERS.items()
        for freed_as, freers in FREERS.items()
        for maker in makers
        for freer in freers
        if made_by != freed_as and (maker == makers[0] or freer == freers[0])
    }
)
RIGHT = [(maker, freer) for kind, makers in MAKERS.items() for maker in makers for freer in FREERS[kind]]


def run_pair(run_program: Run, mode: str, *words: str, **options: str) -> Result:
    return run_program(HERE / "pairs.cc", mode, args=words, env=HARDENED | options, stats=False)


def assert_told(result: Result, made_by: str, freed_as: str, size: str, where: str) -> None:
    line = (
        rf"hakmem: mismatched {VERBS[freed_as]} of 0x[0-9a-f]+: the block of {size} bytes was made "
        rf"by {re.escape(made_by)} \({where}\)"
    )
    assert result.returncode == -signal.SIGABRT, result
    assert re.fullmatch(line, result.stderr.splitlines()[0]), result


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize("guards", [{}, GUARDS], ids=["plain", "guarded"])
@pytest.mark.parametrize("mode", ["preload", "static-debug"])
def test_the_wrong_way_is_told(mode: str, guards: dict[str, str], run_program: Run) -> None:
    for made_by, maker, freed_as, freer in WRONG:
        for size in SIZES:
            result = run_pair(run_program, mode, maker, freer, size, **guards)
            where = r"(?:guarded|(?:tiny|mid|big) class \d+(?:, of thread \d+)?)"
            assert_told(result, made_by, freed_as, size, where)


@pytest.mark.parametrize("guards", [{}, GUARDS], ids=["plain", "guarded"])
def test_the_right_way_is_silent(guards: dict[str, str], run_program: Run) -> None:
    for maker, freer in RIGHT:
        for size in SIZES:
            result = run_pair(run_program, "preload", maker, freer, size, **guards)
            assert (result.returncode, result.stderr) == (0, ""), (maker, freer, size)


@pytest.mark.parametrize("size", SIZES)
def test_in_a_heap_in_use(size: str, run_program: Run) -> None:
    """What made a block of a heap is noted as of any other."""
    for made_by, maker, freed_as, freer in WRONG:
        if maker != MAKERS[made_by][0] or freer != FREERS[freed_as][0]:
            continue
        result = run_pair(run_program, "preload", maker, freer, size, "tenant")
        assert_told(result, made_by, freed_as, size, r"(?:tiny|mid|big) class \d+.*")
    for kind, makers in MAKERS.items():
        maker, freer = makers[-1], FREERS[kind][-1]
        result = run_pair(run_program, "preload", maker, freer, size, "tenant")
        assert (result.returncode, result.stderr) == (0, ""), (maker, freer, size)


def test_warned_of_once_and_freed_all_the_same(run_program: Run) -> None:
    for _, maker, _, freer in WRONG:
        result = run_pair(run_program, "static", maker, freer, "5000", HAKMEM_ON_MISUSE="warn")
        assert result.returncode == 0, (maker, freer, result.stderr)
        said = [line for line in result.stderr.splitlines() if line.startswith("hakmem: mismatched")]
        assert len(said) == 1, (maker, freer, result.stderr)


def test_by_default_malloc_may_be_mixed_with_new(run_program: Run) -> None:
    """A library's own operators, which nobody else sees, make blocks by malloc."""
    for made_by, maker, freed_as, freer in WRONG:
        is_told = "malloc" not in (made_by, freed_as)
        result = run_pair(run_program, "preload", maker, freer, "60", HAKMEM_HARDEN_OPERATORS="1")
        assert (result.returncode != 0) == is_told, (maker, freer, result.stderr)


@pytest.mark.parametrize("options", [{"HAKMEM_HARDEN_OPERATORS": "0"}, {"HAKMEM_HARDEN": "0"}])
def test_programs_may_be_let_mix(options: dict[str, str], run_program: Run) -> None:
    for _, maker, _, freer in WRONG:
        result = run_pair(run_program, "preload", maker, freer, "60", **options)
        assert (result.returncode, result.stderr) == (0, ""), (maker, freer)


@pytest.mark.parametrize("options", [{}, HARDENED], ids=["default", "hardened"])
@pytest.mark.parametrize("forms", [[], ["-DNEW_ONLY"]], ids="".join)
@pytest.mark.parametrize("mode", ["preload", "static"])
def test_a_program_with_its_own_operators_may_have_some_of_ours(
    mode: str, forms: list[str], options: dict[str, str], run_program: Run
) -> None:
    result = run_program(HERE / "own_operators.cc", mode, *forms, env=options, stats=False)
    assert (result.returncode, result.stderr) == (0, "")
