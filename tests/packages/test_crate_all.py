"""The tests of the Rust crates in `make test-packages`, beyond test_crate.py: their own tests in every form,
linters, the oldest compiler that they promise, other targets, other allocators in the same process."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from packages.rust_crates import PATIENCE_S, ROOT, TARGET, Packed, cargo, done, packed
from packages.test_crate import consumer, sites_of
from results import captured

RUST = ROOT / "rust"
# Debian 12's own: `cargo` and `rustc`, with what they need of Debian beyond a usual machine.
OLDEST = (
    "cargo rustc libstd-rust-1.63 libstd-rust-dev libgit2-1.5 libhttp-parser2.9 libmbedcrypto7 libmbedtls14 "
    "libmbedx509-1 libssh2-1"
).split()

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("PACKAGES") != "all", reason="minutes of compilation: make test-packages runs them"
    ),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def crates() -> Packed:
    return packed()


# ---- their own tests, and linters ----------------------------------------------------------------------


@pytest.mark.parametrize("features", ["", "override", "debug", "override,debug"])
def test_their_own_tests(features: str) -> None:
    packed()
    words = [
        "test",
        "--workspace",
        "--no-default-features",
        "--features",
        ",".join(f"hakmem/{one}" for one in features.split(",") if one),
    ]
    said = done(cargo(*words, cwd=RUST))
    assert "test result: ok" in said
    assert "test blocks_change_threads ... ok" in said


def test_their_own_tests_optimised() -> None:
    packed()
    done(cargo("test", "--workspace", "--release", cwd=RUST, env={"SHADOW_STEPS": "200000"}))


@pytest.mark.parametrize(
    "words",
    [
        ["clippy", "--workspace", "--all-targets", "--features", "hakmem/override", "--", "-D", "warnings"],
        ["doc", "--workspace", "--no-deps"],
    ],
    ids=lambda words: words[0],
)
def test_nothing_to_say(words: list[str]) -> None:
    packed()
    if words[0] == "clippy" and shutil.which("cargo-clippy") is None:
        pytest.skip("cargo-clippy is not installed")
    step = cargo(*words, cwd=RUST, env={"RUSTDOCFLAGS": "-D warnings"})
    done(step)
    assert "warning" not in step.stderr


def test_layout_is_rustfmts() -> None:
    packed()
    if shutil.which("cargo-fmt") is None:
        pytest.skip("cargo-fmt is not installed")
    step = captured(["cargo", "fmt", "--check"], cwd=RUST)
    assert step.returncode == 0, step.stdout


def test_their_own_tests_under_the_address_sanitizer() -> None:
    """For the C code alone: Rust's own needs a nightly compiler, whose std is compiled with it. The program's
    `malloc` is the sanitizer's."""
    packed()
    name = captured(["gcc", "-print-file-name=libasan.so"], check=True)
    runtime = Path(name.stdout.strip()).resolve()  # it has to come first
    runner = f"CARGO_TARGET_{host().upper().replace('-', '_')}_RUNNER"
    environment = {
        runner: f"env LD_PRELOAD={runtime} ASAN_OPTIONS=detect_leaks=0",
        "CFLAGS": "-fsanitize=address -fno-omit-frame-pointer",
        "RUSTFLAGS": "-C link-arg=-lasan",
        "CARGO_TARGET_DIR": str(TARGET / "asan"),
        "SHADOW_STEPS": "5000",
    }
    words = ["test", "--workspace", "--tests", "--no-default-features", "--target", host()]
    done(cargo(*words, cwd=RUST, env=environment))


# ---- programs ------------------------------------------------------------------------------------------


def host() -> str:
    said = captured(["rustc", "-vV"], check=True).stdout
    return next(line.split()[1] for line in said.splitlines() if line.startswith("host:"))


def test_the_packed_crates_are_used_as_the_page_says(crates: Packed, root: Path, tmp_path: Path) -> None:
    page = (root / "docs/guides/RUST.md").read_text()
    (lines,) = re.findall(r"```toml\n(\[dependencies\].*?)```", page, re.DOTALL)
    package = use(crates, tmp_path / "consumer")
    (package / "vendor").symlink_to(crates.folder)
    manifest = (package / "Cargo.toml").read_text().partition("[dependencies]")[0]
    (package / "Cargo.toml").write_text(f"{manifest}{lines}\n[workspace]\n")
    target = tmp_path / "target"
    done(cargo("build", "--release", cwd=package, env={"CARGO_TARGET_DIR": str(target)}))
    with consumer(target / "release/consumer") as (_, found):
        assert (found["rust"], found["c"]) == ("true", "true")


def test_two_hakmems_in_a_process(crates: Packed, lib: Path) -> None:
    """The preloaded one serves C, the program's own serves Rust; each frees what it has allocated."""
    program = crates.build("consumer").program
    with consumer(program, LD_PRELOAD=str(lib)) as (_, found):
        assert (found["rust"], found["c"], found["children"]) == ("true", "false", "true")


def test_the_tool_tells_two_hakmems_apart(crates: Packed, lib: Path) -> None:
    """What Rust holds is what is shown, not what little C does; doctor names both."""
    processes = import_module("tool.processes")
    with consumer(crates.build("consumer").program, LD_PRELOAD=str(lib)) as (pid, _):
        assert processes.hakmem_json("stat", pid)["memory"]["live_bytes"] >= 3000 * 4096
        found = json.loads(processes.hakmem("doctor", pid, "--json").stdout)["findings"]
    (several,) = (item for item in found if item["name"] == "several hakmems")
    c_part, rust_part = several["found"].split("; ")
    assert c_part.startswith(str(lib.resolve())) and "serves malloc" in c_part
    assert "consumer (linked into it, hakmem " in rust_part and "serves the program's own calls" in rust_part


@pytest.mark.parametrize("debug", ["0", "1", "2"])
def test_sites_with_debug_information(debug: str, crates: Packed, tmp_path: Path) -> None:
    """They begin at the program's own function."""
    package = use(crates, tmp_path / "consumer")
    with (package / "Cargo.toml").open("a") as manifest:
        manifest.write(f"[profile.release]\ndebug = {debug}\n")
    target = tmp_path / "target"
    done(cargo("build", "--release", cwd=package, env={"CARGO_TARGET_DIR": str(target)}))
    processes = import_module("tool.processes")
    with consumer(target / "release/consumer") as (pid, _):
        said = processes.hakmem("profile", pid, "--json", limit_s=PATIENCE_S).stdout
    sites = sites_of(json.loads(said))
    own = sum(held for site, held in sites.items() if site.startswith("consumer::keep::"))
    assert own >= 0.9 * sum(sites.values()), sites


@pytest.mark.parametrize("peer", ["libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_beside_another_allocator(peer: str, crates: Packed) -> None:
    found_peers = sorted(Path("/usr/lib").glob(f"*/{peer}*"))
    if not found_peers:
        pytest.skip(f"{peer} is not installed (scripts/install-tools bench)")
    with consumer(crates.build("consumer").program, LD_PRELOAD=str(found_peers[0])) as (_, found):
        assert (found["rust"], found["c"], found["children"]) == ("true", "false", "true")


@pytest.mark.parametrize("guard", ["HAKMEM_HARDEN=2", "HAKMEM_GUARD=1"])
def test_it_obeys_options(guard: str, crates: Packed) -> None:
    name, value = guard.split("=")
    with consumer(crates.build("consumer").program, **{name: value}) as (_, found):
        assert (found["rust"], found["children"]) == ("true", "true")


def test_flags_of_a_distribution(crates: Packed, tmp_path: Path) -> None:
    """Link-time optimisation is what its objects cannot have."""
    flags = "-O3 -flto=auto -march=native -fstack-protector-strong -Wp,-D_FORTIFY_SOURCE=2"
    target = tmp_path / "target"
    environment = {"CFLAGS": flags, "CARGO_TARGET_DIR": str(target)}
    done(cargo("build", "--release", cwd=use(crates, tmp_path / "consumer"), env=environment))
    with consumer(target / "release/consumer") as (_, found):
        assert (found["rust"], found["c"]) == ("true", "false")


# ---- other compilers and targets -----------------------------------------------------------------------


def use(crates: Packed, folder: Path) -> Path:
    """A package like test_crate.py's, in a folder of its own."""
    crates.build("consumer")
    shutil.copytree(crates.folder / "consumer", folder)
    return folder


def test_the_oldest_compiler(crates: Packed, tmp_path: Path) -> None:
    """Debian 12's own cargo and rustc build a program that depends on the packed crates."""
    root = tmp_path / "root"
    fetched = captured(["apt-get", "download", *OLDEST], cwd=tmp_path)
    if fetched.returncode != 0:
        pytest.skip(f"Debian 12's rustc cannot be downloaded: {fetched.stderr.strip().splitlines()[-1]}")
    for package in tmp_path.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, root], check=True)
    package = use(crates, tmp_path / "consumer")
    # The registry's format is younger than this cargo: the crates lie beside, as `cargo vendor` puts it.
    shutil.copy(crates.unpacked("hakmem-sys") / "Cargo.lock", package)
    config = done(cargo("vendor", "vendor", cwd=package))
    (package / ".cargo").mkdir()
    (package / ".cargo" / "config.toml").write_text(config)
    lock = package / "Cargo.lock"
    lock.write_text(lock.read_text().replace("\nversion = 4\n", "\nversion = 3\n"))
    step = captured(
        [str(root / "usr/bin/cargo"), "build", "--release", "--offline", "--locked"],
        cwd=package,
        env=os.environ
        | {
            "LD_LIBRARY_PATH": f"{root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib",
            "PATH": f"{root}/usr/bin:{os.environ['PATH']}",
            "CARGO_TARGET_DIR": str(tmp_path / "target"),
        },
    )
    done(step)
    with consumer(tmp_path / "target/release/consumer") as (_, found):
        assert (found["rust"], found["c"], found["profile"]) == ("true", "false", "true")


@pytest.fixture
def need_target() -> Callable[[str], None]:
    def need(target: str) -> None:
        where = ["rustc", "--print", "target-libdir", "--target", target]
        libdir = captured(where).stdout.strip()
        if not any(Path(libdir).glob("libstd-*")):
            pytest.skip(f"Rust's library for {target} is not installed (rustup target add {target})")

    return need


@pytest.mark.parametrize("features", [[], ["default"]], ids=str)
def test_musl(
    features: list[str], crates: Packed, tmp_path: Path, need_target: Callable[[str], None]
) -> None:
    """A fully static program."""
    target = "x86_64-unknown-linux-musl"
    need_target(target)
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed (scripts/install-tools test)")
    package = use(crates, tmp_path / "consumer")
    manifest = package / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("features = []", f"features = {json.dumps(features)}"))
    headers = tmp_path / "include"  # the kernel's, which are beside the C library's on Debian
    headers.mkdir()
    for name, folder in (("linux", "linux"), ("asm-generic", "asm-generic"), ("asm", "x86_64-linux-gnu/asm")):
        (headers / name).symlink_to(Path("/usr/include") / folder)
    flags = {"CFLAGS_x86_64_unknown_linux_musl": f"-isystem {headers}"}
    done(cargo("build", "--release", "--target", target, cwd=package, env=flags))
    with consumer(TARGET / target / "release/consumer") as (_, found):
        assert (found["rust"], found["c"], found["children"]) == (
            "true",
            "true" if features else "false",
            "true",
        )


def test_aarch64(crates: Packed, tmp_path: Path, need_target: Callable[[str], None]) -> None:
    target, prefix = "aarch64-unknown-linux-gnu", "aarch64-linux-gnu"
    need_target(target)
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None or shutil.which(f"{prefix}-gcc") is None:
        pytest.skip("no compiler or emulator for aarch64 (scripts/install-tools test)")
    package = use(crates, tmp_path / "consumer")
    linker = {"CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": f"{prefix}-gcc"}
    done(cargo("build", "--release", "--target", target, cwd=package, env=linker))
    program = [emulator, "-L", f"/usr/{prefix}", str(TARGET / target / "release/consumer")]
    with consumer(*program) as (_, found):
        assert (found["rust"], found["c"]) == ("true", "false")


def test_a_target_that_is_not_served_is_named(
    crates: Packed, tmp_path: Path, need_target: Callable[[str], None]
) -> None:
    target = "i686-unknown-linux-gnu"
    need_target(target)
    step = cargo("check", "--target", target, cwd=use(crates, tmp_path / "consumer"))
    assert step.returncode != 0
    assert "hakmem is for Linux on 64-bit little-endian processors" in step.stderr


def test_a_missing_compiler_is_named(crates: Packed, tmp_path: Path) -> None:
    package = use(crates, tmp_path / "consumer")
    step = cargo("build", "--release", cwd=package, env={"CC": "/nonexistent/cc"})
    assert step.returncode != 0
    for words in (
        "hakmem is written in C",
        "/nonexistent/cc",
        "apt install gcc",
        "dnf install gcc",
        "apk add gcc",
    ):
        assert words in step.stderr, step.stderr
