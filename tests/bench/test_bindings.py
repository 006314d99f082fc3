"""Who serves a real program, as the dynamic linker tells it."""

from pathlib import Path

import pytest
from harness.allocators import Allocator
from harness.bindings import bindings_of, check_bindings, wrong_bindings
from harness.execute import RunError

HAKMEM = Allocator("hakmem", Path("/somewhere/libhakmem.so"))


def binding(source: str, target: str, symbol: str = "malloc") -> str:
    return f"  77:\tbinding file {source} [0] to {target} [0]: normal symbol `{symbol}' [GLIBC_2.2.5]\n"


def test_bindings_are_read() -> None:
    text = binding("redis-server", "/lib/libjemalloc.so.2") + binding("/lib/a.so", "/lib/b.so", "free")
    assert bindings_of("malloc", text) == {("redis-server", "libjemalloc.so.2")}
    assert wrong_bindings(bindings_of("malloc", text), "libhakmem.so")


def test_an_executable_may_hand_on() -> None:
    """CPython takes malloc's address: the C library is bound to the executable, which is bound on."""
    found = {("libc.so.6", "python3.11"), ("python3.11", "libhakmem.so")}
    assert not wrong_bindings(found, "libhakmem.so")
    assert wrong_bindings(found, "libc.so.6")
    # The library itself may bind elsewhere.
    assert not wrong_bindings({("libhakmem.so", "libc.so.6"), ("jq", "libhakmem.so")}, "libhakmem.so")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (binding("jq", "/somewhere/libhakmem.so"), ""),
        (binding("jq", "/somewhere/libhakmem.so") + binding("sh", "/lib/libc.so.6"), "is bound to libc.so.6"),
        (binding("jq", "/somewhere/libhakmem.so", "free"), "no process"),
    ],
)
def test_all_processes_count(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "bindings.77").write_text(text)
    if complaint:
        with pytest.raises(RunError, match=complaint):
            check_bindings(tmp_path, HAKMEM)
    else:
        check_bindings(tmp_path, HAKMEM)


@pytest.mark.parametrize("place", ["/root/lib/libc.so.6", "/lib/libc.so.6"])
def test_another_c_library_serves_all_processes(tmp_path: Path, place: str) -> None:
    newer = Allocator("glibc-new", None, wrapper=("/root/lib/ld.so", "--library-path", "/root/lib"))
    (tmp_path / "bindings.77").write_text(binding("git", "/root/lib/libc.so.6"))
    (tmp_path / "bindings.78").write_text(binding("git", place))
    if place.startswith("/root"):
        check_bindings(tmp_path, newer)
    else:
        with pytest.raises(RunError, match="a process that the program starts runs on /lib"):
            check_bindings(tmp_path, newer)
