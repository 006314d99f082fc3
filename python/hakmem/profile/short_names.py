"""Names of functions for tables: as their authors would write them, and not longer than a line has room for.

Formats keep the whole names.  What is left out, until the name fits:

    always      arguments, result types, ABI tags, inline namespaces of C++ libraries, default template
                arguments of std::, aliases written out (std::basic_string<char, …> is std::string)
    if needed   template arguments, the innermost first: std::map<std::string, std::vector<…>>
    in the end  the middle of the name
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache

from hakmem.profile.wrappers import OPERATORS, without_arguments, without_result

NAME_LENGTH_MAX = 80
PARSED_LENGTH_MAX = 1 << 13  # names come from files, which may hold any
MORE = "…"

_NOISE = re.compile(r"\[abi:\w+\]")
_INLINE_NAMESPACE = re.compile(r"\b(std|__gnu_cxx)::(__cxx11|__1|__ndk1|__[0-9])::")
_DEFAULT = re.compile(
    r"std::(allocator|less|equal_to|hash|char_traits|default_delete)<.*>|\(__gnu_cxx::_Lock_policy\)2"
)
_OF_STD = re.compile(r"(^|[^\w:])(?P<name>(std|__gnu_cxx)::[\w:]+)$")
_OF_CHARACTERS = re.compile(
    r"std::basic_(string(_view)?|[io]?(f|string)?stream|streambuf|filebuf|stringbuf|ios|regex)"
)
_CHARACTERS = {"char": "", "wchar_t": "w", "char8_t": "u8", "char16_t": "u16", "char32_t": "u32"}
_HIDDEN = "\0"  # stands for the signs of an operator


@lru_cache(1 << 16)
def short_name(function: str) -> str:
    """`void app::Cache<std::vector<int, std::allocator<int> > >::grow<int>(int)` →
    `app::Cache<std::vector<int>>::grow<int>`."""
    name = without_arguments(function)
    if len(name) <= PARSED_LENGTH_MAX:
        has_arguments = len(name) < len(function)
        name = _INLINE_NAMESPACE.sub(r"\1::", _NOISE.sub("", name))
        operators = [found[0] for found in OPERATORS.finditer(name)]
        hidden = OPERATORS.sub(_HIDDEN, name)
        hidden = _collapsed(without_result(_simplified(hidden)) if has_arguments else _simplified(hidden))
        # An operator may be inside what was left out: then none can be told from the others.
        if hidden.count(_HIDDEN) == len(operators):
            for signs in operators:
                hidden = hidden.replace(_HIDDEN, signs, 1)
            name = hidden
    if len(name) <= NAME_LENGTH_MAX:
        return name
    half = (NAME_LENGTH_MAX - len(MORE)) // 2
    return f"{name[:half]}{MORE}{name[-half:]}"


@dataclass
class _Open:
    """A bracket that is open, and its content so far."""

    done: list[str] = field(default_factory=list)  # the arguments before the last comma
    text: str = ""
    parentheses: int = 0

    @property
    def arguments(self) -> list[str]:
        return [*self.done, self.text.strip()]


def _simplified(name: str) -> str:
    """Without default arguments, and with aliases; the name itself if its brackets do not match."""
    stack = [_Open()]
    for at, sign in enumerate(name):
        top = stack[-1]
        if sign == "<":
            stack.append(_Open())
        elif sign == ">" and name[at - 1 : at] != "-":
            if len(stack) == 1 or top.parentheses:
                return name
            stack.pop()
            stack[-1].text = _template(stack[-1].text, top.arguments)
        elif sign == "," and len(stack) > 1 and not top.parentheses:
            top.done.append(top.text.strip())
            top.text = ""
        else:
            top.parentheses += (sign == "(") - (sign == ")")
            top.text += sign
    return stack[0].text if len(stack) == 1 else name


def _template(head: str, arguments: list[str]) -> str:
    found = _OF_STD.search(head)
    if found is not None:
        while len(arguments) > 1 and _DEFAULT.fullmatch(arguments[-1]):
            arguments.pop()
        prefix = _CHARACTERS.get(arguments[0])
        if len(arguments) == 1 and prefix is not None and _OF_CHARACTERS.fullmatch(found["name"]):
            return f"{head[: found.start('name')]}std::{prefix}{found['name'].removeprefix('std::basic_')}"
    return f"{head}<{', '.join(arguments)}>"


def _collapsed(name: str) -> str:
    """Keeps as many levels of template arguments as there is room for."""
    if len(name) <= NAME_LENGTH_MAX:
        return name
    levels = range(name.count("<"))
    fitting = bisect_right(levels, NAME_LENGTH_MAX, key=lambda kept: len(_cut_below(name, kept)))
    return _cut_below(name, max(0, fitting - 1))


def _cut_below(name: str, kept: int) -> str:
    """Without what stands in more than `kept` brackets of templates; those of `<T as Trait>` stay."""
    out: list[str] = []
    is_path: list[bool] = []  # of each open bracket: none of a template
    levels = 0
    for at, sign in enumerate(name):
        before = name[at - 1 : at]
        if sign == "<":
            is_path.append(not (before.isalnum() or before in {"_", _HIDDEN}))
            levels += not is_path[-1]
            if levels == kept + 1 and not is_path[-1]:
                out.append(f"<{MORE}>")
        if levels <= kept:
            out.append(sign)
        if sign == ">" and is_path and before != "-":
            levels -= not is_path.pop()
    return "".join(out)
