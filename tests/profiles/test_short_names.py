"""Names of functions as tables show them."""

import random
import subprocess
from pathlib import Path

import pytest
from hakmem.profile.folded import to_folded
from hakmem.profile.model import Frame, Sample
from hakmem.profile.pprof import to_pprof
from hakmem.profile.pprof_reader import from_pprof
from hakmem.profile.short_names import NAME_LENGTH_MAX, short_name
from hakmem.target.demangle import demangled
from hakmem.views.profile_page import render
from profiles.worlds import profile_of
from results import captured

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
MAP = (
    f"std::map<{STRING}, std::vector<int, std::allocator<int> >, std::less<{STRING} >, "
    f"std::allocator<std::pair<{STRING} const, std::vector<int, std::allocator<int> > > > >"
)
PAIR = f"std::pair<{STRING} const, app::Entry>"
FIRST = f"std::_Select1st<{PAIR} >"
TREE = f"std::_Rb_tree<{STRING}, {PAIR}, {FIRST}, std::less<{STRING} >, std::allocator<{PAIR} > >"


@pytest.mark.parametrize(
    ("function", "short"),
    [
        # As they are.
        ("main", "main"),
        ("", ""),
        ("operator new(unsigned long)", "operator new"),
        ("(anonymous namespace)::fill(int)", "(anonymous namespace)::fill"),
        ("app::Cache::operator()(int)", "app::Cache::operator()"),
        ("Foo::operator unsigned long() const", "Foo::operator unsigned long"),
        ("LazyCompile:~leak /srv/app.js:3:14", "LazyCompile:~leak /srv/app.js:3:14"),
        ("JS:~<anonymous> /srv/app.js:1:2", "JS:~<anonymous> /srv/app.js:1:2"),
        ("py::leak:/srv/app.py", "py::leak:/srv/app.py"),
        # What the compiler adds.
        (f"app::load({STRING} const&)", "app::load"),
        ("app::name[abi:cxx11](int)", "app::name"),
        (f"{STRING}::_M_create(unsigned long&, unsigned long)", "std::string::_M_create"),
        (f"app::Cache<{STRING} >::grow(unsigned long)", "app::Cache<std::string>::grow"),
        ("std::__1::vector<int, std::__1::allocator<int> >::f()", "std::vector<int>::f"),
        (f"app::Table<{MAP} >::grow()", "app::Table<std::map<std::string, std::vector<int>>>::grow"),
        (
            "std::unique_ptr<app::Node, std::default_delete<app::Node> >::reset(app::Node*)",
            "std::unique_ptr<app::Node>::reset",
        ),
        (
            "std::basic_ostringstream<wchar_t, std::char_traits<wchar_t>, "
            "std::allocator<wchar_t> >::str() const",
            "std::wostringstream::str",
        ),
        (
            "std::unordered_map<int, long, std::hash<int>, std::equal_to<int>, "
            "std::allocator<std::pair<int const, long> > >::operator[](int const&)",
            "std::unordered_map<int, long>::operator[]",
        ),
        # Results of templates.
        ("void std::vector<Item, std::allocator<Item> >::f<Item>(Item&&)", "std::vector<Item>::f<Item>"),
        ("std::vector<int> const& app::all<int>(int)", "app::all<int>"),
        ("bool app::operator< <int>(app::A<int> const&)", "app::operator< <int>"),
        ("std::ostream& operator<< <char>(std::ostream&, char)", "operator<< <char>"),
        ("app::A<int>::operator->() const", "app::A<int>::operator->"),
        # What is not the default stays.
        ("std::vector<int, app::Arena<int> >::f()", "std::vector<int, app::Arena<int>>::f"),
        ("app::Pool<int, std::allocator<int> >::f()", "app::Pool<int, std::allocator<int>>::f"),
        (
            "std::set<int, std::greater<int>, std::allocator<int> >::f()",
            "std::set<int, std::greater<int>>::f",
        ),
        (
            "std::basic_string<char, app::Traits, std::allocator<char> >::f()",
            "std::basic_string<char, app::Traits>::f",
        ),
        ("A<void (*)(int, std::vector<int>)>::f(int)", "A<void (*)(int, std::vector<int>)>::f"),
        # Too long for a line: the innermost arguments go first.
        (
            f"{TREE}::_M_emplace_hint_unique<std::piecewise_construct_t const&>(int)",
            "std::_Rb_tree<…>::_M_emplace_hint_unique<…>",
        ),
        (
            "app::Registry<app::Key<first::very::long::Name>, app::Value<second::very::long::Name>, int>"
            "::insert(int)",
            "app::Registry<app::Key<…>, app::Value<…>, int>::insert",
        ),
        # Rust.
        ("alloc::raw_vec::RawVec<T,A>::grow_one", "alloc::raw_vec::RawVec<T, A>::grow_one"),
        ("<T as core::convert::Into<U>>::into", "<T as core::convert::Into<U>>::into"),
        (
            "<alloc::vec::Vec<server::connection::Buffer<u8>> as "
            "core::iter::traits::collect::FromIterator<T>>::from_iter",
            "<alloc::vec::Vec<…> as core::iter::traits::collect::FromIterator<…>>::from_iter",
        ),
        # No brackets that match.
        ("a<b", "a<b"),
        ("a>b<", "a>b<"),
        ("std::vector<(1>0)>", "std::vector<(1>0)>"),
    ],
)  # fmt: skip
def test_names_of_tables(function: str, short: str) -> None:
    assert short_name(function) == short


def test_a_name_without_end_loses_its_middle() -> None:
    shown = short_name("app::" + "very_" * 100 + "long(int)")
    assert shown.startswith("app::very_")
    assert shown.endswith("_long")
    assert "…" in shown
    assert len(shown) <= NAME_LENGTH_MAX


def test_any_text_is_shortened() -> None:
    """Names come from files: whatever they hold, there is an answer, and it fits."""
    random.seed(7)
    pieces = [*"<>,() a\0", "::", "operator", "std::vector", "{lambda(int)#1}", "->", "[abi:x]"]
    for _ in range(5000):
        text = "".join(random.choices(pieces, k=random.randrange(60)))
        assert len(short_name(text)) <= NAME_LENGTH_MAX
    for text in ("<" * 8000, "a<" * 2700 + ">" * 2700, "operator<" * 1000, "a<" * 500_000, "(" * 5000):
        assert len(short_name(text)) <= NAME_LENGTH_MAX


SOURCE = """
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
template <typename T> struct Cache { __attribute__((noipa)) void grow(const T &) {} };
template <typename T> __attribute__((noipa)) std::vector<T> listed(T one) { return {one}; }
int main()
{
    Cache<std::map<std::string, std::vector<std::string>>>{}.grow({});
    Cache<std::unordered_map<std::string, int>>{}.grow({});
    return (int)listed(std::string("x")).size() - 1;
}
"""


def test_names_that_a_compiler_writes(tmp_path: Path) -> None:
    (tmp_path / "x.cc").write_text(SOURCE)
    subprocess.run(["g++", "-O1", "x.cc", "-o", "x"], cwd=tmp_path, check=True)
    text = captured(["nm", tmp_path / "x"], check=True).stdout
    mangled = [line.split()[-1] for line in text.splitlines()]
    shown = {short_name(name) for name in demangled(mangled).values()}
    assert "Cache<std::map<std::string, std::vector<std::string>>>::grow" in shown
    assert "Cache<std::unordered_map<std::string, int>>::grow" in shown
    assert "listed<std::string>" in shown
    assert not [
        name
        for name in shown
        if "allocator<char>" in name and "std::string" not in name and "::allocator" not in name
    ]


def test_formats_keep_the_whole_name() -> None:
    whole = f"app::Cache<{STRING} >::grow(unsigned long)"
    profile = profile_of([Sample((1,), 1, 64, 64, 6400.0, 100.0)])
    profile.names = {1: (Frame(whole),)}
    assert from_pprof(to_pprof(profile), "x").names[1][0].function == whole
    assert whole in to_folded(profile)
    page = render(profile)
    assert "app::Cache&lt;std::string&gt;::grow" in page
    assert whole.replace("<", "&lt;").replace(">", "&gt;") in page  # the title of the cell
