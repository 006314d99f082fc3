"""Programs that stand between libhakmem.so and the kernel (kernel_calls.h)."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "bench"))

from harness.build import place_of_calls

__all__ = ["place_of_calls", "taking_calls"]


def taking_calls(shim: Path, library: Path) -> dict[str, str]:
    """For a preloaded library that takes the calls: the second one, as that is initialised first."""
    return {"LD_PRELOAD": f"{library} {shim}", **place_of_calls(library)}
