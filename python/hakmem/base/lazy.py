"""Modules that are imported at their first use: importing numpy takes longer than most commands run."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class Lazy(ModuleType):
    """Stands for a module until something of it is needed.

    if TYPE_CHECKING:
        import numpy as np
    else:
        np = Lazy("numpy")
    """

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)  # from now on without this call
        return found
