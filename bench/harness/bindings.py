"""The proof of which library serves a real program: the dynamic linker's own account of what it bound where.

A program that reports nothing itself is started once with LD_DEBUG=bindings.  In every process that it
starts, all bindings of `malloc` and `free` must lead to the expected library."""

from __future__ import annotations

import re
from pathlib import Path

from .allocators import Allocator
from .execute import RunError

SYMBOLS = ("malloc", "free")
_BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'")

_C_LIBRARY = re.compile(r" to (\S+/libc\.so\.6) ")

# The object that refers to a symbol, and the one where the linker found it.
Binding = tuple[str, str]


def proof_variables(folder: Path) -> dict[str, str]:
    """The environment that makes each process write its bindings into a file of `folder`."""
    return {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{folder}/bindings"}


def bindings_of(symbol: str, text: str) -> set[Binding]:
    """The bindings of a symbol in what LD_DEBUG=bindings wrote, by file names without folders."""
    return {
        (Path(source).name, Path(target).name)
        for source, target, name in _BINDING.findall(text)
        if name == symbol
    }


def wrong_bindings(found: set[Binding], expected_file: str) -> set[Binding]:
    """Those that lead elsewhere.  The library's own are its business; and an executable that takes the
    address of malloc is bound to by others, but hands on to what it is bound to itself."""
    handed_on = {source for source, target in found if target == expected_file}
    return {
        (source, target)
        for source, target in found
        if expected_file not in (source, target) and target not in handed_on
    }


def check_bindings(folder: Path, allocator: Allocator) -> None:
    """Raises RunError unless the processes that wrote into `folder` were served by the allocator."""
    linker = Path(allocator.wrapper[0]).parent if allocator.library is None and allocator.wrapper else None
    texts = [path.read_text(errors="replace") for path in folder.glob("bindings.*")]
    served = 0
    for text in texts:
        for place in _C_LIBRARY.findall(text) if linker else ():
            if Path(place).parent != linker:
                raise RunError(f"a process that the program starts runs on {place}")
        for symbol in SYMBOLS:
            found = bindings_of(symbol, text)
            wrong = wrong_bindings(found, allocator.expected_file)
            if wrong:
                source, target = sorted(wrong)[0]
                raise RunError(f"{symbol} of {source} is bound to {target}, not {allocator.expected_file}")
            served += symbol == "malloc" and any(to == allocator.expected_file for _, to in found)
    if served == 0:
        raise RunError(f"no process bound malloc to {allocator.expected_file}")
