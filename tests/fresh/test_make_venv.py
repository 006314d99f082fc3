"""scripts/make-venv: of two makes at once one makes the environment, nothing is installed elsewhere, and
without a network it says in a few lines what is ready and what is missing."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from results import captured

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# As Python's: an environment is a folder with pyvenv.cfg; without that file, pip is the user's own.
PYTHON = """#!/bin/sh
case "$*" in
*ensurepip*) ;;
*'-m venv'*)
    for folder; do :; done
    echo "$folder" >>made
    rm -rf "$folder" && mkdir -p "$folder/bin" && touch "$folder/pyvenv.cfg"
    cp "$0" "$folder/bin/python" ;;
*'-m pip'*)
    sleep 0.5
    [ -z "$BROKEN" ] || { yes 'WARNING: retrying' | head -n 1000; echo 'ERROR: no such host'; exit 1; } >&2
    [ -e "$(dirname "$0")/../pyvenv.cfg" ] || echo "$*" >>installed-elsewhere ;;
-) cat >/dev/null ;;
esac
"""
APT_INSTALL = """#!/bin/sh
echo 'hakmem: apt-get could not install them' >&2
exit 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def start(folder: Path, scripts: Path = SCRIPTS, *arguments: Path, **variables: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHON": str(folder / "python"), "BROKEN": ""} | variables
    return subprocess.Popen(
        [scripts / "make-venv", "build/venv", *arguments],
        cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_of_two_at_once_one_makes_it(folder: Path) -> None:
    both = [start(folder), start(folder)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert len((folder / "made").read_text().splitlines()) == 1
    assert not (folder / "installed-elsewhere").exists()
    assert sorted(path.name for path in (folder / "build").iterdir()) == ["venv", "venv.lock"]
    assert (folder / "build/venv/ready").exists()


def test_without_a_network_it_says_what_is_ready(folder: Path) -> None:
    """The libraries need no Python package: they are there, and the message says so."""
    scripts = folder / "scripts"
    shutil.copytree(SCRIPTS, scripts, ignore=shutil.ignore_patterns("site"))
    (scripts / "install-tools").write_text(APT_INSTALL)
    (folder / "build").mkdir()
    (folder / "build" / "libhakmem.so").touch()
    process = start(folder, scripts, BROKEN="1")
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert f"hakmem: {folder}/build/libhakmem.so is ready\n" in said
    assert "hakmem: the tool and the tests need" in said
    assert "ERROR: no such host\n" in said
    assert len(said.splitlines()) < 8
    assert not (folder / "build" / "venv").exists()


def test_what_was_there_stays_if_it_fails(folder: Path) -> None:
    (folder / "requirements").touch()
    (folder / "build/venv").mkdir(parents=True)
    process = start(folder, SCRIPTS, folder / "requirements", BROKEN="1")
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert (folder / "build/venv").exists()


@pytest.mark.long("makes a whole environment, 5 s of processor time")
def test_its_scripts_work_at_their_place(tmp_path: Path) -> None:
    """Two at once, with the real Python and a package of one line; the path has characters of the shell."""
    place = tmp_path / "a b&|c"
    place.mkdir()
    with zipfile.ZipFile(place / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "def main():\n    import sys\n    print(sys.prefix)\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(
            "tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny-1.0.dist-info/entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
        wheel.writestr("tiny-1.0.data/scripts/module.py", "#!python\n")  # pip compiles it
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    (place / "requirements").write_text("--no-index\n./tiny-1.0-py3-none-any.whl\n")
    words = [str(SCRIPTS / "make-venv"), "venv", str(place / "requirements")]
    both = [subprocess.Popen(words, cwd=place, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert captured([place / "venv/bin/tiny"], check=True).stdout.strip() == str(place / "venv")
