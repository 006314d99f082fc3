"""Functions that only pass a request on to malloc: a site begins at the first frame that is none of them.

The patterns match whole names without their arguments, and are RE2 as well as Python's: pprof files carry
those of LEAVES as `drop_frames`.  pprof drops what a matching frame calls, too, so what may call the program
back (containers construct elements, CPython collects garbage) is folded only where it is innermost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from hakmem.profile.model import Frame

# Library or language → its functions.
LEAVES = {
    "C": (
        r"(__libc_|__GI_|__GI___libc_|__interceptor_|je_|tc_|mi_|hak_)?(malloc|calloc|realloc|memalign|valloc|pvalloc)",
        r"reallocarray|aligned_alloc|posix_memalign|(__)?(strdup|strndup)|__GI___strdup|wcsdup",
        r"hak_\w+",
        r"(__)?v?asprintf(_chk|_internal)?|(_IO_)?(__)?get(line|delim)",
        r"[xsz](m|c|re)alloc(_n|n|array|_array)?|xn(m|re)alloc|xstrn?dup|xmemdup|zmalloc_usable|ztry\w+",
    ),
    "C++": (
        r"operator new(\[\])?",
        r"(\w+[*&]* )?(__gnu_cxx|std)::(__1::)?_*(new_)?allocator(_traits)?<.*>::_?_?allocate\w*",
        r"(\w+[*&]* )?std::(__1::)?__(libcpp_)?allocat\w*(<.*>)?",
    ),
    "Rust": (
        r"(__rustc(\[\w+\])?::)?__(rust|rdl|rg)_(alloc|realloc|alloc_zeroed)|_*rust_(re)?alloc\w*",
        r"<?alloc::alloc::.*|<?(alloc::)?raw_vec::.*|<?alloc::raw_vec::.*|hashbrown::raw::.*::(new_uninitialized|try_with_capacity|with_capacity).*",
        r"<?std::(sys|alloc)::.*alloc.*|core::alloc::.*|<.* as core::alloc::global::GlobalAlloc>::\w+",
    ),
    "Go": (
        r"_cgo_[0-9a-f]+_Cfunc__?CMalloc|_cgo_cmalloc",
        r"runtime\.(mallocgc\w*|new(object|array)|(make|grow)slice\w*|make(map|chan)\w*|raw(string|byteslice)\w*)",
    ),
    "GLib": (
        r"g_(try_)?(malloc|malloc0|realloc)(_n)?|g_(aligned_alloc0?|slice_alloc0?|slice_copy|memdup2?)",
        r"g_(strdup|strndup|strconcat|strjoinv?|strdup_v?printf|strnfill)|g_datalist_\w*alloc",
    ),
    "CPython": (
        r"_?Py(Mem|Object)_(Raw|Debug|DebugRaw|Default)?(Malloc|Calloc|Realloc)|_PyMem_(Raw|Debug)\w+",
        r"_PyMem_(Strdup|RawStrdup)|_?PyMem_\w*(Strdup|Wcsdup)|pymalloc_\w+|new_arena",
    ),
    "libraries": (
        r"CRYPTO_(malloc|zalloc|realloc|clear_realloc|strn?dup|memdup)|OPENSSL_\w*alloc",
        r"sqlite3_(malloc|realloc)(64)?|sqlite3(Mem)?(Malloc|Realloc)(Zero)?|sqlite3Db(Malloc|Realloc)\w*|mallocWithAlarm",
        r"l_alloc|luaM_\w+|zend_mm_\w+|_?_?(safe_)?p?e(malloc|calloc|realloc)(_\w+)?|(ap|apr)_p?c?alloc\w*",
        r"ngx_(alloc|calloc|palloc\w*|pcalloc|pnalloc)|av_(malloc|mallocz|realloc|calloc|strdup)\w*",
        r"palloc(0|_extended)?|repalloc|pstrdup|pnstrdup|MemoryContextAlloc\w*|(AllocSet|Generation|Slab)(Alloc|Realloc)\w*",
        r"os::(malloc|realloc)|AllocateHeap|node::(Malloc|Calloc|Realloc|UncheckedMalloc|UncheckedRealloc)(<.*>)?",
    ),
}  # fmt: skip
CALLING_BACK = {
    "C++": (
        r"(.* )?std::(make_(unique|shared)|allocate_shared)(_for_overwrite)?(<.*>)?",
        *(
            rf"(\w+[*&]* )?std::.*::({names})(<.*>)?"
            for names in (
                r"_M_allocate\w*|_M_create\w*|_S_create|_M_get_node|_M_realloc_insert|_M_realloc_append",
                r"_M_default_append|_M_fill_insert|_M_range_insert|_M_mutate|_M_replace\w*|_M_append",
                r"_M_construct\w*|_M_emplace\w*|_M_insert\w*|_M_rehash\w*|_M_initialize_map",
                r"__construct_node|__push_back_slow_path|__emplace_back_slow_path|__grow_by\w*",
            )
        ),
    ),
    "Rust": (  # a plain type's methods, too: <u64 as core::fmt::Display>::fmt
        r"<?alloc::(alloc|borrow|boxed|collections|ffi|fmt|raw_vec|rc|slice|str|string|sync|vec)::.*|<?hashbrown::.*",
        r"<?core::(array|cell|clone|convert|fmt|iter|mem|ops|option|ptr|result|slice|str|task)::.*",
        r"<?std::(backtrace|collections|env|ffi|fs|io|net|panic|panicking|path|process|rt|sync|sys|thread)::.*",
        r"<(&|mut |\w+|\[.*\]|\(.*\))+ as (alloc|core|std)::.*|<(str|\[.*\])>::.*",
    ),
    "CPython": (
        r"_?PyObject_(GC_)?(New|NewVar|Malloc|Calloc|Resize)|_?PyType_(GenericAlloc|AllocNoTrack)",
        r"gc_alloc|_PyObject_GC_\w+",
    ),
}
DROP_FRAMES = "|".join(pattern for group in LEAVES.values() for pattern in group)
_MATCHER = re.compile("|".join([DROP_FRAMES, *(one for group in CALLING_BACK.values() for one in group)]))
OPERATORS = re.compile(r"(?<=\boperator)(\(\)|<=>|->\*?|<<=?|>>=?|[<>]=?)")
_NOT_ARGUMENTS = re.compile(rf"{OPERATORS.pattern}|\(anonymous namespace\)|\{{lambda\(.*?\)#\d+\}}")


@lru_cache(1 << 16)
def is_wrapper(function: str) -> bool:
    """Whether it only passes requests on, by its name with or without arguments."""
    return _MATCHER.fullmatch(without_arguments(function)) is not None


def without_arguments(function: str) -> str:
    """`operator new(unsigned long)` → `operator new`; template arguments stay."""
    hidden = _NOT_ARGUMENTS.sub(lambda found: "\0" * len(found[0]), function)
    place, depth = -1, 0
    for at, sign in enumerate(hidden):
        depth += (sign == "<") - (sign == ">" and hidden[at - 1 : at] != "-")
        if sign == "(" and depth <= 0:
            place = at
            break
    return function[:place] if place > 0 else function


def program_frames(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Without the wrappers at the inner end; all of them if there is nothing else."""
    for place, frame in enumerate(frames):
        if not is_wrapper(frame.function):
            return frames[place:]
    return frames
