"""The Python sources are clean by ruff's rules of pyproject.toml."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("check", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_has_nothing_to_say(root: Path, check: list[str]) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not in this Python environment")
    step = subprocess.run([ruff, *check, "--quiet"], cwd=root, capture_output=True, text=True, check=False)
    assert step.returncode == 0, step.stdout
