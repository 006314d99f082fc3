"""The instructions of the fast paths, read from the built library.

The hit path of a function is the shortest way from its entry to a return that calls nothing: a magazine
hit returns at once, everything slow is a function of its own.  x86-64 is understood here, aarch64 in
fast_path_aarch64.py."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import fast_path_aarch64

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "shape" / "fast_path.golden"
GOLDEN_AARCH64 = GOLDEN.with_stem("fast_path_aarch64")

# The one list of functions whose price is frozen.
FUNCTIONS = ("malloc", "free", "_Znwm", "_ZdlPv", "_ZdlPvm")
# Each compiler's build of the library (CMake preset, path).
BUILDS = {
    "gcc": ("release", ROOT / "build/libhakmem.so"),
    "clang": ("clang", ROOT / "build/clang/libhakmem.so"),
}
AARCH64_BUILDS = {"aarch64-linux-gnu-gcc": ("aarch64", ROOT / "build/aarch64/libhakmem.so")}
MIX = ("loads", "stores", "branches", "jumps", "calls", "locked", "moves", "arithmetic", "other")

CONDITIONAL = re.compile(r"j(?!mp)[a-z]+$")
MOVE = re.compile(r"(mov[a-z]*|cmov[a-z]*|cltq|cltd|cqto)$")
ONLY_READS = re.compile(r"(cmp|test|bt)[bwlq]?$")
PREFIXES = r"(?:(?:lock|rep|repz|repnz|bnd|notrack|addr32|data16|cs) )*"
WITHOUT_DATA = (
    (CONDITIONAL, "branches"),
    (re.compile(r"call"), "calls"),
    (re.compile(r"jmp|ret"), "jumps"),
    (re.compile(r"push"), "stores"),
    (re.compile(r"pop"), "loads"),
    (re.compile(r"lea"), "arithmetic"),
    (re.compile(r"(endbr64|nop[wl]?|ud2|hlt|pause)$"), "other"),
)


@dataclass(frozen=True)
class Instruction:
    address: int
    mnemonic: str
    operands: str
    locked: bool

    @property
    def target(self) -> int | None:
        """Where a direct jump goes."""
        found = re.match(r"([0-9a-f]+)( <|$)", self.operands)
        return int(found[1], 16) if found and self.mnemonic.startswith("j") else None

    @property
    def is_conditional(self) -> bool:
        return CONDITIONAL.match(self.mnemonic) is not None

    @property
    def is_jump(self) -> bool:
        return self.mnemonic.startswith("jmp")

    @property
    def is_return(self) -> bool:
        return self.mnemonic.startswith("ret")

    @property
    def leaves(self) -> bool:
        """The next instruction is not reached from here, or only after a call."""
        return self.is_jump or self.mnemonic.startswith(("call", "ud2", "hlt"))

    def kinds(self) -> set[str]:
        """The kinds that this instruction counts as; one that computes with a memory operand counts twice."""
        for pattern, kind in WITHOUT_DATA:
            if pattern.match(self.mnemonic):
                return {kind}
        *sources, target = (in_memory(operand) for operand in re.split(r",(?![^(]*\))", self.operands))
        is_move = MOVE.match(self.mnemonic) is not None
        writes = target and not ONLY_READS.match(self.mnemonic)
        kinds = {
            "locked": self.locked,
            "stores": writes,
            "loads": any(sources) or (target and not (is_move and writes)),
            "arithmetic": not is_move,
        }
        return {kind for kind, holds in kinds.items() if holds} or {"moves"}


def in_memory(operand: str) -> bool:
    return "(" in operand or operand.startswith("%fs:")


AnyInstruction = Instruction | fast_path_aarch64.Instruction


@dataclass(frozen=True)
class Function:
    name: str
    instructions: tuple[AnyInstruction, ...]

    def hit_path(self) -> tuple[AnyInstruction, ...]:
        """The shortest way to a return without a call; empty when there is none."""
        index = {instruction.address: i for i, instruction in enumerate(self.instructions)}
        came_from: dict[int, int | None] = {0: None}
        waiting = deque([0])
        while waiting:
            at = waiting.popleft()
            instruction = self.instructions[at]
            if instruction.is_return:
                return self._walk_back(came_from, at)
            following = [] if instruction.leaves else [at + 1]
            if instruction.target in index:
                following.append(index[instruction.target])
            for place in following:
                if place < len(self.instructions) and place not in came_from:
                    came_from[place] = at
                    waiting.append(place)
        return ()

    def _walk_back(self, came_from: dict[int, int | None], last: int) -> tuple[AnyInstruction, ...]:
        path: list[AnyInstruction] = []
        at: int | None = last
        while at is not None:
            path.append(self.instructions[at])
            at = came_from[at]
        return tuple(reversed(path))


def mix(instructions: tuple[AnyInstruction, ...]) -> dict[str, int]:
    return {kind: sum(kind in instruction.kinds() for instruction in instructions) for kind in MIX}


def output_of(*words: str | Path) -> str:
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def parse(line: str) -> Instruction | None:
    found = re.match(rf"\s+([0-9a-f]+):\t({PREFIXES})(\S+)\s*([^#]*)", line)
    if not found:
        return None
    address, prefixes, mnemonic, operands = found.groups()
    exchanges = mnemonic.startswith("xchg") and "(" in operands  # locks without saying so
    locked = exchanges or "lock" in prefixes
    return Instruction(int(address, 16), mnemonic, operands.strip(), locked)


def disassemble(library: Path, name: str) -> Function:
    """The function that the library exports as `name`."""
    for line in output_of("nm", "-D", "--defined-only", "--print-size", library).splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[3].split("@")[0] == name:
            start, size = int(fields[0], 16), int(fields[1], 16)
            break
    else:
        raise LookupError(f"{library.name} exports no function {name}")
    limits = (f"--start-address={start:#x}", f"--stop-address={start + size:#x}")
    is_aarch64 = "aarch64" in library.parts
    objdump = "aarch64-linux-gnu-objdump" if is_aarch64 else "objdump"
    text = output_of(objdump, "-d", "--no-show-raw-insn", *limits, library)
    understood = map(fast_path_aarch64.parse if is_aarch64 else parse, text.splitlines())
    return Function(name, tuple(filter(None, understood)))


def compiler_version(compiler: str) -> str:
    """The major version: another one may choose other instructions."""
    return output_of(compiler, "-dumpversion").split(".")[0].strip()


def build(compiler: str) -> Path:
    """Builds the library with `compiler` and returns its path."""
    preset, library = (BUILDS | AARCH64_BUILDS)[compiler]
    for words in (("cmake", "--preset", preset), ("cmake", "--build", "--preset", preset)):
        step = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
        if step.returncode != 0:
            raise RuntimeError(f"{' '.join(words)} failed:\n{step.stdout}{step.stderr}")
    return library


def describe(compiler: str) -> str:
    """The lines of the golden file for one compiler."""
    library = build(compiler)
    heading = f"{compiler} {compiler_version(compiler)}"
    width = max(12, len(heading))
    lines = [f"{heading:<{width}}{'all':>6}{'hit':>6}" + "".join(f"{kind:>12}" for kind in MIX)]
    for name in FUNCTIONS:
        function = disassemble(library, name)
        path = function.hit_path()
        counts = "".join(f"{count:>12}" for count in mix(path).values())
        lines.append(f"{name:<{width}}{len(function.instructions):>6}{len(path):>6}{counts}")
    return "\n".join(lines) + "\n"
