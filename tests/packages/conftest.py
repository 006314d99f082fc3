"""hakmem as others take it: installed, from its build tree, inside their project, as packages.

`ran(*words, **variables)`  what a command printed; its output if it failed
`installed`                 a folder that `make install` filled
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from results import captured
from shape.conftest import load_script

__all__ = ["load_script"]


def run(*words: str | Path, **variables: str) -> str:
    step = captured(words, env=os.environ | variables, stdin=subprocess.DEVNULL)
    assert step.returncode == 0, f"{' '.join(map(str, words))}\n{step.stdout}{step.stderr}"
    return step.stdout


@pytest.fixture(scope="session")
def ran() -> Callable[..., str]:
    return run


@pytest.fixture(scope="session")
def installed(root: Path, lib: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("installed")
    run(root / "scripts" / "install", lib.parent, prefix)
    return prefix
