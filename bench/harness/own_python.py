"""The project's own environment, for scripts that are started with any Python."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .paths import REPOSITORY

VENV_PYTHON = REPOSITORY / "build" / "venv" / "bin" / "python"


def enter(script: Path, packages: Sequence[str]) -> None:
    """Goes on in the project's own environment when this Python lacks a package; ends the program when
    there is none."""
    if all(importlib.util.find_spec(name) is not None for name in packages):
        return
    if not VENV_PYTHON.exists() or Path(sys.prefix) == VENV_PYTHON.parent.parent:
        name = script.relative_to(REPOSITORY)
        sys.exit(f"{name} needs {', '.join(packages)}: `make {name.parent}` installs them")
    os.execv(VENV_PYTHON, [str(VENV_PYTHON), str(script), *sys.argv[1:]])
