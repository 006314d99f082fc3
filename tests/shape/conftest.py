"""What the tests of generated pages share."""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def load_script(root: Path) -> Callable[[str], ModuleType]:
    """A file of scripts/, which has no suffix, as a module."""

    def load(name: str) -> ModuleType:
        loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(root / "scripts" / name))
        spec = importlib.util.spec_from_loader(loader.name, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[loader.name] = module
        loader.exec_module(module)
        return module

    return load
