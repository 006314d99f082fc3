"""The binary interface is that of the reference: programs that are linked already go on working."""

import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [
    pytest.mark.skipif(shutil.which("abidw") is None, reason="abigail-tools are not installed"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the reference is of x86-64"),
]
HEADER = "struct pair { int first; long second; };\nint keep(struct pair *pair, int how);\n"
BODY = '#include "api.h"\nint keep(struct pair *pair, int how) { return pair->first + how; }\n'
MORE = "int more(void) { return 1; }\n"


@pytest.fixture(scope="module")
def abi(load_script: Callable[[str], ModuleType]) -> ModuleType:
    return load_script("abi")


def test_nothing_is_changed(abi: ModuleType, lib: Path, tmp_path: Path) -> None:
    reference = abi.reference(lib)
    assert reference.exists(), f"no reference for {reference.stem}: run scripts/abi --update, and commit it"
    abi.write(lib, tmp_path / "now")
    found = abi.difference(reference, tmp_path / "now")
    what = (
        "raise hakmem_soversion (cmake/product.cmake)"
        if found.is_incompatible
        else "run scripts/abi --update"
    )
    assert not found.is_changed, f"{what}:\n{found.text}"


def test_each_function_of_the_header_is_compared(abi: ModuleType, lib: Path, root: Path) -> None:
    declared = re.findall(
        r"^HAK_EXPORT [^;]*?\b(\w+)\(", (root / "include/hakmem/hakmem.h").read_text(), re.MULTILINE
    )
    compared = re.findall(r"<function-decl [^>]*elf-symbol-id='(\w+)'", abi.reference(lib).read_text())
    assert set(declared) <= set(compared)


@pytest.mark.parametrize(
    ("header", "body", "outcome"),
    [
        (HEADER, BODY, (False, False)),
        (HEADER, BODY + MORE, (True, False)),
        (HEADER, MORE, (True, True)),
        (HEADER.replace(", int how", ""), BODY.replace(", int how", "").replace("+ how", ""), (True, True)),
        (HEADER.replace("int first", "long first"), BODY, (True, True)),
    ],
    ids=["same", "added", "removed", "parameter", "layout"],
)
def test_changes_are_seen(
    abi: ModuleType, cc: str, tmp_path: Path, header: str, body: str, outcome: tuple[bool, bool]
) -> None:
    """The check itself: what it tells of a small library."""
    for name, texts in (("before", (HEADER, BODY)), ("after", (header, body))):
        folder = tmp_path / name
        folder.mkdir()
        for file, text in zip(("api.h", "api.c"), texts, strict=True):
            (folder / file).write_text(text)
        subprocess.run([cc, "-g", "-shared", "-fPIC", "api.c", "-o", "api.so"], cwd=folder, check=True)
        abi.write(folder / "api.so", tmp_path / f"{name}.abi", headers=folder)
    found = abi.difference(tmp_path / "before.abi", tmp_path / "after.abi")
    assert (found.is_changed, found.is_incompatible) == outcome, found.text
