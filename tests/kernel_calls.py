"""Where libhakmem.so calls the kernel, for programs that stand between the two (kernel_calls.h)."""

import re
from pathlib import Path

from results import captured


def place_of_calls(library: Path) -> dict[str, str]:
    """The option of a program that includes kernel_calls.h."""
    symbols = captured(["nm", library], check=True).stdout
    (place,) = re.findall(r"^(\w+) t system_call$", symbols, re.MULTILINE)
    return {"SYSTEM_CALL_AT": place}


def taking_calls(shim: Path, library: Path) -> dict[str, str]:
    """For a preloaded library that takes the calls: the second one, as that is initialised first."""
    return {"LD_PRELOAD": f"{library} {shim}", **place_of_calls(library)}
