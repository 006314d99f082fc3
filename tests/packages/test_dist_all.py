"""All that a release consists of, built twice and taken apart: make test-packages."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest
from preload import preload_environment
from results import captured

PARTS = {
    "source": "hakmem-*-source.tar.gz",
    "manylinux-x86_64": "hakmem-*-manylinux_2_28_x86_64.whl",
    "manylinux-aarch64": "hakmem-*-manylinux_2_28_aarch64.whl",
    "musllinux-x86_64": "hakmem-*-musllinux_1_2_x86_64.whl",
    "musllinux-aarch64": "hakmem-*-musllinux_1_2_aarch64.whl",
    "sdist": "hakmem-[0-9.]*[0-9].tar.gz",
    "deb": "*.deb",
    "crates": "*.crate",
}
COUNTS = {"deb": 4, "crates": 2}
OLD_S = 1_000_000_000
READER = "spdx-tools==0.8.5"

pytestmark = [
    pytest.mark.skipif(os.environ.get("PACKAGES") != "all", reason="takes minutes: make test-packages"),
    pytest.mark.timeout(2400),
]


def dist(root: Path, folder: Path, *options: str) -> Path:
    """What the checkout `root` builds into that folder."""
    words = [sys.executable, root / "scripts" / "dist", *options, "--to", folder]
    step = captured(words)
    assert step.returncode == 0, step.stdout + step.stderr
    return folder


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dist(root, tmp_path_factory.mktemp("built") / "dist", "--dirty")


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_there(built: Path, part: str) -> None:
    assert len(list(built.glob(PARTS[part]))) == COUNTS.get(part, 1), sorted(built.iterdir())


def test_another_checkout_gives_the_same_bytes(root: Path, built: Path, tmp_path: Path) -> None:
    """In another folder, of files that are older than the commit."""
    if subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, check=True).stdout:
        pytest.skip("there are changes that are not committed: another checkout has not got them")
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", root, other], check=True)
    for path in other.rglob("[!.]*"):
        os.utime(path, (OLD_S, OLD_S), follow_symlinks=False)
    (other / "build").mkdir()
    (other / "build" / "venv").symlink_to(root / "build" / "venv")
    again = dist(other, tmp_path / "dist")
    assert (built / "SHA256SUMS").read_text() == (again / "SHA256SUMS").read_text()


def test_sums_are_of_all_files(built: Path) -> None:
    said = dict(line.split()[::-1] for line in (built / "SHA256SUMS").read_text().splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built.iterdir()}
    del found["SHA256SUMS"]
    assert said == found


def test_another_reader_takes_the_bill(built: Path, tmp_path: Path) -> None:
    """spdx-tools, the format's own reference, finds nothing to object to."""
    venv.create(tmp_path / "venv", with_pip=True)
    pip = [tmp_path / "venv" / "bin" / "pip", "install", "-q", "--retries", "1", READER]
    step = captured(pip)
    if step.returncode != 0:
        pytest.skip(f"{READER} cannot be installed: {step.stderr[-200:]}")
    (bill,) = built.glob("*.spdx.json")
    reader = tmp_path / "venv" / "bin" / "pyspdxtools"
    good = captured([reader, "-i", bill])
    assert good.returncode == 0, good.stdout + good.stderr
    broken = tmp_path / "broken.spdx.json"
    said = json.loads(bill.read_text())
    said["relationships"][0]["relatedSpdxElement"] = "SPDXRef-nothing"
    broken.write_text(json.dumps(said))
    assert subprocess.run([reader, "-i", broken], capture_output=True, check=False).returncode != 0


def test_the_source_builds_where_there_is_no_git(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob(PARTS["source"])
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    build = tree / "build"
    for words in (
        ["cmake", "-G", "Ninja", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Release"],
        ["cmake", "--build", build, "--target", "hakmem"],
    ):
        step = captured(words)
        assert step.returncode == 0, step.stdout + step.stderr
    environment = preload_environment(build / "libhakmem.so", stats="1")
    said = captured(["ls", tree], env=environment, check=True)
    assert "fetched past the magazines" in said.stderr
