"""The library as other compilers make it: no warning, the unit tests of its debug build pass, programs run on
it, and its fast paths have about as many instructions as gcc 12's.

`make test-compilers` takes all of compilers.py, a few minutes each (ONLY=regex for some of them), each in a
root of a release that has it: which compilers this machine has makes no difference."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

import fast_path
import pytest
from compilers.compilers import CHOSEN, Compiler, make_root
from results import fetched
from roots import Root

# What one more instruction may be: see docs/RELIABILITY.md.
MOST_INSTRUCTIONS = 1.15
NOT_QUICK_UNIT_TESTS = "^(model|fuzz|test_failure|test_sampling)"
PROGRAMS = {
    "api/realloc_content.c": (),
    "api/calloc_zero.c": (),
    "concurrency/blocks_outlive_thread.c": (),
    "concurrency/fork_under_load.c": ("40", "fork"),
    "concurrency/fuzz.c": ("1", "4", "4", "10000"),
}
FLAGS = ("-std=gnu17", "-O2", "-U_FORTIFY_SOURCE", "-fno-builtin", "-Iinclude", "-Itests", "-pthread")
TIMEOUT_S = 900

if os.environ.get("COMPILERS") != "all":
    pytest.skip("make test-compilers runs it", allow_module_level=True)
pytestmark = pytest.mark.timeout(TIMEOUT_S * 2)


@dataclass(frozen=True)
class Tried:
    """A compiler, and where it is."""

    compiler: Compiler
    root: Root

    def must(self, *words: str, **variables: str) -> str:
        step = self.root.run(*words, timeout_s=TIMEOUT_S, **variables)
        said = step.stdout + step.stderr
        assert step.returncode == 0, f"{' '.join(words)}\n{said[-6000:]}"
        return said

    def build(self, kind: str, *targets: str) -> str:
        """The name of the tree below the sources, built so that a warning is an error."""
        tree = f"build/{self.compiler.name}-{kind.lower()}"
        settings = {"CMAKE_C_COMPILER": self.compiler.name, "CMAKE_BUILD_TYPE": kind, "HAK_WERROR": "ON"}
        self.must("cmake", "-S", ".", "-B", tree, "-G", "Ninja", *(f"-D{n}={v}" for n, v in settings.items()))
        self.must("cmake", "--build", tree, *(("--target", *targets) if targets else ()))
        return tree


@pytest.fixture(scope="module", params=CHOSEN, ids=lambda one: one.name)
def tried(request: pytest.FixtureRequest) -> Tried:
    compiler: Compiler = request.param
    return Tried(compiler, fetched(compiler.name, make_root, compiler.suite))


@pytest.fixture(scope="module")
def product(tried: Tried) -> str:
    """The tree with the libraries; no warning on the way."""
    return tried.build("Release")


def test_the_version_is_what_the_name_says(tried: Tried) -> None:
    said = tried.must(tried.compiler.name, "-dumpversion")
    assert int(said.split(".")[0]) == tried.compiler.version


def test_unit_tests(tried: Tried) -> None:
    tree = tried.build("Debug")
    said = tried.must("ctest", "--test-dir", tree, "-j2", "-E", NOT_QUICK_UNIT_TESTS, "--output-on-failure")
    assert re.search(r"100% tests passed.* out of (\d{2,})", said)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("how", ["static", "preloaded"])
def test_program(how: str, program: str, tried: Tried, product: str) -> None:
    binary = f"{product}/{Path(program).stem}-{how}"
    archive = [f"{product}/libhakmem.a"] if how == "static" else []
    tried.must(tried.compiler.name, *FLAGS, f"tests/{program}", *archive, "-o", binary)
    variables = {"LD_PRELOAD": f"./{product}/libhakmem.so"} if how == "preloaded" else {}
    step = tried.root.run(
        *(f"./{binary}", *PROGRAMS[program]), timeout_s=TIMEOUT_S, HAKMEM_STATS="1", **variables
    )
    assert (step.returncode, step.stdout) == (0, "")
    assert "hakmem" in step.stderr


def instructions_of_gcc_12() -> dict[str, int]:
    """Of each fast path's hit, as the golden file has them."""
    part = fast_path.GOLDEN.read_text().partition("\ngcc 12 ")[2].partition("\n\n")[0]
    rows = [line.split() for line in part.splitlines()[1:] if line]
    return {row[0]: int(row[2]) for row in rows}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="fast_path reads x86-64's instructions")
def test_fast_paths(tried: Tried, product: str) -> None:
    library = tried.root.file(f"{product}/libhakmem.so")
    usual = instructions_of_gcc_12()
    counts = {name: len(fast_path.disassemble(library, name).hit_path()) for name in fast_path.FUNCTIONS}
    print(f"\n{tried.compiler.name}:", *(f"{name} {counts[name]} ({usual[name]})" for name in counts))
    too_many = {name for name, count in counts.items() if not 0 < count <= usual[name] * MOST_INSTRUCTIONS}
    assert not too_many, f"more than {MOST_INSTRUCTIONS} times gcc 12's instructions: {counts}, not {usual}"
