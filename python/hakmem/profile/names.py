"""Names the addresses of a profile: functions always, lines and inlined calls where something can read them.

It works on files, so it can be done in the process's own file system while it runs, or later and elsewhere:
the build ids in the profile say whether a file is the right one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hakmem.base.errors import DamagedFileError
from hakmem.profile.debug_files import Debuginfod, FileToName, find
from hakmem.profile.lines import lines_of
from hakmem.profile.model import ByAddress, Frame, Mapping, Profile
from hakmem.profile.perf_map import PerfMap, perf_map_of
from hakmem.target.demangle import demangled
from hakmem.target.elf import ElfFile
from hakmem.target.functions import symbols_of
from hakmem.target.process import Mapping as ProcessMapping
from hakmem.target.process import Process
from hakmem.target.python_frames import place_of

DWARF_SECTIONS = (".debug_info", ".zdebug_info")
JAVASCRIPT = re.compile(  # JS: node 18 and later; the others: earlier ones
    r"(JS|LazyCompile|Function|Script|Eval):[*^~+']*(?P<function>\S*) "
    r"(?P<file>\S.*):(?P<line>[0-9]{1,9}):[0-9]+"
)
Names = dict[int, tuple[Frame, ...]]


def ignore(_text: str) -> None:
    """For callers that want no warnings."""


@dataclass(frozen=True)
class Sources:
    root: Path | None = None  # /proc/PID/root; None: this file system
    perf_map: PerfMap | None = None
    debuginfod: Debuginfod | None = None
    wants_lines: bool = True
    complain: Callable[[str], None] = ignore
    moved: Sequence[Path] = ()  # files of the program, or folders with them, if they have moved

    @classmethod
    def of_process(cls, process: Process, complain: Callable[[str], None] = ignore) -> Sources:
        return cls(process.path("root"), perf_map_of(process), complain=complain)


def mappings_of(
    maps: Iterable[ProcessMapping], file_of: Callable[[ProcessMapping], ElfFile | None]
) -> list[Mapping]:
    """The mappings with code, with the build ids of their files as far as these are here."""
    found = []
    for one in (mapping for mapping in maps if "x" in mapping.permissions):
        build_id = None
        with suppress(DamagedFileError):
            file = file_of(one) if one.is_file else None
            build_id = file.build_id if file is not None else None
        found.append(Mapping(one.start, one.end, one.offset, one.path, build_id or ""))
    return found


def name_addresses(profile: Profile, sources: Sources) -> None:
    """Adds to `profile.names` the names that can be found; existing ones stay."""
    known, raw = ByAddress(profile.mappings), dict[int, list[Frame]]()
    groups: dict[Mapping | None, list[int]] = defaultdict(list)
    for address in sorted(profile.addresses() - profile.names.keys()):
        if place := place_of(address):
            profile.names[address] = (Frame(*place),)
        else:
            groups[known.at(address)].append(address)
    for mapping, addresses in groups.items():
        if mapping is not None and mapping.path and not mapping.path.startswith(("[", "//")):
            try:
                files = find(mapping, sources.root, sources.debuginfod, sources.moved)
                raw.update(_named(files, _places_in(files, mapping, addresses), sources))
            except DamagedFileError as error:
                sources.complain(f"{error}; its functions stay without names")
        elif sources.perf_map is not None:
            for address in addresses:
                if (code := sources.perf_map.at(address)) and code.path:
                    raw[address] = [_compiled(code.path)]
    profile.names |= _demangled(raw)


def name_file(path: Path, offsets: Iterable[int], sources: Sources) -> Names | None:
    """The names in a file by the offset from where it is loaded, as the dynamic linker tells it; None for
    other files than programs and libraries."""
    try:
        files = find(Mapping(0, 0, 0, str(path), ""), None, sources.debuginfod, sources.moved)
        if files.file is None:
            return None
        base = min((one.address for one in files.file.segments), default=0) & ~0xFFF  # of its page
        return _demangled(_named(files, {offset: base + offset for offset in offsets}, sources))
    except DamagedFileError:
        return None


def _demangled(raw: dict[int, list[Frame]]) -> Names:
    names = demangled(frame.function for frames in raw.values() for frame in frames)
    return {
        address: tuple(replace(one, function=names[one.function]) for one in frames)
        for address, frames in raw.items()
    }


def _compiled(name: str) -> Frame:
    """A name of a perf map file; CPython's are `py::function:file`, V8's `JS:*function file:line:column`,
    with a sign for the tier that has compiled it: one function has code of several."""
    if found := JAVASCRIPT.fullmatch(name):
        return Frame(found["function"] or "<anonymous>", found["file"], int(found["line"]))
    function, _, file = name.rpartition(":")
    return Frame(function, file) if function.startswith("py::") else Frame(name)


def _named(files: FileToName, places: dict[int, int], sources: Sources) -> dict[int, list[Frame]]:
    """The names in one file, mangled.  `places`: the addresses before loading."""
    if not places:
        return {}
    known = list(places)
    found: dict[int, list[Frame]] = {}
    for file in files.sources:
        left = [address for address in known if address not in found]
        functions = symbols_of(file) if left else None
        symbols = {address: functions.at(places[address]) for address in left} if functions else {}
        found |= {address: [Frame(symbol[0])] for address, symbol in symbols.items() if symbol}
    if sources.wants_lines:
        _add_lines(found, files, places, sources)
    return found


def _places_in(files: FileToName, mapping: Mapping, addresses: list[int]) -> dict[int, int]:
    """The addresses before loading; by the program headers, which a debug file has too."""
    headers = files.file or files.debug
    if headers is None:
        return {}
    places = {address: headers.address_of(address - mapping.start + mapping.offset) for address in addresses}
    return {address: place for address, place in places.items() if place is not None}


def _add_lines(
    found: dict[int, list[Frame]], files: FileToName, places: dict[int, int], sources: Sources
) -> None:
    file = next((one for one in files.sources if any(map(one.has_section, DWARF_SECTIONS))), None)
    if file is None:
        return
    lines = lines_of(Path(file.name), file.machine, sorted(set(places.values())), sources.complain)
    for address, place in places.items():
        frames = lines.get(place) or []
        if not frames:
            continue
        outer = found.get(address)
        if outer:  # the symbol's name has its scopes and arguments
            frames = [*frames[:-1], replace(frames[-1], function=outer[-1].function)]
        found[address] = [frame for frame in frames if frame.function]
