"""The Rust crates as a user gets them: packed, unpacked, and a program that depends on them.

    packed()              the .crate files of this tree, and where they are unpacked
    packed().build(…)     tests/packages/rust/NAME.rs, built on them

All of cargo's output is in build/cargo.  Folders are named after what is in the crates: cargo looks at times,
which packed files have none of."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest
from results import captured

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "build" / "cargo"
PROGRAMS = Path(__file__).parent / "rust"
PATIENCE_S = 280

MANIFEST = """[package]
name = "{name}"
version = "0.0.0"
edition = "2021"

[[bin]]
name = "{name}"
path = "{source}"

[dependencies]
hakmem = {{ path = "{hakmem}", default-features = false, features = {features} }}

[patch.crates-io]
hakmem-sys = {{ path = "{sys}" }}

[workspace]
"""
# Notes what it is told to compile: the C compiler as cargo's build script calls it.
RECORDER = """#!/bin/sh
printf '%s\\n' "$*" >> {log}
exec {compiler} "$@"
"""


CARGO_OLDEST = (1, 90)  # that packs crates which need each other
# A network that answers nothing is found out in seconds.
IMPATIENT = {"CARGO_NET_RETRY": "0", "CARGO_HTTP_TIMEOUT": "15"}
NO_NETWORK = (
    "Could not resolve host",
    "download of config.json failed",
    "failed to download from",
    "Timeout was reached",
    "Could not connect",
)


def need_cargo() -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed (scripts/install-tools rust)")
    said = captured(["cargo", "--version"]).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < CARGO_OLDEST:
        pytest.skip(f"{said.strip() or 'cargo'} is too old to pack crates: 1.90 or newer is needed")


def need_network(step: subprocess.CompletedProcess[str]) -> None:
    """Skips where only that was missing."""
    if step.returncode != 0 and any(words in step.stderr for words in NO_NETWORK):
        pytest.skip("the crate cc is not here, and crates.io is not within reach")


def cargo(
    *words: str | Path, cwd: Path, env: dict[str, str] | None = None, program: str = "cargo"
) -> subprocess.CompletedProcess[str]:
    """From what was downloaded before, if that is enough: a machine without a network has what it has."""
    for more in (["--offline"], []):
        step = captured(
            [program, *map(str, words[:1]), *more, *map(str, words[1:])],
            cwd=cwd,
            env=os.environ | IMPATIENT | {"CARGO_TARGET_DIR": str(TARGET)} | (env or {}),
            timeout=PATIENCE_S,
        )
        if step.returncode == 0 or "offline" not in step.stderr:
            return step
    need_network(step)
    return step


def done(step: subprocess.CompletedProcess[str]) -> str:
    assert step.returncode == 0, f"{shlex.join(step.args)}\n{step.stdout[-4000:]}{step.stderr[-8000:]}"
    return step.stdout


def out_folder(messages: str) -> Path:
    """Of hakmem-sys's build script, as cargo tells."""
    found = [json.loads(line) for line in messages.splitlines() if line.startswith("{")]
    (out,) = (
        one["out_dir"] for one in found if "hakmem-sys" in one.get("package_id", "") and "out_dir" in one
    )
    return Path(out)


def pack(output: Path, **variables: str) -> dict[str, Path]:
    """Crate → its file, by scripts/pack-crates."""
    words = [sys.executable, str(ROOT / "scripts" / "pack-crates"), "--output", str(output)]
    environment = os.environ | IMPATIENT | variables
    step = captured(words, env=environment, timeout=PATIENCE_S)
    need_network(step)
    files = [Path(line) for line in done(step).splitlines()]
    return {file.name.rsplit("-", 1)[0]: file for file in files}


@dataclass(frozen=True)
class Built:
    program: Path
    out: Path  # of hakmem-sys's build script


@dataclass(frozen=True)
class Packed:
    files: dict[str, Path]
    folder: Path  # of the unpacked ones

    def unpacked(self, crate: str) -> Path:
        return self.folder / self.files[crate].name.removesuffix(".crate")

    def _told(self) -> list[list[str]]:
        return [shlex.split(line) for line in (self.folder / "cc.log").read_text().splitlines()]

    @property
    def linked(self) -> list[str]:
        """Names of the sources in the order in which their objects were linked last."""
        words = [words for words in self._told() if "-r" in words][-1]
        return [
            Path(word).stem.split("-", 1)[1]
            for word in words
            if word.endswith(".o") and "-whole.o" not in word
        ]

    @property
    def compilations(self) -> list[list[str]]:
        """What the C compiler was told, a list of words each; only where a source became an object."""
        return [words for words in self._told() if "-c" in words and any("/c/src/" in word for word in words)]

    def build(self, name: str, *features: str) -> Built:
        own_name = "-".join((name, *features))
        folder = self.folder / own_name
        folder.mkdir(exist_ok=True)
        manifest = MANIFEST.format(
            name=own_name,
            source=PROGRAMS / f"{name}.rs",
            hakmem=self.unpacked("hakmem"),
            sys=self.unpacked("hakmem-sys"),
            features=json.dumps(features),
        )
        (folder / "Cargo.toml").write_text(manifest)
        words = ["build", "--release", "--message-format=json"]
        said = done(cargo(*words, cwd=folder, env={"CC": str(self._recorder(*features))}))
        return Built(TARGET / "release" / own_name, out_folder(said))

    def _recorder(self, *features: str) -> Path:
        """What is compiled without features is noted in cc.log."""
        recorder = self.folder / "-".join(("recording-cc", *features))
        if not recorder.exists():
            log = shlex.quote(str(self.folder / ("-".join(("cc", *features)) + ".log")))
            recorder.write_text(RECORDER.format(log=log, compiler=shlex.quote(os.environ.get("CC", "gcc"))))
            recorder.chmod(0o755)
        return recorder


@lru_cache
def packed() -> Packed:
    need_cargo()
    files = pack(ROOT / "build" / "dist")
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files.values())).hexdigest()[:12]
    folder = TARGET / "packed" / digest
    for old in folder.parent.glob("*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    for file in files.values():
        if not (folder / file.name.removesuffix(".crate")).exists():
            with tarfile.open(file) as archive:
                archive.extractall(folder, filter="data")
    return Packed(files, folder)
