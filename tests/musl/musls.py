"""Versions of musl, from the mirrors of Debian and Ubuntu: fetched and unpacked into build/musls, not
installed.  And programs that others built for Alpine, out of their wheels on PyPI.

`fetch(musl)` returns a Root; `Root.build(...)` makes a program that runs on that musl, `Root.loader` runs one
that was made elsewhere."""

import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from mirrors import CannotFetchError, run, turn, unpack
from results import captured

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "build" / "musls"
TREE = ROOT / "build" / "wheels" / "musllinux-x86_64"  # of scripts/wheel
MULTIARCH = "usr/lib/x86_64-linux-musl"
COMPILE = ["-std=gnu17", "-O1", "-D_GNU_SOURCE", "-pthread", "-fno-builtin", "-Iinclude", "-Itests"]
# As musl-tools has it for the musl that is installed, for another one's files.
SPECS = """\
%rename cpp_options old_cpp_options

*cpp_options:
-nostdinc -isystem {root}/usr/include/x86_64-linux-musl -isystem include%s %(old_cpp_options)

*cc1:
%(cc1_cpu) -nostdinc -isystem {root}/usr/include/x86_64-linux-musl -isystem include%s

*link_libgcc:
-L{lib} -L .%s

*libgcc:
libgcc.a%s %:if-exists(libgcc_eh.a%s)

*startfile:
%{{!shared: {lib}/Scrt1.o}} {lib}/crti.o crtbeginS.o%s

*endfile:
crtendS.o%s {lib}/crtn.o

*link:
-dynamic-linker {loader} -nostdlib %{{shared:-shared}} %{{static:-static}} %{{rdynamic:-export-dynamic}}

*esp_link:


*esp_options:


*esp_cpp_options:


"""


@dataclass(frozen=True)
class Musl:
    suite: str  # of Debian or Ubuntu
    version: str
    components: str
    what_for: str


# 1.2.3, where it is installed, is what test_musl.py takes.
MUSLS = (
    Musl("bullseye", "1.2.2", "main", "Alpine 3.13's to 3.15's, the oldest that the wheel is for"),
    Musl("bookworm", "1.2.3", "main", "Alpine 3.16's and 3.17's"),
    Musl("noble", "1.2.4", "main universe", "Alpine 3.18's and 3.19's"),
    Musl("trixie", "1.2.5", "main", "Alpine 3.20's and later ones'"),
    Musl("sid", "1.2.6", "main", "the newest; by now it may be newer still"),
)


@dataclass(frozen=True)
class Root:
    """An unpacked musl and musl-dev."""

    path: Path

    @property
    def loader(self) -> Path:
        """libc and dynamic linker in one.  The name is the one that Alpine's programs ask for: under it they
        find that it is loaded already."""
        return self.path / "libc.musl-x86_64.so.1"

    def build(self, source: Path, output: Path, *linked: str | Path) -> Path:
        specs = output.with_suffix(".specs")  # its own: others may build at the same time
        specs.write_text(SPECS.format(root=self.path, lib=self.path / MULTIARCH, loader=self.loader))
        words = ["gcc", *COMPILE, source, *linked, "-o", output, "-specs", specs]
        run(*words, cwd=ROOT)
        return output

    def version(self) -> str:
        """As it says itself, when it is started without a program."""
        said = captured([self.loader]).stderr
        return said.partition("Version ")[2].split()[0]


def fetch(musl: Musl) -> Root:
    """Downloaded when it is not there yet; CannotFetchError says why it cannot be had."""
    folder = STORE / musl.suite
    with turn(folder):
        root = Root(folder / "root")
        # Releases before /usr was one have it in /lib: there the linker does not look, and takes libc.a.
        linked = root.path / MULTIARCH / "libc.so"
        if not (root.loader.exists() and linked.exists()):
            unpack(musl.suite, folder, ["musl", "musl-dev"], musl.components)
            found = [path for path in root.path.rglob("x86_64-linux-musl/libc.so") if not path.is_symlink()]
            if not found:
                raise CannotFetchError(f"no libc.so in musl of {musl.suite}")
            shutil.copy(found[0], root.loader)
            if found[0] != linked:
                shutil.copy(found[0], linked)
    return root


def fetch_wheel(package: str) -> Path:
    """The folder with what is in the wheel of that package for musllinux."""
    folder = STORE / package
    with turn(folder):
        if not (folder / "done").exists():
            platform = ["--platform", "musllinux_1_2_x86_64", "--only-binary", ":all:", "--no-deps"]
            pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
            run(*pip, "download", *platform, "-d", folder, package, timeout_s=300)
            for wheel in folder.glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(folder / "root")
                wheel.unlink()
            (folder / "done").touch()
    return folder / "root"
