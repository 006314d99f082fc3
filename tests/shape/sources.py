"""The C sources as they include each other: folders of src/, and above them fortify/, another library."""

import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"


def sources(*suffixes: str) -> list[Path]:
    tops = (SRC, ROOT / "fortify")
    return sorted(path for top in tops for path in top.rglob("*") if path.suffix in suffixes)


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text()


def name_of(path: Path) -> str:
    """As it is included: slab/owner.h, fortify/real.h."""
    return str(path.relative_to(SRC if path.is_relative_to(SRC) else ROOT))


def layer_of(path: Path) -> str:
    return name_of(path).split("/")[0]
