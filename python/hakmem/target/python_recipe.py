"""CPython in a process, and where its structures hold what the sampler needs (src/stack/unwind_python.h).

    recipe_of(target)    3.9 to 3.12 by a table, 3.13 and 3.14 as the interpreter describes itself
                         (_Py_DebugOffsets)

An interpreter of another version, one without the global lock, or with code objects of another size gets no
recipe (UnknownPythonError): stacks have its C functions then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from hakmem.base.errors import HakmemError
from hakmem.target.elf import ElfFile
from hakmem.target.target import Target

CONTROL = "profile_control"
WORDS = ("code_type", "thread", "frame", "code", "holder")  # of struct python_recipe
COOKIE, OFFSETS_MAX = b"xdebugpy", 64
NAMES_AT_MAX = 224  # in a code object, of which 256 bytes are hashed at most
THREAD_LINKS = [0, 8, 16]  # previous, next, interpreter: then come the frame and the handle
FRAME_LINKS = [8, 0]  # previous, code object: then comes the instruction
BASIC_SIZE_OF_TYPE, WORD_BYTES, OFFSET_BITS = 32, 8, 16
BY_NUMBER, NOTES_SHIFT, NOTE_BITS, VERSION_SHIFT = 1 << 32, 33, 8, 48
BY_ADDRESS, SELF_DESCRIBED, NEWEST = 0x30B, 0x30D, 0x30E
CALLED_BY_C = 68  # of a frame: whether C called it


class UnknownPythonError(Exception):
    """An interpreter of another kind."""

    def __init__(self, version: int) -> None:
        name = f"{version >> 8}.{version & 0xFF}" if version else "an older one"
        build = "another build of " if 0 < version <= NEWEST else ""
        super().__init__(
            "sites have no lines of Python: these are known of CPython 3.9 to 3.14 with the global lock, "
            f"and the process runs {build}{name}"
        )


@dataclass(frozen=True)
class Recipe:
    """Offsets in the interpreter's structures."""

    version: int  # 0x30B: 3.11
    code_type: int
    thread: tuple[int, ...]  # of its handle; of its frame, or of a record; of the frame in that, and 1
    frame: tuple[int, ...]  # of the code object; the caller's frame; the instruction; a byte
    filename: int  # in a code object; its name, qualified name (3.11) and lines follow
    first_line: int
    code: int  # where its instructions begin, from 3.11 on
    holder: int = 0  # address of the state of the thread with the lock, before 3.12

    @property
    def names(self) -> tuple[int, ...]:
        """The places of its file name, name and lines; the qualified name if it has one."""
        return tuple(
            self.filename + WORD_BYTES * at for at in ((0, 2, 3) if self.is_by_address else (0, 1, 2))
        )

    @property
    def is_by_address(self) -> bool:
        return self.version >= BY_ADDRESS

    @cached_property
    def hashed(self) -> int:
        """The words of a code object that tell it from another: no counter, and nothing that specialisation
        changes."""
        places = [self.first_line, *range(self.filename, self.names[-1] + 1, WORD_BYTES)]
        places += (16, 24, 32) if self.is_by_address else (48, 56, 64)
        return sum({1 << place // WORD_BYTES for place in places})

    @property
    def words(self) -> tuple[int, ...]:
        notes = (self.filename // WORD_BYTES, self.first_line // 4, self.code // WORD_BYTES)
        code = (
            self.hashed | (0 if self.is_by_address else BY_NUMBER) | _packed(notes, NOTE_BITS) << NOTES_SHIFT
        )
        thread = _packed(self.thread, OFFSET_BITS) | self.version << VERSION_SHIFT
        return self.code_type, thread, _packed(self.frame, OFFSET_BITS), code, self.holder

    @classmethod
    def of_words(cls, code_type: int, thread: int, frame: int, code: int) -> Recipe:
        """As it stands in the control record."""
        filename, first_line, start = _unpacked(code >> NOTES_SHIFT, NOTE_BITS, 3)
        offsets = _unpacked(thread, OFFSET_BITS, 3), _unpacked(frame, OFFSET_BITS, 4)
        places = filename * WORD_BYTES, first_line * 4, start * WORD_BYTES
        return cls(thread >> VERSION_SHIFT, code_type, *offsets, *places)


def _place_of(words: list[int], is_there: Callable[[int], bool]) -> int:
    return next((at for at in range(len(words)) if is_there(at)), -1)


def _follow(words: list[int]) -> bool:
    """File name, name, qualified name and lines, one after the other."""
    return [one - words[0] for one in words] == [0, 8, 16, 24] and 0 < words[0] <= NAMES_AT_MAX


def _packed(numbers: tuple[int, ...], bits: int) -> int:
    return sum(number << bits * place for place, number in enumerate(numbers))


def _unpacked(word: int, bits: int, count: int) -> tuple[int, ...]:
    return tuple(word >> bits * place & (1 << bits) - 1 for place in range(count))


# Version → size of a code object without its instructions, thread, frame, file name, first line, holder.
_LAYOUTS = {
    0x309: (176, (176, 24, 0), (32, 24, 104, 0), 104, 40, 568),
    0x30A: (176, (176, 24, 0), (32, 24, 96, 0), 104, 40, 568),
    0x30B: (184, (152, 56, 9), (32, 48, 56, CALLED_BY_C), 112, 72, 576),
    0x30C: (192, (136, 56, 1), (0, 8, 56, 0), 112, 68, 0),
}


def recipe_of(target: Target) -> Recipe | None:
    """None without an interpreter; UnknownPythonError for one of another kind."""
    maps = [one for one in target.maps() if one.is_file]
    files = {one.path: one for one in maps if one is maps[0] or "python" in one.file_name}
    for mapping in files.values():
        loaded = target.loaded(mapping)
        with suppress(HakmemError):  # damaged, or it cannot be read now
            if loaded is not None and loaded[0].symbol("PyCode_Type") is not None:
                return _Interpreter(target, *loaded).recipe()
    return None


class _Interpreter:
    def __init__(self, target: Target, file: ElfFile, bias: int) -> None:
        self._memory, self._file, self._bias = target.memory, file, bias

    def recipe(self) -> Recipe:
        version, code_type = self._version(), self._address("PyCode_Type") or 0
        found = self._described(version, code_type) if version <= NEWEST else None
        if version in _LAYOUTS:
            size, thread, frame, filename, first_line, at = _LAYOUTS[version]
            holder = (self._address("_PyRuntime") or 0) + at if at else 0
            found = Recipe(version, code_type, thread, frame, filename, first_line, size, holder)
        if found is None or self._memory.word(code_type + BASIC_SIZE_OF_TYPE) != found.code:
            raise UnknownPythonError(version)
        return found

    def _version(self) -> int:
        """By its own number; before 3.11 by functions that were new."""
        place = self._address("Py_Version")
        if place is not None:
            return self._memory.word(place) >> 16 & 0xFFFF
        news = {0x30A: "PyIter_Send", 0x309: "PyFrame_GetBack"}
        return next((version for version, name in news.items() if self._address(name) is not None), 0)

    def _described(self, version: int, code_type: int) -> Recipe | None:
        place = self._address("_PyRuntime") if version >= SELF_DESCRIBED else None
        if place is None or self._memory.read(place, len(COOKIE)) != COOKIE:
            return None
        told, is_free_threaded, *offsets = self._memory.words(place + len(COOKIE), OFFSETS_MAX)
        state = _place_of(offsets, lambda at: offsets[at : at + 3] == THREAD_LINKS)
        frame = _place_of(offsets, lambda at: at > state and offsets[at : at + 2] == FRAME_LINKS)
        names = _place_of(offsets, lambda at: at > frame and _follow(offsets[at : at + 4]))
        if told >> 16 != version or is_free_threaded or not 0 < state < frame < names < len(offsets) - 9:
            return None
        thread = offsets[state + 4], offsets[state + 3], 0
        links = offsets[frame + 1], offsets[frame], offsets[frame + 2], 0
        return Recipe(
            version, code_type, thread, links, offsets[names], offsets[names + 4], offsets[names + 8]
        )

    def _address(self, symbol: str) -> int | None:
        value = self._file.symbol(symbol)
        return None if value is None else value + self._bias
