"""The Rust crates, as they would be uploaded: their content, how they compile, a program on them."""

import json
import re
import shlex
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from packages.rust_crates import PATIENCE_S, ROOT, Packed, cargo, done, need_cargo, pack, packed
from preload import clean_environment
from results import captured

SYS = ROOT / "rust" / "hakmem-sys"
# Rust's type in a declaration → C's.
TYPES = {
    "*mut u8": "unsigned char *",
    "*const *mut c_void": "void *const *",
    "*mut c_void": "void *",
    "*const c_void": "const void *",
    "*mut *mut c_void": "void **",
    "*mut c_char": "char *",
    "*const c_char": "const char *",
    "*mut hak_heap": "hak_heap *",
    "*mut *mut hak_heap": "hak_heap **",
    "*mut hak_figures": "struct hak_figures *",
    "usize": "size_t",
    "u64": "uint64_t",
    "u32": "uint32_t",
    "c_int": "int",
    "bool": "bool",
    "": "void",
}
# Flags of a build that do not change the code it makes: where files are, warnings, debug information.
NOT_CODE = re.compile(r"-I|-W|-w$|-g|-M[DTF]")
# Defaults, which a build may name or not.
IMPLIED = {"-m64", "-march=x86-64", "-std=gnu17"}
# Declared in the header under another project's names.
OF_HARDENED_MALLOC = {"malloc_object_size", "malloc_object_size_fast"}
NEW_CC = """[package]
name = "project"
edition = "2021"

[dependencies]
cc = "=1.11.3" # needs Rust 1.65
"""
SAMPLED_SHARE = 0.3  # of what a site holds that an estimate may be off: one sample in 4 KiB


@pytest.fixture(scope="module")
def crates() -> Packed:
    return packed()


# ---- what is in them -----------------------------------------------------------------------------------


def names_in(file: Path) -> set[str]:
    with tarfile.open(file) as archive:
        return {name.split("/", 1)[1] for name in archive.getnames()}


def test_they_hold_the_sources_of_the_tree(crates: Packed) -> None:
    words = "git ls-files --cached --others --exclude-standard src include cmake/whole.ld".split()
    listed = captured(words, cwd=ROOT, check=True).stdout.split()
    names = names_in(crates.files["hakmem-sys"])
    assert {name.removeprefix("c/") for name in names if name.startswith("c/")} == set(listed)
    for name in listed:
        assert (crates.unpacked("hakmem-sys") / "c" / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.parametrize("crate", ["hakmem-sys", "hakmem"])
def test_they_hold_what_a_user_looks_for(crate: str, crates: Packed) -> None:
    assert {"Cargo.toml", "LICENSE", "README.md", "src/lib.rs"} <= names_in(crates.files[crate])


def test_the_same_tree_gives_the_same_bytes(crates: Packed, tmp_path: Path) -> None:
    again = pack(tmp_path)
    assert {name: file.read_bytes() for name, file in again.items()} == {
        name: file.read_bytes() for name, file in crates.files.items()
    }


def test_they_are_the_same_whatever_cargo_has_fetched_before(crates: Packed, tmp_path: Path) -> None:
    """Here a cc that is newer than the oldest compiler: cargo took what it had without a network."""
    home = {"CARGO_HOME": str(tmp_path / "cargo")}
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src/lib.rs").touch()
    (project / "Cargo.toml").write_text(NEW_CC)
    done(cargo("fetch", cwd=project, env=home))
    again = pack(tmp_path / "packed", **home)
    for name, file in again.items():
        assert file.read_bytes() == crates.files[name].read_bytes()


def test_the_locked_crates_are_for_the_oldest_compiler() -> None:
    need_cargo()
    said = json.loads(done(cargo("metadata", "--locked", "--format-version=1", cwd=ROOT / "rust")))
    oldest = {one["name"]: version(one["rust_version"] or "0") for one in said["packages"]}
    assert {"cc", "hakmem", "hakmem-sys"} < set(oldest)
    assert max(oldest.values()) == oldest["hakmem"], oldest


def version(text: str) -> list[int]:
    return [int(part) for part in text.split(".")][:2]


# ---- the declarations ----------------------------------------------------------------------------------


def declarations() -> dict[str, str]:
    """Name → how C would declare what src/lib.rs declares."""
    text = (SYS / "src/lib.rs").read_text()
    found = re.findall(r"pub fn (\w+)\(([^)]*)\)(?: -> ([^;]+))?;", text)
    as_c = {}
    for name, parameters, result in found:
        types = [TYPES[one.split(": ", 1)[1].strip()] for one in filter(str.strip, parameters.split(","))]
        as_c[name] = f"extern {TYPES[result.strip()]} {name}({', '.join(types) or 'void'});"
    return as_c


def layout_of_figures() -> list[str]:
    """What C must say of the struct that src/lib.rs declares: numbers of 8 bytes, and the name after them."""
    text = (SYS / "src/lib.rs").read_text()
    body = text.partition("pub struct hak_figures {")[2].partition("\n}")[0]
    names = re.findall(r"pub (\w+): (?:u64|\[c_char; HEAP_NAME_BYTES\]),", body)
    assert len(names) == body.count("pub ") >= 8
    name_bytes = int(re.findall(r"HEAP_NAME_BYTES: usize = (\d+);", text)[0])
    sizes = [*(f"offsetof(struct hak_figures, {name}) == {8 * at}" for at, name in enumerate(names))]
    sizes.append(f"sizeof(struct hak_figures) == {8 * (len(names) - 1) + name_bytes}")
    return [f'_Static_assert({size}, "");' for size in sizes]


def test_declarations_are_those_of_the_header(cc: str) -> None:
    """The compiler compares them: of two declarations of a name that differ it refuses the second."""
    declared = declarations()
    header = (ROOT / "include/hakmem/hakmem.h").read_text()
    exported = set(re.findall(r"^HAK_EXPORT [^;]*?\b(\w+)\(", header, re.MULTILINE))
    assert set(declared) == exported - OF_HARDENED_MALLOC
    text = '#include <stddef.h>\n#include "hakmem/hakmem.h"\n'
    text += "\n".join([*declared.values(), *layout_of_figures()]) + "\n"
    words = [cc, "-std=c17", "-Werror", "-Iinclude", "-x", "c", "-fsyntax-only", "-"]
    step = captured(words, cwd=ROOT, input=text)
    assert step.returncode == 0, step.stderr


# ---- how it compiles -----------------------------------------------------------------------------------


def flags(words: list[str]) -> set[str]:
    """The words of one compilation that decide about the code."""
    rest = iter(words)
    kept = set()
    for word in rest:
        if word in ("-o", "-I", "-isystem", "-MF", "-MT"):
            next(rest)
        elif word.startswith("-") and word != "-c" and not NOT_CODE.match(word):
            kept.add(word)
    return kept - IMPLIED


def source(words: list[str]) -> str:
    (path,) = (word for word in words if word.endswith(".c") and "/src/" in word)
    return path.rsplit("/src/", 1)[1]


def compiled_by_cmake() -> list[list[str]]:
    """The sources of libhakmem.a, but for the C library's names and jemalloc's; in the linker's order."""
    commands = json.loads((ROOT / "build/compile_commands.json").read_text())
    mark = "/hakmem_objects.dir/"
    objects = [shlex.split(one["command"])[1:] for one in commands if mark in one["command"]]
    assert objects, "build/compile_commands.json knows no hakmem_objects"
    return [words for words in objects if not source(words).startswith(("api/override", "jemalloc/"))]


@pytest.mark.long("compiles the crate once more")
def test_it_is_compiled_as_cmake_does(crates: Packed, lib: Path) -> None:
    """The same sources, by the same flags, in the same order."""
    assert lib.exists()
    crates.build("consumer")
    by_cmake = {source(words): flags(words) for words in compiled_by_cmake()}
    by_cargo = {source(words): flags(words) for words in crates.compilations}
    assert by_cargo == by_cmake
    assert crates.linked == [Path(name).stem for name in by_cmake]


# ---- a program -----------------------------------------------------------------------------------------


@contextmanager
def consumer(*command: str | Path, **variables: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The program in the state that it waits in, and what it has found by then."""
    with subprocess.Popen(
        command, env=clean_environment() | variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = {}
        for line in process.stdout:
            name, value = line.split()
            found[name] = value
            if name == "ready":
                break
        try:
            yield process.pid, found
        finally:
            process.communicate("\n", timeout=60)
    assert process.returncode == 0


@pytest.mark.long("compiles the crate")
def test_a_program_runs_on_it_and_is_seen(crates: Packed) -> None:
    """Rust's blocks are hakmem's, C's are not; the tool finds the process, and names who holds its memory."""
    # Without a package index `make` leaves the tool out, and says so.
    pytest.importorskip("hakmem", reason="the tool is not installed: no Python package index within reach")
    processes = import_module("tool.processes")
    with consumer(crates.build("consumer").program) as (pid, found):
        version = crates.files["hakmem"].name.removesuffix(".crate").rsplit("-", 1)[1]
        assert (found["version"], found["rust"], found["c"]) == (version, "true", "false")
        assert (found["children"], found["profile"], found["ready"]) == ("true", "true", str(pid))
        assert int(found["refills"]) > 0
        assert int(found["purged"]) >= 32 << 20
        assert str(pid) in processes.hakmem("ps", limit_s=PATIENCE_S).stdout
        said = processes.hakmem("profile", pid, "--json", limit_s=PATIENCE_S).stdout
    sites = sites_of(json.loads(said))
    for function, bytes_kept in (
        ("consumer::keep::orders", 3000 * 4096),
        ("consumer::keep::names", 2000 * 1000),
    ):
        assert abs(sites[function] - bytes_kept) <= SAMPLED_SHARE * bytes_kept, sites


def sites_of(profile: dict[str, Any]) -> dict[str, int]:
    """Where each site begins, as the tool shows it → bytes."""
    model, wrappers = (import_module(f"hakmem.profile.{name}") for name in ("model", "wrappers"))
    sums: dict[str, int] = {}
    for site in profile["sites"]:
        frames = [model.Frame(frame["function"]) for frame in site["stack"]]
        function = wrappers.program_frames(frames, [False] * len(frames))[0].function
        sums[function] = sums.get(function, 0) + site["bytes"]
    return sums


@pytest.mark.long("12 seconds of processor time each")
@pytest.mark.parametrize("harden", ["0", "1"])
def test_a_wrong_layout_is_reported(crates: Packed, harden: str) -> None:
    """The first of two in a warning; in hardened mode it ends the program."""
    program = crates.build("mismatch").program
    environment = clean_environment() | {"HAKMEM_HARDEN": harden}
    step = captured([program], env=environment, timeout=60)
    assert (step.returncode == 0) == (harden == "0")
    assert ("warning" in step.stderr) == (harden == "0")
    assert step.stderr.count("size argument 1000 does not match the block of 6") == 1


@pytest.mark.parametrize(
    "page",
    [
        "include/hakmem/hakmem.h",
        "rust/hakmem/src/lib.rs",
        "rust/hakmem-sys/src/lib.rs",
        "docs/guides/RUST.md",
    ],
)
def test_all_pages_say_the_same_of_a_wrong_layout(page: str) -> None:
    said = re.sub(r"[\s*/!`]+", " ", (ROOT / page).read_text())
    assert "first is reported as a warning, and the block is freed all the same; " in said
    assert "with HAKMEM_HARDEN=1 each ends the program" in said


@pytest.mark.long("compiles the crate once more")
def test_c_code_shares_the_heap_by_default(crates: Packed) -> None:
    with consumer(crates.build("consumer", "default").program) as (_, found):
        assert (found["rust"], found["c"], found["children"]) == ("true", "true", "true")


def test_names_are_its_own(crates: Packed) -> None:
    """In a program there may be any other malloc: no name of this one is in its way; one is of all probes."""
    archive = crates.build("consumer").out / "libhakmem.a"
    words = ["nm", "--extern-only", "--defined-only", archive]
    lines = captured(words, check=True).stdout.splitlines()
    names = {line.split()[-1] for line in lines if len(line.split()) == 3}
    assert "hak_malloc" in names
    assert {name for name in names if not name.startswith("hak_")} <= {"_.stapsdt.base"}
