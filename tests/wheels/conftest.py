"""Fixtures of the tests of what users install.

`wheel`      this machine's wheel, as `make wheel` builds it
`installed`  an environment with that wheel and nothing of this checkout
`outside`    how commands in such an environment are run"""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from preload import clean_environment
from results import captured

ROOT = Path(__file__).resolve().parents[2]
OWN = ("hakmem", "__editable__")  # of this checkout, in the environment of the build
TIMEOUT_S = 120


def built(to: Path, *names: str, umask: int = -1) -> Path:
    """What scripts/wheel makes, its last line's file."""
    words = [sys.executable, ROOT / "scripts" / "wheel", "--to", to, *names]
    step = captured(words, env=clean_environment(), umask=umask, timeout=TIMEOUT_S * 10)
    assert step.returncode == 0, step.stdout + step.stderr
    return Path(ROOT, step.stdout.splitlines()[-1].split("  ")[0])


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("auditwheel") is None:
        pytest.skip("auditwheel is not installed: no Python package index within reach (make-venv)")
    return built(tmp_path_factory.mktemp("dist"))


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and how its commands are run: away from the checkout."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python3*/site-packages")
        return found

    def __call__(
        self, *words: str | Path | int, status: int = 0, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command of the environment: hakmem, python …"""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        environment = {name: value for name, value in clean_environment().items() if name not in hidden}
        step = captured(
            words,
            env=environment | {"PATH": path} | dict(variables or {}),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
        )
        assert step.returncode == status, f"{words}: {step.returncode}\n{step.stdout}\n{step.stderr}"
        return step

    def json(self, *words: str | Path | int) -> Any:  # noqa: ANN401 - whatever it printed
        return json.loads(self("hakmem", *words, "--json").stdout)

    def pip(self, *words: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
        """The pip of the build's environment works on this one."""
        pip = [sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check"]
        return self(*pip, *words, status=status)

    def files(self) -> set[Path]:
        return {path.relative_to(self.folder) for path in self.folder.rglob("*")}


def make_environment(folder: Path) -> Environment:
    """Bare but for the libraries that hakmem needs: those of the build's environment."""
    venv.create(folder, symlinks=True)
    made = Environment(folder)
    others = folder / "others"
    others.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(OWN):
            (others / path.name).symlink_to(path)
    (made.packages / "others.pth").write_text(f"{others}\n")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """pip finds that everything needed is there; it may not look elsewhere."""
    made = make_environment(tmp_path_factory.mktemp("environment") / "venv")
    made.pip("install", "-q", "--no-index", wheel)
    return made
