"""New processes from programs with many threads."""

from pathlib import Path

import pytest
from modes import assert_clean, assert_silent
from results import Compile, Run

HERE = Path(__file__).resolve().parent


MORE = pytest.mark.long("3 seconds each; other rows have each function, mode and option")


@pytest.mark.long("5 seconds each; hundreds of forks")
@pytest.mark.parametrize(
    ("mode", "forks", "function", "options"),
    [
        ("preload", "600", "fork", {}),
        ("preload", "200", "fork", {"HAKMEM_HELPER_THREAD": "1", "HAKMEM_DECAY_MS": "1"}),
        pytest.param("preload-debug", "200", "fork", {}, marks=MORE),
        pytest.param("static", "200", "fork", {"HAKMEM_DECAY_MS": "0"}, marks=MORE),
        ("preload", "400", "_Fork", {}),
        ("preload", "200", "_Fork", {"HAKMEM_HARDEN": "1"}),
        ("preload-debug", "400", "clone", {"HAKMEM_DECAY_MS": "1"}),
        pytest.param("static", "400", "_Fork", {}, marks=MORE),
    ],
)
def test_fork_under_load(
    mode: str, forks: str, function: str, options: dict[str, str], run_program: Run
) -> None:
    # No reports: they would mix with those of hundreds of children.
    source = HERE / "fork_under_load.c"
    assert_silent(run_program(source, mode, args=[forks, function], env=options, stats=False, timeout=120))


# Programs that fork, with what others do meanwhile; how often, in each mode.
FORKING = {
    "fork_many_heaps": {"preload": "100", "preload-debug": "50"},
    "fork_named_heaps": {"linked": "60", "linked-debug": "30", "static": "30"},
    # The C library takes locks of its own for a fork, whose holders may wait in malloc.
    "fork_stdio": {"preload": "500", "preload-debug": "200", "static": "200"},
    # A signal handler that has interrupted malloc or free, which goes on in the parent and in the child.
    "fork_in_handler": {"preload": "50", "preload-debug": "50"},
}
CASES = [(name, *way, "0") for name, ways in FORKING.items() for way in ways.items()]


@pytest.mark.long("a second each", keep=1)
@pytest.mark.parametrize(
    ("name", "mode", "forks", "harden"), [*CASES, ("fork_named_heaps", "linked", "20", "1")]
)
def test_program(name: str, mode: str, forks: str, harden: str, run_program: Run) -> None:
    env = {"HAKMEM_HARDEN": harden}
    assert_silent(run_program(HERE / f"{name}.c", mode, args=[forks], env=env, stats=False, timeout=100))


@pytest.mark.long("a second each", keep=1)
@pytest.mark.parametrize(
    ("name", "args", "env"),
    [("fork_generations", [], {}), ("fork_while_swept", ["600"], {"HAKMEM_DECAY_MS": "0"})],
)
@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_program_that_reports(
    mode: str, name: str, args: list[str], env: dict[str, str], run_program: Run
) -> None:
    assert_clean(run_program(HERE / f"{name}.c", mode, args=args, env=env))


def test_reports_of_parent_and_children(run_program: Run) -> None:
    """Every second child leaves through exit() and reports; its counters go on from the parent's."""
    result = run_program(HERE / "fork_under_load.c", "preload", args=["20", "fork"])
    assert_clean(result)
    assert len(result.stats) == 1 + 10


@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
def test_spawn(mode: str, run_program: Run) -> None:
    result = run_program(HERE / "spawn.c", mode)
    assert_silent(result)
    assert result.served >= 1


@pytest.mark.parametrize("starter", ["pthread", "c11", "timer"])
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "linked"])
def test_handlers_come_last(mode: str, starter: str, run_program: Run, compile_c: Compile) -> None:
    """A library that is initialised before hakmem has a lock that is held while its holder allocates."""
    library = compile_c(HERE / "fork_handlers.c", "-shared", "-fPIC")
    needed = [library, f"-Wl,-rpath,{library.parent}"]
    assert_clean(run_program(HERE / "fork_order.c", mode, *needed, args=[starter]))
