"""Functions that are not the program's own: a site begins at the first frame that is none of them.

    LEAVES       only pass a request on to malloc
    INTERNALS    the languages' own libraries: std::vector<…>::push_back, alloc::string::String::push_str

The patterns match whole names without their arguments; those of INTERNALS without their result types, too.
LEAVES are RE2 as well as Python's: pprof files carry them as `drop_frames`.  pprof drops what a matching
frame calls, too, so what may call the program back (containers construct elements, CPython collects garbage)
is not among them, and all are folded only where they are innermost.

C's library is known by its file (`profile/labels.py`), or by these names where it is linked in."""

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
INTERNALS = {
    "C": (
        r"_IO_\w+|__(GI|libc|nss|gconv|dlopen|dl|res|nl)_\w+|_(dl|nl)_\w+|__?(fopen|getdelim|vfprintf|opendir)\w*",
        r"fopen(64)?|freopen(64)?|fdopen|popen|tmpfile(64)?|open_\w*memstream|fgets|fread|fwrite|f?puts|f?putc(har)?",
        r"v?f?printf|__printf_chk|opendir|fdopendir|scandir(64)?|glob(64)?|getcwd|realpath|setenv|putenv|tsearch",
        r"setlocale|newlocale|bindtextdomain|textdomain|d?c?gettext|iconv_open|regcomp|re_(compile|search|match)\w*|tzset|localtime(_r)?",
        r"getaddrinfo|gethostby\w+|getpw\w+|getgr\w+|pthread_create\w*|dlopen|dlerror|qsort(_r)?|backtrace(_symbols)?",
    ),
    "C++": (r"(std|__gnu_cxx|__cxxabiv1)::.*|__cxa_(allocate|init|get|demangle|thread|vec)\w*",),
    "Rust": (
        r"(<+(&(mut )?|\*(mut|const) |dyn )*)?((alloc|core)::(alloc|any|array|borrow|boxed|bstr|cell|char"
        r"|clone|cmp|collections|convert|default|escape|ffi|fmt|hash|iter|mem|num|ops|option|panicking|ptr|rc|result"
        r"|slice|str|string|sync|task|unicode|vec)|std|hashbrown)::.*",
        # A plain type's methods, too: <u64 as core::fmt::Display>::fmt, <u8 as <[_]>::to_vec_in::…>::to_vec
        r"<(&(mut )?)*(\w+|\[.*\]|\(.*\)) as (<?(alloc|core|std)|<\[_\]>)::.*",
        r"<(str|\[.*\]|char|bool|[iuf]\d+|[iu]size)>::.*",
    ),
    "CPython": (
        r"_?PyObject_(GC_)?(New|NewVar|Malloc|Calloc|Resize)|_?PyType_(GenericAlloc|AllocNoTrack)",
        r"gc_alloc|_PyObject_GC_\w+",
    ),
}  # fmt: skip
# Functions that only call the program: its own code may be compiled into it.
_CALLING = re.compile(r".*\b(_M_invoke|_M_run|__invoke\w*|call(_once|_mut)?):*([{].*)?")
DROP_FRAMES = "|".join(pattern for group in LEAVES.values() for pattern in group)
_WRAPPER = re.compile(DROP_FRAMES)
_INTERNAL = re.compile("|".join(one for group in INTERNALS.values() for one in group))
OPERATORS = re.compile(r"(?<=\boperator)(\(\)|<=>|->\*?|<<=?|>>=?|[<>]=?)")
# Names come from files, which may hold any; some patterns take the square of the time.
MATCHED_LENGTH_MAX, SEARCHED_LENGTH_MAX = 1 << 13, 1 << 16
_NOT_ARGUMENTS = re.compile(rf"{OPERATORS.pattern}|\(anonymous namespace\)|\{{lambda\(.{{0,1024}}?\)#\d+\}}")


@lru_cache(1 << 16)
def is_wrapper(function: str) -> bool:
    """Whether it only passes requests on, by its name with or without arguments."""
    return _WRAPPER.fullmatch(_ends(without_arguments(function))) is not None


@lru_cache(1 << 16)
def is_internal(function: str) -> bool:
    """Whether it belongs to a language's own library, wrappers of malloc included."""
    if is_wrapper(function):
        return True
    name = _ends(without_result(without_arguments(function), of_all=True))
    return _INTERNAL.fullmatch(name) is not None and _CALLING.fullmatch(_without_templates(name)) is None


def _without_templates(name: str) -> str:
    """`<F as Fn<()>>::call::<u8>` → `::call::`."""
    depth, kept = 0, []
    for at, sign in enumerate(name):
        depth += sign == "<"
        if not depth:
            kept.append(sign)
        depth -= sign == ">" and name[at - 1 : at] != "-" and depth > 0
    return "".join(kept)


def _ends(name: str) -> str:
    """The start and the end of a name, which the patterns are about."""
    if len(name) <= MATCHED_LENGTH_MAX:
        return name
    half = MATCHED_LENGTH_MAX // 2
    return name[:half] + name[-half:]


def without_result(name: str, *, of_all: bool = False) -> str:
    """`void std::vector<int>::f<int>` → `std::vector<int>::f<int>`.  Only templates have one, but where debug
    information says it (`of_all`)."""
    depth, start, is_template = 0, 0, False
    operator = re.search(r"\boperator\b", name)
    for at, sign in enumerate(name[: operator.start()] if operator else name):
        depth += (sign in "<({") - (sign in ">)}" and name[at - 1 : at] != "-")
        is_template = is_template or sign == "<"
        if sign == " " and depth == 0:
            start = at + 1
    return name[start:].lstrip("*& ") if is_template or operator or of_all else name


def without_arguments(function: str) -> str:
    """`operator new(unsigned long)` → `operator new`; template arguments stay."""
    hidden = _NOT_ARGUMENTS.sub(lambda found: "\0" * len(found[0]), function[:SEARCHED_LENGTH_MAX])
    place, depth = -1, 0
    for at, sign in enumerate(hidden):
        depth += (sign == "<") - (sign == ">" and hidden[at - 1 : at] != "-")
        if sign == "(" and depth <= 0:
            place = at
            break
    return function[:place] if place > 0 else function


def without_wrappers(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Without those of malloc at the inner end; all of them if there is nothing else."""
    for place, frame in enumerate(frames):
        if not is_wrapper(frame.function):
            return frames[place:]
    return frames


def program_frames(frames: Sequence[Frame], is_of_runtime: Sequence[bool]) -> Sequence[Frame]:
    """From the first that is the program's own; without wrappers if none is.  `is_of_runtime`: those whose
    file is a language's library."""
    for place, (frame, is_theirs) in enumerate(zip(frames, is_of_runtime, strict=True)):
        if not is_theirs and not is_internal(frame.function):
            return frames[place:]
    return without_wrappers(frames)
