"""aarch64's instructions, as fast_path.py wants to know them."""

from __future__ import annotations

import re
from dataclasses import dataclass

CONDITIONAL = re.compile(r"(b\.[a-z]+|cbn?z|tbn?z)$")
# Exclusive and atomic ones, and barriers: a fast path must not wait for them.
WAITS = re.compile(r"(ld|st)a?l?x[rp]|ldax|ld(add|clr|set|eor|smax|umax)|st(add|clr|set)|cas|swp|dmb|dsb|isb")
KINDS = (
    (CONDITIONAL, "branches"),
    (re.compile(r"blr?[a-z]*$"), "calls"),
    (re.compile(r"(b|br|ret)[a-z]*$"), "jumps"),
    (re.compile(r"ld"), "loads"),
    (re.compile(r"st"), "stores"),
    (re.compile(r"(mov[a-z]*|mvn|mrs|csel|fmov)$"), "moves"),
    (re.compile(r"(nop|bti|paciasp|autiasp|hint|prfm|brk|udf|yield)$"), "other"),
)


@dataclass(frozen=True)
class Instruction:
    address: int
    mnemonic: str
    operands: str

    @property
    def locked(self) -> bool:
        return WAITS.match(self.mnemonic) is not None

    @property
    def target(self) -> int | None:
        """Where a direct jump goes: its last operand."""
        found = re.search(r"(?:^|, )(?:0x)?([0-9a-f]+)(?: <|$)", self.operands)
        jumps = self.mnemonic == "b" or CONDITIONAL.match(self.mnemonic)
        return int(found[1], 16) if found and jumps else None

    @property
    def is_return(self) -> bool:
        return self.mnemonic.startswith("ret")

    @property
    def leaves(self) -> bool:
        """The next instruction is not reached from here, or only after a call."""
        return self.mnemonic in {"b", "br", "brk", "udf", "bl", "blr"}

    def kinds(self) -> set[str]:
        """The kinds that this instruction counts as: one, but for those that wait."""
        kind = next((kind for pattern, kind in KINDS if pattern.match(self.mnemonic)), "arithmetic")
        return {kind, "locked"} if self.locked else {kind}


def parse(line: str) -> Instruction | None:
    found = re.match(r"\s+([0-9a-f]+):\t(\S+)\s*((?:(?!//).)*)", line)
    return Instruction(int(found[1], 16), found[2], found[3].strip()) if found else None
