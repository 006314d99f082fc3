"""The Python sources are clean by ruff's rules of pyproject.toml."""

import sys
from pathlib import Path

import pytest
from results import captured


@pytest.mark.parametrize("check", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_has_nothing_to_say(root: Path, check: list[str]) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not in this Python environment")
    step = captured([ruff, *check, "--quiet"], cwd=root)
    assert step.returncode == 0, step.stdout
