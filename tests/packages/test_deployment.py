"""What packaging/ has for containers and services: each file is what its engine takes, and names options that
there are; with PACKAGES set (make test-packages) the images' commands are run.

Alpine's packages are not within reach of those tests: musl and busybox are Debian's there."""

import os
import re
import shlex
import shutil
import sys
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from packages.test_debian import ROOT_TIMEOUT_S, SUITE, mirror, output
from preload import clean_environment
from results import captured

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
DEPLOYMENT = PACKAGING / "kubernetes" / "deployment.yaml"
DROP_IN = PACKAGING / "systemd" / "hakmem.conf"
SCHEMAS = "kubernetes-validate==1.37.0"
long_test = pytest.mark.skipif(not os.environ.get("PACKAGES"), reason="takes minutes: make test-packages")
pytestmark = pytest.mark.timeout(2000)


# ---- Dockerfiles ---------------------------------------------------------------------------------------


def instructions(name: str) -> list[tuple[str, str]]:
    """The lines of a Dockerfile: keyword and the rest, with lines that go on joined."""
    text = (PACKAGING / "docker" / name).read_text()
    without_comments = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    joined = re.sub(r"\\\n", "", without_comments)
    pairs = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(keyword, rest.strip()) for keyword, rest in pairs]


@dataclass
class Image:
    """The root that a Dockerfile makes: its commands are run there, as the builder would."""

    root: Path
    context: Path
    shell: Callable[[str, dict[str, str]], str]
    environment: dict[str, str] = field(default_factory=dict)

    def build(self, name: str) -> None:
        steps = instructions(name)
        assert steps[0][0] == "FROM"
        for keyword, rest in steps[1:]:
            {"COPY": self.copy, "RUN": self.run, "ENV": self.set}[keyword](rest)

    def copy(self, words: str) -> None:
        *patterns, to = words.split()
        assert to.endswith("/")
        folder = self.root / to.strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in patterns:
            found = sorted(self.context.glob(pattern))
            assert found, f"COPY {pattern}: {self.context} has none"
            for path in found:
                shutil.copy(path, folder)

    def run(self, command: str) -> str:
        return self.shell(command, self.environment)

    def set(self, words: str) -> None:
        self.environment |= dict(word.split("=", 1) for word in shlex.split(words))


@pytest.mark.parametrize(
    ("name", "base"), [("Dockerfile.debian", "debian:12"), ("Dockerfile.alpine", "alpine:")]
)
def test_dockerfiles_are_of_few_instructions(name: str, base: str) -> None:
    """Those that the tests below can carry out; a program is preloaded only when all is in place."""
    steps = instructions(name)
    keywords = [keyword for keyword, _ in steps]
    assert (keywords[0], keywords[-1]) == ("FROM", "ENV")
    assert set(keywords) == {"FROM", "COPY", "RUN", "ENV"}
    assert steps[0][1].startswith(base)


def test_images_take_what_dist_builds() -> None:
    """The names that COPY waits for are those of scripts/dist (tests/packages/test_dist_all.py)."""
    names = [
        "libhakmem0_0.1.0_amd64.deb",
        "hakmem_0.1.0_all.deb",
        "hakmem-0.1.0-py3-none-musllinux_1_2_x86_64.whl",
    ]
    patterns = [
        word
        for name in ("Dockerfile.debian", "Dockerfile.alpine")
        for keyword, rest in instructions(name)
        if keyword == "COPY"
        for word in rest.split()[:-1]
    ]
    assert len(patterns) == len(names)
    assert all(Path(name).match(pattern) for name, pattern in zip(names, patterns, strict=True))
    assert Path(names[-1].replace("x86_64", "aarch64")).match(patterns[-1])


@pytest.fixture
def bare_root(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("making a root needs root")
    folder = tmp_path / "root"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def shell_in(root: Path) -> Callable[[str, dict[str, str]], str]:
    """shell(command, environment) -> what it printed, with what it said on standard error."""
    script = 'mount -t proc proc "$1/proc"; exec chroot "$1" /usr/bin/env -i "${@:3}" /bin/sh -euc "$2" 2>&1'
    usual = ["HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]

    def shell(command: str, environment: dict[str, str]) -> str:
        variables = [*usual, *(f"{name}={value}" for name, value in environment.items())]
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        words += ["bash", "-euc", script, "bash", str(root), command, *variables]
        return output(*words, timeout_s=ROOT_TIMEOUT_S)

    return shell


# Each program in one of these images prints it at its end.
SERVED = "fetched past the magazines"


@long_test
def test_debians_image(bare_root: Path) -> None:
    output(
        "mmdebstrap", "--variant=apt", "--mode=root", SUITE, bare_root, *mirror(), timeout_s=ROOT_TIMEOUT_S
    )
    # The machine's own way to the mirror.
    for name in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(Path("/") / name, bare_root / name)
    image = Image(bare_root, ROOT / "build" / "deb", shell_in(bare_root))
    image.build("Dockerfile.debian")
    assert image.environment["LD_PRELOAD"] == "libhakmem.so.0"
    assert SERVED in image.run("HAKMEM_STATS=1 ls /")
    assert "cannot be preloaded" not in image.run("ls / | sort")
    assert "0 problems" in image.run("hakmem doctor -- /usr/bin/sort")
    assert not (bare_root / "tmp/hakmem").exists()


def make_musl_root(root: Path, compiler_folder: Path) -> None:
    """As Alpine names and places what its C library is; busybox is all commands there, too."""
    for name in ("bin", "lib", "usr/bin", "usr/lib", "proc", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy(compiler_folder / "libc.so", root / "lib/ld-musl-x86_64.so.1")
    (root / "lib/libc.musl-x86_64.so.1").symlink_to("ld-musl-x86_64.so.1")
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for applet in ("sh", "unzip", "chmod", "rm", "uname"):
        (root / "bin" / applet).symlink_to("busybox")
    (root / "usr/bin/env").symlink_to("/bin/busybox")


@long_test
def test_alpines_image(bare_root: Path, tmp_path: Path) -> None:
    if shutil.which("musl-gcc") is None or not Path("/bin/busybox").exists():
        pytest.skip("musl-gcc or busybox is not installed")
    words = [sys.executable, ROOT / "scripts" / "wheel", "musllinux-x86_64", "--to", tmp_path / "dist"]
    output(*words, timeout_s=ROOT_TIMEOUT_S)
    # The other machine's lies beside it.
    (own,) = (tmp_path / "dist").glob("*.whl")
    own.with_name(own.name.replace("x86_64", "aarch64")).write_bytes(b"not for here")
    make_musl_root(bare_root, Path("/usr/lib/x86_64-linux-musl"))
    program = ROOT / "tests" / "concurrency" / "blocks_outlive_thread.c"
    output("musl-gcc", "-std=gnu17", "-O1", "-pthread", "-fno-builtin", f"-I{ROOT / 'tests'}",
           f"-I{ROOT / 'include'}", program, "-o", bare_root / "bin" / "program")  # fmt: skip
    image = Image(bare_root, tmp_path / "dist", shell_in(bare_root))
    image.build("Dockerfile.alpine")
    assert SERVED in image.run("HAKMEM_STATS=1 program")
    assert not (bare_root / "tmp/hakmem").exists()


# ---- Kubernetes ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deployment() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: no Python package index within reach")
    (document,) = yaml.safe_load_all(DEPLOYMENT.read_text())
    return document  # type: ignore[no-any-return]


def test_the_program_finds_the_library_where_it_was_copied(deployment: dict[str, Any]) -> None:
    pod = deployment["spec"]["template"]["spec"]
    (copying,), (app,) = pod["initContainers"], pod["containers"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    places = [
        {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        for container in (copying, app)
    ]
    assert all(set(place) == volumes for place in places)
    environment = {variable["name"]: variable["value"] for variable in app["env"]}
    folder, name = environment["LD_PRELOAD"].rsplit("/", 1)
    assert folder == places[1]["hakmem"]
    assert name in copying["command"][-1] and copying["command"][-1].endswith(f" {places[0]['hakmem']}/")
    assert "memory" in app["resources"]["limits"], "a part of the cgroup's limit, and there is none"
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()


@long_test
def test_kubernetes_takes_it(tmp_path: Path) -> None:
    """By the schemas of its API; they object to a field that it does not have."""
    venv.create(tmp_path / "venv", with_pip=True)
    pip = [tmp_path / "venv" / "bin" / "pip", "install", "-q", "--retries", "1", SCHEMAS]
    step = captured(pip)
    if step.returncode != 0:
        pytest.skip(f"{SCHEMAS} cannot be installed: {step.stderr[-200:]}")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(DEPLOYMENT.read_text().replace("readOnly:", "readonly:"))
    for path, status in ((DEPLOYMENT, 0), (wrong, 1)):
        words = [tmp_path / "venv" / "bin" / "kubernetes-validate", "--strict", path]
        found = captured(words)
        assert bool(found.returncode) == bool(status), found.stdout + found.stderr


# ---- systemd -------------------------------------------------------------------------------------------


def verified(folder: Path, drop_in: str) -> str:
    """systemd's words about a service with this drop-in."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed (Debian's package systemd)")
    (folder / "app.service.d").mkdir()
    (folder / "app.service").write_text("[Service]\nExecStart=/bin/true\n")
    (folder / "app.service.d" / "hakmem.conf").write_text(drop_in)
    words = ["systemd-analyze", "verify", "--man=no", folder / "app.service"]
    step = captured(words)
    assert step.returncode == 0, step.stderr
    return step.stderr


def test_systemd_takes_the_drop_in(tmp_path: Path) -> None:
    assert "hakmem.conf" not in verified(tmp_path, DROP_IN.read_text())


def test_systemd_would_object(tmp_path: Path) -> None:
    said = verified(tmp_path, DROP_IN.read_text().replace("MemoryMax=", "MemoryMost="))
    assert re.search("Unknown key (name )?'MemoryMost'", said), said


# ---- what all of them say ------------------------------------------------------------------------------


def environments() -> dict[str, dict[str, str]]:
    """File → the variables that it gives a program."""
    found = {}
    for name in ("Dockerfile.debian", "Dockerfile.alpine"):
        image = Image(Path(), Path(), lambda *_: "")
        for keyword, rest in instructions(name):
            if keyword == "ENV":
                image.set(rest)
        found[name] = image.environment
    drop_in = re.findall(r"^Environment=(\w+)=(.*)$", DROP_IN.read_text(), re.MULTILINE)
    found[DROP_IN.name] = {name: value.replace("%%", "%") for name, value in drop_in}
    pairs = re.findall(r'- name: (\w+)\n +value: "?([^"\n]+)', DEPLOYMENT.read_text())
    return found | {DEPLOYMENT.name: dict(pairs)}


@pytest.mark.parametrize("name", environments())
def test_the_library_takes_their_options(name: str, lib: Path) -> None:
    """Without a limit of the cgroup one line says so; there is no other.

    Images do not know whether there will be a limit, and ask for no part of it."""
    environment = environments()[name]
    assert set(environment) == {"LD_PRELOAD"} | (set() if "Dockerfile" in name else {"HAKMEM_LIMIT_SOFT"})
    assert re.search(r"(^|/)libhakmem\.so(\.0)?$", environment["LD_PRELOAD"])
    variables = clean_environment() | environment | {"LD_PRELOAD": str(lib)}
    step = captured(["true"], env=variables)
    assert step.returncode == 0
    assert re.fullmatch(r"(hakmem: warning: HAKMEM_LIMIT_SOFT=80%: .*cgroup.* ignored\n)?", step.stderr)
