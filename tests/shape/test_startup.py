"""What every process pays for the library: symbols, pages in memory, pages of its own (decision 0012)."""

import re
import shutil
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

import pytest
from results import captured

# The kernel maps so much at the first touch; all that most programs run and read is there (first.ld).
FIRST_PIECE_KIB = 64
# One that the dynamic linker writes and one of variables.
OWN_PAGES_KIB = 8
# Each costs every process about 0.2 µs.
LOOKED_UP_MAX = 49

Mapping = dict[str, str]


def mappings_of(smaps: str, library: Path) -> list[Mapping]:
    """Of the library's file: permissions, and what /proc/PID/smaps says, by name."""
    found: list[Mapping] = []
    for line in smaps.splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)", line)
        if head:
            found.append({"permissions": head[1], "file": head[2]})
        elif found:
            name, _, value = line.partition(":")
            found[-1][name] = value
    return [mapping for mapping in found if mapping["file"] == str(library)]


def kib(mapping: Mapping, name: str) -> int:
    return int(mapping[name].split()[0])


# With threads it is chance what is run: which meet, when a round of purging comes.  One comes to a process
# that the machine lets wait for long, too: the least of a few counts.
def test_a_small_process_has_the_first_piece_of_the_library(lib: Path, preload: Callable) -> None:
    code_kib = []
    for _ in range(3):
        mappings = mappings_of(preload(["cat", "/proc/self/smaps"], stats=False).stdout, lib.resolve())
        code = [mapping for mapping in mappings if "x" in mapping["permissions"]]
        assert len(code) == 1
        code_kib.append(kib(code[0], "Rss"))
    assert min(code_kib) <= FIRST_PIECE_KIB
    assert sum(kib(mapping, "Anonymous") for mapping in mappings) <= OWN_PAGES_KIB


def symbols_by_offset(library: Path, kinds: str) -> list[tuple[int, str]]:
    listed = captured(["nm", library], check=True).stdout
    return sorted((int(offset, 16), name) for offset, name in re.findall(rf"(\w+) [{kinds}] (\w+)", listed))


def test_the_variables_of_a_small_process_share_a_page(lib: Path) -> None:
    """Else RARE_DATA is missing (src/base/compiler.h). Of the last, 73 words are written (slot_index.c)."""
    offset_of = {name: offset for offset, name in symbols_by_offset(lib, "bBdD")}
    assert offset_of["options"] >> 12 == (offset_of["first_tree"] + 73 * 8) >> 12


def test_the_tables_of_classes_share_another_page(lib: Path) -> None:
    """class_make_fitted opens one page (src/map/size_class.c)."""
    tables = ["tiny_class_table", "mid_class_table", "class_block_bytes", "slab_shapes", "slab_starts"]
    offset_of = {name: offset for offset, name in symbols_by_offset(lib, "bBdD")}
    assert len({offset_of[name] >> 12 for name in tables}) == 1
    assert offset_of["options"] >> 12 != offset_of[tables[0]] >> 12


def functions_run(library: Path, record: Path) -> dict[str, int]:
    """Name and offset in the file of each that callgrind saw."""
    functions = symbols_by_offset(library, "tT")
    offset_of = dict((name, offset) for offset, name in functions)
    by_object: dict[str, set[int]] = {}
    text = record.read_text()
    for part in re.split(r"^ob=", text, flags=re.MULTILINE)[1:]:
        run = {int(address, 16) for address in re.findall(r"^0x(\w+) ", part, re.MULTILINE)}
        by_object.setdefault(part.partition("\n")[0], set()).update(run)
    # Of .text callgrind writes offsets; of a section that it does not know addresses, without an object.
    load = re.search(r"^fn=os_note_processors\n0x(\w+)", text, re.MULTILINE)
    assert load is not None
    base = int(load[1], 16) - offset_of["os_note_processors"]
    offsets = {address - base for address in by_object["???"]} | by_object.get(str(library), set())
    ours = {offset for offset in offsets if functions[0][0] <= offset < functions[-1][0]}
    return {functions[bisect_right(functions, (offset, "~")) - 1][1]: offset for offset in ours}


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="not installed: valgrind")
@pytest.mark.parametrize("program", [["cat", "/dev/null"], ["sh", "-c", ":"]], ids=lambda words: words[0])
def test_what_a_small_process_runs_is_resident(
    program: list[str], lib: Path, preload: Callable, tmp_path: Path
) -> None:
    """Else RESIDENT is missing at a definition, or FIRST_PIECE_KIB are too few (src/base/compiler.h)."""
    record = tmp_path / "calls"
    tool = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no"]
    preload([*tool, f"--callgrind-out-file={record}", *program], stats=False)
    run = functions_run(lib.resolve(), record)
    assert {"malloc", "free"} < set(run)
    assert not {name for name, offset in run.items() if offset >= FIRST_PIECE_KIB << 10}


def test_few_symbols_are_looked_up(lib: Path) -> None:
    relocations = captured(["readelf", "--relocs", "--wide", lib], check=True).stdout
    assert len(re.findall(r"_(?:GLOB_DAT|JUMP_SLOT?|64) ", relocations)) <= LOOKED_UP_MAX


def test_a_process_without_threads_registers_no_fork_handlers(preload: Callable) -> None:
    """To register costs 64 KiB of the C library (override_threads.c)."""
    bindings = preload(["true"], stats=False, env={"LD_DEBUG": "bindings"}).stderr
    taken = set(re.findall(r"file \S*/libhakmem\.so \[0\] to \S*/libc\.so\S* .*`(\w+)'", bindings))
    assert "mmap" in taken
    assert "__register_atfork" not in taken
