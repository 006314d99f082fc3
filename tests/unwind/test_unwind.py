"""src/stack/unwind: the same stacks as backtrace has, from everywhere, and no harm from any stack."""

import re
import shutil
from pathlib import Path

import pytest
import target
from results import Compile, Run, captured

Plain = Run

HERE = Path(__file__).resolve().parent
COMPILERS = ["gcc", "clang"]
PROTECTED = "-mbranch-protection=standard" if target.MACHINE == "aarch64" else "-fcf-protection=full"
CODE = [
    "-O0",
    "-O2 -fomit-frame-pointer",
    "-O2 -fno-omit-frame-pointer",
    f"-O3 {PROTECTED} -no-pie -Wl,-z,lazy",
    "-O2 -static-pie",
    "-O2 -static -Wl,--eh-frame-hdr",
    "-O2 -static -Wl,--no-eh-frame-hdr",  # what gcc does by default
    "-O2 -fomit-frame-pointer -no-pie -Wl,--section-start=.text=0x1000000",  # a gap before the code
]

on_x86_64 = pytest.mark.skipif(target.MACHINE != "x86_64", reason="its registers and traps are x86-64's")


def run(plain: Plain, *command: str | Path, env: dict[str, str] | None = None) -> str:
    result = plain(list(command), env=env)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr[-4000:]
    return result.stdout


def numbers_of(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", text)]


@pytest.mark.long("a second each; each compiler and its flags")
@pytest.mark.parametrize("flags", CODE)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_stacks_are_those_of_backtrace(compiler: str, flags: str, program: Compile, plain: Plain) -> None:
    assert numbers_of(run(plain, program("stacks.c", *flags.split(), compiler=compiler)))[0] > 300


@pytest.mark.long("2 seconds to compile each", keep=1)
@pytest.mark.parametrize("flags", CODE[:3])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_stacks_while_cxx_unwinds(compiler: str, flags: str, program: Compile, plain: Plain) -> None:
    assert numbers_of(run(plain, program("exceptions.cc", *flags.split(), compiler=compiler)))[0] > 50


@on_x86_64
@pytest.mark.parametrize("flags", [f"{flags} -Wl,-z,lazy" for flags in CODE[:4]] + CODE[5:6])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_signal_at_every_instruction(compiler: str, flags: str, program: Compile, plain: Plain) -> None:
    output = run(plain, program("every_instruction.c", *flags.split(), compiler=compiler))
    seen, different, incomplete, _ = numbers_of(output.splitlines()[-1])
    assert seen > 1000
    assert different == 0, output
    assert incomplete <= seen / 100, output


def test_libraries_that_take_each_others_place(program: Compile, compile_c: Compile, plain: Plain) -> None:
    """A rule that was kept for one must not serve for the next."""
    library = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--build-id=none"]
    plugins = [compile_c(HERE / "plugin.c", *library, f"-DFRAME_BYTES={size}") for size in (40, 72, 104)]
    stacks, replaced = numbers_of(run(plain, program("reload.c"), *plugins))
    assert stacks > 1000
    assert replaced > 100, "nothing was tested"


@on_x86_64
@pytest.mark.parametrize("flags", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_anything_on_the_stack_is_borne(compiler: str, flags: str, program: Compile, plain: Plain) -> None:
    output = run(plain, program("corrupt.c", flags, "-fno-omit-frame-pointer", compiler=compiler))
    stacks, complete = numbers_of(output)
    assert 0 < complete < stacks / 2


@pytest.mark.parametrize("stack", ["main", "thread", "context"])
def test_system_calls(stack: str, program: Compile, plain: Plain) -> None:
    run(plain, program("silent.c"), stack)


@pytest.mark.long("4 seconds to link each")
@pytest.mark.parametrize("flags", ["", "-ffunction-sections -Os"])
def test_a_large_static_program_without_a_table(flags: str, program: Compile, plain: Plain) -> None:
    """Its records are found piece by piece, and until then no frame is made up."""
    output = run(plain, program("large.c", "-O1", "-static", "-Wl,--no-eh-frame-hdr", *flags.split()))
    incomplete, complete = numbers_of(output)
    # gcc keeps frame pointers on aarch64 at every level: nothing has to be found first.
    assert incomplete > 3 or target.MACHINE == "aarch64"
    assert complete > 1000


@on_x86_64
@pytest.mark.parametrize("where", ["below", "above", "first"])
def test_memory_beside_a_stack_is_none_of_it(where: str, program: Compile, plain: Plain) -> None:
    """It may be unmapped while the thread runs."""
    result = plain([program("foreign.c", "-O1"), where])
    if result.returncode == 77:
        pytest.skip("something lies below the first thread's data")
    assert (result.returncode, result.stderr) == (0, "")
    assert numbers_of(result.stdout)[0] > 1


# ---- whole programs ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def hook(program: Compile) -> Path:
    return program("hook.c", "-shared")


RUST = """
use std::{collections::HashMap, panic, thread};
fn fill(count: usize) -> HashMap<String, Vec<u8>> {
    (0..count).map(|i| (format!("key {i}"), vec![1u8; i % 700])).collect()
}
fn work(count: usize) -> usize {
    let fallen = panic::catch_unwind(|| {
        if fill(count).len() == count { panic!("as meant") }
    });
    fill(count).len() + fallen.is_err() as usize
}
fn main() {
    panic::set_hook(Box::new(|_| {}));
    let threads: Vec<_> = (0..4).map(|i| thread::spawn(move || work(300 + i))).collect();
    println!("{}", threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>());
}
"""
GO = """
package main

// #include <stdlib.h>
// static int compare(const void *a, const void *b) {
//   void *volatile block = malloc(*(int *)a);
//   free(block);
//   return *(int *)a - *(int *)b;
// }
// static void work(void) { int x[] = {5, 3, 8, 1}; qsort(x, 4, sizeof *x, compare); }
import "C"
import "sync"

func deep(n int) int { if n == 0 { C.work(); return 1 }; return deep(n-1) + 1 }

func main() {
    var all sync.WaitGroup
    for i := 0; i < 24; i++ { all.Add(1); go func() { defer all.Done(); println(deep(20)) }() }
    all.Wait()
    C.exit(0) // runs what C programs run at their end
}
"""


def build_or_skip(tool: str, source: Path, text: str, *command: str | Path, cwd: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    source.write_text(text)
    step = captured(command, cwd=cwd, timeout=300)
    if step.returncode != 0:
        pytest.skip(f"{tool} does not work: {step.stderr[-200:]}")


def commands(which: str, folder: Path) -> list[str | Path]:
    """A program that allocates, and how often it is looked at."""
    if which == "rust":
        build_or_skip("rustc", folder / "main.rs", RUST, "rustc", "-O", "main.rs", "-o", "main", cwd=folder)
        return [folder / "main"]
    if which == "go":
        (folder / "go.mod").write_text("module main\n\ngo 1.19\n")
        build_or_skip("go", folder / "main.go", GO, "go", "build", "-o", "main", cwd=folder)
        return [folder / "main"]
    work = "import json, re; json.dumps(list(range(9999))); [re.compile('a+%d' % i) for i in range(99)]"
    source = HERE / "stacks.c"
    include = f"-I{HERE.parents[1] / 'src'}"
    return {
        "python": ["/usr/bin/python3", "-c", work],
        "perl": ["perl", "-e", "my %h; for (1 .. 30000) { $h{$_} = 'x' x ($_ % 100) } print scalar keys %h"],
        "bash": ["bash", "-c", "for i in $(seq 100); do x=$x$(echo $i); done; echo ${#x}"],
        "gcc": ["gcc", "-D_GNU_SOURCE", "-O2", include, "-c", source, "-o", folder / "gcc.o"],
        "clang": ["clang", "-D_GNU_SOURCE", "-O2", include, "-c", source, "-o", folder / "clang.o"],
        "git": ["git", "log", "--stat", "-20"],
    }[which]


@target.not_there
@pytest.mark.parametrize("which", ["python", "perl", "bash", "gcc", "clang", "git", "rust", "go"])
def test_programs(which: str, hook: Path, plain: Plain, tmp_path: Path) -> None:
    """At one in some calls of malloc, in all processes: as backtrace has it, and 99 of 100 complete."""
    command, report = commands(which, tmp_path), tmp_path / "report"
    every = {"gcc": "97", "clang": "97", "python": "31", "go": "1"}.get(which, "5")
    environment = {
        "LD_PRELOAD": str(hook),
        "HOOK_EVERY": every,
        "HOOK_REPORT": str(report),
        "PYTHONMALLOC": "malloc",
    }
    result = plain(command, env=environment)
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [numbers_of(line) for line in report.read_text().splitlines()]
    seen, different, incomplete = (sum(column) for column in zip(*lines, strict=True))
    assert seen > 50
    assert different == 0
    assert incomplete <= seen / 100


# ---- programs that hakmem is linked into: stacks begin where hakmem ends, as with the shared library -----


@pytest.mark.parametrize("flags", ["-rdynamic", "-rdynamic -no-pie", "-rdynamic -Wl,--gc-sections"])
def test_reports_leave_hakmem_out(flags: str, static_lib: Path, compile_c: Compile, plain: Run) -> None:
    program = compile_c(HERE / "archive.c", *flags.split(), static_lib)
    result = plain([program], env={"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"})
    innermost = re.findall(r"#0 .*\((\w+)\+0x", result.stderr)
    assert innermost == ["give", "make", "give"], result.stderr
