"""A folder of src/ is a layer: a file includes its own folder and lower ones only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
LAYERS = (
    "base",
    "os",
    "report",
    "config",
    "map",
    "pool",
    "slab",
    "large",
    "guard",
    "heap",
    "observe",
    "api",
    "fortify",
)  # low to high
# The public header is the top: it may be known where the public functions and their report are made.
PUBLIC_HEADER_LAYERS = ("observe", "api")

SOURCES = sorted(path for path in SRC.rglob("*") if path.suffix in {".c", ".h", ".def"})


def quoted_includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)


def fault(layer: str, included: str) -> str | None:
    """Why a file of `layer` may not include `included`; None when it may."""
    if included == "hakmem/hakmem.h":
        return None if layer in PUBLIC_HEADER_LAYERS else "the public header is above this layer"
    if not (SRC / included).is_file():
        return "includes are written from src/, as in base/bits.h"
    if LAYERS.index(included.split("/")[0]) > LAYERS.index(layer):
        return "that layer is above this one"
    return None


def test_every_folder_is_a_layer() -> None:
    assert {path.name for path in SRC.iterdir()} <= set(LAYERS)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SRC)))
def test_includes_go_down(path: Path) -> None:
    layer = path.relative_to(SRC).parts[0]
    faults = {name: fault(layer, name) for name in quoted_includes(path)}
    assert not {name: why for name, why in faults.items() if why}
