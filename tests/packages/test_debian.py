"""Debian packages (scripts/deb): what packaging/debian says agrees with the rest of the tree; with PACKAGES
set (make test-packages) they are installed in a new, bare Debian 12 root and used there, and built again to
the same bytes."""

import hashlib
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from results import captured

DEBIAN = Path("packaging/debian")
SUITE = "bookworm"
# In Debian 12 too old for the tool: copied into the package.
COPIED = {"platformdirs", "rich", "textual"}
# Of the copied ones' requirements, what the tool loads.
OF_COPIED = {"platformdirs", "pygments", "typing-extensions"}
NAMES = {"prometheus-client": "python3-prometheus-client"}
long_test = pytest.mark.skipif(not os.environ.get("PACKAGES"), reason="takes minutes: make test-packages")
pytestmark = pytest.mark.timeout(2000)


def paragraphs(path: Path) -> dict[str, dict[str, str]]:
    """The packages of debian/control, each with its fields."""
    found = {}
    for text in path.read_text().split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+):\s*(.*(?:\n .*)*)", text, re.MULTILINE))
        if "Package" in fields:
            found[fields["Package"]] = fields
    return found


def test_the_package_is_named_after_the_library(root: Path) -> None:
    cmake = (root / "cmake/product.cmake").read_text()
    number = re.search(r"set\(hakmem_soversion (\d+)\)", cmake)
    assert number
    packages = paragraphs(root / DEBIAN / "control")
    assert set(packages) == {f"libhakmem{number[1]}", "libhakmem-dev", "hakmem-jemalloc", "hakmem"}
    assert f'f"{{NAME}}.{number[1]}"' in (root / "python/hakmem/target/library.py").read_text()


def test_the_tool_has_all_it_depends_on(root: Path) -> None:
    project = tomllib.loads((root / "python/pyproject.toml").read_text())["project"]
    words = [*project["dependencies"], *project["optional-dependencies"]["numpy"]]
    needed = {re.match(r"[\w-]+", word)[0] for word in words} | OF_COPIED  # type: ignore[index]
    depends = paragraphs(root / DEBIAN / "control")["hakmem"]["Depends"]
    given = set(re.findall(r"python3-([\w-]+)", depends))
    assert needed - COPIED == given
    copying = (root / "scripts/deb").read_text()
    licences = (root / DEBIAN / "copyright").read_text()
    assert all(f'"{name}"' in copying and f"debian/vendor/{name}/*" in licences for name in COPIED)


def test_it_can_be_built_with_what_install_tools_brings(root: Path) -> None:
    source = (root / DEBIAN / "control").read_text().partition("\n\n")[0]
    needed = set(
        re.findall(
            r"^ *(?:Build-Depends: )?([a-z][\w.-]+)", source.partition("Build-Depends:")[2], re.MULTILINE
        )
    )
    table = (root / "scripts/install-tools").read_text()
    given = set(re.findall(r"^([a-z][\w.-]*) +\S", table, re.MULTILINE)) | {
        "debhelper-compat",
        "dh-sequence-python3",
    }
    assert "cmake" in needed
    assert needed <= given | {"Standards-Version", "Rules-Requires-Root"}


# ---- in a new root -------------------------------------------------------------------------------------

ROOT_TIMEOUT_S = 1800  # it downloads 150 MB
ROOT_PACKAGES = ["gcc", "libc6-dev", "man-db", "pkgconf", "procps"]


def output(*words: str | Path, timeout_s: float = 250) -> str:
    command = [str(word) for word in words]
    step = captured(command, timeout=timeout_s)
    assert step.returncode == 0, f"{' '.join(map(str, words))}\n{step.stdout}{step.stderr}"
    return step.stdout


@pytest.fixture(scope="module")
def packages(root: Path) -> list[Path]:
    found = sorted((root / "build" / "deb").glob("*.deb"))
    assert len(found) == 4, "make deb"
    return found


@pytest.fixture(scope="module")
def bare(packages: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Debian 12 with these packages, installed by apt with what they depend on."""
    if os.geteuid() != 0:
        pytest.skip("making a root needs root")
    folder = tmp_path_factory.mktemp("bare") / "root"
    included = ",".join([*ROOT_PACKAGES, *map(str, packages)])
    output(
        "mmdebstrap", "--variant=apt", "--mode=root", f"--include={included}",
        "--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount", SUITE, folder, *mirror(),
        timeout_s=ROOT_TIMEOUT_S,
    )  # fmt: skip
    yield folder
    shutil.rmtree(folder)  # half a gigabyte


def mirror() -> list[str]:
    """That of this machine."""
    lines = output(
        "apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "ShortDesc: Packages"
    ).splitlines()
    return [line.split()[1] for line in lines if line.startswith(f"{SUITE} ")][:1]


@pytest.fixture
def inside(bare: Path) -> Callable[..., str]:
    """inside(command) -> what a shell there printed; it and all that it started end with it."""
    script = """
        mount -t proc proc "$1/proc"
        mount -t devpts devpts "$1/dev/pts" -o ptmxmode=0666
        exec chroot "$1" env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -euc "$2"
    """
    return lambda command: output(
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", script, "sh", bare, command
    )


# A process on hakmem, `$1`, that the tool can read and that holds what it shall.
KEEPS = "import time; kept = [bytes(1000) for _ in range(9999)]; time.sleep(600)"
START = f"""
hakmem run -- python3 -c '{KEEPS}' &
until hakmem stat $! --json >/tmp/stat 2>&1 && grep -Eq 'live_bytes\\W+[0-9]{{8}}' /tmp/stat
do kill -0 $!; done
set -- $!
"""
METRICS = """
hakmem export 127.0.0.1:19100 &
exporter=$!
fetch='import urllib.request as u; print(u.urlopen("http://127.0.0.1:19100/metrics").read())'
until python3 -c "$fetch" 2>/dev/null
do kill -0 $exporter; done
kill $exporter
"""
# `top` is told to quit when it has drawn the process.
TOP = """
mkfifo /tmp/keys
touch /tmp/drawn
(exec >/tmp/keys; until grep -q python3 /tmp/drawn; do kill -0 $1; done; printf q) &
TERM=xterm script -qefc "hakmem top $1" /tmp/drawn </tmp/keys >/dev/null
"""


@long_test
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("hakmem stat $1", "live"),
        ("hakmem why $1", "Verdict"),
        ("hakmem ps", "python3 -c"),
        ("hakmem what $1", "Estimated from"),
        ("hakmem profile $1 --for 1s", "total"),
        ("hakmem leaks $1 --for 1s", "One scan of"),
        ("hakmem record $1 --for 1s -o /tmp/r.html && cat /tmp/r.html", "<svg"),
        ("hakmem doctor", "0 problems"),
        (METRICS, "hakmem_"),
        (f"{TOP}cat /tmp/drawn", "python3"),
    ],
    ids=["stat", "why", "ps", "what", "profile", "leaks", "record", "doctor", "export", "top"],
)
def test_the_tool_works_there(inside: Callable[..., str], command: str, words: str) -> None:
    """With the versions of Python libraries that Debian 12 has."""
    said = inside(f"{START}{command}\nkill $1")
    assert words in said
    assert "a bug in the tool" not in said


@long_test
def test_programs_run_on_it_there(inside: Callable[..., str]) -> None:
    assert "fetched past the magazines" in inside(
        "hakmem run --env HAKMEM_STATS=1 -- ls /usr/bin 2>&1 >/dev/null"
    )
    assert inside("hakmem run --harden -- true 2>&1") == ""
    preloaded = inside("hakmem run --harden -- env | grep LD_PRELOAD").strip()
    folder = "/usr/lib/x86_64-linux-gnu"
    assert preloaded == f"LD_PRELOAD={folder}/hakmem/libhakmem-fortify.so:{folder}/libhakmem.so.0"


@long_test
def test_pages_and_completion_are_there(inside: Callable[..., str]) -> None:
    assert "hakmem-why" in inside("man -P cat hakmem")
    for page in ("hakmem-run", "libhakmem", "hak_malloc", "hakmem-options"):
        assert "hakmem" in inside(f"man -P cat {page}")
    files = inside("dpkg -L hakmem")
    assert "/usr/share/bash-completion/completions/hakmem" in files
    completed = "COMP_WORDS='hakmem symb' COMP_CWORD=1 _HAKMEM_COMPLETE=bash_complete hakmem"
    assert inside(completed) == "plain,symbolize\n"


@long_test
def test_programs_are_linked_there(inside: Callable[..., str]) -> None:
    program = "#include <hakmem/hakmem.h>\\n#include <stdio.h>\\nint main(void) { puts(hak_version()); }\\n"
    version = inside("dpkg-query -W -f '${Version}' libhakmem0")
    inside(f"printf '{program}' >/tmp/p.c; cc /tmp/p.c -o /tmp/p $(pkg-config --cflags --libs hakmem)")
    assert inside("/tmp/p") == f"{version}\n"
    assert "libhakmem.so.0 => /lib/x86_64-linux-gnu/libhakmem.so.0" in inside("ldd /tmp/p")
    inside("cc /tmp/p.c -o /tmp/s /usr/lib/*/libhakmem.a -pthread")
    assert inside(
        "dpkg -r libhakmem-dev >/dev/null; /tmp/s; /tmp/p; LD_PRELOAD=libhakmem.so.0 ls /tmp/p"
    ) == (f"{version}\n{version}\n/tmp/p\n")


@long_test
def test_they_go_without_a_trace(inside: Callable[..., str], packages: list[Path]) -> None:
    """The last of these tests: others need what it removes. The packages stay where they were given."""
    inside("dpkg --purge hakmem libhakmem-dev libhakmem0-dbgsym libhakmem0")
    outside = " ".join(
        f"-not -path '{place}/*'" for place in ("/tmp", "/proc", "/var/cache", packages[0].parent)
    )
    assert inside(f"find / -xdev -name '*hakmem*' {outside}") == ""


@long_test
def test_the_same_tree_gives_the_same_bytes(root: Path, packages: list[Path], tmp_path: Path) -> None:
    """Also in another folder."""
    output(root / "scripts" / "deb", tmp_path, timeout_s=ROOT_TIMEOUT_S)
    for package in packages:
        again = tmp_path / package.name
        digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (package, again)}
        assert len(digests) == 1, package.name
