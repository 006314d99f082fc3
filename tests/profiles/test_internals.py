"""The first frame of a site is the program's own; a language's library is folded, unless it is asked for."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hakmem.blocks.evidence import gather_evidence
from hakmem.blocks.growing import Watched
from hakmem.cli import main
from hakmem.profile.files import save, writer_of
from hakmem.profile.labels import Labels
from hakmem.profile.model import Frame, Header, Mapping, Profile, Sample
from hakmem.profile.names import Sources
from hakmem.profile.wrappers import is_internal
from hakmem.views.profile_text import show_profile

PROGRAM, LIBC, LIBCXX, OWN_LIBRARY = 0x1000, 0x100000, 0x200000, 0x300000
FILES = {
    PROGRAM: "/opt/app/server",
    LIBC: "/usr/lib/x86_64-linux-gnu/libc.so.6",
    LIBCXX: "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30",
    OWN_LIBRARY: "/opt/app/libcrypt-own.so",
}


@pytest.mark.parametrize(
    ("function", "internal"),
    [
        ("void std::vector<int, std::allocator<int> >::push_back(int const&)", True),
        ("std::vector<app::Item>::emplace_back<app::Item>(app::Item&&)", True),
        ("std::__cxx11::basic_string<char>::_M_append(char const*, unsigned long)", True),
        ("std::map<int, int>::operator[](int const&)", True),
        ("std::enable_if<true, int>::type std::__detail::f<int>(int)", True),
        ("__gnu_cxx::hashtable<int>::resize(unsigned long)", True),
        ("operator new(unsigned long)", True),
        ("__cxa_allocate_exception", True),
        ("std::_Function_handler<void (), main::{lambda()#1}>::_M_invoke(std::_Any_data const&)", False),
        ("std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)()> > >::_M_run()", False),
        ("app::std_like::push_back(int)", False),
        ("app::Stack<std::vector<int> >::push(int)", False),
        ("std::vector<int> app::load<int>(char const*)", False),
        ("alloc::string::String::push_str", True),
        ("<alloc::vec::Vec<T,A> as core::clone::Clone>::clone", True),
        ("<T as alloc::string::ToString>::to_string", True),
        ("<&mut alloc::string::String as core::fmt::Write::write_fmt::SpecWriteFmt>::spec_write_fmt", True),
        ("<&mut app::Log as core::fmt::Write::write_fmt::SpecWriteFmt>::spec_write_fmt", False),
        ("<[T] as alloc::borrow::ToOwned>::to_owned", True),
        ("core::iter::traits::iterator::Iterator::collect", True),
        ("std::collections::hash::map::HashMap<K,V,S>::insert", True),
        ("hashbrown::raw::RawTable<T,A>::reserve_rehash", True),
        ("core::ops::function::FnOnce::call_once{{vtable.shim}}", False),
        ("<hashbrown::raw::RawTable<(app::Key, u64)>>::reserve_rehash::<app::Hasher>", True),
        ("<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec::<alloc::alloc::Global>", True),
        ("<<std::sys::backtrace::BacktraceLock>::print::DisplayBacktrace as core::fmt::Display>::fmt", True),
        (
            "<core::iter::adapters::map::Map<app::List, app::f::{closure#1}> as core::iter::traits::iterator:"
            ":Iterator>::fold::<(), core::iter::traits::iterator::Iterator::for_each::call<u8, app::g>>",
            True,
        ),
        ("<alloc::rc::Rc<u8> as core::ops::function::FnOnce<()>>::call_once::<u8>::{closure#0}", False),
        ("<app::Node<alloc::vec::Vec<u8>>>::grow", False),
        ("<app::Cache<u64, u16> as app::Store>::put", False),
        ("<server::Item as core::clone::Clone>::clone", False),
        ("server::alloc::Pool::take", False),
        ("core::Engine::run(int)", False),  # somebody's own namespace
        ("alloc::Pool::get(int)", False),
        ("_IO_file_doallocate", True),
        ("getline", True),
        ("__GI___strdup", True),
        ("getline_of_mine", False),
        ("putsome", False),
        ("PyMem_RawMalloc", True),
        ("_PyMem_RawStrdup", True),
        ("PyList_Append", False),
        ("malloc", True),
        ("__libc_calloc", True),
        ("operator new[](unsigned long, std::align_val_t)", True),
        ("std::__new_allocator<char>::allocate(unsigned long, void const*)", True),
        ("void std::vector<Item, std::allocator<Item> >::_M_realloc_insert<Item>(Item&&)", True),
        ("g_malloc0_n", True),
        ("_PyObject_GC_NewVar", True),
        ("alloc::raw_vec::RawVec<T,A>::grow_one", True),
        ("<alloc::raw_vec::RawVecInner>::try_reserve_exact", True),
        ("__rustc::__rust_alloc", True),
        ("<hakmem::allocator::Hakmem as core::alloc::global::GlobalAlloc>::alloc", True),
        ("<alloc::vec::Vec<u8> as core::clone::Clone>::clone", True),
        ("<u64 as core::fmt::Display>::fmt", True),
        ("<T as alloc::slice::hack::ConvertVec>::to_vec", True),
        ("<str>::repeat", True),
        ("<app::Order as core::fmt::Display>::fmt", False),
        ("app::keep_orders", False),
        ("std::string render(int)", False),
        ("core::Engine::load(char const*)", False),
        ("", False),
        ("xmalloc", True),
        ("runtime.growslice", True),
        ("runtime.malg", False),
        ("my_malloc_test", False),
        ("app::Cache::operator()(int)", False),
        ("(anonymous namespace)::fill(int)", False),
        ("mallocator::run", False),
        ("main", False),
    ],
)
def test_what_belongs_to_a_language(function: str, internal: bool) -> None:
    assert is_internal(function) is internal


def profile_of_calls(*calls: tuple[int, str]) -> Profile:
    """One sample; each call in the file that begins there, innermost first."""
    stack = tuple(start + 0x10 * (number + 1) for number, (start, _) in enumerate(calls))
    names = {at: (Frame(name),) for at, (_, name) in zip(stack, calls, strict=True) if name}
    made = Profile(Header(process_name="server"), names=names)
    made.mappings = [Mapping(start, start + 0x10000, 0, path) for start, path in FILES.items()]
    made.samples = [Sample(stack, 3, 64, 64, 6400.0, 100.0)]
    return made


def site(profile: Profile, *, with_internals: bool = False) -> list[str]:
    labels = Labels(profile, with_internals=with_internals)
    return [frame.function for frame in labels.site(profile.samples[0].stack, 2)]


GROWN = "void std::vector<int>::_M_realloc_insert<int>(int*, int&&)"
CALLS = (
    (LIBCXX, "operator new(unsigned long)"),
    (PROGRAM, GROWN),
    (PROGRAM, "app::add(int)"),
    (PROGRAM, "main"),
)


def test_a_container_is_folded_to_who_uses_it() -> None:
    assert site(profile_of_calls(*CALLS)) == ["app::add(int)", "main"]
    assert site(profile_of_calls(*CALLS), with_internals=True) == [CALLS[0][1], GROWN]


def test_libraries_of_c_are_known_by_their_files() -> None:
    """Their inner functions mostly have no names."""
    calls = ((LIBC, ""), (LIBC, "fopen"), (OWN_LIBRARY, "log_open"), (LIBC, "__libc_start_call_main"))
    assert site(profile_of_calls(*calls)) == ["log_open", "__libc_start_call_main"]
    called_back = ((PROGRAM, "compare"), (LIBC, "qsort"), (PROGRAM, "main"))
    assert site(profile_of_calls(*called_back)) == ["compare", "qsort"]


def test_inner_functions_of_a_library_are_one() -> None:
    """Another build has other addresses, and labels of metrics must outlive it."""
    calls = ((PROGRAM, "work"), (LIBCXX, ""), (LIBCXX, ""), (LIBC, "start_thread"))
    assert site(profile_of_calls(*calls)) == ["work", "libstdc++.so"]
    assert site(profile_of_calls(*calls[1:])) == ["libstdc++.so", "start_thread"]
    assert site(profile_of_calls(*calls), with_internals=True) == ["work", "libstdc++.so.6.0.30+0x20"]


def test_where_nothing_is_the_programs_own_the_site_is_who_called_malloc() -> None:
    calls = ((LIBC, "malloc"), (LIBCXX, "std::locale::classic()"), (LIBC, "__libc_start_call_main"))
    assert site(profile_of_calls(*calls)) == ["std::locale::classic()", "__libc_start_call_main"]


def test_the_table_folds_them_and_shows_them_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    show_profile(profile_of_calls(*CALLS))
    folded = capsys.readouterr().out
    assert "app::add ← main" in folded
    assert "std::" not in folded
    show_profile(profile_of_calls(*CALLS), with_internals=True)
    assert "operator new ← std::vector<int>::_M_realloc_insert" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "first"), [((), "app::add ← main"), (("--internals",), "operator new ← std::vector<int>::")]
)
def test_a_profile_of_elsewhere_is_shown_so(asked: tuple[str, ...], first: str, tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    save(profile_of_calls(*CALLS), file, writer_of(file))
    result = CliRunner().invoke(main, ["profile", str(file), *asked])
    assert result.exit_code == 0, result.output
    assert first in result.output


def test_leaks_begin_there_too() -> None:
    for with_internals, first in ((False, "app::add(int)"), (True, CALLS[0][1])):
        watched = Watched(profile_of_calls(*CALLS))
        found = gather_evidence(watched, None, Sources(), with_internals=with_internals)
        assert found is not None
        assert found.sites[0].frames[0].function == first


def test_a_long_name_is_looked_at_once() -> None:
    """A pattern with a repetition inside another took 2^n steps for n letters."""
    assert not is_internal(f"<{'a' * 5000}::Item as core::clone::Clone>::clone")
    assert not is_internal(f"<&mut {'a' * 5000}")
    assert is_internal("<&&mut [u8] as core::fmt::Debug>::fmt")
