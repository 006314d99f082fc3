"""What a release consists of (scripts/dist), its version (scripts/version), and whether it may be made
(scripts/release-check): all that is known without building anything.  test_dist_all.py builds it."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from results import captured

COPIED = """
    LICENSE include/hakmem/hakmem.h python/hakmem/__init__.py python/pyproject.toml rust/Cargo.lock
    rust/Cargo.toml rust/hakmem/Cargo.toml rust/hakmem-sys/Cargo.toml scripts/dist scripts/epoch.py
    scripts/pack-crates scripts/release-check scripts/requirements.txt scripts/sbom.py scripts/version
""".split()
SUITES = ("unit-debug", "unit-thread", "unit-address", "pytest", "pytest-alone")
WORDS_OF_GIT = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "t"), ("EMAIL", "t@example.org"), ("DATE", "2001-02-03T04:05:06Z"))
}


class Repo:
    """A repository that is as small as one of hakmem can be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = self("scripts/version").stdout.strip()

    def begin(self) -> None:
        self.write(".gitignore", "/build/\n__pycache__/\n")
        self.write("CHANGELOG.md", f"# Changelog\n\n## {self.version} – 2001-02-03\n\n- All.\n")
        self.write("tests/api/test_calls.py", "")
        self("git", "init", "-q")
        self.commit()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def commit(self) -> None:
        self("git", "add", "--all")
        self("git", "commit", "-q", "-m", "more")

    def results(self, tests: tuple[str, ...] = ("tests.api.test_calls",), outcome: str = "") -> None:
        """As `make test-all` leaves them."""
        cases = "".join(f'<testcase classname="{name}" name="{name}">{outcome}</testcase>' for name in tests)
        for suite in SUITES:
            self.write(f"build/test-results/all/{suite}.xml", f"<testsuites>{cases}</testsuites>")

    def __call__(self, *words: str, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        if words[0].startswith("scripts/"):
            words = (sys.executable, *words)
        step = captured(words, cwd=self.folder, env=os.environ | WORDS_OF_GIT | variables)
        assert step.returncode == status, f"{words}\n{step.stdout}{step.stderr}"
        return step


@pytest.fixture(scope="module")
def template(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "repo"
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, folder / name)
    Repo(folder).begin()
    return folder


@pytest.fixture
def repo(template: Path, tmp_path: Path) -> Repo:
    return Repo(Path(shutil.copytree(template, tmp_path / "repo")))


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


# ---- the version ---------------------------------------------------------------------------------------


def test_all_files_say_the_same_version(root: Path) -> None:
    step = captured([sys.executable, root / "scripts" / "version", "--check"])
    assert (step.returncode, step.stderr) == (0, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", step.stdout)


def test_another_version_is_written_everywhere(repo: Repo) -> None:
    assert repo("scripts/version", "12.34.56").stdout == "12.34.56\n"
    assert repo("scripts/version", "--check").stdout == "12.34.56\n"
    changed = {line[3:] for line in repo("git", "status", "--porcelain").stdout.splitlines()}
    assert changed == {*(name for name in COPIED if name.endswith((".h", "__init__.py"))),
                       "rust/Cargo.lock", "rust/Cargo.toml", "rust/hakmem/Cargo.toml"}  # fmt: skip
    assert "#define HAKMEM_VERSION_MINOR 34\n" in (repo.folder / "include/hakmem/hakmem.h").read_text()


@pytest.mark.parametrize("name", ["python/hakmem/__init__.py", "rust/Cargo.toml", "rust/hakmem/Cargo.toml"])
def test_a_file_with_another_version_is_named(repo: Repo, name: str) -> None:
    repo.replace(name, f'"{repo.version}"', '"7.8.9"')
    assert f"{name} says 7.8.9" in repo("scripts/version", "--check", status=1).stderr
    assert f"{name} says 7.8.9" in repo("scripts/release-check", "--quick", status=1).stdout
    assert f"{name} says 7.8.9" in repo("scripts/dist", "source", status=1).stderr


@pytest.mark.parametrize("words", [["1.2"], ["v1.2.3"], ["1.2.3", "4.5.6"]])
def test_no_version_is_refused(repo: Repo, words: list[str]) -> None:
    assert "MAJOR.MINOR.PATCH" in repo("scripts/version", *words, status=1).stderr
    assert repo("git", "status", "--porcelain").stdout == ""


# ---- what is built -------------------------------------------------------------------------------------


def test_the_source_is_the_tree(repo: Repo) -> None:
    """The same bytes in another folder and with other settings; nobody's name, one time, git's order."""
    repo("scripts/dist", "source", "--to", "build/one")
    repo("git", "config", "tar.umask", "0077")
    repo("scripts/dist", "source", "--to", "build/two")
    one = digests(repo.folder / "build" / "one")
    assert one == digests(repo.folder / "build" / "two")
    stem = f"hakmem-{repo.version}"
    assert set(one) == {f"{stem}-source.tar.gz", f"{stem}.spdx.json", "SHA256SUMS"}
    with tarfile.open(repo.folder / "build" / "one" / f"{stem}-source.tar.gz") as archive:
        members = archive.getmembers()
    tree = repo("git", "ls-tree", "-r", "-t", "--name-only", "HEAD").stdout.splitlines()
    assert [member.name for member in members] == [stem, *(f"{stem}/{name}" for name in tree)]
    assert {(member.uid, member.gid, member.mtime) for member in members} == {(0, 0, 981173106)}
    assert {oct(member.mode) for member in members} == {"0o755", "0o644"}


def test_sums_are_checked_by_sha256sum(repo: Repo) -> None:
    repo("scripts/dist", "source")
    folder = repo.folder / "build" / "dist"
    check = ["sha256sum", "--strict", "--check", "SHA256SUMS"]
    good = captured(check, cwd=folder)
    assert good.returncode == 0
    assert good.stdout.count(": OK\n") == len(list(folder.iterdir())) - 1
    with next(folder.glob("*.json")).open("a") as file:
        file.write(" ")
    assert subprocess.run(check, cwd=folder, capture_output=True, check=False).returncode == 1


def test_what_was_there_is_gone(repo: Repo) -> None:
    repo.write("build/dist/hakmem-0.0.1-source.tar.gz", "old")
    repo("scripts/dist", "source")
    assert "hakmem-0.0.1-source.tar.gz" not in (repo.folder / "build/dist/SHA256SUMS").read_text()


def test_changes_that_are_not_committed_are_refused(repo: Repo) -> None:
    repo.write("CHANGELOG.md", "")
    refused = repo("scripts/dist", "source", status=1).stderr
    assert "CHANGELOG.md" in refused and "--dirty" in refused
    assert not (repo.folder / "build" / "dist").exists()
    repo("scripts/dist", "source", "--dirty")


def few_commands(folder: Path, *names: str) -> str:
    """A PATH with these alone."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name) or "")
    return str(folder)


def test_a_missing_tool_is_named_and_the_rest_is_built(repo: Repo, tmp_path: Path) -> None:
    path = few_commands(tmp_path / "bin", "git")
    said = repo("scripts/dist", "source", "crates", "deb", status=1, PATH=path).stdout
    assert "not ok  crates: missing: cargo (scripts/install-tools rust)\n" in said
    assert re.search(
        r"not ok  deb: missing: .*dpkg-buildpackage, lintian \(scripts/install-tools deb\)\n", said
    )
    assert f"ok      hakmem-{repo.version}-source.tar.gz" in said
    assert "not built: crates, deb" in said
    forgiven = repo("scripts/dist", "source", "crates", "--allow-missing", PATH=path).stdout
    assert "not built: crates" in forgiven


def test_a_build_that_fails_is_never_forgiven(repo: Repo, tmp_path: Path) -> None:
    path = few_commands(tmp_path / "bin", "git")
    cargo = tmp_path / "bin" / "cargo"
    cargo.write_text("#!/bin/sh\necho no crates today >&2\nexit 101\n")
    cargo.chmod(0o755)
    said = repo("scripts/dist", "crates", "--allow-missing", status=1, PATH=path).stdout
    assert "no crates today" in said and "not built: crates" in said


def test_no_part_is_called_so(repo: Repo) -> None:
    said = repo("scripts/dist", "rpm", status=2).stderr
    assert "no part is called rpm" in said and "musllinux-x86_64" in said


# ---- what others wrote ---------------------------------------------------------------------------------

FILES = (
    "hakmem-1.2.3-source.tar.gz",
    "hakmem-1.2.3-py3-none-manylinux_2_28_x86_64.whl",
    "hakmem-1.2.3.crate",
    "hakmem-1.2.3.tar.gz",
    "hakmem-sys-1.2.3.crate",
    "hakmem_1.2.3_all.deb",
    "libhakmem0_1.2.3_amd64.deb",
)


@pytest.fixture
def sbom() -> ModuleType:
    import sbom as module

    return module


@pytest.fixture
def bill(root: Path, tmp_path: Path, sbom: ModuleType) -> Callable[[], Any]:
    for name in FILES:
        (tmp_path / name).write_text(name)
    files = [tmp_path / name for name in FILES]
    assert sbom.document(root, files, "1.2.3", 9) == sbom.document(root, files[::-1], "1.2.3", 9)
    return lambda: json.loads(sbom.document(root, files, "1.2.3", 9))


def related(bill: dict[str, Any], name: str, kind: str) -> set[str]:
    """The packages that the one of this file name has that to do with."""
    names = {one["SPDXID"]: one["name"] for one in bill["packages"]} | {"SPDXRef-DOCUMENT": ""}
    pairs = [
        (names[one["spdxElementId"]], names[one["relatedSpdxElement"]])
        for one in bill["relationships"]
        if one["relationshipType"] == kind
    ]
    return {other for one, other in pairs if one == name} | {one for one, other in pairs if other == name}


def test_the_bill_names_what_others_wrote(root: Path, bill: Callable[[], Any], sbom: ModuleType) -> None:
    said = bill()
    assert related(said, "", "DESCRIBES") == set(FILES)
    assert related(said, "hakmem_1.2.3_all.deb", "CONTAINS") == set(sbom.CARRIED)
    assert related(said, "hakmem-sys-1.2.3.crate", "BUILD_DEPENDENCY_OF") == {"cc"}
    assert {"click", "rich"} <= related(said, FILES[1], "DEPENDS_ON")
    for name in ("libhakmem0_1.2.3_amd64.deb", "hakmem-1.2.3-source.tar.gz"):
        assert not related(said, name, "CONTAINS") | related(said, name, "DEPENDS_ON")
    copying = re.search(r"^for name in \((.*)\):$", (root / "scripts/deb").read_text(), re.MULTILINE)
    assert copying and set(re.findall(r'"(\w+)"', copying[1])) == set(sbom.CARRIED)


def test_the_bill_has_sums_and_versions(root: Path, bill: Callable[[], Any], sbom: ModuleType) -> None:
    packages = {one["name"]: one for one in bill()["packages"]}
    for name in FILES:
        (checksum,) = packages[name]["checksums"]
        assert checksum["checksumValue"] == hashlib.sha256(name.encode()).hexdigest()
    pinned = (root / "scripts/requirements.txt").read_text().split()
    carried = [one for one in bill()["packages"] if one["name"] in sbom.CARRIED and "versionInfo" in one]
    assert {f"{one['name']}=={one['versionInfo']}" for one in carried} <= set(pinned)
    assert len(carried) == len(sbom.CARRIED)


# ---- the check-list ------------------------------------------------------------------------------------


def lines(said: str) -> dict[str, str]:
    """Condition → advice; empty where it is met."""
    found = re.findall(r"^(ok|not ok) +(.+)\n((?:        .*\n)*)", said, re.MULTILINE)
    return {what: advice.strip() for _, what, advice in found}


def test_a_commit_that_is_ready(repo: Repo) -> None:
    repo.results()
    advice = lines(repo("scripts/release-check", "--quick", status=1).stdout)
    assert len(advice) == 6
    assert {what for what, why in advice.items() if why} == {"make dist builds all, the same bytes twice"}
    repo.write("scripts/dist", DIST_OF_BYTES.format(content="'same'"))
    repo.commit()
    said = repo("scripts/release-check").stdout
    assert "not ok" not in said and said.count("\nok") == 5


# What scripts/dist is for these tests.
DIST_OF_BYTES = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[-1])
folder.mkdir(parents=True, exist_ok=True)
(folder / "SHA256SUMS").write_text(f"{{{content}}}  hakmem.deb\\n")
"""


def test_builds_that_differ_are_told(repo: Repo) -> None:
    repo.write("scripts/dist", DIST_OF_BYTES.format(content="str(folder)"))
    assert "two builds differ in hakmem.deb" in repo("scripts/release-check", status=1).stdout


def unready(repo: Repo, how: str) -> None:
    """One thing is not as it should be."""
    dated = f"## {repo.version} – 2001-02-03"
    if how == "changed":
        repo.write("new.c", "")
    elif how == "tagged":
        repo("git", "tag", f"v{repo.version}")
    elif how == "undated":
        repo.replace("CHANGELOG.md", dated, f"## {repo.version} – unreleased")
        repo.commit()
    elif how == "no section":
        repo.replace("CHANGELOG.md", dated, "## 0.0.1 – 2001-02-03")
        repo.commit()
    elif how == "not first":
        repo.replace("CHANGELOG.md", dated, f"## 99.0.0 – unreleased\n\n{dated}")
        repo.commit()
    elif how == "no result":
        (repo.folder / "build/test-results/all/unit-thread.xml").unlink()
    elif how == "failed":
        repo.results(outcome="<failure/>")
    elif how == "few":
        repo.results(tests=("tests.api.test_others",))
    elif how == "old":
        os.utime(repo.folder / "build/test-results/all/pytest.xml", (0, 0))


@pytest.mark.parametrize(
    ("how", "what", "words"),
    [
        ("changed", "all is committed", "commit or remove: new.c"),
        ("tagged", "the version has no tag yet", "is tagged already: scripts/version"),
        ("undated", "CHANGELOG.md has a section with the day", "write the day, as 20"),
        ("no section", "CHANGELOG.md has a section with the day", "write a section"),
        ("not first", "CHANGELOG.md has a section with the day", "belongs first"),
        ("no result", "make test-all has passed", "there is no result of unit-thread"),
        ("failed", "make test-all has passed", "5 tests have failed: tests.api.test_calls"),
        ("few", "make test-all has passed", "the last run had nothing of tests.api.test_calls"),
        ("old", "make test-all has passed", "the results of pytest are older than the commit"),
    ],
)
def test_what_is_not_ready_is_said_with_what_to_do(repo: Repo, how: str, what: str, words: str) -> None:
    repo.results()
    unready(repo, how)
    advice = lines(repo("scripts/release-check", "--quick", status=1).stdout)
    assert words in advice.pop(what)
    del advice["make dist builds all, the same bytes twice"]
    assert not any(advice.values())
